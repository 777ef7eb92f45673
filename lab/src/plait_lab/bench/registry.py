"""Every benchmark by its name.

>>> names()[0], describe("kernel-output")
('adapt-burst', 'How fast results are found and materialised, beside DuckDB.')
"""

from __future__ import annotations

from plait_lab.reporting.catalogue import Catalogue

BENCHMARKS = Catalogue(
    "benchmark",
    {
        "adapt-burst": "plait_lab.bench.adapt.burst:burst",
        "adapt-correlated": "plait_lab.bench.adapt.correlated:correlated",
        "adapt-oscillation": "plait_lab.bench.adapt.drifts:oscillation",
        "adapt-rate-flip": "plait_lab.bench.adapt.flips:rate_flip",
        "adapt-selectivity-flip": "plait_lab.bench.adapt.flips:selectivity_flip",
        "adapt-skew": "plait_lab.bench.adapt.skew:skew",
        "adapt-slow-drift": "plait_lab.bench.adapt.drifts:slow_drift",
        "adapt-stationary": "plait_lab.bench.adapt.stationary:stationary",
        "console-open": "plait_lab.bench.console_open:console_open",
        "cost-model": "plait_lab.bench.cost_model:cost_model",
        "eddies-decision": "plait_lab.bench.eddies_decision:eddies_decision",
        "kafka-latency": "plait_lab.bench.spark.kafka_latency:kafka_latency",
        "kernel-ingest": "plait_lab.bench.kernel.peers:ingest",
        "kernel-output": "plait_lab.bench.kernel.peers:output",
        "kernel-ways": "plait_lab.bench.kernel.ways:ways",
        "kernel-window-scaling": "plait_lab.bench.kernel.scaling:window_scaling",
        "migrate-pause": "plait_lab.bench.migrate_pause:migrate_pause",
        "move-pause": "plait_lab.bench.spark.moves:move_pause",
        "peers-chain": "plait_lab.bench.spark.peers:chain",
        "peers-ingest": "plait_lab.bench.spark.peers:ingest",
        "peers-output": "plait_lab.bench.spark.peers:output",
        "peers-tiny": "plait_lab.bench.spark.peers:tiny",
        "plan-quality": "plait_lab.bench.plan_quality:plan_quality",
        "processors": "plait_lab.bench.spark.moves:processors",
        "sink-delta": "plait_lab.bench.spark.sinks:sink_delta",
        "sites-planner": "plait_lab.bench.sites_planner:sites_planner",
        "spark-soak": "plait_lab.bench.spark.soak:soak",
        "spark-state-writes": "plait_lab.bench.spark.state_writes:state_writes",
        "store-overhead": "plait_lab.bench.spark.store:store_overhead",
        "teddies-overhead": "plait_lab.bench.teddies_overhead:teddies_overhead",
    },
)
names, describe, run = BENCHMARKS.names, BENCHMARKS.describe, BENCHMARKS.run
