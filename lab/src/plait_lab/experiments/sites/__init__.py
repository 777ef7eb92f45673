"""Joins over sites (seed 001): what adapting the plan saves, and what it costs in messages.

`savings` has figures 4 and 5, `messages` table 3. They run the sites of `plait.sites` on the
virtual network of `plait_lab.virtual.sites`. Begin with `savings`.
"""
