"""The embedded suite: errors of real models, trained by recollect on public datasets, shipped with the package.

Six search spaces that mirror the paper's six benchmarks, each measured with the same configurations on the same
datasets. `suite_benchmarks` loads the results, `builder` trains the models again (`training`).
"""
