"""How figures look: sizes in inches, line styles, names beside the lines' ends, and files.

A line has a colour of Okabe and Ito's palette, which readers with any kind of colour vision can tell apart, and a dash
pattern, so that no two lines of a panel differ in colour alone; ``gp`` is black and random search grey everywhere.
Nothing here touches pyplot, and settings of the user's are put back. Files hold no date and no version: the same data
give the same bytes.

Notation: m lines of a panel; positions in a panel are fractions of its height.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recollect.bench.study import Outcome
from recollect.errors import MissingExtraError
from recollect.files import make_folder, put
from recollect.numerics.arrays import FloatArray
from recollect.optimizer.catalog import methods

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES: tuple[Dash, ...] = (
    "solid",
    (0, (6.0, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6.0, 1.5, 1.2, 1.5)),
    (0, (3.0, 1.2)),
)
BLACK, GREY, PALE = "#000000", "#777777", "#D8D8D8"
MULTIPLE = r"random-\d+x"
SIZE = 8.0  # of letters, in points
INCH = 72.0  # points
MARGIN = 0.08  # inches around everything
HEAD = 0.35  # inches for a heading
STROKE = 0.3  # inches from the end of a line to its name
DOTS = 100.0  # in an inch
SETTINGS: Mapping[Any, Any] = {
    "figure.dpi": DOTS,
    "font.family": "DejaVu Sans",
    "font.size": SIZE,
    "axes.titlesize": SIZE + 1.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.hashsalt": "recollect",
    "text.parse_math": False,
}
Dash = Literal["solid"] | tuple[int, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Line:
    """How a line is drawn."""

    colour: str
    dash: Dash = "solid"
    width: float = 1.4


@dataclass(frozen=True, slots=True)
class Layout:
    """Size of each panel, the room around it for titles, axes and names, and above and below all of them for text."""

    width: float
    height: float
    left: float = 0.75
    right: float = 0.2
    top: float = 0.3
    bottom: float = 0.45
    head: float = 0.1
    foot: float = 0.25


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with the settings above, whatever the user's are; MissingExtraError without matplotlib."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("drawing figures needs matplotlib: pip install 'recollect[bench]'")
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def save(figure: Figure, path: Path) -> list[Path]:
    """Write ``path`` with the endings .png and .svg added, and return both."""
    files = [path.with_name(f"{path.name}.{ending}") for ending in ("png", "svg")]
    png, svg = BytesIO(), BytesIO()
    with house_style():
        figure.savefig(png, format="png", dpi=2 * DOTS, metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    make_folder(path.parent)
    for file, drawn in zip(files, (png, svg), strict=True):
        put(file, drawn.getvalue())
    return files


def panels(count: int, columns: int, layout: Layout) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels of the same size, row by row; to be called in `house_style`."""
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    wide, high = layout.left + layout.width + layout.right, layout.top + layout.height + layout.bottom
    size = np.array([columns * wide, layout.head + rows * high + layout.foot])
    figure = Figure(figsize=(float(size[0]), float(size[1])))
    made = []
    for number in range(count):
        row, column = divmod(number, columns)
        corner = column * wide + layout.left, layout.foot + (rows - 1 - row) * high + layout.bottom
        left, low, width, height = (*(corner / size), *((layout.width, layout.height) / size))
        made.append(figure.add_axes((float(left), float(low), float(width), float(height))))
    return figure, made


