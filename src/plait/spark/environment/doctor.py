"""Check everything that could go wrong on a Spark session, and print it as a table.

Each line is a fact with a verdict: `ok`, `note` (it works, but read this) or `wrong` (queries will
fail), and what to do about it. Facts about the workers come from a small job that runs there.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import MissingRequirement, SourceError
from plait.query.dialect import zone_named
from plait.spark.environment.connect import is_connect
from plait.spark.environment.java import provide_java
from plait.spark.environment.partitions import SPARKS_DEFAULT, parallelism, partitions_of
from plait.spark.environment.requirements import check_packages, check_spark
from plait.spark.environment.settings import BYTECODE, ROCKSDB, SPARKS_STORE, STORE

Verdict = Literal["ok", "note", "wrong"]
_ROOM = 1 << 30
"""Less than a gibibyte for caches is worth a remark."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about a session."""

    what: str
    verdict: Verdict
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What `plait.spark.doctor` found; print it for the table."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(f.verdict != "wrong" for f in self.findings)

    def __str__(self) -> str:
        rows = [(f.what, f.verdict, f.found, f.remedy) for f in self.findings]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join(
                [*(text.ljust(w) for text, w in zip(row, widths, strict=False)), row[3]]
            ).rstrip()
            for row in rows
        )

    __repr__ = __str__


def doctor(session: SparkSession | None = None) -> Findings:
    """Check everything that queries of Plait in this session need; print what it returns.

        print(plait.spark.doctor(spark))

    It runs one small job, to see the Python and the Plait of the workers. Without a session it
    checks whether one can start here: the Python packages, and Java, which it lets Spark find as
    `provide_java` does.
    """
    return Findings(tuple(_findings(session)))


def _findings(session: SparkSession | None) -> Iterator[Finding]:
    yield _tried("packages here", "they fit", check_packages)
    if session is None:
        yield _tried("Java", "it fits", provide_java)
        return
    yield _tried("Spark", session.version, lambda: check_spark(session.version))
    if is_connect(session):
        yield Finding("Java", "ok", "on the server")
    else:
        yield _tried("Java", "it fits", provide_java)
    yield _store(session.conf.get(STORE, SPARKS_STORE) or SPARKS_STORE)
    yield _zone(str(session.conf.get("spark.sql.session.timeZone")))
    yield _partitions(session)
    yield from _workers(session)


def _tried(what: str, found: str, look: Callable[[], object]) -> Finding:
    try:
        look()
    except MissingRequirement as error:
        return Finding(what, "wrong", error.message, error.remedy)
    return Finding(what, "ok", found)


def _store(found: str) -> Finding:
    if found == ROCKSDB:
        return Finding("state store", "ok", "RocksDB")
    if found == SPARKS_STORE:
        return Finding(
            "state store",
            "note",
            "Spark's default",
            "to_df sets RocksDB; plait.spark.configure(spark) too",
        )
    return Finding("state store", "wrong", found, f"set {STORE} to {ROCKSDB}")


def _zone(name: str) -> Finding:
    try:
        return Finding("time zone", "ok", zone_named(name))
    except SourceError as error:
        return Finding("time zone", "wrong", error.message, error.remedy)


def _partitions(session: SparkSession) -> Finding:
    found, cores = partitions_of(session), parallelism(session)
    said = f"{found} for {cores} tasks at once"
    if found != SPARKS_DEFAULT:
        return Finding("partitions", "ok", said)
    remedy = f"start queries inside `with plait.spark.partitions(spark, {cores}):`"
    return Finding("partitions", "note", f"{said} (Spark's default)", remedy)


def _workers(session: SparkSession) -> Iterator[Finding]:
    asked = session.range(parallelism(session) * 2).repartition(parallelism(session))
    fields = "python string, plait string, missing string, compiled boolean, shared long, disk long"
    try:
        rows = asked.mapInArrow(_look, fields).distinct().collect()
    except PySparkException as error:
        if "No module named 'plait" in str(error):
            remedy = "install it there, or ship it with spark.submit.pyFiles"
            yield Finding("Plait of the workers", "wrong", "it is not installed", remedy)
            return
        first = str(error).strip().splitlines()[0]
        yield Finding("workers", "wrong", first, "see that Python and PySpark start there")
        return
    pythons, plaits = ({str(row[i]) for row in rows} for i in (0, 1))
    missing = sorted({name for row in rows for name in str(row["missing"]).split() if name})
    yield _same("Python of the workers", pythons, platform.python_version(), "same version")
    yield _same("Plait of the workers", plaits, _version(), "install it there, or ship it")
    remedy = "install 'plait[worker]' in the Python of the executors" if missing else ""
    verdict: Verdict = "wrong" if missing else "ok"
    listed = f"missing: {', '.join(missing)}" if missing else "they are there"
    yield Finding("packages of the workers", verdict, listed, remedy)
    yield _bytecode(all(row["compiled"] for row in rows))
    for what, place, path in (("shared memory", "shared", "/dev/shm"), ("disk", "disk", "")):
        free = min((int(row[place]) for row in rows if row[place] is not None), default=None)
        yield _room(what, free, path)


def _version() -> str:
    """The version of Plait in this process, of which this module is a part."""
    return str(sys.modules["plait"].__dict__["__version__"])


def _same(what: str, found: set[str], here: str, remedy: str) -> Finding:
    if found == {here}:
        return Finding(what, "ok", here)
    there = ", ".join(sorted(text or "not installed" for text in found))
    return Finding(what, "wrong", f"{there}, but {here} here", remedy)


def _bytecode(compiled: bool) -> Finding:
    if compiled:
        return Finding("bytecode of the workers", "ok", "Python keeps it")
    return Finding(
        "bytecode of the workers",
        "note",
        f"{BYTECODE} is set, so each worker compiles pyspark again, and Spark gives it 10 s",
        f"start the session with spark.executorEnv.{BYTECODE} set to nothing, or run "
        "python -m compileall on the installed packages",
    )


def _room(what: str, free: int | None, path: str) -> Finding:
    if free is None:
        return Finding(what, "note", "there is none", "engines are kept on the disk instead")
    said = f"{free / 1e9:.1f} GB free"
    if free >= _ROOM:
        return Finding(what, "ok", said)
    return Finding(what, "note", said, f"make room in {path or 'the temporary directory'}")


def _look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a worker sees."""
    import importlib.util

    for _ in batches:
        pass
    needed = ("numba", "numpy", "pandas", "pyarrow", "google.protobuf")
    missing = []
    for name in needed:
        try:
            gone = importlib.util.find_spec(name) is None
        except ModuleNotFoundError:
            gone = True
        missing += [name] if gone else []
    try:
        shared = shutil.disk_usage("/dev/shm").free
    except OSError:
        shared = None
    disk = shutil.disk_usage(tempfile.gettempdir()).free
    version = ".".join(map(str, sys.version_info[:3]))
    kept = importlib.util.cache_from_source(str(sys.modules["pyspark"].__file__))
    compiled = not sys.dont_write_bytecode or os.path.exists(kept)
    told = {"python": version, "plait": _version(), "missing": " ".join(missing)}
    row = {**told, "compiled": compiled}
    yield pa.RecordBatch.from_pylist(
        [{**row, "shared": shared, "disk": disk}],
        schema=pa.schema(
            [
                ("python", pa.string()),
                ("plait", pa.string()),
                ("missing", pa.string()),
                ("compiled", pa.bool_()),
                ("shared", pa.int64()),
                ("disk", pa.int64()),
            ]
        ),
    )
