"""Metrics, and the dashboard and alerts that are made of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from importlib.resources import files
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from plait.dashboard.metrics import exposition
from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.dashboard.reading.watcher import watch_checkpoint
from plait.dashboard.serving import MetricsServer

PROMETHEUS = files("plait.dashboard") / "prometheus"
NAMED = re.compile(r"\bplait_[a-z_]+\b")


def samples(snapshot: JoinSnapshot) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(exposition([snapshot]).decode()):
        for sample in family.samples:
            key = tuple(sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[key] = sample.value
    return found


def test_values_are_those_of_the_reports(snapshot: JoinSnapshot) -> None:
    found = samples(snapshot)
    reports = snapshot.latest
    assert set(found["plait_batch"].values()) == {59}
    states = {dict(k)["processor"]: v for k, v in found["plait_state_bytes"].items()}
    assert states == {str(p): r.state_bytes for p, r in reports.items()}
    rows = {dict(k)["stream"]: v for k, v in found["plait_rows_total"].items()}
    assert rows == reports[0].total["rows"], "told by every processor, counted once"
    late = {dict(k)["stream"]: v for k, v in found["plait_late_rows_total"].items()}
    assert late == {"news": sum(r.total["late"]["news"] for r in reports.values())}
    changes = sum(len(d.processors) for d in snapshot.decisions if d.sort == "change")
    assert set(found["plait_plan_changes_total"].values()) == {changes} and changes > 3
    for values in found.values():
        assert all(dict(key)["join"] == "join" and "query" in dict(key) for key in values)


def test_names_follow_the_conventions(snapshot: JoinSnapshot) -> None:
    for family in text_string_to_metric_families(exposition([snapshot]).decode()):
        assert family.name.startswith("plait_") and family.documentation.endswith(".")
        assert not re.search(r"(milliseconds|minutes|kb|percent)", family.name)
        if family.type == "counter":
            assert all(s.name.endswith("_total") for s in family.samples)
        else:
            assert not family.name.endswith("_total")


@pytest.mark.parametrize("name", ["alerts.yml", "grafana.json"])
def test_every_metric_that_is_named_exists(snapshot: JoinSnapshot, name: str) -> None:
    named = set(NAMED.findall((PROMETHEUS / name).read_text(encoding="utf-8")))
    assert len(named) > 5 and named <= set(samples(snapshot))


def test_there_is_an_alert_for_each_trouble_and_a_panel_for_each_measure() -> None:
    alerts = (PROMETHEUS / "alerts.yml").read_text(encoding="utf-8")
    found = re.findall(r"alert: (\w+)", alerts)
    assert found == ["PlaitFallingBehind", "PlaitStateNearBudget", "PlaitLateRows", "PlaitHotKey",
                     "PlaitPlanGoesBackAndForth"]  # fmt: skip
    dashboard = json.loads((PROMETHEUS / "grafana.json").read_text(encoding="utf-8"))
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)) > 8
    assert all(panel["targets"] for panel in dashboard["panels"])


PROMTOOL = shutil.which("promtool")
NEEDS_PROMTOOL = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not there: apt-get install prometheus"
)


@NEEDS_PROMTOOL
def test_promtool_reads_the_metrics_and_the_rules(snapshot: JoinSnapshot, tmp_path: Path) -> None:
    assert PROMTOOL is not None
    alerts = tmp_path / "alerts.yml"
    alerts.write_text((PROMETHEUS / "alerts.yml").read_text(encoding="utf-8"))
    subprocess.run([PROMTOOL, "check", "rules", str(alerts)], check=True, capture_output=True)
    told = subprocess.run(
        [PROMTOOL, "check", "metrics"],
        input=exposition([snapshot]),
        capture_output=True,
        check=False,
    )
    assert told.returncode == 0 and not told.stdout, told


@NEEDS_PROMTOOL
def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    rules, cases = tmp_path / "alerts.yml", tmp_path / "cases.yml"
    rules.write_text((PROMETHEUS / "alerts.yml").read_text(encoding="utf-8"))
    cases.write_text(json.dumps(unit_tests()))
    told = subprocess.run(
        [PROMTOOL, "test", "rules", str(cases)],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr


ALL = '{join="j",query="q"}'
TROUBLES: dict[str, dict[str, tuple[str, str]]] = {
    "PlaitFallingBehind": {'plait_watermark_lag_seconds{join="j",query="q",stream="a"}':
                           ("30+0x120", "30+10x120")},
    "PlaitStateNearBudget": {'plait_state_bytes{join="j",query="q",processor="1"}':
                             ("50x120", "95x120")},
    "PlaitLateRows": {'plait_late_rows_total{join="j",query="q",stream="a"}':
                      ("0+0x120", "0+50x120")},
    "PlaitHotKey": {'plait_processor_load_ratio{join="j",query="q",processor="1"}':
                    ("1x120", "3x120")},
    "PlaitPlanGoesBackAndForth": {f"plait_plan_changes_unpaid_total{ALL}":
                                  ("0+0x120", "0+1x120")},
}  # fmt: skip
BESIDE = {
    'plait_state_budget_bytes{join="j",query="q",processor="1"}': "100x120",
    'plait_rows_total{join="j",query="q",stream="a"}': "0+1000x120",
    f"plait_hottest_group_ratio{ALL}": "0.5x120",
    f"plait_hot_spots_total{ALL}": "0x120",
    f"plait_plan_changes_total{ALL}": "0+0x120",
}


def unit_tests() -> dict[str, object]:
    """For each alert, two hours in which it must be silent, and two in which it must not."""
    tests = []
    for alert, given in TROUBLES.items():
        for trouble in (0, 1):
            series = [{"series": n, "values": v[trouble]} for n, v in given.items()]
            series += [{"series": n, "values": v} for n, v in BESIDE.items()]
            query = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
            tests.append(
                {
                    "interval": "1m",
                    "input_series": series,
                    "promql_expr_test": [
                        {"expr": query, "eval_time": "119m",
                         "exp_samples": [{"labels": "{}", "value": trouble}]}
                    ],
                }
            )  # fmt: skip
    return {"rule_files": ["alerts.yml"], "evaluation_interval": "1m", "tests": tests}


def test_an_endpoint_of_its_own(generated: Path) -> None:
    server = MetricsServer(watch_checkpoint(generated), 0)
    try:
        with urllib.request.urlopen(server.url, timeout=10) as answer:
            assert b"plait_batch" in answer.read()
    finally:
        server.close()
