"""Seeded streams that are generated: rates, keys, disorder, bursts and gaps.

`specs` describes them as values and as JSON, `generate` draws them. They use Arrow and numpy, and
know no query. Begin with `specs`.
"""
