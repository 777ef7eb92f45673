"""Changing the plan while it runs: moving state and parallel track (CAPE)."""

from plait.engine.migrate.strategy import Migrated, migrate, settled
from plait.plan.migration import Migration, Order, Strategy

__all__ = ["Migrated", "Migration", "Order", "Strategy", "migrate", "settled"]
