"""What sites on Spark have done: the reports in their mail.

Reports are rows of the same sink as packets and results, so each step counts once, whatever was
killed and repeated meanwhile.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # the name everybody uses

from plait.codec import to_plain
from plait.sites.site.progress import SitesProgress, sum_reports
from plait.sites.site.site import Site
from plait.sites.spark.mailboxes import REPORTS


def sites_progress(mail: DataFrame) -> SitesProgress:
    """The progress in the mail of all applications."""
    rows = mail.where(F.col("box") == REPORTS).select("body").collect()
    return sum_reports(json.loads(bytes(row.body)) for row in rows)


def plan_status(site: Site, before: int | None) -> dict[str, Any]:
    """How a site stands with plans after a step, for its report.

    The plan itself is told when it is another one than `before` the step.
    """
    number, eras = site.followed, site.migration.eras
    return {
        "plans": sorted(site.plans),
        "follows": number,
        "plan": None if number == before else to_plain(site.plans[number]),
        "hold": eras.hold,
        "abandoned": sorted(eras.abandoned),
    }
