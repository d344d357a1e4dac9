#!/bin/sh
# Tune a program, train.py, on three tasks. Each task starts from what was learned on those before.
#
#     sh examples/shell_command/run.sh [tuning.db]
#     TRIALS=20 sh examples/shell_command/run.sh      # a larger budget for each task
#
# The program takes its hyperparameters as options and prints its score last. It knows nothing about recollect.
set -eu
here=$(dirname "$0")
memory=${1:-tuning.db}

for frequency in 6 9 12; do
    recollect tune --space "$here/space.json" --memory "$memory" --problem ridge --task "frequency $frequency" \
        --trials "${TRIALS:-8}" -- python "$here/train.py" --frequency "$frequency" \
        --kernel {kernel} --width {width} --penalty {penalty}
    echo
done
recollect memory list "$memory"
