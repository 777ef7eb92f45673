"""How the progress of a query is shown: printed, by rich, and in a notebook."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console
from tests.node.reports.test_progress import numbered, run

from plait.node.reports.progress import Progress, progress
from plait.node.reports.report import Report

Golden = Callable[[str, str], None]


def shown_by_rich(found: Progress, *, colour: bool = False) -> str:
    out = io.StringIO()
    shown = Console(file=out, width=200, color_system="standard" if colour else None)
    shown.print(found)
    return out.getvalue()


def test_no_batch_yet() -> None:
    assert str(progress([(0, [], {})])) == str(Progress()) == "no batch yet"
    assert shown_by_rich(Progress()) == "no batch yet\n"


def test_text_for_people(golden: Golden) -> None:
    _, reports = run([[1, 2, None], [1, -1, 3], [5]], [100, 200, 0])
    for by_processor in reports:
        for report in by_processor:
            report.seconds = {"join": 0.25, "prepare": 0.5 * report.processor}
            report.state_bytes = report.total["written_bytes"] = 1000
    reports[-1][3].plan = "another"
    golden("progress.txt", str(progress(numbered(reports))))


def test_rich_shows_the_same_lines() -> None:
    _, reports = run([[1, 2]], [0])
    found = progress(numbered(reports))
    assert shown_by_rich(found) == f"{found}\n"


def test_rich_shows_the_heading_in_bold_and_nothing_else() -> None:
    _, reports = run([[1, 2]], [0])
    found = progress(numbered(reports))
    heading, *rest = str(found).splitlines()
    assert shown_by_rich(found, colour=True).splitlines() == [f"\x1b[1m{heading}\x1b[0m", *rest]


def test_names_are_no_markup_wherever_they_are_shown() -> None:
    name = "[red]<b>:smile:"
    found = progress([(0, [Report(0, 1, rows={name: 2}, total={"rows": {name: 2}})], {})])
    assert name in str(found) and name in shown_by_rich(found)
    html = found._repr_html_()
    assert (
        html.startswith("<table><tr><th>stream")
        and "[red]&lt;b&gt;:smile:" in html
        and "<b>" not in html
    )
