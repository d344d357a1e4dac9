"""Search spaces compiled to arrays, and ways to draw points from them."""
