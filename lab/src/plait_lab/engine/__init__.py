"""What tests and the papers' experiments add to an engine.

`checked` asserts the contract of tactics, `lemma` purges as CAPE does, and `longest_wait` bounds
the waiting in Teddies. They plug into `plait.engine` from outside; the product knows none of them.
"""
