"""Read files, tables and iterators of batches in chunks of bounded size.

`base` says what a source is; `files` opens one by its extension. Begin with `base`.
"""

from plait.local.sources.bad import BadRow, BadRows
from plait.local.sources.base import Chunk, Source
from plait.local.sources.epoch import EpochSource, check_time
from plait.local.sources.files import open_source
from plait.local.sources.memory import as_source

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
