"""The ways to find results: each is a `plait.engine.tactic.Tactic`."""
