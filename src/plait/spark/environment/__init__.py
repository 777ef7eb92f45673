"""Sessions, settings, versions and Java: what must be right before a query can run.

`doctor` looks at all of it and prints a table, `settings` applies what Plait needs, `session` makes
a local session, and `java` finds or provides a Java. Begin with `doctor`.
"""
