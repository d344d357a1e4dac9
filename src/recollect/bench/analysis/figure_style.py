"""How matplotlib figures look: sizes in inches, line styles, names beside the ends of lines, and files.

`bench.analysis.figure_data` chooses colours and dash patterns. Nothing here touches pyplot, and the user's settings are
restored. Files have no date and no version: the same data give the same bytes.

Notation: m lines of a panel; positions in a panel are fractions of its height.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect._files import make_folder, write_atomically
from recollect.bench.analysis.figure_data import LineStyle
from recollect.errors import MissingExtraError
from recollect.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOURS = {
    **{"blue": "#0072B2", "vermillion": "#D55E00", "green": "#009E73", "pink": "#CC79A7", "orange": "#E69F00"},
    **{"sky": "#56B4E9", "black": "#000000", "grey": "#777777", "pale": "#D8D8D8"},
}
DASHES: Any = ("solid", (0, (6.0, 1.5)), (0, (1.2, 1.2)), (0, (6.0, 1.5, 1.2, 1.5)), (0, (3.0, 1.2)))
FONT_SIZE = 8.0  # points
POINTS_PER_INCH = 72.0
MARGIN = 0.08  # inches around everything
HEADING_HEIGHT, NO_HEADING_HEIGHT = 0.35, 0.1  # inches above all panels
STROKE = 0.3  # inches from the end of a line to its name
DPI = 100.0
SETTINGS: Mapping[Any, Any] = {
    **{"figure.dpi": DPI, "font.family": "DejaVu Sans", "font.size": FONT_SIZE, "text.parse_math": False},
    **{"axes.titlesize": FONT_SIZE + 1.0, "axes.titlelocation": "left", "axes.axisbelow": True, "axes.linewidth": 0.6},
    **{"axes.spines.top": False, "axes.spines.right": False, "xtick.major.width": 0.6, "ytick.major.width": 0.6},
    **{"axes.grid": True, "grid.color": "#E4E4E4", "grid.linewidth": 0.5, "svg.hashsalt": "recollect"},
}


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """Size of each panel, and the space around it for titles, axes and names, in inches."""

    width: float
    height: float
    left: float = 0.75
    right: float = 0.2
    top: float = 0.3
    bottom: float = 0.45


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with the settings above rather than the user's; MissingExtraError without matplotlib."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("drawing figures needs matplotlib: pip install 'recollect[bench]'")
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def save(figure: Figure, path: Path) -> list[Path]:
    """Write ``path`` with the suffixes .png and .svg appended, and return both files."""
    files = [path.with_name(f"{path.name}.{suffix}") for suffix in ("png", "svg")]
    png, svg = BytesIO(), BytesIO()
    with house_style():
        figure.savefig(png, format="png", dpi=2 * DPI, metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    make_folder(path.parent)
    for file, buffer in zip(files, (png, svg), strict=True):
        write_atomically(file, buffer.getvalue())
    return files


@contextmanager
def panels(
    count: int, columns: int, layout: PanelLayout, *, heading: str = "", note: Sequence[str] = ()
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Give a figure with panels of the same size, row by row, to draw in; a heading above and a note below them."""
    columns = min(columns, count)
    rows = -(-count // columns)
    head = HEADING_HEIGHT if heading else NO_HEADING_HEIGHT
    foot = MARGIN + 1.2 * FONT_SIZE / POINTS_PER_INCH * len(note)
    cell_width = layout.left + layout.width + layout.right
    cell_height = layout.top + layout.height + layout.bottom
    width, height = columns * cell_width, head + rows * cell_height + foot
    with house_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height))
        axes = []
        for number in range(count):
            row, column = divmod(number, columns)
            left, low = column * cell_width + layout.left, foot + (rows - 1 - row) * cell_height + layout.bottom
            axes.append(figure.add_axes((left / width, low / height, layout.width / width, layout.height / height)))
        left, low = MARGIN / width, MARGIN / height
        if heading:
            figure.text(left, 1.0 - low, heading, size="x-large", va="top", ha="left")
        figure.text(left, low, "\n".join(note), size="small", va="bottom", ha="left", color="#444444")
        yield figure, axes


def room_for(names: Sequence[str]) -> float:
    """Return the width in inches of names beside a panel, with the strokes that lead to them."""
    return STROKE + MARGIN + 0.64 * FONT_SIZE / POINTS_PER_INCH * max(map(len, names), default=0)


def line_options(style: LineStyle) -> dict[str, Any]:
    """Return a line style as arguments of ``Axes.plot``."""
    return {"color": COLOURS[style.colour], "linestyle": DASHES[style.dash], "linewidth": style.width}


def draw_line(axes: Axes, x: FloatArray, y: FloatArray, style: LineStyle) -> None:
    """Draw one line above everything else."""
    marker = "o" if np.count_nonzero(np.isfinite(y)) == 1 else ""  # a single point would be invisible
    axes.plot(x, y, **line_options(style), marker=marker, markersize=3, zorder=3)


def draw_band(axes: Axes, x: FloatArray, ends: FloatArray, style: LineStyle) -> None:
    """Fill the space between two curves (2, n), below all lines, and trace its ends faintly."""
    colour = COLOURS[style.colour]
    axes.fill_between(x, *ends, color=colour, alpha=0.1, linewidth=0.0, zorder=2)
    for end in ends:
        axes.plot(x, end, color=colour, alpha=0.35, linewidth=0.5, zorder=2)


def count_ticks(axes: Axes, first: float, last: float, label: str) -> None:
    """Set the range and label of an x axis of counts, with ticks at integers."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(first, max(last, first + 1))
    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axes.set_xlabel(label)


def plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with numbers such as 0.05 or 10,000 instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    subs = (1.0, 2.0, 5.0) if high / low < 1e3 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1.0 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def name_ends(axes: Axes, ends: Mapping[str, float], styles: Mapping[str, LineStyle]) -> None:
    """Write each name to the right of the panel, as close to the end of its line (in data units) as there is room.

    Set the limits of the axes before. A line without an end (nan) gets no name.
    """
    names = sorted((name for name in ends if not np.isnan(ends[name])), key=lambda name: ends[name])
    if not names:
        return
    low, high = axes.get_ylim()
    points = axes.transData.transform([(0.0, float(np.clip(ends[name], low, high))) for name in names])
    wanted = axes.transAxes.inverted().transform(points)[:, 1]
    gap = 1.25 * FONT_SIZE / POINTS_PER_INCH / (axes.bbox.height / DPI)
    x = 1.0 + STROKE / (axes.bbox.width / DPI) * np.array([0.02, 0.35, 0.85, 1.0])
    for name, start, end in zip(names, wanted, spread(wanted, gap), strict=True):
        options = line_options(styles[name])
        axes.plot(x[:3], [start, end, end], transform=axes.transAxes, clip_on=False, **options)
        axes.text(x[3], end, name, transform=axes.transAxes, va="center", ha="left")


def spread(wanted: FloatArray, gap: float) -> FloatArray:
    """Return positions (m,) at least ``gap`` apart, in the order of the wanted ones and closest in squared distance.

    They stay between 0 and 1 if there is room for all.
    """
    from scipy.optimize import isotonic_regression

    if len(wanted) == 0:
        return wanted
    steps = gap * np.arange(len(wanted))
    level = isotonic_regression(wanted - steps).x
    top = 1.0 - steps[-1]
    return np.asarray(np.clip(level, min(0.0, top / 2), max(top, top / 2)) + steps)
