"""A Kafka broker on this machine, for tests and measurements."""
