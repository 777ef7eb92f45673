"""The progress of a query as a text for people."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from plait.adapt.events import Event
from plait.figures import event_time
from plait.node.reports.placement import balance_line

if TYPE_CHECKING:
    from plait.node.reports.progress import Progress

_DECISIONS = ("compared", "judged", "unqualified")
_MOST_SHOWN = 6
"""Decisions and notes, the newest."""


def lines(found: Progress) -> list[str]:
    """The progress line by line: a table with a line per stream, and notes below it."""
    if found.last is None:
        return ["no batch yet", *_troubles(found)]
    head, *rows = _rows(found)
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    listed = [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]
    return [*listed, *_notes(found)]


def html(found: Progress) -> str:
    """The same for notebooks: a table with a line per stream, a bar for each batch, and notes."""
    if found.last is None:
        return f"<pre>{escape(chr(10).join(lines(found)))}</pre>"
    head, *rows = _rows(found)
    cells = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in _notes(found))
    return f"<table><tr>{cells}</tr>{body}</table>{_bars(found)}<ul>{notes}</ul>"


def _bars(found: Progress) -> str:
    """How long the remembered batches took, as SVG; nothing where that is not known."""
    took = [sum(batch.counted.seconds.values()) for batch in found.batches]
    if not any(took):
        return ""
    longest, width = max(took), 6 * len(took)
    bars = "".join(
        f'<rect x="{6 * i}" y="{40 - 40 * s / longest:.1f}" width="5" '
        f'height="{40 * s / longest:.1f}" fill="currentColor" fill-opacity="0.6"/>'
        for i, s in enumerate(took)
    )
    said = f"seconds of the slowest processor in {len(took)} batches, at most {longest:.3g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="40">'
        f"<title>{said}</title>{bars}</svg><p>{said}</p>"
    )


def _rows(found: Progress) -> list[list[str]]:
    """A line per stream, of the last batch and of all batches."""
    assert found.last is not None
    last, total = found.last.counted, found.total
    head = ["stream", "rows", "all rows", "late", "no time", "no key", "filtered", "watermark"]
    names = list(dict.fromkeys([*total.rows, *found.watermarks]))
    return [
        head,
        *(
            [
                name,
                f"{last.rows.get(name, 0):,}",
                *(
                    f"{counts.get(name, 0):,}"
                    for counts in (
                        total.rows, total.late, total.null_times, total.null_keys, total.filtered,
                    )
                ),
                event_time(found.watermarks.get(name)),
            ]
            for name in names
        ),
    ]  # fmt: skip


def _notes(found: Progress) -> list[str]:
    assert found.last is not None
    last, total = found.last.counted, found.total
    hot, times = total.hottest
    stages = ", ".join(f"{stage} {s:.3f} s" for stage, s in last.seconds.items())
    plans = dict.fromkeys(found.plans.values())
    return [
        f"batch {found.last.number}: {last.results:,} results ({stages}); "
        f"{total.results:,} results in {found.processed:,} batches",
        f"state {found.state_rows:,} rows, {found.state_bytes:,} bytes, "
        f"{found.segments:,} segments; {total.written_bytes:,} bytes written",
        f"engines reused {total.reused:,} times, rebuilt {total.rebuilt:,} times",
        *(
            f"{n:,} values of {name} could not be read and were set aside"
            for name, n in total.malformed.items()
        ),
        *(
            f"{n:,} rows of {name} were too far ahead of the clock and were set aside"
            for name, n in total.ahead.items()
        ),
        f"processors {len(total.routed)}; the hottest is {hot} with {times:.2f} times the mean",
        *(
            f"migration on {p} to {m['new']} by {m['strategy'].replace('-', ' ')}: {m['status']}, "
            f"{m['shared']:,} combined tuples shared, {m['recomputed']:,} recomputed, "
            f"pause {m['pause']:.3f} s" + (f"; {m['reason']}" if m["reason"] else "")
            for p, m in found.migrations
        ),
        *(found.placement.lines() if found.placement is not None else ()),
        *map(balance_line, found.balance[-_MOST_SHOWN:]),
        *map(_decision, [e for e in found.events if e.kind in _DECISIONS][-_MOST_SHOWN:]),
        *(f"plan {plan}" + ("" if len(plans) == 1 else _on(found.plans, plan)) for plan in plans),
        *_troubles(found),
    ]


def _troubles(found: Progress) -> list[str]:
    """What went wrong beside the results; the last of it only, if there is much."""
    silent = found.unreported[-_MOST_SHOWN:]
    earlier = ", ..." if len(silent) < len(found.unreported) else ""
    unwritten = ", ".join(f"{n:,} {what}" for what, n in sorted(found.total.unwritten.items()))
    return [
        *([f"no report of the batches {', '.join(map(str, silent))}{earlier}"] if silent else ()),
        *([f"not written: {unwritten}"] if unwritten else ()),
        *(f"batch {number}: {note}" for number, note in found.notes[-_MOST_SHOWN:]),
    ]


def _decision(event: Event) -> str:
    """What the loop of a processor did, and why, in a line."""
    data = event.data
    where = f"processor {event.processor} at {event_time(event.time)}"
    if event.kind == "unqualified":
        return f"{where}: {data['resource']} is short; {'; '.join(data['reasons'])}"
    if event.kind == "judged":
        return f"{where}: {data['reason']}"
    return f"{where}: {'; '.join(data['decision']['reasons'])}"


def _on(plans: Mapping[int, str], plan: str) -> str:
    return " on " + ", ".join(str(p) for p, runs in plans.items() if runs == plan)
