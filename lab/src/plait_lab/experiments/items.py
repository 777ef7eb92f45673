"""What the papers have beside their figures, and the tests that check what is built of it.

Equations and algorithms that an experiment measures are found by the claims that cover them. The
others are listed here with the file that tests them.
"""

from __future__ import annotations

from dataclasses import dataclass

PAPERS = {
    "000": "Zhu, Rundensteiner, Heineman: Dynamic plan migration for continuous queries (CAPE)",
    "001": "Tran, Lee: joins over sites",
    "002": "Zhu, Rundensteiner: adaptation in distributed stream processing (D-CAPE)",
    "003": "Zhu, Raghavan, Rundensteiner: qualified plans for multi-join continuous queries",
    "004": "Claypool, Claypool: Teddies",
}
"""The papers by the number of their seed."""


@dataclass(frozen=True, slots=True)
class Item:
    """A numbered thing in a paper, what it says, and the test of what is built of it."""

    seed: str
    name: str
    what: str
    test: str


ITEMS = (
    Item("000", "lemma 2.1", "joins put out in the order of timestamps", "engine/test_held.py"),
    Item("000", "lemma 2.2", "which tuples a tuple purges", "laws/test_law2_purging.py"),
    Item("000", "algorithm 1", "recompute states bottom-up", "engine/migrate/test_moving_state.py"),
    Item("000", "algorithm 2", "moving state", "laws/test_law3_migration.py"),
    Item("000", "section 4.2", "parallel track", "laws/test_law3_boxes.py"),
    Item("000", "equation 5", "cost of the old box in 2W", "optimize/test_migration_cost.py"),
    Item("000", "equation 6", "cost of the new box in 2W", "optimize/test_migration_cost.py"),
    Item(
        "000", "equation 7", "output rate of the new box", "lab/experiments/cape/test_equations.py"
    ),
    Item("000", "table 1", "terms of the cost model", "optimize/test_migration_cost.py"),
    Item("000", "table 2", "parameters", "lab/experiments/cape/test_stages.py"),
    Item("001", "algorithm 1", "greedy plan generation", "sites/planner/test_greedy.py"),
    Item("001", "algorithm 2", "centralized update (CNU)", "sites/protocol/test_turns.py"),
    Item("001", "algorithm 3", "distributed update (DNU)", "sites/protocol/test_dnu.py"),
    Item("001", "section 4.1", "node operator sets", "sites/plans/test_plan.py"),
    Item("001", "section 4.3, windows", "distributed track", "laws/test_sites.py"),
    Item(
        "001",
        "section 4.3, synchronizing",
        "two-phase switch-over",
        "lab/laws/exploring/test_switch_overs.py",
    ),
    Item("001", "equations 1 to 3", "cost of a one-way join", "sites/planner/test_cost.py"),
    Item("001", "equation 4", "invariant of greedy plans", "sites/planner/test_greedy.py"),
    Item("002", "algorithm 1", "PTLB, the manager", "lab/laws/exploring/test_moves.py"),
    Item("002", "algorithm 2", "PTLB, a processor", "lab/laws/exploring/test_moves.py"),
    Item("002", "algorithm 3", "MSLB, the manager", "lab/laws/exploring/test_moves.py"),
    Item("002", "algorithm 4", "MSLB, a processor", "lab/laws/exploring/test_moves.py"),
    Item("002", "figure 2", "groups between different plans", "laws/test_law4_cluster.py"),
    Item("002", "section 3.1", "PTLB takes W or 2W", "groups/moves/test_cost.py"),
    Item("002", "section 3.2", "the steps of PTLB", "lab/virtual/test_cluster.py"),
    Item("002", "section 4.1", "states that match, and others", "lab/virtual/test_cluster.py"),
    Item("002", "section 4.2", "the steps of MSLB", "lab/virtual/test_cluster.py"),
    Item("003", "algorithm 1", "JTree-Finder", "lab/exhaustive/test_jtree_finder.py"),
    Item("003", "algorithm 2", "two-layer framework", "optimize/search/test_two_layer.py"),
    Item("003", "algorithm 3", "state-selection", "optimize/search/test_state_selection.py"),
    Item("003", "algorithm 4", "state-removal", "optimize/search/test_state_removal.py"),
    Item("003", "table 1", "terms of the cost model", "optimize/test_model.py"),
    Item("003", "table 2", "parameters", "lab/experiments/qualified/test_runs.py"),
    Item(
        "003", "definition 4", "qualified percentage", "lab/experiments/qualified/test_qualified.py"
    ),
    Item("004", "section 3.1", "SteMs and metaqueues", "engine/tactics/test_teddy.py"),
    Item("004", "section 3.2", "adaptive packets", "engine/tactics/test_teddy.py"),
    Item("004", "figure 5", "inner loops of Eddies and Teddies", "laws/test_law2_routing.py"),
)
