"""What runs: join trees with a probe order per input."""
