"""The laws once more with every array access of the kernels checked.

Compiled kernels do not check bounds; an access beyond an array would pass unnoticed or end the
process much later. Here numba compiles them with checks, into a cache of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = (
    "tests/laws/test_law1_batches.py",
    "tests/engine/test_columns.py",
    "tests/engine/tactics/test_single.py",
)


@pytest.mark.slow
def test_no_kernel_leaves_its_arrays(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = os.environ | {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PLAIT_EXAMPLES": "quick",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:xdist", *TESTS]
    run = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
