"""The files of a control directory or a mailbox as values, read again and again at little cost.

`mirror` copies what is in an object store; nothing here follows a link or waits for a pipe.
"""
