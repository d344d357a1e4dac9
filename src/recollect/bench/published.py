"""The tables of the paper: their rows in order, and the numbers that were printed in them.

All numbers are 100 x ADTM; `recollect.bench.layout` says how they are written. Where the paper's tables do
not agree with each other, each has its own numbers. An asterisk behind a label: the default of a family.

The benchmarks have the names they have here. Methods that nobody runs, but that `recollect.bench.rho` makes out of
runs, are called ``...+rho-others`` (the bandwidth that is best on the other benchmarks), ``...+rho-tasks`` (HPO: on the
other tasks) and ``...+rho-svm`` (HPO, on that benchmark).
"""

from __future__ import annotations

from recollect.bench.layout import Layout, Printed, Row
from recollect.transfer.weighting import TwoStageWeighting

EVALUATIONS = (10, 20, 30, 40, 50)
LAST = EVALUATIONS[-1]
BENCHMARKS = ("glmnet", "svm", "lcbench", "xgboost", "adaboost-grid", "svm-grid")
"""The paper's GLMNET-2D, SVM-4D, NN-7D, XGBoost-10D, AdaBoost-2D and SVM-6D, in the order of its tables."""


def printed(method: str, benchmark: str, evaluations: int) -> Printed | None:
    """Return what the paper says of a method: the first of its tables that has it; None if none has."""
    for layout in LAYOUTS:
        for row in layout.rows:
            if row.method == method and (found := layout.printed(row, benchmark, evaluations)):
                return found
    return None


BANDWIDTH = (
    f"TST-R has rho = {TwoStageWeighting().rho:g} here; in the paper, on each benchmark, the value that was best on "
    "the others."
)

MAIN_FIRST = Layout(
    "main",
    "Final results",
    ("glmnet", "svm"),
    EVALUATIONS,
    (
        (
            Row("GP", "gp", "1.92 0.59* 0.45* 0.38* 0.35* 5.38 1.60 1.06 0.76 0.68"),
            Row("GCP", "gcp", "1.92 0.55* 0.44* 0.39* 0.36* 5.38 2.25 1.78 1.51 1.33"),
            Row("Random(1x)", "random", "4.80 1.40 0.89 0.70 0.52 5.60 2.99 2.12 1.77 1.58"),
            Row("Random(2x)", "random-2x", "1.40 0.70 0.47 0.36 0.32 2.99 1.77 1.44 1.15 1.02"),
            Row("Random(4x)", "random-4x", "0.70 0.36 0.29 0.24 0.21 1.77 1.15 0.89 0.78 0.69"),
            Row("Random(10x)", "random-10x", "0.32 0.21! 0.16! 0.13! 0.10! 1.02! 0.69! 0.56 0.51 0.46"),
        ),
        (
            Row("Random+Box", "random-box", "0.96 0.65 0.50 0.38 0.32 4.08 2.30 2.11 1.72 1.58"),
            Row("GP(Box)", "gp-box", "0.73 0.27* 0.22* 0.19* 0.17* 5.10 1.31 0.68 0.52 0.45"),
            Row("SMFO", "smfo", "0.60 0.32* 0.29* 0.27* 0.25* 3.71 2.12 1.98 1.76 1.74"),
            Row("WAC", "wac", "5.14 4.84 4.82 4.81 4.81 3.64 3.30 2.99 2.90 2.84"),
            Row("KL-weighting", "kl", "0.94 0.68 0.61 0.28 0.19 - - - - -"),
            Row("ABLR", "ablr", "4.09 3.05 2.98 2.96 2.95 4.52 2.46 1.34 0.93 0.86"),
            Row("GCP+Prior", "gcp-prior", "2.98 2.48* 1.69* 0.30* 0.26* 5.23 4.08 2.61 2.24 2.11"),
            Row("TST-R(EI)", "tstr-ei", "0.44* 0.38* 0.23* 0.23* 0.20* 1.35* 0.90* 0.64 0.52 0.49"),
            Row("TST-R(TAF)", "tstr-taf", "0.36 0.26* 0.21* 0.19* 0.17* 2.76 1.15 0.85 0.60 0.48"),
        ),
        (
            Row("RGPE(TAF)", "rgpe-taf", "0.29! 0.22* 0.19* 0.17* 0.16* 2.17* 1.78* 0.78* 0.48* 0.38*"),
            Row("RGPE(MoGP)", "rgpe-mogp", "0.39* 0.23* 0.20* 0.18* 0.16* 2.33 1.08* 0.74 0.50* 0.30*"),
            Row("RGPE(mean)", "rgpe-mean", "0.43* 0.31* 0.27* 0.25* 0.23* 1.78 0.78* 0.45! 0.38! 0.26!"),
            Row("RGPE(NEI)", "rgpe-nei", "3.29 2.67* 2.22* 2.21* 2.20* 2.97 0.91* 0.66* 0.44* 0.37*"),
        ),
    ),
    apart=False,
    notes=(BANDWIDTH,),
)

