"""Find the damaged file of a checkpoint by reading its files, without running the query.

Spark notices most damage, but says it in the words of whatever failed first: a parser of numbers,
a decompressor, a checksum. So the files are read once more here, as far as their format is plain:

    metadata                      JSON with the id of the query
    offsets/N, commits/N          a version, then lines of JSON; N has no gaps, commits have offsets
    sources/SOURCE/N              of a file source, likewise; every line tells N
    state/OPERATOR/_metadata      likewise
    state/OPERATOR/PARTITION      a snapshot N.zip, the SST files that it names, and the changelogs
                                  from N + 1 up to the version that the last commit asks for
    .NAME.crc                     checksums that Hadoop keeps of a file on a local disk

*Cost.* Without the state, a few small files are read: those with which Spark begins. With it, all
files are, which is meant for queries that have failed.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from plait.errors import CheckpointDamaged

_MAGIC = b"crc\0"
_LOGS = {"offsets": 2, "commits": 1}
"""The logs, and how many of their last files Spark begins with."""
_VERSIONED = re.compile(r"([0-9]+)(?:_[^.]*)?\.(zip|changelog)")
RESTORE = "put the file back from a copy of the checkpoint, or begin with a new checkpoint location"
_JOINED = ".compact"
_NOT_JSON = "-"
"""What a log has in place of an offset where a source has none yet."""


def find_damage(checkpoint: Path, *, state: bool = True) -> str | None:
    """The first damaged or missing file of a checkpoint on this machine, with what is wrong.

    None if nothing is. Without `state`, only what Spark begins with is read.
    """
    return next(_problems(checkpoint, state), None)


def damaged(location: str, error: BaseException | None = None) -> CheckpointDamaged:
    """The error that says what is wrong with a checkpoint; the file if it is on this machine."""
    path = local_path(location)
    found = None if path is None else find_damage(path)
    if found is None:
        found = f"Spark cannot read it: {_cause(error)}" if error else "Spark cannot read it"
    return CheckpointDamaged(f"the checkpoint {location} is damaged: {found}", remedy=RESTORE)


def local_path(location: str) -> Path | None:
    """The directory that a location is on this machine, None if it is elsewhere.

    >>> local_path("file:///data/a%20b"), local_path("s3a://bucket/x")
    (PosixPath('/data/a b'), None)
    """
    parsed = urlparse(location)
    if not parsed.scheme:
        return Path(location)
    return Path(url2pathname(parsed.path)) if parsed.scheme == "file" else None


def _problems(checkpoint: Path, state: bool) -> Iterator[str]:
    if (found := _in_json(checkpoint / "metadata", versioned=False)) is not None:
        yield found
    for log, begins_with in _LOGS.items():
        yield from _in_log(checkpoint / log, None if state else begins_with)
    batches, commits = (_numbers(checkpoint / log) for log in _LOGS)
    for number, other in combinations(batches[-3:], 2):
        if _same(checkpoint / "offsets" / str(number), checkpoint / "offsets" / str(other)):
            yield f"{checkpoint / 'offsets' / str(other)} is a copy of another one"
    for number in commits[-1:]:
        if number not in batches:
            yield f"{checkpoint / 'offsets' / str(number)} is missing, but the batch was committed"
    last = max(batches, default=0)
    if last and last - 1 not in batches:  # Spark goes on from there
        yield f"{checkpoint / 'offsets' / str(last - 1)} is missing"
    for index, reached in enumerate(_reached(checkpoint / "offsets" / str(last))):
        yield from _in_files_read(checkpoint / "sources" / str(index), reached)
    for source in sorted((checkpoint / "sources").glob("*")):
        for number in _numbers(source)[None if state else -1 :]:
            if (found := _in_source(source / str(number))) is not None:
                yield found
    if not state:
        return
    for operator in sorted(p for p in (checkpoint / "state").glob("*") if p.name.isdigit()):
        yield from _in_operator(operator, max(commits, default=-1) + 1)


def _in_log(folder: Path, last: int | None) -> Iterator[str]:
    """What is wrong with the last files of a log, or with all of them, the last one first."""
    numbers = _numbers(folder)[::-1]
    for number in numbers[:last]:
        if (found := _in_json(folder / str(number), versioned=True)) is not None:
            yield found
    if last is None:
        for after, before in pairwise(numbers):
            if after > before + 1:
                yield f"{folder / str(before + 1)} is missing"


def _reached(path: Path) -> list[int]:
    """How far the log of each file source is according to offsets; -1 for other sources."""
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[2:]]
    except (OSError, ValueError, RecursionError):
        return []
    found = [line.get("logOffset", -1) if isinstance(line, dict) else -1 for line in lines]
    return [number if isinstance(number, int) else -1 for number in found]


def _in_files_read(folder: Path, reached: int) -> Iterator[str]:
    """Which files of a file source's log are missing: Spark reads all since it last joined them."""
    joined = [int(p.name.removesuffix(_JOINED)) for p in folder.glob(f"[0-9]*{_JOINED}")]
    for number in range(max(joined, default=-1) + 1, reached + 1):
        if not (folder / str(number)).exists():
            yield f"{folder / str(number)} is missing"


def _in_source(path: Path) -> str | None:
    """What is wrong with a file of a source's log; those of file sources tell their number."""
    if (found := _checksum(path)) is not None:
        return found
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    except (OSError, ValueError, RecursionError):
        return None  # each source has a format of its own
    files = [line for line in lines if isinstance(line, dict) and "path" in line]
    if any(str(line.get("batchId", path.name)) != path.name for line in files):
        return f"{path} is a copy of another one"
    return None


