"""The search spaces of the optimiser's tests."""

from tests.optimize.conftest import joins

__all__ = ["joins"]
