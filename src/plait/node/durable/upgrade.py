"""A query that goes on from its checkpoint with another question.

The rows of the live windows are in the state, and results that were found before are not found
again. So another question is answered from the next batch on: by every result that it has and whose
last row comes from then on, as far as the earlier rows are there. What that leaves out is said for
each change, and whoever runs the query agrees to it beforehand, because a question that was put to
a checkpoint by mistake would do harm there.

Changes are refused where the rows in the state are not those that the question needs: other
streams, event times or keys, another type of a column that is kept.

*Delays* change without being agreed to, in both directions. A shorter one makes rows late earlier
from then on. With a longer one the watermark would go back, and rows would be let in whose partners
were dropped already. Therefore a watermark never goes back (`watermarks_before`), and a stream that
had one is refused without one. For the same reason `lateness` does not become "least".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.errors import CheckpointMismatch
from plait.node.durable.contract import ADDED, Contract, is_same, read_contract
from plait.node.durable.header import Header
from plait.query.durations import show_micros
from plait.query.names import quoted
from plait.query.query import NEVER_LATE

Parts = Mapping[str, Any]

GOES_ON, AGREED, REFUSED = "goes on", "goes on if agreed", "refused"
"""What becomes of a change."""

_OTHER_ROWS = "the rows in the state are not those that it needs: begin a new checkpoint"
_UNSAID = (
    "the version that wrote the checkpoint does not say enough: run the old question for a batch "
    "with this version, then change it"
)
_LATER = "holds for results found from then on"


class QuestionChange(NamedTuple):
    """One thing that is asked otherwise than before."""

    part: str
    was: str
    now: str
    answer: str
    """What the answer is from then on and what it lacks; or why it is refused, and what to do."""
    verdict: str = AGREED

    def __str__(self) -> str:
        return f"{self.part} was {self.was} and is now {self.now}"


def changes(stored: str | None, asked: Contract) -> list[QuestionChange]:
    """What is asked otherwise than when the state was written, part by part.

    >>> from dataclasses import replace
    >>> from plait.node.durable.contract import contract
    >>> from plait.testing.examples import clique
    >>> from plait.groups.routing.routing import route
    >>> two, four = (contract(clique(3), route(clique(3).graph, n)) for n in (2, 4))
    >>> [(str(change), change.verdict) for change in changes(two.to_json(), four)]
    [('processors was 2 and is now 4', 'refused')]
    """
    written, new = read_contract(stored), json.loads(asked.to_json())
    old = ADDED | written
    if len(old["streams"]) != len(asked.streams):
        return [_change("streams", old, new, _OTHER_ROWS, REFUSED)]
    found = list(_delays(old, asked))
    differ = {part for part in _PARTS if part in old and not is_same(part, written, new)}
    if "streams" in differ:
        found += _streams(old, new)
    if "keys" in differ:
        found.append(_change("keys", old, new, _OTHER_ROWS, REFUSED))
    if "bounds" in differ:
        found.append(_bounds(old, new))
    if "conditions" in differ:
        found.append(_listed("conditions", old, new, f"the condition {_LATER}"))
    if "filters" in differ:
        found.append(
            _listed(
                "filters",
                old,
                new,
                "the filter is asked of rows that come from then on; rows that came before stay "
                "as they are, and those that were refused are missing",
            )
        )
    if "selected" in differ:
        found.append(_listed("output", old, new, f"the output {_LATER}", "selected"))
    if "lateness" in differ:
        found.append(_lateness(old, new))
    if "processors" in differ:
        remedy = "plait query rebalance changes it, or leave out processors="
        found.append(_change("processors", old, new, remedy, REFUSED))
    elif "shares" in differ:
        found.append(_change("shares", old, new, _OTHER_ROWS, REFUSED))
    return found


_PARTS = (
    "streams",
    "keys",
    "bounds",
    "conditions",
    "filters",
    "selected",
    "lateness",
    "processors",
    "shares",
)
_LAYOUT = {"processors", "shares"}


def nearest(stored: Sequence[str], asked: Contract) -> str | None:
    """The contract among these that asks the same, or else one that could go on with this.

    The number of processors may be any.

    >>> from plait.node.durable.contract import contract, processors_before
    >>> from plait.testing.examples import clique
    >>> from plait.groups.routing.routing import route
    >>> two, four = (contract(clique(3), route(clique(3).graph, n)) for n in (2, 4))
    >>> found = nearest([two.to_json()], four)
    >>> found == two.to_json(), processors_before(found), nearest([], four)
    (True, 2, None)
    """
    for verdicts in ({GOES_ON}, {GOES_ON, AGREED}):
        for text in stored:
            found = [change for change in changes(text, asked) if change.part not in _LAYOUT]
            if {change.verdict for change in found} <= verdicts:
                return text
    return None


def check_contract(stored: str | None, asked: Contract) -> None:
    """Refuse state that was written for something else, and say what differs.

    >>> from plait.node.durable.contract import contract
    >>> from plait.testing.examples import clique
    >>> from plait.groups.routing.routing import route
    >>> two, four = (contract(clique(3), route(clique(3).graph, n)) for n in (2, 4))
    >>> check_contract(two.to_json(), two)
    >>> check_contract(two.to_json(), four)
    Traceback (most recent call last):
    plait.errors.CheckpointMismatch: the checkpoint belongs to another query: processors was 2 ...
    """
    found = [change for change in changes(stored, asked) if change.verdict != GOES_ON]
    if found:
        refused = [change for change in found if change.verdict == REFUSED]
        raise CheckpointMismatch(
            "the checkpoint belongs to another query: " + "; ".join(map(str, found)),
            remedy=refused[0].answer if refused else _REMEDY,
        )
    if not is_same("hash", read_contract(stored), json.loads(asked.to_json())):
        raise CheckpointMismatch(
            "the rows in the checkpoint were divided among the processors by another secret",
            remedy="tell the query where its checkpoint is: to_df(checkpoint=...)",
        )


_REMEDY = (
    "tell the query where its checkpoint is, to_df(checkpoint=...), which says how it can go on; "
    "or choose a new checkpoint location"
)


def code_of(stored: str, asked: Contract) -> str:
    """A short name of this very change of a question, to agree to it and to no other."""
    return hashlib.sha256(f"{stored}\n{asked.to_json()}".encode()).hexdigest()[:8]


def watermarks_before(stored: str, header: Header) -> list[int]:
    """The watermark that each stream had by itself when the old question was asked.

    A contract that does not speak of delays tells nothing beyond the floors.

    >>> from plait.node.durable.contract import contract
    >>> from plait.testing.examples import clique
    >>> from plait.groups.routing.routing import route
    >>> text = contract(clique(2), route(clique(2).graph, 1)).to_json()
    >>> watermarks_before(text, Header((25, 40), floors=(30, 30)))
    [30, 40]
    """
    floors = header.floors or (BEFORE_ALL_TIMES,) * len(header.newest)
    delays = read_contract(stored).get("delays", ())
    if len(delays) != len(floors):
        return list(floors)
    return [
        floor if newest <= BEFORE_ALL_TIMES or delay >= NEVER_LATE else max(floor, newest - delay)
        for newest, floor, delay in zip(header.newest, floors, delays, strict=True)
    ]


def cutoffs_before(stored: str, header: Header) -> list[int]:
    """For each stream the time before which the old question needs no row any longer.

    >>> from plait.node.durable.contract import contract
    >>> from plait.testing.examples import clique
    >>> from plait.groups.routing.routing import route
    >>> text = contract(clique(2), route(clique(2).graph, 1)).to_json()
    >>> cutoffs_before(text, Header((25_000_000, 40_000_000)))
    [30000000, 15000000]
    """
    old, marks = ADDED | read_contract(stored), watermarks_before(stored, header)
    if old["lateness"] == "least":
        marks = [min(marks)] * len(marks)
    return [
        max(BEFORE_ALL_TIMES, min(mark - row[k] for k, mark in enumerate(marks) if k != s))
        for s, row in enumerate(old["matrix"])
    ]


# -- the verdict on each part


def _change(
    part: str, old: Parts, new: Parts, answer: str, verdict: str = AGREED
) -> QuestionChange:
    return QuestionChange(part, _shown(old.get(part)), _shown(new.get(part)), answer, verdict)


def _listed(name: str, old: Parts, new: Parts, answer: str, part: str = "") -> QuestionChange:
    """A list of which only what differs is shown, unless it is the order."""
    was, now = old[part or name], new[part or name]
    gone, come = [x for x in was if x not in now], [x for x in now if x not in was]
    if gone or come:
        was, now = gone, come
    return QuestionChange(name, _shown(was), _shown(now), answer)


def _streams(old: Parts, new: Parts) -> Iterator[QuestionChange]:
    """Streams: their names and event times stay, the columns that are kept may become others."""
    if "columns" not in old:
        yield _change("streams", old, new, _UNSAID, REFUSED)
        return
    parts = (old["streams"], new["streams"], old["columns"], new["columns"])
    for one, other, before, after in zip(*parts, strict=True):
        name = _around(other, after)[0]
        if _around(one, before) != _around(other, after):
            yield QuestionChange("stream", one, other, _OTHER_ROWS, REFUSED)
            continue
        types, wanted = dict(map(tuple, before)), dict(map(tuple, after))
        for column in types | wanted:
            earlier, later = types.get(column), wanted.get(column)
            part = f"{name}.{quoted(column)}"
            if earlier is None:
                answer = "rows that came before have null there"
                yield QuestionChange(part, "not kept", str(later), answer)
            elif later is None:
                yield QuestionChange(part, earlier, "not kept", "no result needs it any longer")
            elif earlier != later:
                remedy = f"cast it to {earlier} before the join, or begin a new checkpoint"
                yield QuestionChange(part, earlier, later, remedy, REFUSED)


def _around(stream: str, columns: Sequence[Sequence[str]]) -> tuple[str, str]:
    """What the text of a stream says beside its columns: its name and its event time."""
    listed = ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)
    name, _, time = stream.partition(f"({listed}) time ")
    return name, time


def _bounds(old: Parts, new: Parts) -> QuestionChange:
    if "matrix" not in old:
        return _change("bounds", old, new, _UNSAID, REFUSED)
    pairs = zip(old["matrix"], new["matrix"], strict=True)
    wider = any(b > a for was, now in pairs for a, b in zip(was, now, strict=True))
    answer = f"the window {_LATER}"
    if wider:
        answer += "; those with rows that the old window needs no longer are missing"
    return _change("bounds", old, new, answer)


def _lateness(old: Parts, new: Parts) -> QuestionChange:
    if new["lateness"] == "own":
        return _change("lateness", old, new, "rows are late earlier from then on")
    why = "watermarks would go back, and rows be let in whose partners are gone"
    return _change(
        "lateness", old, new, f"{why}: leave it as it was, or begin a new checkpoint", REFUSED
    )


def _delays(old: Parts, asked: Contract) -> Iterator[QuestionChange]:
    before = tuple(old.get("delays", ()))
    if len(before) != len(asked.delays):
        return
    for was, now, stream in zip(before, asked.delays, asked.streams, strict=True):
        if was == now:
            continue
        answer, verdict = "rows are late earlier from then on", GOES_ON
        if now >= NEVER_LATE:
            answer, verdict = (
                "rows would be let in whose partners are gone: say it again, "
                f'.watermark("{show_micros(was)}"), or begin a new checkpoint',
                REFUSED,
            )
        elif now > was:
            answer = "the watermark stands still until rows are that far ahead"
        name = stream.partition("(")[0]
        yield QuestionChange(f"the delay of {name}", _delay(was), _delay(now), answer, verdict)


def _delay(micros: int) -> str:
    return "unlimited" if micros >= NEVER_LATE else show_micros(micros)


def _shown(value: object) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list) else str(value)
