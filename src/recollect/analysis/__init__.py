"""What a run or a memory says, as data without HTML: shared by reports, the dashboard and the command line.

run_data          a run with its past runs, settings and why each trial was suggested
trial_records     every trial: finished, failed, pruned or running, with times, workers and reports
headline          what a run says first: state, best trial, and what past runs brought, with its uncertainty
run_summary       a run in a few sentences
config_text       a configuration to copy: JSON, command line, Python
run_progress      values of trials as arrays, and what to expect of a run without transfer
trial_timeline    when and where trials ran, and how values are distributed
response_surface  what a model of the trials predicts over two hyperparameters
source_usefulness the weights of past runs in a run and in all tasks, and what each past run was worth to a run
importance        which hyperparameters mattered
memory_tasks      the tasks of a memory; models of them: which rank alike, and what to try first on a new task
"""
