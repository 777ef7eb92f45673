"""Where rows come from: files, tables and iterators of batches, all read as bounded chunks."""

from plait.files.sources.bad import BadRow, BadRows
from plait.files.sources.base import Chunk, Source
from plait.files.sources.epoch import EpochSource, check_time
from plait.files.sources.files import open_source
from plait.files.sources.memory import as_source

__all__ = [
    "BadRow",
    "BadRows",
    "Chunk",
    "EpochSource",
    "Source",
    "as_source",
    "check_time",
    "open_source",
]
