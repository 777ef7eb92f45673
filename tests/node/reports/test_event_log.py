"""Logs of events: read as they were written, and errors that name the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.adapt.events import Event
from plait.errors import SourceError
from plait.node.reports.event_log import read_events, write_events


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    data = {"reasons": ["a", "b"], "cost": {"cpu": 0.5}, "plan": None}
    events = [Event("started", 0, 0, data), *(Event("judged", n, n * 7, data, 2) for n in (1, 2))]
    log = tmp_path / "events" / "0.jsonl"
    write_events(events[:2], log)
    write_events(events[2:], log)
    again = read_events(log.parent)
    assert again == events
    assert [event.origin for event in again] == [f"{log}:{n}" for n in (1, 2, 3)]


def test_of_a_repeated_batch_the_last_try_counts(tmp_path: Path) -> None:
    log = tmp_path / "0.jsonl"
    first = [Event("compared", 3, 7, {"try": 1}), Event("migrated", 3, 7)]
    write_events([Event("started", 0, 0)], log, "a")
    write_events(first, log, "b")
    write_events([Event("compared", 3, 7, {"try": 2})], log, "c")
    assert [(e.kind, e.batch, e.data.get("try")) for e in read_events(log)] == [
        ("started", 0, None),
        ("compared", 3, 2),
    ]


def test_the_end_of_a_log_is_read_by_whole_lines(tmp_path: Path) -> None:
    log, events = tmp_path / "0.jsonl", [Event("judged", n, n) for n in range(4)]
    write_events(events, log)
    size = log.stat().st_size
    line = len(log.read_text().splitlines(keepends=True)[-1])
    assert read_events(log, size) == read_events(log, 10 * size) == events
    assert read_events(log, size - 1) == events[1:]
    assert read_events(log, line) == events[-1:]
    assert read_events(log, line - 1) == []


def test_a_torn_last_line_is_left_out_but_no_other(tmp_path: Path) -> None:
    log = tmp_path / "0.jsonl"
    write_events([Event("started", 0, 0), Event("judged", 1, 1)], log)
    whole = log.read_text()
    log.write_text(whole[:-20])
    assert [e.kind for e in read_events(log)] == ["started"]
    log.write_text("{}\n" + whole)
    with pytest.raises(SourceError, match=r"0\.jsonl:1 is no event"):
        read_events(log)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            '{"event": "judged", "batch": null, "time": 0, "processor": 0}',
            r"\$\.batch is null, not",
        ),
        (
            '{"event": "judged", "batch": 1, "time": 1e3, "processor": 0}',
            r"\$\.time is 1000\.0, not",
        ),
        ('{"event": "judged", "batch": 1, "time": 1}', r"\$ lacks the field 'processor'"),
        ('{"event": 7, "batch": 1, "time": 1, "processor": 0}', r"\$\.event is 7, not a kind"),
        (f'{{"event": "judged", "batch": 1, "time": {2**63}, "processor": 0}}', "of 64 bits"),
        ('{"event": "judged", "batch": 1, "time": 1, "processor": 0, "attempt": []}', "attempt"),
        ("[" * 100_000, "it is no JSON"),
        ("null", r"\$ is null, not an object"),
        ("", "it is no JSON"),
    ],
)
def test_an_error_names_the_file_the_line_and_the_field(
    tmp_path: Path, line: str, why: str
) -> None:
    log = tmp_path / "0.jsonl"
    write_events([Event("started", 0, 0)], log)
    log.write_text(f"{log.read_text()}{line}\n")
    with pytest.raises(SourceError, match=rf"0\.jsonl:2 is no event: .*{why}"):
        read_events(log)
    log.write_bytes(b"\xff\n")
    with pytest.raises(SourceError, match=r"0\.jsonl cannot be read: no text in UTF-8"):
        read_events(log)


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no event logs"):
        read_events(tmp_path)
    with pytest.raises(SourceError, match="cannot be read"):
        read_events(tmp_path / "nothing")