MAIN_SECOND = Layout(
    "main",
    "Final results",
    ("lcbench", "xgboost"),
    EVALUATIONS,
    (
        (
            Row("GP", "gp", "16.40 11.51 9.69 8.62 7.84 5.31 2.36 1.46 1.22 1.09"),
            Row("GCP", "gcp", "16.40 11.61 9.80 8.56 7.76 5.31 2.75 2.10 1.77 1.50"),
            Row("Random(1x)", "random", "14.65 11.50 9.95 8.75 7.93 5.68 3.42 2.47 2.11 1.80"),
            Row("Random(2x)", "random-2x", "11.50 8.75 7.11 6.13 5.42 3.42 2.11 1.62 1.53 1.36"),
            Row("Random(4x)", "random-4x", "8.75 6.13 4.81 4.24 3.56 2.11 1.53 1.31 1.23 1.17"),
            Row("Random(10x)", "random-10x", "5.42 3.56 2.62* 2.19* 1.78* 1.36 1.17 1.00 0.92 0.88"),
        ),
        (
            Row("Random+Box", "random-box", "12.73 9.78 8.38 7.23 6.51 3.92 2.60 1.62 1.53 1.43"),
            Row("GP(Box)", "gp-box", "11.79 8.85 7.08 6.06 5.14 2.75 1.18 0.89 0.78 0.73"),
            Row("SMFO", "smfo", "3.59* 2.77* 2.17* 1.86* 1.75* 1.25 1.09 0.94 0.91 0.87"),
            Row("WAC", "wac", "7.44 6.68 5.98 5.79 5.51 1.88 1.85 1.84 1.75 1.75"),
            Row("KL-weighting", "kl", "6.43 5.44 4.67 4.17 3.78 - - - - -"),
            Row("ABLR", "ablr", "7.88 6.60 6.02 5.45 5.03 2.29 1.88 1.75 1.61 1.58"),
            Row("GCP+Prior", "gcp-prior", "5.93 4.30 3.28 2.74 2.38 1.37 1.18* 1.08* 0.94* 0.84*"),
            Row("TST-R(EI)", "tstr-ei", "5.37 4.46 3.88 3.31 3.00 1.14* 0.88* 0.84 0.79* 0.78"),
            Row("TST-R(TAF)", "tstr-taf", "4.88 4.02 3.58 3.24 2.95 0.98* 0.82* 0.73* 0.69* 0.64!"),
        ),
        (
            Row("RGPE(TAF)", "rgpe-taf", "3.60* 2.54! 2.09! 1.70! 1.55! 0.97! 0.80* 0.70* 0.67* 0.67*"),
            Row("RGPE(MoGP)", "rgpe-mogp", "3.52! 2.63* 2.34 2.07 1.93 1.55 1.16 0.89 0.83 0.80"),
            Row("RGPE(mean)", "rgpe-mean", "5.20 3.92 3.29 2.91 2.55 1.12* 0.79! 0.68! 0.67! 0.65*"),
            Row("RGPE(NEI)", "rgpe-nei", "5.09 3.90 3.38 3.00 2.71 1.19 0.98* 0.87* 0.73* 0.64*"),
        ),
    ),
    apart=False,
    notes=(BANDWIDTH,),
)

