"""Changing the plan while it runs: moving state and parallel track (CAPE)."""

from plait.engine.migrate.record import Migration, Order, Strategy
from plait.engine.migrate.strategy import Migrated, migrate, settled

__all__ = ["Migrated", "Migration", "Order", "Strategy", "migrate", "settled"]
