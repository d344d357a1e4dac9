"""The two grids in their authors' format, on files that the tests write."""

from __future__ import annotations

import io
import math
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from recollect.bench.data.schilling import expected_grid, load_grid
from recollect.errors import InputError

NAMES = ("adaboost-grid", "svm-grid")


def lines_of(name: str, task: str) -> list[str]:
    """One file as the authors write them: sparse, meta-features above the hyperparameters."""
    grid, number = expected_grid(name), sorted(expected_grid(name).checksums).index(task)
    rng = np.random.default_rng(number)
    d = len(grid.hyperparameters)
    features = f"{d}:{0.25 + number} {d + 2}:1.5E-5"
    return [
        f"{rng.integers(10_000) / 10_000} {' '.join(f'{j}:{v!r}' for j, v in enumerate(point) if v)} {features}"
        for point in grid.points
    ]


def write(folder: Path, name: str, end: str = "\r\n") -> Path:
    folder.mkdir()
    for task in expected_grid(name).checksums:
        (folder / task).write_text("".join(line + end for line in lines_of(name, task)), newline="")
    return folder


def test_the_adaboost_grid_is_twelve_by_nine_on_a_log_scale() -> None:
    points = expected_grid("adaboost-grid").points
    assert len(set(points)) == 12 * 9
    assert sorted({round(10_000**a) for a, _ in points}) == [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]
    assert sorted({round(30**b) for _, b in points}) == [2, 3, 4, 5, 7, 10, 15, 20, 30]


def test_the_svm_grid_is_168_radial_108_polynomial_and_12_linear_points() -> None:
    points = np.array(expected_grid("svm-grid").points)
    assert len(np.unique(points, axis=0)) == 288
    assert points[:, :3].sum(axis=0).tolist() == [168, 108, 12]
    assert (points[:, :3].sum(axis=1) == 1).all()
    assert sorted(set(np.round(6 * points[:, 3]).astype(int))) == list(range(-5, 7))
    assert len(set(points[points[:, 0] == 1, 4])) == 14
    assert (points[points[:, 0] == 0, 4] == 0).all()
    assert (points[:, 4].min(), points[:, 4].max()) == (-1.0, 0.75)
    assert sorted(set(points[points[:, 1] == 1, 5])) == pytest.approx([math.log10(k) for k in range(2, 11)])
    assert (points[points[:, 1] == 0, 5] == 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_folder_of_files_becomes_a_benchmark(name: str, end: str, tmp_path: Path) -> None:
    benchmark = load_grid(name, write(tmp_path / "files", name, end), published=False)
    grid = expected_grid(name)
    assert benchmark.tasks == tuple(sorted(grid.checksums))
    assert len(benchmark.tasks) == 50
    assert benchmark.candidates is not None
    assert [tuple(config.values()) for config in benchmark.candidates] == list(grid.points)
    for task in benchmark.tasks[::10]:
        for line, config in zip(lines_of(name, task), benchmark.candidates, strict=True):
            assert benchmark.task(task).evaluate(config) == round(1 - float(line.split()[0]), 4)


def test_an_archive_is_the_same_as_its_folder_and_as_a_folder_that_holds_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", "adaboost-grid")
    (tmp_path / "archives").mkdir()
    archive = tmp_path / "archives" / "files.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, "adaboost")
    expected = load_grid("adaboost-grid", folder, published=False).task("pima")
    X = load_grid("adaboost-grid", folder, published=False).space.encode(expected.candidates or ())
    for place in (archive, archive.parent):
        found = load_grid("adaboost-grid", place, published=False).task("pima")
        assert (found.evaluate_many(X) == expected.evaluate_many(X)).all()


def swap(lines: list[str]) -> None:
    lines[4], lines[7] = lines[7], lines[4]


def drop_last(lines: list[str]) -> None:
    del lines[-1]


def cut_middle(lines: list[str]) -> None:
    del lines[50]


def cut_short(lines: list[str]) -> None:
    lines[-1] = lines[-1][:20]


def add_line(lines: list[str]) -> None:
    lines.append(lines[-1])


def empty(lines: list[str]) -> None:
    lines.clear()


def replace(number: int, old: str, new: str) -> Callable[[list[str]], None]:
    def change(lines: list[str]) -> None:
        assert old in lines[number]
        lines[number] = lines[number].replace(old, new, 1)

    return change


def say_accuracy(text: str) -> Callable[[list[str]], None]:
    def change(lines: list[str]) -> None:
        lines[2] = f"{text} {lines[2].split(' ', 1)[1]}"

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (swap, "line 5: expected the grid point .* which belongs in line 8"),
        (drop_last, "line 108: expected 108 lines, .*, got 107"),
        (cut_middle, "line 51: .* which belongs in line 52"),
        (cut_short, "line 108: .* which is no point of the grid"),
        (add_line, "line 109: expected 108 lines, .*, got 109"),
        (empty, "line 1: expected 108 lines, .*, got 0"),
        (replace(3, " 1:", " 0:"), "line 4: expected rising indices, got 0 after 0"),
        (replace(3, " 0:1.0", " 0:0.9"), "line 4: .* which is no point of the grid"),
        (replace(3, " 0:1.0", " x:1.0"), "line 4: expected index:value, got 'x:1.0'"),
        (replace(3, " 0:1.0", " 0=1.0"), "line 4: expected index:value, got '0=1.0'"),
        (replace(3, " 0:1.0", " 0:nan"), "line 4: expected a number at index 0, got 'nan'"),
        (replace(3, " 4:1.5E-5", " 4:2.5E-5"), "line 4: its meta-features differ from those of line 1"),
        (replace(3, " 4:1.5E-5", " 4:"), "line 4: expected a number at index 4, got ''"),
        (replace(3, " ", "\0 "), "line 4: expected an accuracy"),
        (say_accuracy("1.2"), r"line 3: expected an accuracy in \[0, 1\], got '1.2'"),
        (say_accuracy("inf"), "line 3: expected an accuracy, got 'inf'"),
        (say_accuracy("0,5"), "line 3: expected an accuracy, got '0,5'"),
    ],
)
def test_a_damaged_file_is_refused_with_file_line_and_reason(
    damage: Callable[[list[str]], None], message: str, tmp_path: Path
) -> None:
    folder = write(tmp_path / "files", "adaboost-grid")
    lines = lines_of("adaboost-grid", "pima")
    damage(lines)
    (folder / "pima").write_text("".join(line + "\n" for line in lines))
    with pytest.raises(InputError, match=f"files: pima, {message}"):
        load_grid("adaboost-grid", folder, published=False)


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", "adaboost-grid", "\n")
    data = bytearray((folder / "wine").read_bytes())
    data[data.index(b"\n") + 3] = 0xE9
    (folder / "wine").write_bytes(data)
    with pytest.raises(InputError, match="wine, line 2: expected plain text, got the byte 0xe9"):
        load_grid("adaboost-grid", folder, published=False)


