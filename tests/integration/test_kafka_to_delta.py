"""The code of the page «From Kafka to a Delta table», with a real broker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.kafka_broker import address, needs_kafka, send

from plait_lab.kafka.broker import make_topics

__all__ = ["address"]
pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("spark"), needs_kafka]

_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "kafka-to-delta.md"
_TRIES = 4
"""A busy machine may need more: Spark gives a Python worker ten seconds to start."""
_SESSION = """
import sys
from pathlib import Path
import plait
from plait_lab.kafka.broker import spark_settings
spark = plait.spark.session(
    2, memory="1g", scratch=Path(sys.argv[1]) / "scratch", settings=spark_settings()
)
"""
_TOLD = """
import json
told = {
    "results": sorted([r["customer"], r["amount"], r["offset"]] for r in results),
    "malformed": dict(plait.attach(query).progress().total.malformed),
}
print(json.dumps(told))
spark.stop()
"""


def test_the_page_runs_and_finds_what_belongs_together(address: str, tmp_path: Path) -> None:
    make_topics(address, {"orders": 1, "payments": 1})
    orders = [{"ts": f"2026-01-01T12:0{i}:00Z", "customer": i, "amount": 10 * i} for i in (1, 2, 3)]
    payments = [
        {"ts": "2026-01-01T12:05:00Z", "customer": customer, "paid": paid}
        for customer, paid in ((1, 10), (1, 9), (2, 25), (4, 99))
    ]
    send(address, "orders", [*(json.dumps(o).encode() for o in orders), b"not an order"])
    send(address, "payments", [json.dumps(p).encode() for p in payments])
    code = "\n".join(re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL))
    code = code.replace("broker:9092", address)
    for name in ("table", "checkpoint"):
        assert f'"{name}"' in code
        code = code.replace(f'"{name}"', f'"{tmp_path / name}"')
    program = tmp_path / "page.py"
    program.write_text(_SESSION + code + _TOLD)
    for _ in range(_TRIES):
        done = subprocess.run(
            [sys.executable, str(program), str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        if "failed to connect back" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == {"results": [[1, 10.0, 0], [2, 20.0, 1]], "malformed": {"orders": 1}}
    assert re.search(r"^orders 0 3 no JSON object.* b'not an order'$", done.stdout, re.MULTILINE)
    assert "1 values of orders could not be read" in done.stdout
