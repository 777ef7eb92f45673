"""Plait joins many live streams at once and re-plans itself while they flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait import errors as errors
    from plait.api import join as join
    from plait.api import sql as sql

__version__ = "0.1.0"
__all__ = ["__version__", "errors", "join", "sql"]


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for: `import plait` alone costs nothing."""
    import importlib

    if name == "errors":
        return importlib.import_module("plait.errors")
    if name in ("join", "sql"):
        return getattr(importlib.import_module("plait.api"), name)
    raise AttributeError(f"module 'plait' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
