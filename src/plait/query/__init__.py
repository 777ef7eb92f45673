"""What is asked: streams, predicates, bounds and the join graph."""
