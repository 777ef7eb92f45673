"""Messages and state machines between nodes, without clock, I/O or transport."""
