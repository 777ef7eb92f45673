"""A site on Spark whose Python worker dies on order, at named points of a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from plait.sites.spark.operator import SiteOperator
from plait.spark.join.operator import SparkStore
from plait_lab.torture.spark.worker import Mortal, arm, obey


class MortalSiteStore(SparkStore):
    """Dies around the header of a site."""

    def write_header(self, text: str) -> None:
        """Before and after."""
        obey("site-unsaved")
        super().write_header(text)
        obey("site-saved")


class MortalSiteOperator(SiteOperator):
    """Dies at each point of a step."""

    store = MortalSiteStore

    def __init__(self, *given: Any, mortal: Mortal) -> None:
        super().__init__(*given)
        self._mortal = mortal

    def init(self, handle: Any) -> None:
        """Declare the state; arm the worker."""
        super().init(handle)
        arm(self._mortal)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """One step, if nothing happens."""
        obey("step-begun")
        try:
            yield from super().handleInputRows(key, rows, timerValues)
        except Exception as error:
            self._mortal.note(error)
            raise
        obey("mail-handed-over")
