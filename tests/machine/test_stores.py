"""Stores of small files: the same in the file system and in an object store."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.machine.remote import in_memory

from plait.errors import StorageError
from plait.machine import stores
from plait.machine.stores import FileStore, LocalStore, RemoteStore, problem, store_at


@pytest.fixture(params=["local", "remote"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> FileStore:
    if request.param == "local":
        return LocalStore(tmp_path / "not there")
    in_memory(monkeypatch)
    return RemoteStore("s3://bucket/folder")


def test_files_are_written_read_listed_and_removed(store: FileStore) -> None:
    assert store.names() == {} and store.names("a/b") == {}
    with pytest.raises(FileNotFoundError):
        store.read("a/b/x")
    store.delete("a/b/x")
    store.write("a/b/x", b"one")
    store.write("a/b/x", b"two")
    assert store.read("a/b/x") == b"two"
    assert list(store.names("a/b")) == ["x"] and store.names("a/b")["x"] > 1e9
    assert store.names("a") == {} and list(store.names("a", files=False)) == ["b"]
    assert store.create("a/b/y", b"new") and not store.create("a/b/y", b"other")
    assert store.read("a/b/y") == b"new"
    store.delete("a/b/x")
    assert list(store.names("a/b")) == ["y"], "and nothing is left behind"
    store.clear("a/b")
    store.clear("a/b")
    assert store.names("a/b") == {} and store.names("a", files=False) == {}


def test_a_store_travels(store: FileStore) -> None:
    assert pickle.loads(pickle.dumps(store)) == store


def test_links_are_no_files(tmp_path: Path) -> None:
    here = LocalStore(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "folder").mkdir()
    assert here.names() == {} and set(here.names(files=False)) == {"link", "folder"}


@pytest.mark.parametrize(("where", "step"), [(os, "rename"), (os, "fsync")])
def test_a_file_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, step: str
) -> None:
    here = LocalStore(tmp_path)
    here.write("x", b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(where, step, full)
    with pytest.raises(OSError, match="No space left"):
        here.write("x", b"new", durable=True)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["x"] and here.read("x") == b"old"


def test_which_place_is_which() -> None:
    assert store_at("s3a://bucket/x/") == RemoteStore("s3a://bucket/x")
    assert store_at("/data/x") == LocalStore(Path("/data/x"))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("When listing objects: AWS Error ACCESS_DENIED\nmore"), "ACCESS_DENIED"),
        (OSError("AWS Error NO_SUCH_BUCKET during ListObjectsV2"), "NO_SUCH_BUCKET"),
        (ValueError("no credentials"), "no credentials"),
    ],
)
def test_a_store_that_cannot_be_reached_is_named(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, said: str
) -> None:
    in_memory(monkeypatch).away = error
    with pytest.raises(StorageError, match=rf"cannot reach s3://b/x: .*{said}.*; give driver"):
        RemoteStore("s3://b/x").check()


def test_a_bucket_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory(monkeypatch)
    RemoteStore("s3://bucket/x").check()
    with pytest.raises(StorageError, match="there is no bucket 'nowhere'"):
        RemoteStore("s3://nowhere/x").check()


def test_s3_is_reached_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    class Library:
        AwsStandardS3RetryStrategy: Callable[..., str] = staticmethod(lambda max_attempts: "some")

        def S3FileSystem(self, **options: Any) -> str:  # Arrow's name
            given.update(options)
            return "system"

    for name in ("AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:5000")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert stores._s3(Library()) == "system"
    assert (given["endpoint_override"], given["scheme"]) == ("127.0.0.1:5000", "http")
    assert given["region"] == "eu-west-1" and given["request_timeout"] > 0
    assert not any("key" in name or "secret" in name for name in given), "the library finds them"


def test_errors_in_one_line() -> None:
    assert problem(OSError(2, "No such file")) == "No such file"
    assert problem(OSError("one\ntwo")) == "one"
    assert problem(OSError()) == "OSError"
