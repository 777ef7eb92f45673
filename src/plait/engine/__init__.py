"""A plan at work in one process."""
