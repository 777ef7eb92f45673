from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from plait.errors import MissingRequirement
from plait.spark.environment.connect import folder_here, is_connect, refuse_remote
from plait.spark.environment.requirements import check_packages

Client = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
Classic = type("SparkSession", (), {"__module__": "pyspark.sql.session"})


def test_clients_are_known_by_their_session() -> None:
    assert is_connect(Client()) and not is_connect(Classic())


def test_a_folder_that_a_client_does_not_see_may_be_the_servers(tmp_path: Path) -> None:
    there = str(tmp_path / "not-here")
    assert folder_here(Client(), there) is None and folder_here(Classic(), there) == Path(there)
    assert folder_here(Client(), str(tmp_path)) == folder_here(Classic(), str(tmp_path)) == tmp_path
    assert folder_here(Client(), "s3://bucket/x") is None


def test_what_starts_a_spark_of_its_own_is_refused_where_spark_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    refuse_remote("plait.spark.session")
    monkeypatch.setenv("SPARK_REMOTE", "sc://far:15002")
    with pytest.raises(
        MissingRequirement, match=r"^plait query rebalance starts .* at sc://far:15002;"
    ):
        refuse_remote("plait query rebalance")


def test_the_package_for_clients_is_pyspark_too(monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version

    def installed(name: str) -> str:
        if name == "pyspark":
            raise importlib.metadata.PackageNotFoundError(name)
        return "4.3.0" if name == "pyspark-client" else version(name)

    monkeypatch.setattr(importlib.metadata, "version", installed)
    check_packages()
