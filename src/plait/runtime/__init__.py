"""Where a plan runs: in one process for now."""
