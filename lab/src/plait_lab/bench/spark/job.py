"""What a child process is asked to do, and what it says while it does it.

A job is a JSON file. The child answers with lines of JSON on its standard output, each with a
`kind`: `batch` (one micro-batch is done), `end` (all is done) or `failed`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MARK = "@plait "
"""How a line for the parent begins; other lines are somebody else's."""
FIRST_WARM = 1
"""The batch whose end starts the clock of a run of some seconds: the one before pays for the start,
and is empty with the rate source."""


@dataclass(frozen=True, slots=True)
class Job:
    """One system on one workload."""

    system: str
    keys: tuple[tuple[str, ...], ...]
    window: int
    scratch: str = ""
    """A directory for this job alone: checkpoint, temporary files, log."""
    files: str = ""
    """Where the streams' files are; without, rows come from Spark's rate source."""
    kafka: str = ""
    """The address of the broker whose topics have the streams, if they come from Kafka."""
    topics: str = ""
    """How the names of the topics begin: `TOPICS-s0` and so on, and `TOPICS-results`."""
    rate: int = 0
    """Rows per second and stream from the rate source."""
    domain: int = 0
    """Distinct keys from the rate source."""
    seconds: float = 0.0
    """How long to read from the rate source, once it is warm."""
    trigger_seconds: float = 0.0
    aggregate: bool = False
    """Whether results are summed up by one aggregate per batch; else they are observed."""
    sink: str = ""
    """Where results go, if they are to be kept: parquet or delta, for Plait only, or kafka."""
    checkpoint: str = ""
    """Where Spark keeps the checkpoint, if not in the directory for this job."""
    told: bool = False
    """Whether Plait is told where it is; it is if something else needs it."""
    condition: str = ""
    """What results satisfy beside equal keys; for Plait only."""
    plan: str = ""
    """The plan of Plait, if it is not to choose one: its shape, or JSON."""
    adapt: bool | None = None
    """Whether Plait may change the plan by itself; None as users get it who say nothing."""
    balance: bool | None = None
    """Whether partition groups may move; None as users get it."""
    skew: float = 0.0
    """The share of the partition groups that the first processor begins with; 0: its fair share."""
    holders: int = 0
    """The first processors, which alone hold groups at the beginning; 0: all."""
    move_by: str = ""
    """The protocol by which half of the first processor's groups go to the second one."""
    move_after: int = 0
    """The batch after which they do."""
    migrate_to: str = ""
    """The plan that Plait goes over to while it runs."""
    strategy: str = ""
    migrate_after: int = 0
    """The batch after which it is told so."""
    cores: int = 2
    memory: str = "3g"
    settings: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        """Write the job where a child can read it."""
        path.write_text(json.dumps(asdict(self)))
        return path

    @property
    def stop(self) -> Path:
        """The file that ends the query when it is there."""
        return Path(self.scratch) / "stop"

    @classmethod
    def read(cls, path: Path) -> Job:
        """The inverse of `write`."""
        parts: dict[str, Any] = json.loads(path.read_text())
        parts["keys"] = tuple(map(tuple, parts["keys"]))
        return cls(**parts)


def tell(kind: str, **figures: Any) -> None:
    """Say something to the parent."""
    print(MARK + json.dumps({"kind": kind, **figures}), flush=True)


def heard(line: str) -> dict[str, Any] | None:
    """What a line of a child says; None for lines that are not for us.

    >>> heard('@plait {"kind": "end"}'), heard("WARN something")
    ({'kind': 'end'}, None)
    """
    if not line.startswith(MARK):
        return None
    said: dict[str, Any] = json.loads(line[len(MARK) :])
    return said
