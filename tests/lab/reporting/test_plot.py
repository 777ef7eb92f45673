"""Figures: a PNG for every kind of report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait_lab.reporting.plot import draw
from plait_lab.reporting.report import PlotMark, Report, Series

PNG = b"\x89PNG\r\n\x1a\n"


def written(report: Report, folder: Path) -> Path:
    path = draw(report, folder)
    assert path.read_bytes().startswith(PNG)
    assert path.stat().st_size > 5000
    return path


@pytest.mark.slow
def test_series_become_lines(tmp_path: Path) -> None:
    report = Report("cape/fig9", {})
    report.series.append(Series("one", (1, 2, 3), (1.0, 2.0, 3.0), "ns per row", "streams"))
    report.series.append(Series("two", (1, 2, 3), (3.0, 2.0, 3.0), "ns per row", "streams"))
    path = written(report, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "cape-fig9.png"


@pytest.mark.slow
def test_each_unit_has_its_panel(tmp_path: Path) -> None:
    one, two = Report("one", {}), Report("two", {})
    for report, units in ((one, ("s", "s")), (two, ("s", "bytes"))):
        report.series += [Series(f"line {i}", (1, 2), (1.0, 2.0), u) for i, u in enumerate(units)]
    assert width(written(two, tmp_path)) == 2 * width(written(one, tmp_path))


@pytest.mark.slow
def test_marks_dashes_logarithms_and_long_legends(tmp_path: Path) -> None:
    plain, marked = Report("plain", {}), Report("marked", {})
    for report in (plain, marked):
        for unit in ("s", "bytes"):
            report.series += [
                Series(f"line {i}", range(1, 60), range(1, 60), unit, dashed=report is marked)
                for i in range(4)
            ]
    marked.marks = [PlotMark("start", 10.0), PlotMark("end", 20.0)]
    first, second = written(plain, tmp_path), written(marked, tmp_path)
    assert width(first) == width(second)
    assert first.read_bytes() != second.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("least", [0, 1])
def test_axes_may_be_logarithmic_even_with_a_zero(tmp_path: Path, least: int) -> None:
    report = Report("one", {})
    xs, ys = (least, 2, 1024), (0.5, 1.0, 500.0)
    plain = written(replace(report, series=[Series("line", xs, ys, "s")]), tmp_path / "plain")
    scaled = Series("line", xs, ys, "s", x_scale="log", y_scale="log")
    log = written(replace(report, series=[scaled]), tmp_path / "log")
    assert log.read_bytes() != plain.read_bytes()


@pytest.mark.slow
def test_clouds_are_points_without_lines(tmp_path: Path) -> None:
    line = Series("cloud", (1, 2, 3), (3.0, 1.0, 2.0), "s")
    drawn = [
        written(Report("one", {}, series=[series]), tmp_path / series.kind).read_bytes()
        for series in (line, replace(line, kind="points"))
    ]
    assert drawn[0] != drawn[1]


def test_systems_without_series_become_bars(tmp_path: Path) -> None:
    report = Report("peers", {})
    report.systems = {"plait": {"seconds": 0.5}, "duckdb": {"seconds": 0.7}}
    written(report, tmp_path)


def test_a_report_without_anything_to_draw_is_still_a_figure(tmp_path: Path) -> None:
    written(Report("nothing", {}), tmp_path)


def test_figures_are_closed(tmp_path: Path) -> None:
    from matplotlib import pyplot as plt

    report = Report("one", {}, series=[Series("line", (1, 2), (1.0, 2.0), "s")])
    before = len(plt.get_fignums())
    written(report, tmp_path)
    assert len(plt.get_fignums()) == before


def width(path: Path) -> int:
    """From the header of the PNG."""
    return int.from_bytes(path.read_bytes()[16:20], "big")
