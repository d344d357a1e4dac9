"""What a run or a memory says, as data without HTML: shared by reports, the dashboard and the command line.

run_data          a run with its past runs, settings and why each trial was suggested
run_progress      values of trials as arrays, and what to expect of a run without transfer
source_usefulness the weights of past runs in a run and in all tasks, and what each past run was worth to a run
importance        which hyperparameters mattered
memory_tasks      the tasks of a memory; models of them: which rank alike, and what to try first on a new task
"""
