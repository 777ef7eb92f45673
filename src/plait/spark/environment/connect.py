"""Spark Connect: what is different for a client that has a session elsewhere, and no JVM.

Results, progress, decisions and Delta tables need nothing that a client lacks. What a client cannot
do is to look into the server's files or to start a Spark of its own; that is said by name.
"""

from __future__ import annotations

import os
from pathlib import Path

from plait.errors import MissingRequirement
from plait.spark.checkpoint.damage import local_path


def is_connect(session: object) -> bool:
    """Whether a session is that of a client of Spark Connect.

    >>> is_connect(object())
    False
    """
    return ".connect." in type(session).__module__


def folder_here(session: object, location: str) -> Path | None:
    """The folder of a location in this process's file system; None if it is in another one.

    The server of a client may be on another host. A folder that is not here may be there.
    """
    path = local_path(location)
    return None if path is None or (is_connect(session) and not path.exists()) else path


def refuse_remote(what: str) -> None:
    """Refuse what starts a Spark in this process, where the environment names one elsewhere."""
    if server := os.environ.get("SPARK_REMOTE"):
        raise MissingRequirement(
            f"{what} starts a Spark in this process, but SPARK_REMOTE says that Spark is at "
            f"{server}",
            remedy="use SparkSession.builder.getOrCreate() for that one, or unset SPARK_REMOTE "
            "where Java and the whole of pyspark are installed",
        )
