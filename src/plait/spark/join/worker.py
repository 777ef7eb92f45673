"""Prepare Spark's Python workers: garbage collection, freed memory, printing; the batch's number.

After every task Spark's daemon collects garbage in the worker, and a collection visits every
object there is: those of pandas, Arrow, numba and Plait's own modules are hundreds of thousands,
which took longer than packing a batch. They live as long as the worker, so they are exempted.

Memory that a worker has freed is kept for the next batch, up to 128 MiB (`plait.machine.heap`).
Where most combinations are looked at and few become results, a third of the CPU time of a batch
went into clearing pages that had just been given back.

Before the first batch Spark runs an operator in one more process, beside the driver, whose program
prints each of its steps to the driver's terminal. When it gets an operator of ours, it imports this
module, which silences it.
"""

from __future__ import annotations

import gc
import os
import sys
from functools import cache

from pyspark import TaskContext

from plait.machine.heap import keep_freed_memory

_SETTING_UP = "pyspark.sql.streaming.transform_with_state_driver_worker"


def _silence_setting_up() -> None:
    """If this process is the one in which Spark sets operators up, let it say nothing."""
    program = getattr(sys.modules["__main__"], "__spec__", None)
    if program is not None and program.name == _SETTING_UP:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)  # errors are told elsewhere
        os.close(nowhere)


@cache
def settle() -> None:
    """Exempt existing objects from garbage collection and keep freed memory, once per process.

    Objects without references are freed as always; only cycles among the exempted ones are not. So
    this is called when modules have been imported and there is no state yet.
    """
    gc.collect()
    gc.freeze()
    keep_freed_memory()


def batch_number() -> int | None:
    """The number of the batch that this task belongs to, as Spark counts; the same in a replay.

    None outside of streaming queries.
    """
    context = TaskContext.get()
    # Assumption: batch-number-repeats
    found = context.getLocalProperty("streaming.sql.batchId") if context else None
    return None if found is None else int(found)


_silence_setting_up()
