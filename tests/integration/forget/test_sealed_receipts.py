"""Receipts that can be handed out: verified against the secret, the database and the person they are of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Memory
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.main.http import create_app
from memory_app.ops.check import State
from memory_app.ops.doctor import diagnose
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Erasure, Settings
from memory_app.turns.record import record

SECRET = "s" * 32
CHAT = Scope("ada", "mira", "chat")


@pytest.fixture
def keyed(settings: Settings) -> Iterator[Runtime]:
    """The parts with a secret set."""
    secret = Erasure.model_validate({"secret": SECRET})
    runtime = build(settings.model_copy(update={"erasure": secret}))
    yield runtime
    runtime.close()


@pytest.fixture
def line(keyed: Runtime, tenant: int, api_key: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The receipt of Mira, as the API hands it out."""
    monkeypatch.setenv("MEMORY_ERASURE__SECRET", SECRET)
    record(keyed, tenant, CHAT, [NewTurn(Role.USER, "I keep a quokka.")])
    client = TestClient(create_app(keyed), headers={"Authorization": f"Bearer {api_key}"})
    run = client.delete("/v1/users/mira").json()
    answer = client.get(f"/v1/erasures/{run['report']['erasure']}").json()
    assert answer["counts"]["turns"] == 1
    return str(answer["receipt"])


def test_a_receipt_is_verified_and_told_whose_it_is(line: str, memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "receipts"
    file.write_text(line + "\n")

    assert memory("receipt", "verify", str(file)).status == 0
    assert memory("receipt", "verify", str(file), "--user", "mira").status == 0
    assert memory("receipt", "verify", str(file), "--user", "bob").status == 1
    assert "mira" not in line
    shown = memory("receipt", "show", json.loads(line)["id"], "--tenant", "acme")
    assert shown.out.strip() == line


@pytest.mark.parametrize("change", [{"counts": {"turns": 9}}, {"id": "0197aaaa-0000-7000-8000-000000000001"}])
def test_a_receipt_that_was_altered_fails(
    line: str, memory: Memory, tmp_path: Path, change: dict[str, object]
) -> None:
    file = tmp_path / "receipts"
    file.write_text(json.dumps(json.loads(line) | change) + "\nno receipt\n")

    done = memory("receipt", "verify", str(file), "--json")

    assert done.status == 1
    altered, unreadable = json.loads(done.out)
    assert altered["seal"].startswith("altered")
    assert altered["is_known"] is False
    assert "not JSON" in unreadable["wrong"]


def test_a_receipt_that_the_database_lost_is_unknown(
    line: str, owner: Engine, memory: Memory, tmp_path: Path
) -> None:
    with owner.begin() as connection:
        connection.execute(text("SELECT set_config('memory.tenant', CAST(id AS text), true) FROM tenants"))
        connection.execute(text("DELETE FROM erasures"))
    file = tmp_path / "receipts"
    file.write_text(line)

    done = memory("receipt", "verify", str(file), "--json")

    assert (done.status, json.loads(done.out)[0]["is_known"]) == (1, False)


def test_doctor_warns_where_no_secret_is_set(settings: Settings) -> None:
    checks = {check.name: check for check in diagnose(settings)}
    assert checks["erasure secret"].state is State.WARN

    keyed = settings.model_copy(update={"erasure": Erasure.model_validate({"secret": SECRET})})
    assert "erasure secret" not in {check.name for check in diagnose(keyed)}
