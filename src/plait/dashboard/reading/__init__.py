"""Read the files of a control directory or a mailbox as values, again and again at little cost.

`watcher` reads a directory and returns a `snapshot`; `mirror` copies what is in an object store;
`sites` reads a mailbox. Nothing here follows a link or waits for a pipe. Begin with `snapshot`.
"""
