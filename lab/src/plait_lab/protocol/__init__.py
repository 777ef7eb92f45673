"""The protocols of the papers, message by message: PTLB and MSLB with their manager, and CNU.

State machines without clock, I/O or transport; `laws.exploring` tries every order of messages.
"""
