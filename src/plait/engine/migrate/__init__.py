"""Change the plan while it runs: moving state and parallel track (CAPE)."""
