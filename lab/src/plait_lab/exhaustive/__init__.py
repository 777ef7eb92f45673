"""Every plan of a small query, and every plan over sites.

`plans` enumerates or draws plans of a query, `site_plans` those over sites. Tests and benchmarks
measure what Plait chooses against the best of them. They use `plait.query`, `plait.plan` and
`plait.sites.plans`, and run nothing. Begin with `plans`.
"""
