"""Every benchmark by its name.

>>> names()[0], describe("kernel-output")
('adapt-burst', 'How fast results are found and materialised, beside DuckDB.')
"""

from __future__ import annotations

from plait.workshop.bench.catalogue import Catalogue

BENCHMARKS = Catalogue(
    "benchmark",
    {
        "adapt-burst": "plait.workshop.bench.adapt.burst:burst",
        "adapt-correlated": "plait.workshop.bench.adapt.correlated:correlated",
        "adapt-oscillation": "plait.workshop.bench.adapt.drifts:oscillation",
        "adapt-rate-flip": "plait.workshop.bench.adapt.flips:rate_flip",
        "adapt-selectivity-flip": "plait.workshop.bench.adapt.flips:selectivity_flip",
        "adapt-skew": "plait.workshop.bench.adapt.skew:skew",
        "adapt-slow-drift": "plait.workshop.bench.adapt.drifts:slow_drift",
        "adapt-stationary": "plait.workshop.bench.adapt.stationary:stationary",
        "console-open": "plait.workshop.bench.console_open:console_open",
        "cost-model": "plait.workshop.bench.cost_model:cost_model",
        "eddies-decision": "plait.workshop.bench.eddies_decision:eddies_decision",
        "kafka-latency": "plait.workshop.bench.spark.kafka_latency:kafka_latency",
        "kernel-ingest": "plait.workshop.bench.kernel_peers:ingest",
        "kernel-output": "plait.workshop.bench.kernel_peers:output",
        "kernel-ways": "plait.workshop.bench.kernel_ways:ways",
        "kernel-window-scaling": "plait.workshop.bench.kernel_scaling:window_scaling",
        "migrate-pause": "plait.workshop.bench.migrate_pause:migrate_pause",
        "move-pause": "plait.workshop.bench.spark.moves:move_pause",
        "peers-chain": "plait.workshop.bench.spark.peers:chain",
        "peers-ingest": "plait.workshop.bench.spark.peers:ingest",
        "peers-output": "plait.workshop.bench.spark.peers:output",
        "peers-tiny": "plait.workshop.bench.spark.peers:tiny",
        "plan-quality": "plait.workshop.bench.plan_quality:plan_quality",
        "processors": "plait.workshop.bench.spark.moves:processors",
        "sink-delta": "plait.workshop.bench.spark.sinks:sink_delta",
        "sites-planner": "plait.workshop.bench.sites_planner:sites_planner",
        "spark-soak": "plait.workshop.bench.spark.soak:soak",
        "spark-state-writes": "plait.workshop.bench.spark.state_writes:state_writes",
        "store-overhead": "plait.workshop.bench.spark.store:store_overhead",
        "teddies-overhead": "plait.workshop.bench.teddies_overhead:teddies_overhead",
    },
)
names, describe, run = BENCHMARKS.names, BENCHMARKS.describe, BENCHMARKS.run
