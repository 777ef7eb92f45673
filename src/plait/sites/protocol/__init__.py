"""How sites change their plan together: messages and state machines without clock or I/O.

`turns` lets one change happen at a time, `dnu` is the distributed update, and `switch_over` changes
all affected sites together or none. Begin with `turns`.
"""
