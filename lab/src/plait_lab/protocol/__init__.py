"""The protocols of the papers, message by message: PTLB and MSLB with their manager, and CNU.

They are state machines without clock, I/O or transport: a message in, messages out.
`plait_lab.laws.exploring.moves` tries every order of messages, and `plait_lab.virtual` runs them on
machines. Begin with `move_manager`, then `ptlb` and `mslb`.
"""
