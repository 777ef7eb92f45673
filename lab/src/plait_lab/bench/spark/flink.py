"""Flink's interval joins on the same rows: run by the Python of `./dev setup --peers`.

This file is a program of its own, for an environment in which Plait is not installed:
`python flink.py JOB.json`. It reads CSV, since Flink's Parquet reader is not part of its Python
package, and computes number and checksum of the results with one aggregate, in mini-batches, as
the blackhole sink would leave nothing to compare. All columns take part in the checksum.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def main(job: dict[str, Any]) -> None:
    """Run the SQL of a job and tell what it found."""
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    config = Configuration()
    for key, value in job["settings"].items():
        config.set_string(key, value)
    builder = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(config)
    tables = TableEnvironment.create(builder.build())
    for statement in job["tables"]:
        tables.execute_sql(statement)
    began = time.perf_counter()
    last = (0, 0)
    with tables.execute_sql(job["query"]).collect() as rows:
        for row in rows:
            # Each update of the aggregate is a row; the last one counts.
            last = (row[0] or 0, row[1] or 0)
    figures = {
        "kind": "end",
        "seconds": time.perf_counter() - began,
        "results": last[0],
        "checksum": last[1],
    }
    print(job["mark"] + json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