def _in_operator(folder: Path, version: int) -> Iterator[str]:
    described = sorted(p for p in folder.glob("_metadata/*/*") if p.name.isdigit())
    if not described:
        yield f"{folder / '_metadata'} has no description of the operator"
    partitions = 0
    for path in described:
        if (found := _in_json(path, versioned=True)) is not None:
            yield found
            continue
        partitions = max(partitions, *_described(path, "numPartitions"))
        yield from (f"{schema} is missing" for schema in _schemas(path) if not schema.exists())
    for path in _files(folder):
        if (found := _checksum(path)) is not None:
            yield found
    for number in range(partitions):
        yield from _in_partition(folder / str(number), version)


def _in_partition(folder: Path, version: int) -> Iterator[str]:
    """What is wrong with the files from which a partition's state of a version is loaded."""
    kinds: dict[str, set[int]] = {"zip": set(), "changelog": set()}
    for path in _files(folder):
        if match := _VERSIONED.fullmatch(path.name):
            kinds[match[2]].add(int(match[1]))
    if version and not kinds["zip"]:
        yield f"{folder} has no snapshot of the state"
        return
    start = max((n for n in kinds["zip"] if n <= version), default=0)
    for number in range(start + 1, version + 1):
        if number not in kinds["changelog"]:
            yield f"{folder / f'{number}.changelog'} is missing"
    for path in folder.glob(f"{start}*.zip"):
        match = _VERSIONED.fullmatch(path.name)
        if match and int(match[1]) == start:
            yield from _in_snapshot(path)


def _in_snapshot(path: Path) -> Iterator[str]:
    try:
        with zipfile.ZipFile(path) as snapshot:
            if (name := snapshot.testzip()) is not None:
                yield f"{path} is damaged in its part {name}"
                return
            text = snapshot.read("metadata").decode()
        parts = json.loads(text.partition("\n")[2])["sstFiles"]
        named = [(str(part["dfsSstFileName"]), int(part["sizeBytes"])) for part in parts]
    except (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        yield f"{path} is no snapshot: {error}"
        return
    for name, size in named:
        part = path.parent / "SSTs" / name
        if not part.exists():
            yield f"{part} is missing"
        elif part.stat().st_size != size:
            yield f"{part} has {part.stat().st_size} bytes instead of {size}"


def _in_json(path: Path, *, versioned: bool) -> str | None:
    """What is wrong with a file of JSON, below a line with a version if it is `versioned`."""
    if (found := _checksum(path)) is not None:
        return found
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        if versioned and not re.fullmatch("v[0-9]+", lines[0] if lines else ""):
            return f"{path} does not begin with a version"
        body = [line for line in lines[versioned:] if line and line != _NOT_JSON]
        if not body:
            return f"{path} is cut off"
        if not all(isinstance(json.loads(line), dict | int) for line in body):
            return f"{path} has a line that is not what Spark writes"
    except FileNotFoundError:
        return f"{path} is missing"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return f"{path} is no JSON"
    return None


def _checksum(path: Path) -> str | None:
    """Whether Hadoop's checksums of a file, if it keeps some, are those of its content."""
    sums = path.parent / f".{path.name}.crc"
    try:
        kept, content = sums.read_bytes(), path.read_bytes()
    except OSError:
        return None  # there are none, or there is no file, which is for others to say
    if kept[:4] != _MAGIC or len(kept) < 8:
        return f"{sums} is no file of checksums"
    (size,) = struct.unpack(">i", kept[4:8])
    if size < 1:
        return f"{sums} is no file of checksums"
    found = b"".join(
        struct.pack(">I", zlib.crc32(content[at : at + size]))
        for at in range(0, len(content), size)
    )
    return None if found == kept[8:] else f"{path} is not what was written: its checksum is wrong"


def _same(one: Path, other: Path) -> bool:
    """Whether two files are equal; offsets of two batches differ, for they tell the time."""
    try:
        return one.read_bytes() == other.read_bytes()
    except OSError:
        return False


def _described(path: Path, name: str) -> list[int]:
    """The values of a field of an operator's state stores."""
    return [int(store[name]) for store in _stores(path) if isinstance(store.get(name), int)] or [0]


def _schemas(path: Path) -> list[Path]:
    """The files of an operator's schemas: they are beside its description, wherever it was."""
    names = [n for store in _stores(path) for n in store.get("stateSchemaFilePaths", ())]
    return [
        path.parents[2] / "_stateSchema" / Path(str(name)).parent.name / Path(str(name)).name
        for name in names
    ]


def _stores(path: Path) -> list[dict[str, Any]]:
    found = json.loads(path.read_text(encoding="utf-8").partition("\n")[2])
    stores = found.get("stateStoreInfo", []) if isinstance(found, dict) else []
    return [store for store in stores if isinstance(store, dict)]


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.glob("*") if path.name.isdigit())


def _files(folder: Path) -> list[Path]:
    """The files below a folder, but for checksums and what was left half-written: both hidden."""
    return sorted(p for p in folder.rglob("*") if p.name[0] != "." and p.is_file())


def _cause(error: BaseException) -> str:
    """The innermost reason in an error of Spark, on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    named = [line for line in lines if re.match(r"(: )?[\w.$]+(Exception|Error): ", line)]
    return (causes or named or lines or [type(error).__name__])[-1].removeprefix(": ")
