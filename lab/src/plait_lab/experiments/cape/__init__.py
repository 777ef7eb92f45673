"""CAPE (seed 000): what migrating a plan costs, and how results come meanwhile.

`settings` has the query and the runs in virtual time, `stages` figures 9 to 12, `rates` figures 13
to 16. They use the virtual host and the real migration strategies. Begin with `settings`.
"""
