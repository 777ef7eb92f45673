"""Read the contracts and headers in a checkpoint before a query starts with it.

Processors check their contract in every run, but then the error comes from a task of a query that
has started. Where the location is known beforehand, the same is checked here, with Spark's own
readers of state.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import CheckpointMismatch, StorageError
from plait.machine.stores import is_remote, problem, store_at
from plait.node.durable.header import Header
from plait.spark.checkpoint.damage import damaged, find_damage, local_path
from plait.spark.environment.connect import folder_here

JOIN_OPERATOR = "transformWithStateInPandasExec"
"""What Spark calls the operator that Plait's joins run in."""
_NO_SUCH_VARIABLE = "STDS_INVALID_OPTION_VALUE"
_REMEDY = "choose a new or an empty directory as the checkpoint location"


def stored_contracts(session: SparkSession, location: str) -> dict[str, tuple[int, ...]]:
    """The contracts of the joins in a checkpoint, each with its grouping keys.

    There are none if it is new, or if no input has had a partition yet, so that no processor ran.
    Refuses a location that is no checkpoint, a damaged one, and that of a query without a join of
    Plait.
    """
    path = folder_here(session, location)
    if path is not None:
        if not is_checkpoint(path):
            return {}
        if find_damage(path, state=False) is not None:
            raise damaged(location)
    elif is_remote(location) and not _has_commits(location):
        return {}
    try:
        with readable(location) as place:
            if path is None and not is_remote(location) and _is_new(session, place):
                return {}
            operators = _join_operators(session, place)
            found = [_texts(session, place, number, "contract") for number in operators]
    except Exception as error:  # of PySpark, of Py4J or of Java, whichever part of Spark fails
        if path is None and isinstance(error, PySparkException):
            return {}  # there is nothing yet, as far as this file system tells
        raise damaged(location, error) from error
    joins = [keys for keys in found if keys is not None]
    if not joins:
        raise CheckpointMismatch(
            f"the checkpoint {location} was written by a query without a join of Plait",
            remedy=_REMEDY,
        )
    contracts = {
        text: tuple(sorted(key for key, other in keys.items() if other == text))
        for keys in joins
        for text in keys.values()
    }
    return dict(sorted(contracts.items()))


def _has_commits(location: str) -> bool:
    """Whether a query has ended a batch with this checkpoint in a remote store."""
    try:
        return any(name.isdigit() for name in store_at(location).names("commits"))
    except OSError as error:
        raise StorageError(
            f"the checkpoint {location} cannot be listed: {problem(error)}",
            remedy="look at its end point and credentials, and try again",
        ) from error


def is_checkpoint(path: Path) -> bool:
    """Whether there is a checkpoint to go on from; refuses what is neither that nor nothing."""
    if not path.exists():
        return False
    if not path.is_dir():
        raise CheckpointMismatch(f"the checkpoint {path} is a file", remedy=_REMEDY)
    names = sorted(entry.name for entry in path.iterdir())
    if not names:
        return False
    if "metadata" not in names and "offsets" in names and "commits" in names:
        raise damaged(str(path))
    if "metadata" in names and "offsets" not in names and "commits" not in names:
        return False  # a driver that died just after it had begun
    if "metadata" not in names or "offsets" not in names:
        some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise CheckpointMismatch(
            f"{path} is a directory with other things ({some}), not a checkpoint", remedy=_REMEDY
        )
    commits = path / "commits"
    return commits.is_dir() and any(entry.name.isdigit() for entry in commits.iterdir())


def stored_headers(session: SparkSession, location: str, contract: str) -> list[Header]:
    """The headers of the processors with this contract after the last batch."""
    found = []
    with readable(location) as place:
        for number in _join_operators(session, place):
            if contract in (_texts(session, place, number, "contract") or {}).values():
                texts = _texts(session, place, number, "header") or {}
                found += [Header.from_json(text) for text in texts.values()]
    return found


@contextmanager
def readable(location: str) -> Iterator[str]:
    """A name of the location at which Spark finds its state: one without spaces and such."""
    path = local_path(location)
    if path is None or quote(str(path)) == str(path):
        yield location
        return
    with tempfile.TemporaryDirectory(prefix="plait-checkpoint-") as folder:
        link = Path(folder, "checkpoint")
        link.symlink_to(path.absolute(), target_is_directory=True)
        yield str(link)


def _is_new(session: SparkSession, location: str) -> bool:
    """Whether Spark finds no state at a place that only it can see."""
    return not session.read.format("state-metadata").load(location).head(1)


def _join_operators(session: SparkSession, location: str) -> list[int]:
    operators = session.read.format("state-metadata").load(location)
    joins = operators.where(operators.operatorName == JOIN_OPERATOR).select("operatorId")
    return sorted({int(row[0]) for row in joins.collect()})


def _texts(
    session: SparkSession, location: str, operator: int, variable: str
) -> dict[int, str] | None:
    """A text in the state of an operator by grouping key; None if it is not one of Plait."""
    reader = session.read.format("statestore").option("operatorId", operator)
    try:
        rows = reader.option("stateVarName", variable).load(location)
    except PySparkException as error:
        if str(error.getCondition()).startswith(_NO_SUCH_VARIABLE):
            return None
        raise
    return {int(key): str(text) for text, key in rows.select("value.text", "key.*").collect()}
