"""Every experiment by its name."""

from __future__ import annotations

from plait_lab.reporting.catalogue import Catalogue

EXPERIMENTS = Catalogue(
    "experiment",
    {
        "cape/fig10": "plait_lab.experiments.cape.stages:fig10",
        "cape/fig11": "plait_lab.experiments.cape.stages:fig11",
        "cape/fig12": "plait_lab.experiments.cape.stages:fig12",
        "cape/fig13": "plait_lab.experiments.cape.rates:fig13",
        "cape/fig14": "plait_lab.experiments.cape.rates:fig14",
        "cape/fig15": "plait_lab.experiments.cape.rates:fig15",
        "cape/fig16": "plait_lab.experiments.cape.rates:fig16",
        "cape/fig9": "plait_lab.experiments.cape.stages:fig9",
        "dcape/fig10": "plait_lab.experiments.dcape.moves:fig10",
        "dcape/fig11": "plait_lab.experiments.dcape.moves:fig11",
        "dcape/fig12": "plait_lab.experiments.dcape.moves:fig12",
        "dcape/fig13": "plait_lab.experiments.dcape.adaptations:fig13",
        "dcape/fig7": "plait_lab.experiments.dcape.adaptations:fig7",
        "dcape/fig8": "plait_lab.experiments.dcape.adaptations:fig8",
        "dcape/fig9": "plait_lab.experiments.dcape.moves:fig9",
        "dcape/scale": "plait_lab.experiments.dcape.scaling:scale",
        "dcape/spark": "plait_lab.experiments.dcape.on_spark:spark",
        "qualified/fig13a": "plait_lab.experiments.qualified.times:fig13a",
        "qualified/fig13b": "plait_lab.experiments.qualified.found:fig13b",
        "qualified/fig13c": "plait_lab.experiments.qualified.found:fig13c",
        "qualified/fig14": "plait_lab.experiments.qualified.clouds:fig14",
        "qualified/fig7": "plait_lab.experiments.qualified.runs:fig7",
        "qualified/fig8": "plait_lab.experiments.qualified.runs:fig8",
        "sites/fig4a": "plait_lab.experiments.sites.savings:fig4a",
        "sites/fig4b": "plait_lab.experiments.sites.savings:fig4b",
        "sites/fig5a": "plait_lab.experiments.sites.savings:fig5a",
        "sites/fig5b": "plait_lab.experiments.sites.savings:fig5b",
        "sites/table3": "plait_lab.experiments.sites.messages:table3",
        "teddies/drift": "plait_lab.experiments.teddies.flips:drift",
        "teddies/fig6": "plait_lab.experiments.teddies.figures:fig6",
        "teddies/fig7": "plait_lab.experiments.teddies.figures:fig7",
        "teddies/fig8": "plait_lab.experiments.teddies.figures:fig8",
    },
)
names, describe, run = EXPERIMENTS.names, EXPERIMENTS.describe, EXPERIMENTS.run
