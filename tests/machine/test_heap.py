"""The effect is on the whole process, so it is looked at in one of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

_FAULTS = """
import resource, sys
import numpy as np
{before}
def batch():
    arrays = [np.ones(1 << 17) for _ in range(8)]
    return sum(float(a[0]) for a in arrays)
batch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    batch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
_KEEP = """
from plait.machine.heap import keep_freed_memory
if not keep_freed_memory():
    sys.exit(3)
"""
_WORKER = """
from plait.spark.join.worker import settle
settle()
"""


def _faults(before: str) -> int:
    script = [sys.executable, "-c", _FAULTS.format(before=before)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("this C library takes no such options")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
def test_freed_memory_is_used_again_also_in_workers() -> None:
    usual = _faults("")
    assert 10 * _faults(_KEEP) < usual
    assert 10 * _faults(_WORKER) < usual
