"""A query whose checkpoint, control directory and Delta table are in an S3-compatible store.

It needs what `./dev setup --integration` fetches: a server (moto) and Hadoop's file system for S3.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from tests.integration.joined import SECOND, joined, write_stream

from plait.errors import StorageError
from plait.files.stores import RemoteStore

_HERE = Path(__file__).parent
_JARS = Path(sys.prefix, "integration", "jars")
_MISSING = "./dev setup --integration fetches what it needs"
_BATCHES = 8

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(find_spec("moto") is None, reason=f"moto is missing: {_MISSING}"),
]


@pytest.fixture
def end_point(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with one bucket, reached through the environment."""
    server = subprocess.Popen(
        [sys.executable, str(_HERE / "s3_server.py")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        place = f"http://127.0.0.1:{int(server.stdout.readline())}"
        for name, value in (
            ("AWS_ENDPOINT_URL", place),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "somebody"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        urllib.request.urlopen(urllib.request.Request(f"{place}/bucket", method="PUT")).read()
        yield place
    finally:
        server.kill()
        server.wait()


def _rows(folder: Path) -> dict[str, list[tuple[int, int]]]:
    """Files of each stream; times ascend, so nothing is late."""
    chance, found = Random(5), dict[str, list[tuple[int, int]]]()
    for name in ("a", "b", "c"):
        found[name] = []
        for batch in range(_BATCHES):
            rows = sorted(
                (batch * 10 * SECOND + chance.randrange(10 * SECOND), chance.randrange(4))
                for _ in range(20)
            )
            found[name] += rows
            path = folder / name / f"{batch}.parquet"
            write_stream(path, rows)
            os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))
    return found


@pytest.mark.skipif(not _JARS.is_dir(), reason=f"hadoop-aws is missing: {_MISSING}")
def test_oracle_checkpoint_decisions_and_table_in_the_store(end_point: str, tmp_path: Path) -> None:
    """The store answers 503 for some seconds in the middle."""
    rows = _rows(tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            str(_HERE / "store_query.py"),
            "s3a://bucket/somewhere",
            str(tmp_path),
            "4",
        ],
        env=os.environ | {"PLAIT_JARS": str(_JARS)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["epoch"] == 1 and told["plans"] == ["((a b) c)"], "the executors were reached"
    assert told["processed"] == _BATCHES
    from deltalake import DeltaTable

    found = DeltaTable("s3://bucket/somewhere/table").to_pyarrow_table()
    columns = [found[n].cast(pa.int64()).to_pylist() for n in ("ts", "k", "bts", "cts")]
    answer = joined(rows)
    assert Counter(zip(*columns, strict=True)) == answer and answer.total() > 100
    control = RemoteStore("s3://bucket/somewhere/check/plait/join")
    assert list(control.names("epochs")) == ["000001.json"]
    secrets = ("somebody", "secret")
    assert not any(word in control.read("epochs/000001.json").decode() for word in secrets)
    asked = json.load(urllib.request.urlopen(f"{end_point}/__requests__"))
    # Two in a batch for each of two processors; the rest are the driver's own looks.
    assert asked["PUT"] < 2 * _BATCHES + 20, asked


def test_a_bucket_that_is_not_there_is_named(end_point: str) -> None:
    with pytest.raises(StorageError, match=r"cannot reach s3a://nowhere/x: .*no bucket"):
        RemoteStore("s3a://nowhere/x").check()


def test_a_store_that_is_away_is_named(end_point: str) -> None:
    urllib.request.urlopen(f"{end_point}/__away__/60").read()
    with pytest.raises(StorageError, match=r"cannot reach s3://bucket/x: .*(SLOW_DOWN|503)"):
        RemoteStore("s3://bucket/x").check()
