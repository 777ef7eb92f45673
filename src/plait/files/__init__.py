"""What touches files: sources, sinks, event logs, private folders, and engines in shared memory."""
