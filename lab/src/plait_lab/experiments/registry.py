"""Every experiment by its name."""

from __future__ import annotations

from plait_lab.bench.catalogue import Catalogue

EXPERIMENTS = Catalogue(
    "experiment",
    {
        "cape/fig10": "plait_lab.experiments.cape:fig10",
        "cape/fig11": "plait_lab.experiments.cape:fig11",
        "cape/fig12": "plait_lab.experiments.cape:fig12",
        "cape/fig13": "plait_lab.experiments.cape_rates:fig13",
        "cape/fig14": "plait_lab.experiments.cape_rates:fig14",
        "cape/fig15": "plait_lab.experiments.cape_rates:fig15",
        "cape/fig16": "plait_lab.experiments.cape_rates:fig16",
        "cape/fig9": "plait_lab.experiments.cape:fig9",
        "dcape/fig10": "plait_lab.experiments.dcape_moves:fig10",
        "dcape/fig11": "plait_lab.experiments.dcape_moves:fig11",
        "dcape/fig12": "plait_lab.experiments.dcape_moves:fig12",
        "dcape/fig13": "plait_lab.experiments.dcape:fig13",
        "dcape/fig7": "plait_lab.experiments.dcape:fig7",
        "dcape/fig8": "plait_lab.experiments.dcape:fig8",
        "dcape/fig9": "plait_lab.experiments.dcape_moves:fig9",
        "dcape/scale": "plait_lab.experiments.dcape_scale:scale",
        "dcape/spark": "plait_lab.experiments.dcape_spark:spark",
        "qualified/fig13a": "plait_lab.experiments.qualified_times:fig13a",
        "qualified/fig13b": "plait_lab.experiments.qualified_found:fig13b",
        "qualified/fig13c": "plait_lab.experiments.qualified_found:fig13c",
        "qualified/fig14": "plait_lab.experiments.qualified_clouds:fig14",
        "qualified/fig7": "plait_lab.experiments.qualified_runs:fig7",
        "qualified/fig8": "plait_lab.experiments.qualified_runs:fig8",
        "sites/fig4a": "plait_lab.experiments.sites_runs:fig4a",
        "sites/fig4b": "plait_lab.experiments.sites_runs:fig4b",
        "sites/fig5a": "plait_lab.experiments.sites_runs:fig5a",
        "sites/fig5b": "plait_lab.experiments.sites_runs:fig5b",
        "sites/table3": "plait_lab.experiments.sites:table3",
        "teddies/drift": "plait_lab.experiments.teddies_drift:drift",
        "teddies/fig6": "plait_lab.experiments.teddies:fig6",
        "teddies/fig7": "plait_lab.experiments.teddies:fig7",
        "teddies/fig8": "plait_lab.experiments.teddies:fig8",
    },
)
names, describe, run = EXPERIMENTS.names, EXPERIMENTS.describe, EXPERIMENTS.run
