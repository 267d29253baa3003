"""The files of `deploy` as their programs read them; each alert fires for its fault, after its time, and not before."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[3]
ALERTS = ROOT / "deploy/prometheus/alerts.yml"

CASES: dict[str, tuple[dict[str, str], str, dict[str, str]]] = {
    # Alert: series in steps of ten seconds, when it fires, and the labels that it carries.
    "MemoryDatabaseAway": ({"memory_database_up": "1x6 0x20"}, "2m", {}),
    "MemoryPartSilent": (
        {'memory_part_silent_seconds{part="worker-ingest"}': "0x5 31x20"},
        "2m",
        {"part": "worker-ingest"},
    ),
    "MemoryWorkStalled": (
        {'memory_due_seconds{kind="sessions"}': "0x5 61x20", 'memory_due_held{kind="sessions"}': "0x25"},
        "2m",
        {"kind": "sessions"},
    ),
    "MemoryDatabaseFull": (
        {'memory_database_failures_total{code="53100", source="api"}': "0x6 3x20"},
        "90s",
        {"code": "53100"},
    ),
    "MemoryMessagesDropped": (
        {'memory_dropped_messages_total{reason="not_json"}': "0x6 50x20"},
        "90s",
        {"reason": "not_json"},
    ),
    "MemoryCircuitOpen": (
        {'memory_circuit_open_seconds{provider="chat"}': "0x6 30x2 0x10"},
        "110s",
        {"provider": "chat"},
    ),
    "MemoryClockOff": ({'memory_clock_offset_seconds{of="redis"}': "-90x30"}, "1m", {"of": "redis"}),
    "MemoryErasureSlow": (
        {
            "memory_erasure_seconds_count{source='background'}": "0x6 2x20",
            "memory_erasure_seconds_bucket{le='10.0', source='background'}": "0x6 1x20",
        },
        "90s",
        {},
    ),
    "MemoryPlacesFull": (
        {
            'memory_place_seconds_bucket{le="0.001", source="api"}': "0+1x30",
            'memory_place_seconds_bucket{le="1.0", source="api"}': "0+1x30",
            'memory_place_seconds_bucket{le="2.5", source="api"}': "0+5x30",
            'memory_place_seconds_bucket{le="+Inf", source="api"}': "0+5x30",
        },
        "2m",
        {},
    ),
    "MemoryLocksWait": (
        {'memory_lock_failures_total{lock="scope", reason="timeout", source="api"}': "0x6 4x20"},
        "90s",
        {"lock": "scope"},
    ),
    "MemorySleepRefused": (
        {
            'memory_sleep_cycles_total{outcome="refused", source="background"}': "0x3 20x90",
            'memory_sleep_cycles_total{outcome="applied", source="background"}': "0x3 5x90",
        },
        "12m",
        {},
    ),
    "MemoryWebhooksFail": ({"memory_webhook_waiting_seconds": "0x3 3601x80"}, "12m", {}),
    "MemoryNobodyLooks": (
        {
            'memory_part_processes{part="finder"}': "1x3 0x20",
            'memory_part_processes{part="beat"}': "0x23",
            'memory_part_processes{part="api"}': "1x23",
        },
        "2m",
        {},
    ),
}

QUIET = {
    "memory_database_up": "1x30",
    "memory_redis_up": "1x30",
    'memory_part_silent_seconds{part="beat"}': "0x30",
    'memory_part_processes{part="finder"}': "1x30",
    'memory_due_seconds{kind="turns"}': "70x30",
    'memory_due_held{kind="turns"}': "1x30",
    'memory_clock_offset_seconds{of="redis"}': "0.2x30",
    "memory_webhook_waiting_seconds": "60x30",
    'memory_webhooks{state="given_up"}': "0x30",
    'memory_dropped_messages_total{reason="not_json"}': "7x30",
    'memory_place_seconds_bucket{le="0.001", source="api"}': "0+98x30",
    'memory_place_seconds_bucket{le="2.5", source="api"}': "0+100x30",
    'memory_place_seconds_bucket{le="+Inf", source="api"}': "0+100x30",
    'memory_lock_failures_total{lock="scope", reason="gave_way", source="background"}': "0x6 90x24",
    'memory_sleep_cycles_total{outcome="applied", source="background"}': "0x3 90x27",
    'memory_sleep_cycles_total{outcome="refused", source="background"}': "0x3 9x27",
    'memory_database_failures_total{code="53100", source="api"}': "7x30",
    "memory_erasure_seconds_count{source='background'}": "1x30",
    "memory_erasure_seconds_bucket{le='10.0', source='background'}": "1x30",
}
"""A busy system that is well: work in hand, faults of yesterday in the counts."""


def rules() -> list[dict[str, object]]:
    loaded = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    return list(loaded["groups"][0]["rules"])


def series(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": sequence} for name, sequence in values.items()]


def promtool(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_reads_the_alerts() -> None:
    promtool("check", "rules", str(ALERTS))


def test_each_alert_fires_for_its_fault_and_a_busy_system_raises_none(tmp_path: Path) -> None:
    by_name = {str(rule["alert"]): rule for rule in rules()}
    tests = []
    for name, (values, at, labels) in CASES.items():
        rule = by_name[name]
        expected = {"exp_labels": {**rule["labels"], **labels}}  # type: ignore[dict-item]
        tests.append(
            {
                "name": name,
                "interval": "10s",
                "input_series": series(values),
                "alert_rule_test": [
                    {"alertname": name, "eval_time": "20s", "exp_alerts": []},
                    {"alertname": name, "eval_time": at, "exp_alerts": [expected]},
                ],
            }
        )
    quiet = [{"alertname": name, "eval_time": "4m", "exp_alerts": []} for name in by_name]
    tests.append(
        {"name": "quiet", "interval": "10s", "input_series": series(QUIET), "alert_rule_test": quiet}
    )
    # Annotations have sentences for people; a test of labels is enough.
    plain = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    for rule in plain["groups"][0]["rules"]:
        del rule["annotations"]
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump(plain), encoding="utf-8")
    case = {"rule_files": ["alerts.yml"], "evaluation_interval": "5s", "tests": tests}
    (tmp_path / "cases.yml").write_text(yaml.safe_dump(case), encoding="utf-8")

    promtool("test", "rules", str(tmp_path / "cases.yml"))


def test_prometheus_reads_every_query_of_the_dashboard(tmp_path: Path) -> None:
    panels = json.loads((ROOT / "deploy/grafana/memory.json").read_text(encoding="utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    # Grafana puts the window in before it asks.
    recorded = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "1m")}
        for number, query in enumerate(queries)
    ]
    rules = {"groups": [{"name": "dashboard", "rules": recorded}]}
    (tmp_path / "dashboard.yml").write_text(yaml.safe_dump(rules), encoding="utf-8")

    promtool("check", "rules", str(tmp_path / "dashboard.yml"))


def test_systemd_reads_the_units(tmp_path: Path) -> None:
    units = sorted((ROOT / "deploy/systemd").iterdir())
    for unit in units:
        # The program as it is here: systemd wants it to exist.
        text = unit.read_text(encoding="utf-8").replace("/opt/memory/.venv/bin/memory", "/bin/true")
        (tmp_path / unit.name.replace("@.", "@ingest.")).write_text(text, encoding="utf-8")
    verified = [str(path) for path in sorted(tmp_path.glob("*.service"))]

    done = subprocess.run(
        ["systemd-analyze", "verify", *verified], capture_output=True, text=True, timeout=120, check=False
    )

    said = [line for line in done.stderr.splitlines() if "memory" in line]
    assert (done.returncode, said) == (0, [])
