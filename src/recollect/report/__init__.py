"""HTML pages that show what was measured and what was transferred; each is one file that opens offline.

html       elements whose text is escaped by construction
formatting names, numbers and values as text
table      tables that readers can sort
figure     figures: a question, a caption, a drawing, and its numbers as a table
page       one page with all of it, and the policy that admits nothing else
run        the page of one run
memory     the page of a memory
benchmark  the page of finished experiments
dashboard  the pages of a memory, served and kept up to date
"""
