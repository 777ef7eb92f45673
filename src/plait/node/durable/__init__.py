"""What survives a crash: the header, the contract with the question, segments, and upgrades.

`store` is what a host must keep for a processor, `header` what it knows beside the rows of its
windows, `contract` what a checkpoint was written by, and `upgrade` how it goes on with another
question. Begin with `header`.
"""
