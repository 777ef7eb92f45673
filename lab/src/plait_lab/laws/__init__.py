"""What must hold for every plan, batch, migration, host and crash.

`strategies` generates queries and histories, `checks` runs a history and compares it with the
oracle, `hosts` and `processors` do so on every host, `exploring` visits every state of the
protocols, and `golden` has checkpoints of earlier versions. Tests in `tests/laws` assert the laws.
Everything in Plait may be used, except that the oracle shares nothing with it. Begin with `checks`.
"""
