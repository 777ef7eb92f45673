"""Read the logs of batches that Spark keeps in a checkpoint: which have begun, ended, and when.

Spark writes `offsets/N` with the time before it runs a batch, and `commits/N` when it has ended.
It keeps those of the last hundred.
"""

from __future__ import annotations

import json

from plait.machine.stores import FileStore

_FAR = 253402300800.0
"""The year 10000, in seconds: no batch has begun then."""


def batch_times(checkpoint: FileStore, batch: int) -> tuple[float, float]:
    """When a batch began, in seconds since 1970, and the seconds that it took; 0 is unknown."""
    try:
        _, about, *_ = checkpoint.read(f"offsets/{batch}").decode("utf-8").split("\n")
        began = float(json.loads(about)["batchTimestampMs"]) / 1000
        if not 0 <= began < _FAR:
            return 0.0, 0.0
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return 0.0, 0.0
    try:
        ended = checkpoint.names("commits").get(str(batch), began)
    except OSError:
        return began, 0.0
    return began, max(0.0, ended - began)


def last_logged(checkpoint: FileStore, log: str) -> int | None:
    """The last batch in one of Spark's logs, `offsets` or `commits`."""
    try:
        names = checkpoint.names(log, files=False)
    except OSError:
        return None
    return max((int(name) for name in names if name.isdecimal()), default=None)