def in_order(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return outcomes in the order of the catalog of methods, variants after what they vary."""
    known = methods()

    def place(outcome: Outcome) -> tuple[int, int, str]:
        base = re.sub(MULTIPLE, "random", outcome.method.partition("+")[0])
        return known.index(base) if base in known else len(known), len(outcome.method), outcome.method

    return sorted(outcomes, key=place)


def lines_for(methods: Sequence[str]) -> dict[str, Line]:
    """Return how to draw each of the methods of a panel: the references always alike, the others by their place."""
    found: dict[str, Line] = {}
    greys = iter(DASHES[2:])
    others = 0
    for name in methods:
        if name == "gp":
            found[name] = Line(BLACK)
        elif name == "random":
            found[name] = Line(GREY, DASHES[1])
        elif re.fullmatch(MULTIPLE, name):
            found[name] = Line(GREY, next(greys, DASHES[2]))
        else:
            found[name] = Line(COLOURS[others % len(COLOURS)], DASHES[others % len(DASHES)])
            others += 1
    return found


def room_for(names: Sequence[str]) -> float:
    """Return the width in inches that names beside a panel need, with the strokes that lead to them."""
    return STROKE + MARGIN + 0.64 * SIZE / INCH * max(map(len, names), default=0)


def draw_line(axes: Axes, x: FloatArray, y: FloatArray, line: Line) -> None:
    """Draw one line over everything else."""
    single = "o" if np.count_nonzero(np.isfinite(y)) == 1 else ""  # a single point would not be seen
    axes.plot(x, y, color=line.colour, linestyle=line.dash, linewidth=line.width, marker=single, markersize=3, zorder=3)


def draw_band(axes: Axes, x: FloatArray, ends: tuple[FloatArray, FloatArray], line: Line) -> None:
    """Fill the space between two curves, below all lines, and trace its ends faintly."""
    axes.fill_between(x, *ends, color=line.colour, alpha=0.1, linewidth=0.0, zorder=2)
    for end in ends:
        axes.plot(x, end, color=line.colour, alpha=0.35, linewidth=0.5, zorder=2)


def count_ticks(axes: Axes, first: float, last: float, label: str) -> None:
    """Let the x axis go from one number of things to another, with whole numbers along it."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(first, max(last, first + 1))
    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axes.set_xlabel(label)


def plain_ticks(axis: Axis) -> None:
    """Write 0.05 or 10,000 along a logarithmic axis rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    subs = (1.0, 2.0, 5.0) if high / low < 1e3 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1.0 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def add_heading(figure: Figure, text: str) -> None:
    """Write a heading above all panels."""
    width, height = figure.get_size_inches()
    figure.text(MARGIN / width, 1.0 - MARGIN / height, text, size="x-large", va="top", ha="left")


def add_note(figure: Figure, lines: Sequence[str]) -> None:
    """Write below all panels what the reader has to know."""
    width, height = figure.get_size_inches()
    at = MARGIN / width, MARGIN / height
    figure.text(*at, "\n".join(lines), size="small", va="bottom", ha="left", color="#444444")


def foot(lines: Sequence[str]) -> float:
    """Return the height in inches that a note of so many lines needs."""
    return MARGIN + 1.2 * SIZE / INCH * len(lines)


def name_ends(
    axes: Axes, ends: Mapping[str, float], lines: Mapping[str, Line], *, labels: Mapping[str, str] | None = None
) -> None:
    """Write each name to the right of the panel, as near to its line's end (in units of the y axis) as there is room.

    The limits of the axes must be set before. labels: what to write instead of names.
    """
    names = sorted(ends, key=lambda name: ends[name])
    low, high = axes.get_ylim()
    at = axes.transData.transform([(0.0, float(np.clip(ends[name], low, high))) for name in names])
    wanted = axes.transAxes.inverted().transform(at)[:, 1]
    gap = 1.25 * SIZE / INCH / (axes.bbox.height / DOTS)
    stroke = 1.0 + STROKE / (axes.bbox.width / DOTS) * np.array([0.02, 0.35, 0.85, 1.0])
    for name, start, place in zip(names, wanted, spread(wanted, gap), strict=True):
        line = lines[name]
        axes.plot(
            stroke[:3],
            [start, place, place],
            transform=axes.transAxes,
            clip_on=False,
            color=line.colour,
            linestyle=line.dash,
            linewidth=line.width,
        )
        axes.text(stroke[3], place, (labels or {}).get(name, name), transform=axes.transAxes, va="center", ha="left")


def spread(wanted: FloatArray, gap: float) -> FloatArray:
    """Return places (m,) at least ``gap`` apart, in the order of the wanted ones (m,) and nearest to them by squares.

    They stay between 0 and 1 if there is room for all.
    """
    steps = gap * np.arange(len(wanted))
    blocks: list[tuple[float, int]] = []  # mean and size of those that touch each other
    for value in wanted - steps:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    level = np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])
    top = 1.0 - (steps[-1] if len(steps) else 0.0)
    return np.asarray(np.clip(level, min(0.0, top / 2), max(top, top / 2)) + steps)
