"""Every benchmark by its name.

>>> names()[0], describe("kernel-output")
('adapt-burst', 'How fast results are found and materialised, beside DuckDB.')
"""

from __future__ import annotations

from plait.bench.catalogue import Catalogue

BENCHMARKS = Catalogue(
    "benchmark",
    {
        "adapt-burst": "plait.bench.adapt.burst:burst",
        "adapt-correlated": "plait.bench.adapt.correlated:correlated",
        "adapt-oscillation": "plait.bench.adapt.drifts:oscillation",
        "adapt-rate-flip": "plait.bench.adapt.flips:rate_flip",
        "adapt-selectivity-flip": "plait.bench.adapt.flips:selectivity_flip",
        "adapt-skew": "plait.bench.adapt.skew:skew",
        "adapt-slow-drift": "plait.bench.adapt.drifts:slow_drift",
        "adapt-stationary": "plait.bench.adapt.stationary:stationary",
        "cost-model": "plait.bench.cost_model:cost_model",
        "kernel-ingest": "plait.bench.kernel_peers:ingest",
        "kernel-output": "plait.bench.kernel_peers:output",
        "kernel-ways": "plait.bench.kernel_ways:ways",
        "kernel-window-scaling": "plait.bench.kernel_scaling:window_scaling",
        "migrate-pause": "plait.bench.migrate_pause:migrate_pause",
        "peers-chain": "plait.bench.spark.peers:chain",
        "peers-ingest": "plait.bench.spark.peers:ingest",
        "peers-output": "plait.bench.spark.peers:output",
        "peers-tiny": "plait.bench.spark.peers:tiny",
        "plan-quality": "plait.bench.plan_quality:plan_quality",
        "spark-soak": "plait.bench.spark.soak:soak",
        "spark-state-writes": "plait.bench.spark.state_writes:state_writes",
        "teddies-overhead": "plait.bench.teddies_overhead:teddies_overhead",
    },
)
names, describe, run = BENCHMARKS.names, BENCHMARKS.describe, BENCHMARKS.run
