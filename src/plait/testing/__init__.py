"""Test a query of your own: the definition of its answer, and streams to try it on.

`answers` compares results with the definition, which `oracle` computes directly: nothing of the
engine is shared with it. `streams` generates seeded streams, and `examples` has small queries. It
may use all that a query, a plan and a source are made of; only the command line is above it. Begin
with `answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.exports import lazy

if TYPE_CHECKING:
    from plait.testing import examples as examples
    from plait.testing.answers import actual as actual
    from plait.testing.answers import expected as expected
    from plait.testing.answers import set_aside as set_aside
    from plait.testing.streams.generate import generate as generate
    from plait.testing.streams.specs import Key as Key
    from plait.testing.streams.specs import Payload as Payload
    from plait.testing.streams.specs import StreamSpec as StreamSpec

__all__ = [
    "Key",
    "Payload",
    "StreamSpec",
    "actual",
    "examples",
    "expected",
    "generate",
    "set_aside",
]

_PLACES = {
    "Key": "plait.testing.streams.specs",
    "Payload": "plait.testing.streams.specs",
    "StreamSpec": "plait.testing.streams.specs",
    "actual": "plait.testing.answers",
    "examples": "plait.testing.examples",
    "expected": "plait.testing.answers",
    "generate": "plait.testing.streams.generate",
    "set_aside": "plait.testing.answers",
}

__getattr__ = lazy(__name__, _PLACES)