MAIN_THIRD = Layout(
    "main",
    "Final results",
    ("adaboost-grid", "svm-grid"),
    EVALUATIONS,
    (
        (
            Row("GP", "gp", "5.42 2.26* 1.26* 0.82* 0.66* 9.66 3.64 2.06 1.43 1.13"),
            Row("GCP", "gcp", "5.42 2.26! 1.18! 0.92* 0.72 9.66 3.59 1.97 1.18 0.81"),
            Row("Random(1x)", "random", "6.27 3.62 2.53 1.72 1.32 11.52 6.44 5.07 4.07 3.24"),
        ),
        (
            Row("Random+Box", "random-box", "5.43 3.61 2.37 1.79 1.45 10.64 6.09 4.26 3.37 2.89"),
            Row("GP(Box)", "gp-box", "5.38 2.31* 1.27* 0.81! 0.72* 9.86 3.53 2.02 1.48 1.18"),
            Row("SMFO", "smfo", "4.03* 2.76 1.96 1.52 1.11 4.30 2.63 1.97 1.37 1.21"),
            Row("WAC", "wac", "5.97 4.11 3.01 2.18 1.42 8.49 6.02 3.67 2.63 1.90"),
            Row("KL-weighting", "kl", "5.49 3.48 2.73 2.23 1.81 - - - - -"),
            Row("ABLR", "ablr", "4.65 2.39 1.51 0.88 0.52 7.65 4.84 3.39 2.47 1.86"),
            Row("GCP+Prior", "gcp-prior", "5.37* 3.38* 1.92* 1.25* 0.89 4.23* 2.59* 2.02* 1.85* 1.61*"),
            Row("TST-R(EI)", "tstr-ei", "4.75 2.59* 1.65* 0.94 0.52! 3.69 2.07 1.36 0.89 0.64*"),
            Row("TST-R(TAF)", "tstr-taf", "3.96* 2.35* 1.54* 1.14 0.73* 3.89 2.24 1.39 0.78 0.46*"),
        ),
        (
            Row("RGPE(TAF)", "rgpe-taf", "3.91! 2.29* 1.39* 1.00* 0.63* 2.95! 1.54* 0.91 0.61! 0.45*"),
            Row("RGPE(MoGP)", "rgpe-mogp", "4.01* 2.26* 1.47* 0.95* 0.76* 3.35 2.04 1.35 0.92* 0.58*"),
            Row("RGPE(mean)", "rgpe-mean", "4.71 2.48* 1.63* 0.94* 0.55* 3.22* 1.70* 0.99* 0.71* 0.47*"),
            Row("RGPE(NEI)", "rgpe-nei", "4.55 2.58* 1.76 1.09 0.62* 3.75* 1.41! 0.75! 0.61* 0.39!"),
        ),
    ),
    apart=False,
    notes=(BANDWIDTH,),
)

ABLATION = Layout(
    "ablation",
    "Ablation study",
    BENCHMARKS,
    (LAST,),
    (
        (
            Row("RGPE(mean)", "rgpe-mean", "0.23* 0.26! 2.55! 0.65* 0.55! 0.47*"),
            Row("RGPE(EI)", "rgpe-ei", "0.21* 0.31* 2.69* 0.67* 0.57* 0.46*"),
            Row("RGPE(NEI)", "rgpe-nei", "2.20* 0.37* 2.71* 0.64! 0.62* 0.39!"),
            Row("RGPE(NEI,None)", "rgpe-nei+none", "0.16! 0.48* 3.27 0.71* 0.68* 0.45*"),
        ),
        (
            Row("RGPE(TAF)", "rgpe-taf", "0.16 0.38* 1.55! 0.67* 0.63* 0.45!"),
            Row("RGPE(TAF,None)", "rgpe-taf+none", "0.15* 0.51* 1.61* 0.62! 0.71 0.45*"),
            Row("RGPE(MoGP)", "rgpe-mogp", "0.16* 0.30! 1.93 0.80 0.76* 0.58*"),
            Row("RGPE(MoGP,None)", "rgpe-mogp+none", "0.11! 0.56* 1.96 0.75 0.61! 0.58"),
        ),
        (
            Row("RGPE(MoGP,S=100)", "rgpe-mogp+s100", "0.15* 0.55 2.00 0.72* 0.64* 0.49!"),
            Row("RGPE(MoGP,S=1000)*", "rgpe-mogp", "0.16* 0.30! 1.93* 0.80* 0.76* 0.58*"),
            Row("RGPE(MoGP,S=10000)", "rgpe-mogp+s10000", "0.14! 0.37* 1.90* 0.68! 0.58 0.54*"),
            Row("RGPE(MoGP,S=100000)", "rgpe-mogp+s100000", "0.17* 0.31* 1.83! 0.73* 0.40! 0.50*"),
        ),
    ),
    apart=True,
)

