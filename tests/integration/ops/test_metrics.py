"""The metrics of all processes, and that the page, the alerts and the runbook speak of what `/metrics` really shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from memory_app import metrics
from memory_app.dispatch import finder
from memory_app.hot import metrics as shared
from memory_app.hot.keys import METRICS
from memory_app.hot.metrics import API, BACKGROUND, Pusher
from memory_app.main.http import create_app
from memory_app.runtime import Runtime

ROOT = Path(__file__).parents[3]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8"))["groups"][0][
    "rules"
]
DASHBOARD = json.loads((ROOT / "deploy/grafana/memory.json").read_text(encoding="utf-8"))
SCOPE = "/v1/agents/ada/users/mira"


@pytest.fixture
def client(runtime: Runtime, api_key: str) -> TestClient:
    return TestClient(create_app(runtime), headers={"Authorization": f"Bearer {api_key}"})


@pytest.fixture
def families(client: TestClient, runtime: Runtime) -> dict[str, Metric]:
    """What `/metrics` shows after a turn went all its way and was recalled."""
    use(client, runtime)
    return read(client)


def use(client: TestClient, runtime: Runtime) -> None:
    said = {"role": "user", "content": "My name is Mira and I live in Lisbon."}
    assert client.post(f"{SCOPE}/sessions/chat/turns", json=said).status_code == 202
    finder.drain(runtime)
    assert client.post(f"{SCOPE}/recall", json={"query": "Where does Mira live?"}).status_code == 200
    assert client.post(f"{SCOPE}/context", json={"query": "Lisbon"}).status_code == 200


def read(client: TestClient) -> dict[str, Metric]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    for word in ("mira", "ada", "acme", "Lisbon"):
        assert re.search(rf"\b{word}\b", answer.text) is None
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def total(families: dict[str, Metric], sample: str, **labels: str) -> float:
    """Of all series with these labels; 0 where there is none yet."""
    return sum(_values(families, sample, labels))


def value(families: dict[str, Metric], sample: str, **labels: str) -> float:
    values = _values(families, sample, labels)
    assert values, f"{sample} {labels}"
    return sum(values)


def _values(families: dict[str, Metric], sample: str, labels: dict[str, str]) -> list[float]:
    return [
        s.value
        for family in families.values()
        for s in family.samples
        if s.name == sample and labels.items() <= s.labels.items()
    ]


def test_what_was_done_is_counted(client: TestClient, runtime: Runtime) -> None:
    before = read(client)
    use(client, runtime)
    families = read(client)

    def rise(sample: str, **labels: str) -> float:
        return total(families, sample, **labels) - total(before, sample, **labels)

    for stage in ("accepted", "indexed", "extracted"):
        assert rise("memory_turns_total", stage=stage) == 1
    assert value(families, "memory_memories_total") >= 1
    assert rise("memory_recall_seconds_count", stage="whole", source=API) == 1
    assert rise("memory_context_seconds_count", stage="whole", source=API) == 1
    assert value(families, "memory_redis_up") == 1
    assert value(families, "memory_queue_messages", queue="ingest") >= 1
    assert abs(value(families, "memory_clock_offset_seconds", of="database")) < 2
    assert value(families, "memory_due_held", kind="turns") == 0
    assert value(families, "memory_dropped_messages_total", reason="not_json") == 0


def test_the_page_names_every_metric_with_its_labels(families: dict[str, Metric]) -> None:
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(memory_\w+)` \| ([^|]*) \|", page, re.M)

    assert {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows} == {
        name: {label for s in family.samples for label in s.labels} - {"le"} or declared(name)
        for name, family in families.items()
        if not name.endswith("_created")
    }


def declared(name: str) -> set[str]:
    """Labels of a metric that has no series yet."""
    for collector in vars(metrics).values():
        if isinstance(collector, MetricWrapperBase) and collector._name == name:
            return {*collector._labelnames, "source"}
    return {"reason"} if name == "memory_dropped_items" else set()


def declared_names(family: Metric) -> set[str]:
    return {f"{family.name}_{part}" for part in ("total", "bucket", "count", "sum")}


def names_of(expression: str) -> set[str]:
    return set(re.findall(r"\bmemory_\w+", expression))


def test_alerts_and_dashboard_rest_on_metrics_that_are_there(families: dict[str, Metric]) -> None:
    samples = {s.name for family in families.values() for s in family.samples}
    # Without a series yet: their names follow from their kinds.
    for name, family in families.items():
        if family.type == "counter":
            samples.add(f"{name}_total")
        if family.type == "histogram":
            samples |= {f"{name}_{part}" for part in ("bucket", "count", "sum")}
    queries = {rule["alert"]: rule["expr"] for rule in RULES}
    for panel in DASHBOARD["panels"]:
        queries |= {f"{panel['title']} {target['refId']}": target["expr"] for target in panel["targets"]}
    pushed = {
        name for family in metrics.REGISTRY.collect() for name in (family.name, *declared_names(family))
    }
    for title, query in queries.items():
        assert names_of(query) != set(), title
        # Without it, the counts of several APIs are taken for one, or the sums of all others counted once for each API.
        for name, matchers in re.findall(r"(memory_\w+)(\{[^}]*\}|)", query):
            assert name not in pushed or re.search(rf'source="({API}|{BACKGROUND})"', matchers), (title, name)
        assert names_of(query) - samples == set(), title
        for name, matchers in re.findall(r"(memory_\w+)\{([^}]*)\}", query):
            series = [s.labels for family in families.values() for s in family.samples if s.name == name]
            used = set(re.findall(r"(\w+)=", matchers))
            assert not series or used <= series[0].keys(), (title, name)


def test_an_api_tells_of_database_faults_while_redis_is_away(client: TestClient, runtime: Runtime) -> None:
    labels = {"code": "53100", "source": API}
    before = value(read(client), "memory_database_failures_total", **labels)
    metrics.database_failures.labels("53100").inc()
    runtime.hot.outage.failed()

    families = read(client)

    assert value(families, "memory_redis_up") == 0
    assert value(families, "memory_database_failures_total", **labels) == before + 1
    # Not at 0, which Prometheus would take for a beginning, and what comes back for a rise.
    sources = {s.labels["source"] for s in families["memory_database_failures"].samples}
    assert sources == {API}
    runtime.hot.outage.answered()


def test_an_api_pushes_nothing_of_its_own(client: TestClient, runtime: Runtime) -> None:
    with client:
        said = {"role": "user", "content": "I live in Lisbon."}
        assert client.post(f"{SCOPE}/sessions/chat/turns", json=said).status_code == 202

    assert runtime.hot.redis.exists(runtime.hot.named_key(METRICS, "all")) == 0


def test_every_alert_has_its_section_in_the_runbook() -> None:
    page = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (\w+)\n\n(.+?)(?=^## |\Z)", page, re.M | re.S)

    assert [name for name, _ in sections] == [rule["alert"] for rule in RULES]
    for name, text in sections:
        assert "**Look at:**" in text and "**Do:**" in text, name
    for rule in RULES:
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"


# --- sums of all processes ----------------------------------------------------------------------------------


@pytest.fixture
def registry() -> Iterator[CollectorRegistry]:
    yield CollectorRegistry()


def sums(runtime: Runtime, registry: CollectorRegistry, source: str = BACKGROUND) -> dict[str, float]:
    return {
        f"{s.name}{sorted((label, value) for label, value in s.labels.items() if label != 'source')}": s.value
        for family in shared.families(shared.read(runtime.hot), registry)
        for s in family.samples
        if s.labels["source"] == source
    }


def test_what_two_processes_count_adds_up(runtime: Runtime) -> None:
    registries = [CollectorRegistry(), CollectorRegistry()]
    counters = [Counter("memory_probe", "For the test.", ["kind"], registry=one) for one in registries]
    pushers = [Pusher(runtime.hot, one) for one in registries]
    counters[0].labels("a").inc(2)
    counters[1].labels("a").inc(0.25)
    for pusher in pushers:
        pusher.push()
        pusher.push()  # Nothing new: nothing is added.

    assert sums(runtime, registries[0]) == {"memory_probe_total[('kind', 'a')]": 2.25}
    assert runtime.hot.redis.pttl(runtime.hot.named_key(METRICS, "all")) > 0


def test_what_is_counted_while_redis_is_away_comes_later(
    runtime: Runtime, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = Counter("memory_probe", "For the test.", registry=registry)
    pusher = Pusher(runtime.hot, registry)
    counter.inc(3)
    runtime.hot.outage.failed()
    pusher.push()
    runtime.hot.outage.answered()
    assert sums(runtime, registry) == {"memory_probe_total[]": 0.0}

    pusher.push()

    assert sums(runtime, registry) == {"memory_probe_total[]": 3.0}


def test_a_histogram_has_all_its_buckets(runtime: Runtime, registry: CollectorRegistry) -> None:
    histogram = Histogram("memory_probe_seconds", "For the test.", buckets=(1, 2), registry=registry)
    pusher = Pusher(runtime.hot, registry)
    histogram.observe(1.5)
    pusher.push()

    found = sums(runtime, registry)

    assert [found[f"memory_probe_seconds_bucket[('le', '{bound}')]"] for bound in ("1.0", "2.0", "+Inf")] == [
        0,
        1,
        1,
    ]
    assert (found["memory_probe_seconds_count[]"], found["memory_probe_seconds_sum[]"]) == (1, 1.5)


def test_what_somebody_else_writes_into_the_sums_shows_nowhere(
    runtime: Runtime, registry: CollectorRegistry
) -> None:
    Counter("memory_probe", "For the test.", registry=registry)
    key = runtime.hot.named_key(METRICS, "all")
    runtime.hot.redis.hset(
        key, mapping={"no json": 1, "[1]": 1, '["memory_other_total",[["user","mira"]]]': 1}
    )
    runtime.hot.redis.pexpire(key, 1000)

    assert sums(runtime, registry) == {"memory_probe_total[]": 0.0}
