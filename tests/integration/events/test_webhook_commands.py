"""``memory webhooks``: what HTTP does with webhooks, from a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from commands import Memory
from receiver import Receiver, Reply, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def hooks(memory: Memory, tenant: int, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """``memory webhooks`` of the tenant of the test, which may post to receivers on loopback."""
    monkeypatch.setenv("MEMORY_WEBHOOKS__ALLOW_PRIVATE", "true")
    monkeypatch.setenv("MEMORY_WEBHOOKS__ALLOW_HTTP", "true")
    monkeypatch.setenv("MEMORY_WEBHOOKS__PORTS", "[]")
    monkeypatch.setenv("MEMORY_ERASURE__SECRET", "a secret of the server that is long enough")
    return lambda verb, *arguments: memory("webhooks", verb, *arguments, "--tenant", "acme")


def created(hooks: Memory, receiver: Receiver, *options: str) -> str:
    return str(hooks("create", receiver.url, *options, "--json").json["webhook"]["id"])


def choice(webhook: dict[str, Any]) -> tuple[Any, ...]:
    return webhook["types"], webhook["agent"], webhook["user"], webhook["description"]


def test_a_change_keeps_what_no_option_names(hooks: Memory, receiver: Receiver) -> None:
    given = ("--types", "turn.accepted", "--agent", "ada", "--user", "mira", "--description", "for the page")
    id = created(hooks, receiver, *given)
    changed = hooks("change", id, "--agent", "bo", "--user", "kit", "--json").json
    assert choice(changed) == (["turn.accepted"], "bo", "kit", "for the page")
    changed = hooks("change", id, "--without", "agent", "--without", "types", "--json").json
    assert choice(changed) == (None, None, "kit", "for the page")
    changed = hooks(
        "change", id, "--types", "turn.failed", "--without", "user", "--without", "description", "--json"
    ).json
    assert choice(changed) == (["turn.failed"], None, None, None)
    assert hooks("list", "--json").json == [changed]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (("--agent", "bo", "--without", "agent"), "agent"),
        (("--types", "memory", "--without", "types"), "types"),
        (("--types", "turns"), "types"),
        (("--agent", " "), "agent"),
        (("--url", "ftp://example.com"), "url"),
    ],
)
def test_a_change_that_is_refused_names_the_field_and_changes_nothing(
    hooks: Memory, receiver: Receiver, options: tuple[str, ...], field: str
) -> None:
    created(hooks, receiver, "--agent", "ada")
    before = hooks("list", "--json").json
    refused = hooks("change", before[0]["id"], *options)
    assert refused.status == 1 and f"{field}: " in refused.err
    assert hooks("list", "--json").json == before


def test_a_webhook_is_tried_paused_and_deleted_from_a_terminal(hooks: Memory, receiver: Receiver) -> None:
    id = created(hooks, receiver)
    assert "delivered (204)" in hooks("ping", id).out
    receiver.replies = [Reply(status=500)]
    failed = hooks("ping", id)
    assert failed.status == 1 and "500" in failed.out
    newest, oldest = hooks("deliveries", id, "--json").json
    assert (newest["status"], oldest["status"]) == (500, 204)
    assert hooks("deliveries", id, "--limit", "1", "--cursor", newest["id"], "--json").json == [oldest]
    assert "paused" in hooks("pause", id).out
    assert "active" in hooks("resume", id).out
    assert "active" in hooks("resend", id, "oldest").out
    secret = hooks("rotate", id, "--overlap-hours", "1").out.strip()
    assert secret.startswith("whsec_")
    assert "deleted" in hooks("delete", id).out
    gone = hooks("pause", id)
    assert gone.status == 1 and id in gone.err