TRANSFORM = Layout(
    "transform",
    "Values standardised, made normal by their ranks, or as they are",
    BENCHMARKS,
    (LAST,),
    (
        (
            Row("RGPE(NEI,mean/var)*", "rgpe-nei", "2.20* 0.37* 2.71 0.64 0.62 0.39*"),
            Row("RGPE(NEI,Copula)", "rgpe-nei+copula", "0.13! 1.41* 2.13! 0.60! 0.57* 0.32!"),
            Row("RGPE(NEI,unscaled)", "rgpe-nei+unscaled", "2.70* 0.34! 3.05 0.94 0.49! 0.34*"),
        ),
        (
            Row("RGPE(mean,mean/var)*", "rgpe-mean", "0.23 0.26! 2.55 0.65 0.55* 0.47*"),
            Row("RGPE(mean,Copula)", "rgpe-mean+copula", "0.20* 1.55* 2.22! 0.62! 0.66 0.42!"),
            Row("RGPE(mean,unscaled)", "rgpe-mean+unscaled", "0.15! 0.62 2.94 0.64 0.44! 0.43*"),
        ),
        (
            Row("TST-R(EI,HPO,mean/var)*", "tstr-ei+rho-tasks", "0.21* 0.27! 3.19 0.61* 0.57* 0.55*"),
            Row("TST-R(EI,HPO,Copula)", "tstr-ei+copula+rho-tasks", "0.29* 2.17 2.69! 0.57! 0.49! 0.53!"),
            Row("TST-R(EI,HPO,unscaled)", "tstr-ei+unscaled+rho-tasks", "0.18! 0.60* 4.73 0.64 0.64* 0.59*"),
        ),
        (
            Row("TST-R(TAF,HPO,mean/var)", "tstr-taf+meanvar+rho-tasks", "0.10* 0.58* 1.67! 0.66 0.68 0.49*"),
            Row("TST-R(TAF,HPO,Copula)", "tstr-taf+copula+rho-tasks", "0.08! 1.13* 1.85* 0.53! 0.60* 0.47!"),
            Row("TST-R(TAF,HPO,unscaled)*", "tstr-taf+rho-tasks", "0.17* 0.50! 1.71* 0.62 0.57! 0.50"),
        ),
        (
            Row("RGPE(TAF,mean/var)", "rgpe-taf+meanvar", "0.14! 1.30* 2.06 0.57! 0.65* 0.35!"),
            Row("RGPE(TAF,Copula)", "rgpe-taf+copula", "0.14! 1.30* 2.06 0.57! 0.65* 0.35!"),
            Row("RGPE(TAF,unscaled)*", "rgpe-taf", "0.16* 0.38! 1.55! 0.67 0.63! 0.45*"),
        ),
        (
            Row("RGPE(MoGP,mean/var)", "rgpe-mogp+meanvar", "0.17* 0.38* 1.99* 0.71 0.73! 0.53*"),
            Row("RGPE(MoGP,Copula)", "rgpe-mogp+copula", "0.16* 1.28* 1.89! 0.56! 0.76* 0.37!"),
            Row("RGPE(MoGP,unscaled)*", "rgpe-mogp", "0.16! 0.30! 1.93* 0.80 0.76* 0.58*"),
        ),
        (
            Row("ABLR(mean/var)*", "ablr", "2.95 0.86 5.03! 1.58 0.52! 1.86*"),
            Row("ABLR(Copula)", "ablr+copula", "0.19! 0.61! 5.18* 1.19! 0.72 1.71!"),
        ),
        (
            Row("SMFO(mean/var)*", "smfo", "0.25! 1.74* 1.75! 0.87! 1.11* 1.21*"),
            Row("SMFO(Copula)", "smfo+copula", "0.30* 1.67! 1.85* 0.90* 0.71! 1.08!"),
        ),
    ),
    apart=True,
    notes=("The paper prints the same six numbers for RGPE(TAF,mean/var) and RGPE(TAF,Copula): one must be a copy.",),
)

