"""What `plait.spark.session` gives its Python workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_LOOK = """
import json, os, sys
import pyarrow as pa
import plait

def look(batches):
    for _ in batches:
        pass
    told = [sys.dont_write_bytecode, os.environ["SPARK_AUTH_SOCKET_TIMEOUT"]]
    yield pa.RecordBatch.from_pydict({"told": [json.dumps(told)]})

spark = plait.spark.session(1, memory="512m")
[row] = spark.range(1).mapInArrow(look, "told string").collect()
print(row[0])
print([f.verdict for f in plait.spark.doctor(spark).findings if f.what.startswith("bytecode")])
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_workers_keep_bytecode_and_wait_where_the_environment_forbids_it(tmp_path: Path) -> None:
    script = tmp_path / "look.py"
    script.write_text(_LOOK)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )
    told, verdicts = found.stdout.splitlines()[-2:]
    assert json.loads(told) == [False, "120"]
    assert verdicts == "['ok']"
