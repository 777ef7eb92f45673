"""What a site sends in one step, made up by target: rows, frontiers, requests and messages."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from plait.engine.intake.times import AFTER_ALL_TIMES, BEFORE_ALL_TIMES
from plait.sites.site.packets import (
    LegKey,
    PacketDraft,
    Shipment,
    ShipmentKind,
    SiteChannel,
    SiteNews,
)


class Outgoing:
    """The packets of the step that is being made.

    `told` has the frontiers that this site has told, for legs elsewhere. One that has moved is told
    when a packet goes anyway, or when it has moved by more than `far`.
    """

    def __init__(self, told: Mapping[LegKey, int], far: int) -> None:
        self.told = dict(told)
        self._far = far
        self._drafts: dict[str, PacketDraft] = {}

    def to(self, target: str) -> PacketDraft:
        """The draft of the packet to a site."""
        return self._drafts.setdefault(target, PacketDraft())

    def ship(self, target: str, kind: ShipmentKind, leg: LegKey, rows: pa.RecordBatch) -> None:
        """Send tuples to a site."""
        self.to(target).shipments.append(Shipment(kind, leg, rows))

    def take(self, clock: int) -> dict[SiteChannel, SiteNews]:
        """Take out what is to be sent now, with the frontiers that have moved."""
        found = {}
        for target, draft in self._drafts.items():
            moved = {leg: time for leg, time in draft.frontiers.items() if self._moved(leg, time)}
            if draft.said or any(self._moved(leg, time, self._far) for leg, time in moved.items()):
                self.told |= moved
                found[SiteChannel("rows", target)] = draft.rows(clock, tuple(moved.items()))
            if (urgent := draft.urgent()) is not None:
                found[SiteChannel("messages", target)] = urgent
        self._drafts = {}
        return found

    def _moved(self, leg: LegKey, time: int, far: int = 0) -> bool:
        """Whether a frontier has moved by more than this; the end of time is always far."""
        told = self.told.get(leg, BEFORE_ALL_TIMES)
        return time - told > far or (time == AFTER_ALL_TIMES != told)