def test_files_of_the_other_grid_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", "svm-grid")
    with pytest.raises(InputError, match="A9A, line 1: expected the grid point"):
        load_grid("adaboost-grid", folder, published=False)


@pytest.mark.parametrize("name", NAMES)
def test_accuracies_other_than_the_published_ones_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"A9A: the [0-9]+ accuracies are not the published ones of 'A9A'"):
        load_grid(name, write(tmp_path / "files", name))


def test_missing_and_unknown_files_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", "adaboost-grid")
    (folder / "pima").rename(folder / "prima")
    with pytest.raises(InputError, match=r"got 50 \(unknown: prima; missing: pima\)"):
        load_grid("adaboost-grid", folder, published=False)
    with pytest.raises(InputError, match="there is no such file or folder"):
        load_grid("adaboost-grid", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="expected the 50 files"):
        load_grid("adaboost-grid", tmp_path / "empty")


@pytest.mark.parametrize("size", [10, 3000, 20_000])
def test_a_truncated_archive_is_refused(size: int, tmp_path: Path) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        tar.add(write(tmp_path / "files", "adaboost-grid"), "adaboost")
    archive = tmp_path / "cut.tar.gz"
    archive.write_bytes(whole.getvalue()[:size])
    with pytest.raises(InputError, match=r"cut\.tar\.gz: expected (a folder or a complete tar|the 50 files)"):
        load_grid("adaboost-grid", archive, published=False)


def test_there_are_two_grids() -> None:
    with pytest.raises(InputError, match="expected 'adaboost-grid' or 'svm-grid', got 'svm'"):
        expected_grid("svm")
