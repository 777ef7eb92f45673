"""Seeded streams that are generated: rates, keys, disorder, bursts and gaps.

`specs` describes them as values and as JSON, `generate` draws them.
"""
