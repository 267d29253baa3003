"""docker-compose.yml: private, durable, without default passwords, in step with the product's own names."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel

from memory_app.main.commands import load
from memory_app.settings import Settings

ROOT = Path(__file__).parents[3]
FILES = ("docker-compose.yml", "deploy/compose.tls.yml")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / FILES[0]).read_text())
PROXY: dict[str, Any] = yaml.safe_load((ROOT / FILES[1]).read_text())["services"]["proxy"]
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("memory-app:")}
SETTINGS_FILES = ("memory.env.example", "model.env.example")
SECRET = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")
"""A variable without which nothing starts."""


@pytest.mark.parametrize("file", FILES)
def test_the_file_is_what_the_specification_of_compose_says(file: str) -> None:
    schema = json.loads((ROOT / "tests/schemas/compose-spec.json").read_text())

    errors = jsonschema_rs.validator_for(schema).iter_errors(yaml.safe_load((ROOT / file).read_text()))

    assert [f"{list(error.instance_path)}: {error.message}" for error in errors] == []


def test_every_image_is_one_that_stays_the_same() -> None:
    images = [service["image"] for service in (*SERVICES.values(), PROXY)]
    images += re.findall("^FROM (\\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    exact = re.compile(r"[a-z/-]+:\d+\.\d+\.\d+(-[a-z0-9]+)*")
    assert [image for image in images if not exact.fullmatch(image)] == []


def test_the_image_of_the_product_has_its_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert {service["image"] for service in OURS.values()} == {f"memory-app:{version}"}


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


@pytest.mark.parametrize("file", SETTINGS_FILES)
def test_every_setting_of_the_examples_exists(file: str) -> None:
    variables = re.findall("^# ([A-Z_]+)=", (ROOT / file).read_text(), re.MULTILINE)

    assert variables
    for variable in variables:
        assert_setting(variable)


def test_settings_reach_every_part_and_model_keys_only_those_that_call() -> None:
    files = {name: {file["path"] for file in service["env_file"]} for name, service in OURS.items()}

    asking = {name for name, paths in files.items() if "model.env" in paths}
    assert all("memory.env" in paths for paths in files.values())
    workers = {f"worker-{queue}" for queue in ("ingest", "model", "maintenance")}
    assert asking == {"api", "finder", "migrate", *workers}
    assert all(not file["required"] for service in OURS.values() for file in service["env_file"])


def assert_setting(variable: str) -> None:
    model: type[BaseModel] = Settings
    for part in variable.removeprefix("MEMORY_").lower().split("__"):
        assert part in model.model_fields, f"no setting {variable}"
        annotation = model.model_fields[part].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation


def test_redis_forgets_nothing_and_knows_a_user_for_each_part() -> None:
    command = " ".join(SERVICES["redis"]["command"])
    for line in ("appendonly yes", "maxmemory-policy noeviction", "aclfile /tmp/users.acl"):
        assert line in command

    users = {
        name: re.findall(r"redis://([a-z-]+):", service["environment"]["MEMORY_REDIS__URL"])
        for name, service in OURS.items()
    }
    acl = (ROOT / "deploy/redis/users.acl").read_text()
    known = set(re.findall(r"^user (memory-\S+)", acl, re.MULTILINE))
    assert {user for (user,) in users.values()} == known
    assert users["worker-ingest"] == users["worker-model"] == ["memory-worker"]
    assert (users["api"], users["migrate"]) == (["memory-api"], ["memory-doctor"])


def test_no_secret_is_an_argument() -> None:
    for name, service in SERVICES.items():
        arguments = [*service["command"], *service["healthcheck"].get("test", ())]
        assert not any(SECRET.search(argument) for argument in arguments), name


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
                assert re.search(rf"://[\w-]*:{SECRET.pattern}@", value), variable
            elif re.search("PASSWORD|AUTH", variable):
                assert SECRET.sub("", value).strip(":") == "", variable
    for line in (ROOT / ".env.example").read_text().splitlines():
        assert not re.match("[A-Z_]*(PASSWORD|NAME)=.", line), line


def test_every_variable_is_in_the_example() -> None:
    text = "".join((ROOT / file).read_text() for file in FILES)
    used = set(re.findall(r"(?<!\$)\$\{([A-Z_]+)", text))

    assert used == set(re.findall("^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))


def test_only_the_migrations_and_the_builder_of_indexes_know_the_owner() -> None:
    knowing = {
        name for name, service in OURS.items() if "MEMORY_DATABASE__OWNER_URL" in service["environment"]
    }

    assert knowing == {"migrate", "worker-maintenance"}


def test_each_part_has_the_light_check_of_its_own() -> None:
    checks = {name: service["healthcheck"]["test"] for name, service in OURS.items() if name != "migrate"}

    for name, (how, program, command, part) in checks.items():
        assert (how, program, command) == ("CMD", "memory", "health")
        assert name.startswith(part)


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
