"""A query whose checkpoint, control directory and Delta table are in an S3-compatible store.

It needs what `./dev setup --integration` fetches: a server (moto) and Hadoop's file system for S3.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.three_streams import joined, results_of, write_streams

from plait.errors import StorageError
from plait.machine.stores import RemoteStore
from plait.spark.io.delta_table import check_delta
from plait_lab import object_store as store

_BATCHES = 14
_SCHEMA = pa.schema([("k", pa.int64())])

pytestmark = [
    pytest.mark.integration,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(find_spec("moto") is None, reason="moto: ./dev setup --integration"),
]


@pytest.fixture
def end_point(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with one bucket, reached through the environment."""
    with store.object_store() as place:
        for name, value in store.environment(place).items():
            monkeypatch.setenv(name, value)
        yield place


@pytest.mark.skipif(store.missing() is not None, reason=str(store.missing()))
def test_oracle_checkpoint_decisions_and_table_in_the_store(end_point: str, tmp_path: Path) -> None:
    """Decisions and reports get 503 for 30 seconds, and then everything for some more."""
    rows = write_streams(tmp_path, range(_BATCHES), 5)
    script = Path(__file__).with_name("store_query.py")
    done = subprocess.run(
        [sys.executable, str(script), "s3a://bucket/somewhere", str(tmp_path), str(_BATCHES), "30"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["epoch"] == 1 and told["plans"] == ["((a b) c)"], "the executors were reached"
    assert told["meanwhile"] > 0, "results go on without decisions and reports"
    assert told["processed"] == _BATCHES, "no report is lost"
    from deltalake import DeltaTable

    found = DeltaTable("s3://bucket/somewhere/table").to_pyarrow_table()
    answer = joined(rows)
    assert results_of(found) == answer and answer.total() > 100
    control = RemoteStore("s3://bucket/somewhere/check/plait/join")
    assert list(control.names("epochs")) == ["000001.json"]
    secrets = ("somebody", "secret")
    assert not any(word in control.read("epochs/000001.json").decode() for word in secrets)


@pytest.mark.skipif(store.missing() is not None, reason=str(store.missing()))
def test_oracle_groups_move_through_the_store(end_point: str, tmp_path: Path) -> None:
    batches = 34
    rows = write_streams(tmp_path, range(batches), 5)
    script = Path(__file__).with_name("moving_query.py")
    done = subprocess.run(
        [sys.executable, str(script), "s3a://bucket/moving", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["holders"] == [[1]], "all groups have arrived"
    from deltalake import DeltaTable

    found = DeltaTable("s3://bucket/moving/table").to_pyarrow_table()
    answer = joined(rows)
    assert results_of(found) == answer and answer.total() > 100
    control = RemoteStore("s3://bucket/moving/check/plait/join")
    assert len(control.names("tables")) == 2 and not control.names("transfer")


def test_a_bucket_that_is_not_there_is_named(end_point: str) -> None:
    with pytest.raises(StorageError, match=r"cannot reach s3a://nowhere/x: .*no bucket"):
        RemoteStore("s3a://nowhere/x").check()
    with pytest.raises(StorageError, match=r"table s3://nowhere/x cannot .*NoSuchBucket.*credent"):
        check_delta("s3://nowhere/x", _SCHEMA)


_STRANGER = """
import sys, pyarrow as pa
from plait.errors import StorageError
from plait.spark.io.delta_table import check_delta
from plait.machine.stores import RemoteStore
for ask in (RemoteStore("s3://bucket/x").check,
            lambda: check_delta("s3://bucket/x", pa.schema([("k", pa.int64())]))):
    try:
        ask()
    except StorageError as error:
        print(error)
"""


def test_wrong_credentials_are_named(end_point: str) -> None:
    """In a process of its own: a process opens a store once, with the credentials of then."""
    environment = {**os.environ, **store.environment(end_point, user="nobody")}
    done = subprocess.run(
        [sys.executable, "-c", _STRANGER],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    control, table = done.stdout.splitlines()
    assert "cannot reach s3://bucket/x: " in control and "credentials" in control
    assert "ACCESS_DENIED" in control or "InvalidAccessKeyId" in control or "403" in control
    assert "Delta table s3://bucket/x cannot" in table and "InvalidAccessKeyId" in table
    assert "secret" not in done.stdout


def test_a_store_that_is_away_is_named(end_point: str) -> None:
    store.be_away(end_point, 60)
    with pytest.raises(StorageError, match=r"cannot reach s3://bucket/x: .*(SLOW_DOWN|503)"):
        RemoteStore("s3://bucket/x").check()
