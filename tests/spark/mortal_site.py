"""A site whose Python worker dies on order, at named points of a batch or of a change of plan."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pandas as pd

from plait.sites.spark import operator as site_operator
from plait.spark.join.operator import SparkStore


def obey(folder: str, point: str) -> None:
    """Die here, if there is an order to; each order is obeyed once."""
    try:
        os.unlink(os.path.join(folder, point))
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class MortalSite(site_operator.SiteOperator):
    """The operator, with orders in a folder."""

    deaths = ""

    def init(self, handle: Any) -> None:
        super().init(handle)
        self._store = _MortalStore(handle, self._store, self.deaths)

    def handleInputRows(  # Spark's name
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        yield from super().handleInputRows(key, rows, timerValues)
        name = self._keys[int(key[0])]
        obey(self.deaths, "mail-handed-over")
        # By its module: this one travels by value, and a copy of the sites would be empty.
        site = next(s for s in reversed(site_operator._SITES.values()) if s.name == name)
        if site.planning is not None:
            obey(self.deaths, f"{name}-{site.planning.planner.phase}")


class _MortalStore(SparkStore):
    """The state of a site; dies before it writes the header."""

    def __init__(self, handle: Any, store: SparkStore, deaths: str) -> None:
        del handle
        self.__dict__.update(store.__dict__)
        self._deaths = deaths

    def write_header(self, text: str) -> None:
        obey(self._deaths, "header-unwritten")
        super().write_header(text)


def made(folder: str, *given: Any) -> MortalSite:
    """An operator that obeys the orders in a folder."""
    operator = MortalSite(*given)
    operator.deaths = folder
    return operator
