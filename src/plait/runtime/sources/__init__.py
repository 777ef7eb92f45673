"""Where rows come from: files, tables and iterators of batches, all read as bounded chunks."""

from plait.runtime.sources.bad import BadRow, BadRows
from plait.runtime.sources.base import Chunk, Source
from plait.runtime.sources.epoch import EpochSource, check_time
from plait.runtime.sources.files import open_source
from plait.runtime.sources.memory import as_source

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
