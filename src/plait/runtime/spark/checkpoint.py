"""Looking at a checkpoint before a query starts with it.

Processors check their contract when the query runs, whatever happens; but then the query has been
started, and the error comes from a task. Where the location is known beforehand, the same is found
out here, with Spark's own readers of state.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.cluster.contract import Contract, check_contract
from plait.errors import CheckpointMismatch

_OPERATOR = "transformWithStateInPandasExec"
_REMEDY = "choose a new or an empty directory as the checkpoint location"


def check_checkpoint(stored: Sequence[str], asked: Contract) -> None:
    """Refuse the checkpoint of another query, by the contracts in it; a new one has none."""
    if stored and asked.to_json() not in stored:
        check_contract(stored[0], asked)


def stored_contracts(session: SparkSession, location: str) -> list[str]:
    """The contracts of the joins in a checkpoint, none if it is new.

    Refuses a location that is no checkpoint, or that of a query without a join of Plait.
    """
    path = local_path(location)
    if path is not None and not is_checkpoint(path):
        return []
    try:
        operators = session.read.format("state-metadata").load(location)
        joins = operators.where(operators.operatorName == _OPERATOR).select("operatorId")
        ids = sorted({int(row[0]) for row in joins.collect()})
    except PySparkException as error:
        if path is None:
            return []  # there is nothing yet, as far as this file system tells
        raise CheckpointMismatch(
            f"the checkpoint {location} holds no state that can be read: {_first_line(error)}",
            remedy=_REMEDY,
        ) from error
    stored = [text for number in ids for text in _stored(session, location, number)]
    if not stored:
        raise CheckpointMismatch(
            f"the checkpoint {location} was written by a query without a join of Plait",
            remedy=_REMEDY,
        )
    return stored


def is_checkpoint(path: Path) -> bool:
    """Whether there is a checkpoint to go on from; refuses what is neither that nor nothing."""
    if not path.exists():
        return False
    if not path.is_dir():
        raise CheckpointMismatch(f"the checkpoint {path} is a file", remedy=_REMEDY)
    names = sorted(entry.name for entry in path.iterdir())
    if not names:
        return False
    if "metadata" not in names or "offsets" not in names:
        some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise CheckpointMismatch(
            f"{path} is a directory with other things ({some}), not a checkpoint", remedy=_REMEDY
        )
    commits = path / "commits"
    return commits.is_dir() and any(entry.name.isdigit() for entry in commits.iterdir())


def local_path(location: str) -> Path | None:
    """The directory that a location is on this machine, None if it is elsewhere.

    >>> local_path("file:///tmp/a%20b"), local_path("s3a://bucket/x")
    (PosixPath('/tmp/a b'), None)
    """
    parsed = urlparse(location)
    if not parsed.scheme:
        return Path(location)
    return Path(url2pathname(parsed.path)) if parsed.scheme == "file" else None


def _stored(session: SparkSession, location: str, operator: int) -> list[str]:
    """The contracts in the state of an operator; none if it is not one of Plait."""
    reader = session.read.format("statestore").option("operatorId", operator)
    try:
        rows = reader.option("stateVarName", "contract").load(location).select("value.text")
        return [str(row[0]) for row in rows.collect()]
    except PySparkException:
        return []


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
