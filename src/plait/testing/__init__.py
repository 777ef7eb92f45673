"""The oracle, generators and feeds that the tests, the benchmarks and the demo share."""
