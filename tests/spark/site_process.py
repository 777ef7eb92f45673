"""An application of `plait.sites` in a process of its own, to be killed; its plan changes.

python site_process.py FEEDS FOLDER SITE
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.spark.feeds import AT, SAID, SLOW, placed_at

import plait


def main(feeds: str, folder: str, site: str) -> None:
    """Run one site, or all, until somebody ends the process."""
    with tempfile.TemporaryDirectory() as scratch:
        session = plait.spark.session(2, memory="1g", scratch=Path(scratch))
        streams = [s for name, here in AT.items() if site in (name, "all") for s in here]
        options: dict[str, Any] = {"statistics": SAID, "links": SLOW, "results": "bonn"}
        placed = placed_at(session, Path(feeds), streams, **options)
        part = placed if site == "all" else placed.site(site)
        checkpoint = Path(folder) / f"checkpoint-{part.application}"
        part.start(mailbox=Path(folder) / "box", checkpoint=checkpoint).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
