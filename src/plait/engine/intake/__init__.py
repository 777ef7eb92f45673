"""Intake: turn Arrow rows into the sorted times, key codes and columns that an engine joins.

`admission` says which rows can be in a result, `ingest` encodes those that are admitted, and
`slices` cuts a batch along event time. Begin with `ingest`.
"""
