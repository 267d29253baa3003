"""docker-compose.yml: private, durable, without default passwords, in step with the product's own names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel

from memory_app.cli.lazy import load
from memory_app.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "memory-app"}
SECRET = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")
"""A variable without which nothing starts."""


def test_there_is_a_service_for_each_part() -> None:
    commands = sorted(" ".join(service["command"]) for service in OURS.values())

    queues = [f"worker --queue {queue}" for queue in ("ingest", "maintenance", "model")]
    assert commands == ["beat", "beat", "finder", "flower", "migrate", "serve", *queues]


@pytest.mark.parametrize("name", OURS)
def test_every_command_and_option_exists(name: str) -> None:
    command, *arguments = OURS[name]["command"]

    known = load(command)

    options = {option for parameter in known.params for option in parameter.opts}
    assert {argument for argument in arguments if argument.startswith("--")} <= options


@pytest.mark.parametrize("name", OURS)
def test_every_setting_exists(name: str) -> None:
    for variable in OURS[name]["environment"]:
        if variable.startswith("MEMORY_"):
            assert_setting(variable)


def assert_setting(variable: str) -> None:
    model: type[BaseModel] = Settings
    for part in variable.removeprefix("MEMORY_").lower().split("__"):
        assert part in model.model_fields, f"no setting {variable}"
        annotation = model.model_fields[part].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation


def test_redis_forgets_nothing_and_asks_for_the_password() -> None:
    command = " ".join(SERVICES["redis"]["command"])

    for line in ("appendonly yes", "maxmemory-policy noeviction", "requirepass $$REDIS_PASSWORD"):
        assert line in command


def test_only_the_api_and_flower_can_be_reached_and_only_from_this_host() -> None:
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert set(ports) == {"api", "flower"}
    assert all(port.startswith("127.0.0.1:") for published in ports.values() for port in published)
    assert not any("network_mode" in service for service in SERVICES.values())


def test_flower_is_read_only_and_asks_for_a_login() -> None:
    environment = SERVICES["flower"]["environment"]

    assert environment["FLOWER_READ_ONLY"] == "true"
    assert len(SECRET.findall(environment["FLOWER_BASIC_AUTH"])) == 2
    assert "FLOWER_UNAUTHENTICATED_API" not in environment


def test_no_password_has_a_default() -> None:
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            if "://" in value:
                assert re.search(rf"://\w*:{SECRET.pattern}@", value), variable
            elif re.search("PASSWORD|AUTH", variable):
                assert SECRET.sub("", value).strip(":") == "", variable
    for line in (ROOT / ".env.example").read_text().splitlines():
        assert not re.match("[A-Z_]*(PASSWORD|NAME)=.", line), line


def test_every_variable_is_in_the_example() -> None:
    used = set(re.findall(r"(?<!\$)\$\{([A-Z_]+)", (ROOT / "docker-compose.yml").read_text()))

    assert used == set(re.findall("^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))


def test_only_the_migrations_know_the_owner() -> None:
    knowing = {
        name for name, service in OURS.items() if "MEMORY_DATABASE__OWNER_URL" in service["environment"]
    }

    assert knowing == {"migrate"}


@pytest.mark.parametrize("name", SERVICES)
def test_nothing_writes_outside_of_its_volume_or_gains_rights(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"] is True
    assert "no-new-privileges:true" in service["security_opt"]
    assert "privileged" not in service
    if name in OURS:
        assert (service["user"], service["cap_drop"]) == ("10001", ["ALL"])


def test_every_service_that_stays_has_a_health_check() -> None:
    staying = {name: service for name, service in SERVICES.items() if name != "migrate"}

    assert all("test" in service["healthcheck"] for service in staying.values())


def test_nothing_starts_before_the_migrations() -> None:
    for name in set(OURS) - {"migrate"}:
        assert OURS[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
