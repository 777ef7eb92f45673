"""State recomputation by nested loops, really carried out: each pair is compared and counted.

This is the measurement behind T_MS. It shares nothing with the cost model or with the engine: it
takes the tuples of B, C and D that are in their windows when the migration begins, compares every B
with every C, and every pair that matches with every D, as the CAPE paper's recompute_states does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from plait.optimize.costs import PAPER
from plait_lab.experiments.cape.settings import NEW, OLD, SPEED, CapeSetting, virtual

_MATCHED, _MOVED = 4 * 3 * 3, 2 * 3
"""Comparisons of state names and new cursors for two plans of three joins (before equation 1)."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What the loops did: pairs compared, combinations kept (BC, BCD), and processor seconds."""

    compared: int
    kept: tuple[int, int]
    seconds: float

    def t_ms(self, speed: float) -> float:
        """T_MS at the costs of table 3 of seed 003, on a share of a processor."""
        work = self.compared * PAPER.match + (sum(self.kept) + _MATCHED + _MOVED) * PAPER.insert
        return work / speed


def recompute(setting: CapeSetting, start: float, seed: int) -> Recomputed:
    """Recompute BC and BCD from the windows as they are after `start` seconds.

    >>> from plait_lab.experiments.cape.settings import set_1
    >>> done = recompute(set_1(2.0), 6.0, seed=1)
    >>> done.compared > 300, done.kept[0] > 0
    (True, True)
    """
    tables = setting.tables(start, seed)
    b, c, d = (_live(tables[name], start, setting.window) for name in "BCD")
    began = time.process_time()
    compared, pairs, kept = 0, [], 0
    for _, _, b_key in b:
        for _, c_left, c_right in c:
            compared += 1
            if b_key == c_left:
                pairs.append(c_right)
    for key in pairs:
        for _, d_key, _ in d:
            compared += 1
            if key == d_key:
                kept += 1
    return Recomputed(compared, (len(pairs), kept), time.process_time() - began)


def _live(table: pa.Table, now: float, window: float) -> list[tuple[int, int, int]]:
    """Time, key with the stream to the left and key with the stream to the right."""
    times = table["ts"].cast(pa.int64()).to_numpy()
    recent = np.flatnonzero(times > (now - window) * 1e6)
    names = sorted(name for name in table.column_names if name.startswith("k"))
    keys = [table[name].to_numpy()[recent].tolist() for name in (names[0], names[-1])]
    return list(zip(times[recent].tolist(), *keys, strict=True))


def engine_kept(setting: CapeSetting, start: float, seed: int) -> tuple[int, int]:
    """How many combinations of BC and BCD the engine recomputes for the same migration."""
    run = virtual(setting, OLD, setting.tables(start, seed), "nested-loop", 8, SPEED)
    run.advance()
    run.node.migrate(setting.plan(NEW), "moving-state")
    sizes = {state.streams: len(state) for state in run.node.engine.states()}
    return sizes[frozenset({1, 2})], sizes[frozenset({1, 2, 3})]
