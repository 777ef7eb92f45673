"""The loop: notice, decide, migrate, check that it paid.

`knowledge` keeps estimates, `decide` turns them into a decision with its reasons, `strategy` says
how to get to another plan, `guard` whether that paid, `loop` puts them in order, and `adapter`
stands between the loop and an engine. What happened is told in `events`, and `replay` asks what
another policy would have made of it.
"""
