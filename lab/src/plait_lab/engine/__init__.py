"""What tests and the papers' experiments add to an engine.

`checked` asserts the contract of tactics, and `lemma` purges as CAPE does. Both plug into
`plait.engine` from outside; nothing in the product knows them. Begin with `checked`.
"""
