#!/bin/sh
# Tune a program, train.py, on three tasks; each starts from what the memory knows of those before.
#
#     sh examples/shell_command/run.sh [tuning.db]
#
# The program takes its hyperparameters as options and prints its score last; nothing in it knows of recollect.
set -eu
here=$(dirname "$0")
memory=${1:-tuning.db}

for frequency in 6 9 12; do
    recollect tune --space "$here/space.json" --memory "$memory" --problem ridge --task "frequency $frequency" \
        --trials 8 -- python "$here/train.py" --frequency "$frequency" \
        --kernel {kernel} --width {width} --penalty {penalty}
    echo
done
recollect memory list "$memory"
