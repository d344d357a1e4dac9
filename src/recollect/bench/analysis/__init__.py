"""What finished experiments say: aggregates, tests, tables, figures."""
