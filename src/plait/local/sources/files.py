"""Open a source by its path: a file, a directory of files, or a pattern; extensions decide."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from plait.errors import SourceError, did_you_mean
from plait.local.sources.bad import DEFAULT_LIMIT
from plait.local.sources.base import Source

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_KNOWN = ".parquet, .csv, .tsv, .jsonl, .ndjson, .json; the text formats also with .gz"


def open_source(
    path: str | Path,
    *,
    columns: Mapping[str, pa.DataType] | None = None,
    max_bad_rows: int = DEFAULT_LIMIT,
) -> Source:
    """The rows of a file, of all files in a directory, or of those that match a pattern.

    `columns` gives types to columns of text files, in place of what the first rows suggest. A text
    file may have `max_bad_rows` malformed rows, which are set aside; one more is an error.
    """
    paths = _paths(str(path))
    formats = {_format(p) for p in paths}
    if len(formats) > 1:
        raise SourceError(
            f"{path} has files of several formats: {', '.join(sorted(formats))}",
            remedy="choose some with a pattern, for example 'trades/*.parquet'",
        )
    (format_,) = formats
    if format_ == "parquet":
        from plait.local.sources.parquet import ParquetSource

        if columns:
            raise SourceError(
                f"{path} carries its own types, but one is given for {', '.join(columns)}",
                remedy="leave it out; types can be given for CSV and JSON only",
            )
        return ParquetSource(paths)
    if format_ == "jsonl":
        from plait.local.sources.jsonl import JsonlSource

        return JsonlSource(paths, columns=columns, max_bad_rows=max_bad_rows)
    from plait.local.sources.csv import CsvSource

    delimiter = "\t" if format_ == "tsv" else ","
    return CsvSource(paths, delimiter=delimiter, columns=columns, max_bad_rows=max_bad_rows)


def input_files(path: str | Path) -> list[Path]:
    """The files that `open_source` reads for a path."""
    return _paths(str(path))


def _format(path: Path) -> str:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    format_ = _FORMATS.get(suffix.lower())
    if format_ is None or (path.suffix == ".gz" and format_ == "parquet"):
        raise SourceError(f"{path} has no known extension", remedy=f"known extensions: {_KNOWN}")
    return format_


def _paths(text: str) -> list[Path]:
    path = Path(text)
    if path.is_dir():
        return _in_directory(path)
    if not path.exists() and glob.has_magic(text):
        return _matching(text)
    if not path.exists():
        raise _missing(path)
    _format(path)
    if not path.is_file():
        raise SourceError(f"{path} is no file", remedy="give a file, a directory or a pattern")
    _check_readable(path)
    return [path]


def _in_directory(path: Path) -> list[Path]:
    try:
        found = sorted(p for p in path.iterdir() if p.is_file() and _is_data(p))
    except OSError as error:
        raise SourceError(
            f"{path} cannot be read: {error.strerror}", remedy="check its permissions"
        ) from None
    if not found:
        raise SourceError(
            f"the directory {path} has no data files",
            remedy=f"known extensions: {_KNOWN}; files further down need a pattern, "
            f"for example '{path}/**/*.parquet'",
        )
    return _with_rows(found, path)


def _matching(pattern: str) -> list[Path]:
    found = sorted(Path(p) for p in glob.glob(pattern, recursive=True) if Path(p).is_file())
    if not found:
        raise SourceError(f"no file matches {pattern!r}", remedy="check the pattern")
    return _with_rows(found, pattern)


def _with_rows(paths: Sequence[Path], where: object) -> list[Path]:
    """The files that are not empty: writers leave empty ones behind."""
    for path in paths:
        _check_readable(path, empty=True)
    kept = [path for path in paths if path.stat().st_size]
    if not kept:
        raise SourceError(f"all files of {where} are empty", remedy="give files with rows")
    return kept


def _is_data(path: Path) -> bool:
    """Whether a file of a directory is meant: not _SUCCESS, not .part-0.parquet.crc."""
    if path.name.startswith((".", "_")):
        return False
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    return suffix.lower() in _FORMATS


def _check_readable(path: Path, *, empty: bool = False) -> None:
    if not os.access(path, os.R_OK):
        raise SourceError(f"{path} cannot be read: permission denied", remedy="allow reading it")
    if not empty and path.stat().st_size == 0:
        raise SourceError(f"{path} is empty", remedy="give a file with rows")


def _missing(path: Path) -> SourceError:
    folder = path.parent
    if not folder.is_dir():
        return SourceError(
            f"{path} does not exist: there is no directory {folder}", remedy="check the path"
        )
    near = sorted(p.name for p in folder.iterdir() if _is_data(p) or p.is_dir())
    remedy = did_you_mean(path.name, near) if 0 < len(near) <= 20 else "check the path"
    return SourceError(f"{path} does not exist", remedy=remedy)
