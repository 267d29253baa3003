"""The chart for Kubernetes, as Helm renders it: valid, closed, and in step with the product's own names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from memory_app import queue
from memory_app.main.commands import load
from memory_app.ops import health_command
from memory_app.settings import Settings

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy/helm/memory"
KUBERNETES = ("1.27", "1.37")
"""The oldest release that the chart names, and a new one."""

WORKLOADS = ("Deployment", "Job")
MINE: dict[str, Any] = {
    "modelSecretName": "model",
    "config": {"MEMORY_CHAT__BASE_URL": "http://model:8000/v1", "MEMORY_RECORD__BATCH_LIMIT": 100},
    "image": {"pullSecrets": ["registry"]},
    "tolerations": [{"key": "memory", "operator": "Exists"}],
    "networkPolicy": {"flowerFrom": [{"podSelector": {"matchLabels": {"role": "operator"}}}]},
}
VALUES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "with values": MINE,
    "keda": {"autoscaling": {"by": "keda"}},
    "hpa": {"autoscaling": {"by": "hpa"}},
    "least": {
        "flower": {"enabled": False},
        "migrate": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "disruptionBudgets": False,
    },
}


def render(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The objects that Helm would install, without a cluster."""
    # Helm's bindings are no part of the development's requirements: .ci/run installs them.
    chart = import_module("helm_python").Chart.load(str(CHART))
    files = chart.render(dict(values), name="mine", namespace="chat")
    texts = [text for path, text in files.items() if not path.endswith(".txt")]
    return [thing for text in texts for thing in yaml.safe_load_all(text) if thing is not None]