DILUTION = Layout(
    "dilution",
    "TST-R with and without dropping of past runs",
    BENCHMARKS,
    (LAST,),
    (
        (
            Row("TST-R(EI)", "tstr-ei", "0.20* 0.49 3.00! 0.78* 0.52! 0.64!"),
            Row("TST-R(EI,wd)", "tstr-ei+wd", "0.14! 0.43! 3.01* 0.72! 0.59 0.76*"),
        ),
        (
            Row("TST-R(TAF)", "tstr-taf", "0.17! 0.48! 2.95* 0.64! 0.73! 0.46*"),
            Row("TST-R(TAF,wd)", "tstr-taf+wd", "0.17* 0.60* 2.84! 0.67* 0.89* 0.40!"),
        ),
    ),
    apart=True,
    notes=(BANDWIDTH,),
)

RHO = Layout(
    "rho",
    "Three ways to choose the bandwidth of TST-R",
    BENCHMARKS,
    (LAST,),
    (
        (
            Row("TST-R(EI)", "tstr-ei+rho-others", "0.20* 0.49 3.00* 0.78 0.52* 0.64*"),
            Row("TST-R(EI,HPO)", "tstr-ei+rho-tasks", "0.21* 0.27* 3.24 0.61* 0.58* 0.55"),
            Row("TST-R(EI,HPO,glmnet)", "tstr-ei+rho-glmnet", "0.14! 0.49 2.97! 0.77* 0.46! 0.58*"),
            Row("TST-R(EI,HPO,svm)", "tstr-ei+rho-svm", "0.20* 0.27! 3.00* 0.78 0.52* 0.64*"),
            Row("TST-R(EI,HPO,xgboost)", "tstr-ei+rho-xgboost", "0.15* 0.51 3.21 0.61! 0.51* 0.63"),
            Row("TST-R(EI,HPO,adaboost-grid)", "tstr-ei+rho-adaboost-grid", "0.14! 0.49 2.97! 0.77* 0.46! 0.58*"),
            Row("TST-R(EI,HPO,svm-grid)", "tstr-ei+rho-svm-grid", "0.17* 1.06* 3.57 0.81 0.61 0.51!"),
            Row("TST-R(EI,HPO,lcbench)", "tstr-ei+rho-lcbench", "0.14! 0.49 2.97! 0.77* 0.46! 0.58*"),
        ),
        (
            Row("TST-R(TAF)", "tstr-taf+rho-others", "0.17 0.48 2.95 0.64* 0.73* 0.46*"),
            Row("TST-R(TAF,HPO)", "tstr-taf+rho-tasks", "0.17 0.50* 1.72 0.62* 0.56* 0.49*"),
            Row("TST-R(TAF,HPO,glmnet)", "tstr-taf+rho-glmnet", "0.12! 0.50 1.73* 0.68 0.71* 0.44*"),
            Row("TST-R(TAF,HPO,svm)", "tstr-taf+rho-svm", "0.16* 0.37! 3.08 0.87 0.51* 0.53*"),
            Row("TST-R(TAF,HPO,xgboost)", "tstr-taf+rho-xgboost", "0.18* 0.53 1.63* 0.62! 0.78* 0.40*"),
            Row("TST-R(TAF,HPO,adaboost-grid)", "tstr-taf+rho-adaboost-grid", "0.16* 0.45* 2.84 0.67* 0.44! 0.50*"),
            Row("TST-R(TAF,HPO,svm-grid)", "tstr-taf+rho-svm-grid", "0.18* 0.43* 1.63* 0.67* 0.89* 0.34!"),
            Row("TST-R(TAF,HPO,lcbench)", "tstr-taf+rho-lcbench", "0.16 0.60 1.58! 0.64* 0.75* 0.40*"),
        ),
    ),
    apart=True,
)

VERSIONS = Layout(
    "versions",
    "Earlier versions",
    BENCHMARKS,
    (LAST,),
    (
        (
            Row("RGPE(CFNEI)", "rgpe-cfnei", "0.16! 0.54* 2.94 0.68* 0.67* 0.44*"),
            Row("RGPE(NEI,95)", "rgpe-nei+95", "0.21* 0.45* 3.28 0.78* 0.90* 0.41*"),
            Row("RGPE(NEI)", "rgpe-nei", "2.20* 0.37! 2.71! 0.64! 0.62! 0.39!"),
        ),
    ),
    apart=False,
)

MAIN = (MAIN_FIRST, MAIN_SECOND, MAIN_THIRD)
LAYOUTS = (*MAIN, ABLATION, TRANSFORM, DILUTION, RHO, VERSIONS)
