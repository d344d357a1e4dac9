"""The telling: HTML pages that show what was measured and what was transferred, each one file that opens offline.

html      elements whose text is escaped by construction
names     texts from outside, made fit to be shown
table     tables that readers can sort
figure    figures: a question, an answer, a drawing, and its numbers as a table
page      all of it on one page, with a policy that lets nothing else in
benchmark what a page on finished experiments says
"""