@pytest.fixture(params=VALUES)
def objects(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return render(VALUES[request.param])


def containers(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each workload's name, pod and only container."""
    for thing in objects:
        if thing["kind"] in WORKLOADS:
            pod = thing["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            yield thing["metadata"]["name"], pod, container


def test_helm_finds_nothing_to_complain_of() -> None:
    report = import_module("helm_python.chart").lint(str(CHART), strict=True)

    assert [message for message in report["messages"] if "icon" not in str(message)] == []


@pytest.mark.parametrize("release", KUBERNETES)
def test_every_object_is_what_kubernetes_takes(objects: list[dict[str, Any]], release: str) -> None:
    validate = import_module("kubernetes_validate").validate
    for thing in objects:
        # Its schema comes with KEDA.
        if not thing["apiVersion"].startswith("keda.sh/"):
            validate(thing, release, strict=True)


def test_there_is_a_workload_for_each_part() -> None:
    objects = render({})
    commands = {name: container["args"] for name, _, container in containers(objects)}
    workers = {
        f"mine-worker-{name}": [
            "worker",
            "--queue",
            name,
            "--concurrency",
            commands[f"mine-worker-{name}"][-1],
        ]
        for name in queue.QUEUES
    }

    assert commands == {
        "mine-api": ["serve"],
        "mine-finder": ["finder"],
        "mine-beat": ["beat"],
        "mine-flower": ["flower"],
        "mine-migrate": ["migrate"],
        **workers,
    }
    (beat,) = [
        thing
        for thing in objects
        if thing["metadata"]["name"] == "mine-beat" and thing["kind"] == "Deployment"
    ]
    assert beat["spec"]["replicas"] == 1


def test_every_command_and_look_is_one_that_the_product_knows(objects: list[dict[str, Any]]) -> None:
    for name, _, container in containers(objects):
        command, *arguments = container["args"]
        # Raises for an option that is unknown and for a value that it does not take.
        load(command).make_context(command, arguments)
        looks = [container[probe] for probe in ("startupProbe", "livenessProbe") if probe in container]
        for look in [probe["exec"]["command"] for probe in looks if "exec" in probe]:
            assert look[:2] == ["memory", "health"], name
            health_command._parser().parse_args(look[2:])


def test_every_setting_is_one_of_the_product(objects: list[dict[str, Any]]) -> None:
    for _, _, container in containers(objects):
        for variable in container["env"]:
            if variable["name"].startswith("MEMORY_"):
                model: type[BaseModel] = Settings
                for part in variable["name"].removeprefix("MEMORY_").lower().split("__"):
                    annotation = model.model_fields[part].annotation
                    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                        model = annotation


def test_every_container_has_few_rights(objects: list[dict[str, Any]]) -> None:
    for name, pod, container in containers(objects):
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["automountServiceAccountToken"] is False, name
        rights = container["securityContext"]
        assert rights["readOnlyRootFilesystem"] is True, name
        assert rights["allowPrivilegeEscalation"] is False, name
        assert rights["capabilities"] == {"drop": ["ALL"]}, name
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp"}, name
        assert container["resources"]["limits"]["memory"], name


def test_passwords_are_in_the_secret_one_of_redis_for_each_part() -> None:
    acl = (ROOT / "deploy/redis/users.acl").read_text(encoding="utf-8")
    users = set(re.findall(r"^user memory-(\S+)", acl, re.MULTILINE))
    owners, keys = set(), set()
    for name, _, container in containers(render(MINE)):
        secrets = {
            variable["name"]: variable["valueFrom"]["secretKeyRef"]
            for variable in container["env"]
            if "valueFrom" in variable
        }
        assert {secret["name"] for secret in secrets.values()} == {"memory"}, name
        assert not any(
            "://" in variable.get("value", "")
            for variable in container["env"]
            if "BASE_URL" not in variable["name"]
        )
        keys.add(secrets["MEMORY_REDIS__URL"]["key"].removeprefix("redis-url-"))
        if "MEMORY_DATABASE__OWNER_URL" in secrets:
            owners.add(name)

    assert keys == users
    # As in docker-compose.yml: maintenance builds the search indexes of big scopes.
    assert owners == {"mine-migrate", "mine-worker-maintenance"}


def test_every_part_has_a_policy_and_only_the_api_an_open_door() -> None:
    objects = render({})
    policies = {
        thing["metadata"]["name"]: thing["spec"] for thing in objects if thing["kind"] == "NetworkPolicy"
    }

    assert policies.keys() == {name for name, _, _ in containers(objects)}
    assert {name for name, policy in policies.items() if policy.get("ingress")} == {"mine-api"}
    assert all(policy["policyTypes"] == ["Ingress", "Egress"] for policy in policies.values())
    beat = [port["port"] for rule in policies["mine-beat"]["egress"] for port in rule["ports"]]
    assert set(beat) == {53, 5432, 6379}


@pytest.mark.parametrize("by", ["keda", "hpa"])
def test_workers_grow_with_the_age_of_due_work(by: str) -> None:
    objects = render({"autoscaling": {"by": by}})
    kind = {"keda": "ScaledObject", "hpa": "HorizontalPodAutoscaler"}[by]
    scalers = {
        thing["spec"]["scaleTargetRef"]["name"]: thing["spec"] for thing in objects if thing["kind"] == kind
    }

    assert scalers.keys() == {f"mine-worker-{name}" for name in queue.QUEUES}
    for thing in objects:
        # The number is the scaler's: an upgrade must not set it back.
        if thing["kind"] == "Deployment" and thing["metadata"]["name"] in scalers:
            assert "replicas" not in thing["spec"]
    assert "memory_due_seconds" in str(scalers["mine-worker-ingest"])


def test_each_selector_finds_the_pods_of_its_workload_and_no_others(objects: list[dict[str, Any]]) -> None:
    pods = {
        thing["metadata"]["name"]: thing["spec"]["template"]["metadata"]["labels"]
        for thing in objects
        if thing["kind"] in WORKLOADS
    }
    for thing in objects:
        spec = thing["spec"]
        selectors = {
            "Service": spec.get("selector"),
            "PodDisruptionBudget": (spec.get("selector") or {}).get("matchLabels"),
            "NetworkPolicy": (spec.get("podSelector") or {}).get("matchLabels"),
        }
        wanted = selectors.get(thing["kind"])
        if wanted is not None:
            matching = [name for name, labels in pods.items() if wanted.items() <= labels.items()]
            assert matching == [thing["metadata"]["name"]], thing["kind"]


def test_the_page_names_every_value_and_every_key_of_the_secret() -> None:
    page = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    keys = {
        variable["valueFrom"]["secretKeyRef"]["key"]
        for _, _, container in containers(render({}))
        for variable in container["env"]
        if "valueFrom" in variable
    }

    assert {name for name in values if f"`{name}" not in page} == set()
    assert {key for key in keys if f"`{key}`" not in page} == set()
