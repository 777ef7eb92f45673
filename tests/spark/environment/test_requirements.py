from __future__ import annotations

import importlib.metadata
import sys

import pytest

from plait.errors import MissingRequirement
from plait.spark.environment.requirements import check_packages, check_spark

GOOD = {"pyspark": "4.3.0", "pandas": "2.2.3", "pyarrow": "26.0.0", "protobuf": "6.30.0"}


def test_what_is_installed_will_do() -> None:
    check_packages()
    check_packages(GOOD.get)


def test_the_pyspark_of_a_spark_that_is_no_package_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """`spark-submit` puts it on the path, and nothing tells its version but itself."""
    versions = importlib.metadata.version

    def version(name: str) -> str:
        if name == "pyspark":
            raise importlib.metadata.PackageNotFoundError(name)
        return versions(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    check_packages()
    monkeypatch.setitem(sys.modules, "pyspark.version", None)
    with pytest.raises(MissingRequirement, match="pyspark is not installed"):
        check_packages()


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_package_is_named(name: str) -> None:
    with pytest.raises(MissingRequirement, match=rf"^{name} is not installed.*pip install"):
        check_packages({n: v for n, v in GOOD.items() if n != name}.get)


@pytest.mark.parametrize(
    ("name", "version", "needed"),
    [
        ("pyspark", "4.2.9", "4.3 or newer"),
        ("pyspark", "3.5.1", "4.3 or newer"),
        ("pandas", "2.1.4", "2.2 or newer"),
        ("pandas", "3.0.0", "older than 3"),
        ("protobuf", "5.29.3", "6.30 or newer"),
    ],
)
def test_a_wrong_version_is_named(name: str, version: str, needed: str) -> None:
    with pytest.raises(MissingRequirement, match=f"{name} is {version}, but must be {needed}"):
        check_packages({**GOOD, name: version}.get)


@pytest.mark.parametrize("version", ["4.3.0", "4.3.1-SNAPSHOT", "4.10.0", "5.0.0"])
def test_new_sparks_will_do(version: str) -> None:
    check_spark(version)


@pytest.mark.parametrize("version", ["4.2.0", "3.5.4", "4.1.0-preview1"])
def test_old_sparks_will_not(version: str) -> None:
    with pytest.raises(MissingRequirement, match=f"Spark {version}, but must run on 4.3 or newer"):
        check_spark(version)
