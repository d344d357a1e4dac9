"""What a memory holds: a page on all tasks of a problem, or on all problems.

reading   what is stored: runs, dates, and which past runs stood behind each trial
spaces    one search space for all tasks of a problem
models    a model of each task, and where all of them are asked
likeness  which tasks rank configurations alike
teaching  which tasks taught which
first     the configurations to try first on a new task
best      the best configuration of each task
listing   tables of problems, tasks and studies of others
page      all of it on one page
"""

from recollect.report.overview.page import Links, overview_page

__all__ = ["Links", "overview_page"]
