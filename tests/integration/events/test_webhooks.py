"""Webhooks deliver each event in its order, at least once, and nothing else waits for a receiver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event, Lock

import pytest
from listening import listen
from receiver import Receiver, Reply, receiving
from redis_servers import Authority, make_authority
from sqlalchemy import Engine, text

from memory_app.client import InvalidSignature, verify_webhook
from memory_app.db.db import transaction
from memory_app.dispatch import finder
from memory_app.errors import Conflict, InvalidInput, NotFound
from memory_app.events.event import Choice, types_of
from memory_app.events.rows import due_webhooks
from memory_app.events.rows import webhooks as rows
from memory_app.events.webhooks import webhooks
from memory_app.events.webhooks.address import Rules, resolve
from memory_app.events.webhooks.attempt import post_of
from memory_app.events.webhooks.deliver import deliver_due
from memory_app.events.webhooks.records import Delivery, NewWebhook, Webhook, WebhookChange
from memory_app.events.webhooks.send import Outcome, Post
from memory_app.forget.forget import forget_agent, forget_user
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Erasure, Settings, Webhooks
from memory_app.turns.record import record

ADA = Scope("ada", "mira", "chat")
SERVER_SECRET = "the secret of the server that is long enough"
PATIENCE_SECONDS = 60.0

USUAL = Webhooks(
    allow_private=True,
    allow_http=True,
    ports=frozenset(),
    batch=3,
    connect_seconds=5,
    total_seconds=10,
    retry_base_seconds=0.01,
    retry_max_seconds=0.02,
)


def with_hooks(runtime: Runtime, **fields: object) -> Runtime:
    settings = runtime.settings.model_copy(
        update={
            "webhooks": USUAL.model_copy(update=fields),
            "erasure": Erasure.model_validate({"secret": SERVER_SECRET}),
        }
    )
    return replace(runtime, settings=settings)


@pytest.fixture
def hooked(runtime: Runtime) -> Runtime:
    """Live parts that may reach receivers on loopback."""
    return with_hooks(runtime)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def say(runtime: Runtime, tenant: int, *words: str, scope: Scope = ADA) -> list[str]:
    return [str(t.id) for t in record(runtime, tenant, scope, [NewTurn(Role.USER, word) for word in words])]


def make(runtime: Runtime, tenant: int, receiver: Receiver, **fields: object) -> NewWebhook:
    options: dict[str, object] = {"types": ["turn.accepted"], **fields}
    return webhooks.make_webhook(runtime, tenant, url=receiver.url, **options)  # type: ignore[arg-type]


def one(runtime: Runtime, tenant: int) -> Webhook:
    (row,) = webhooks.list_webhooks(runtime, tenant)
    return row


def tries(runtime: Runtime, tenant: int, new: NewWebhook) -> tuple[Delivery, ...]:
    return webhooks.list_deliveries(runtime, tenant, new.webhook.id)


def deliver_until(runtime: Runtime, condition: Callable[[], bool], *, post: Post | None = None) -> None:
    """Deliver as workers do, until the condition holds: transactions of other tests may hold events up."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come to hold"
        deliver_due(runtime, post=post)
        time.sleep(0.01)


def accept_all(receiver: Receiver, count: int) -> Callable[[], bool]:
    return lambda: len(set(receiver.targets())) >= count


# --- delivery -----------------------------------------------------------------------------------------------


def test_events_come_in_order_in_batches_each_once(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    new = make(hooked, tenant, receiver)
    turns = say(hooked, tenant, *(f"word {number}" for number in range(10)))
    deliver_until(hooked, accept_all(receiver, 10))
    assert sorted(receiver.targets()) == sorted(turns)
    assert receiver.event_ids() == sorted(receiver.event_ids())
    assert [event.id for event in listen(hooked, tenant, 10, choice=Choice(types_of("turn.accepted")))] == (
        receiver.event_ids()
    )
    assert all(len(message.events) <= 3 for message in receiver.messages)
    assert "word" not in repr(receiver.messages)
    deliver_due(hooked)
    assert len(receiver.targets()) == 10
    log = tries(hooked, tenant, new)
    assert {row.outcome for row in log} == {Outcome.DELIVERED}
    assert sum(row.events for row in log) == 10
    assert one(hooked, tenant).waiting_since is None


def test_a_message_is_signed_for_its_receiver(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    new = make(hooked, tenant, receiver)
    (turn,) = say(hooked, tenant, "hello")
    deliver_until(hooked, accept_all(receiver, 1))
    message = receiver.messages[0]
    assert message.path == "/hook?from=memory"
    read = verify_webhook(message.headers, message.body, new.secret)
    assert read["type"] == "events"
    assert read["data"]["webhook"] == str(new.webhook.id)
    assert [event["target"] for event in read["data"]["events"]] == [turn]
    with pytest.raises(InvalidSignature):
        verify_webhook(message.headers, message.body + b" ", new.secret)


def test_a_webhook_begins_now_or_where_it_is_told_to(
    hooked: Runtime, tenant: int, receiver: Receiver
) -> None:
    before = say(hooked, tenant, "before")
    (first,) = listen(hooked, tenant, 1, choice=Choice(types_of("turn.accepted")))
    with receiving() as all_of_it, receiving() as rest:
        make(hooked, tenant, receiver)
        make(hooked, tenant, all_of_it, after="oldest")
        make(hooked, tenant, rest, after=first.id)
        after = say(hooked, tenant, "after")
        deliver_until(hooked, lambda: all(map(Receiver.targets, (receiver, all_of_it, rest))))
        deliver_until(hooked, accept_all(all_of_it, 2))
        assert all_of_it.targets() == before + after
        assert receiver.targets() == rest.targets() == after


def test_a_webhook_hears_of_its_types_and_its_scope(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    make(hooked, tenant, receiver, agent="ada", user="mira")
    say(hooked, tenant, "of another agent", scope=Scope("bob", "mira", "chat"))
    say(hooked, tenant, "of another person", scope=Scope("ada", "kit", "chat"))
    (own,) = say(hooked, tenant, "of hers")
    deliver_until(hooked, accept_all(receiver, 1))
    assert receiver.targets() == [own]


def test_two_tenants_hear_of_their_own(
    hooked: Runtime, tenant: int, other_tenant: int, receiver: Receiver
) -> None:
    with receiving() as others:
        new = make(hooked, tenant, receiver)
        make(hooked, other_tenant, others)
        (mine,) = say(hooked, tenant, "mine")
        (theirs,) = say(hooked, other_tenant, "theirs")
        deliver_until(hooked, lambda: bool(receiver.targets() and others.targets()))
        assert (receiver.targets(), others.targets()) == ([mine], [theirs])
        for act in (
            lambda: webhooks.list_deliveries(hooked, other_tenant, new.webhook.id),
            lambda: webhooks.delete_webhook(hooked, other_tenant, new.webhook.id),
            lambda: webhooks.rotate_webhook(hooked, other_tenant, new.webhook.id),
            lambda: webhooks.ping_webhook(hooked, other_tenant, new.webhook.id),
            lambda: webhooks.resend_webhook(hooked, other_tenant, new.webhook.id, after="oldest"),
            lambda: webhooks.change_webhook(
                hooked, other_tenant, new.webhook.id, change=WebhookChange(paused=True)
            ),
        ):
            with pytest.raises(NotFound):
                act()


def test_many_at_once_deliver_in_order_and_one_message_at_a_time(
    hooked: Runtime, tenant: int, receiver: Receiver
) -> None:
    make(hooked, tenant, receiver)
    turns = say(hooked, tenant, *(f"word {number}" for number in range(30)))
    under_way, most, lock = [0], [0], Lock()

    def note(_: object) -> None:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.005)
        with lock:
            under_way[0] -= 1

    receiver.on_message = note
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(receiver.targets()) < 30 and time.monotonic() < deadline:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: deliver_due(hooked), range(4)))
    assert sorted(receiver.targets()) == sorted(turns)
    assert receiver.event_ids() == sorted(receiver.event_ids())
    assert most[0] == 1


# --- failures -----------------------------------------------------------------------------------------------


def test_a_message_that_failed_comes_again_with_its_id(
    hooked: Runtime, tenant: int, receiver: Receiver
) -> None:
    new = make(hooked, tenant, receiver)
    receiver.replies = [Reply(500), Reply(404), Reply(204)]
    first = say(hooked, tenant, "one", "two")
    deliver_until(hooked, lambda: len(receiver.messages) >= 1)
    # What comes meanwhile is not put into the message that was tried.
    second = say(hooked, tenant, "three")
    deliver_until(hooked, accept_all(receiver, 3))
    assert len({message.id for message in receiver.messages[:3]}) == 1
    assert receiver.messages[3].id != receiver.messages[0].id
    bodies = [sorted(event["target"] for event in message.events) for message in receiver.messages]
    assert bodies == [sorted(first)] * 3 + [second]
    log = tries(hooked, tenant, new)[::-1]
    assert [(row.outcome, row.status, row.attempt) for row in log] == [
        (Outcome.FAILED, 500, 1),
        (Outcome.REFUSED, 404, 2),
        (Outcome.DELIVERED, 204, 3),
        (Outcome.DELIVERED, 204, 1),
    ]
    assert one(hooked, tenant).failing_since is None


def fail_once(hooked: Runtime, tenant: int, receiver: Receiver, *replies: Reply) -> Delivery:
    """The log's entry of a delivery that fails."""
    receiver.replies = list(replies)
    new = make(hooked, tenant, receiver)
    say(hooked, tenant, "hello")
    deliver_until(hooked, lambda: bool(tries(hooked, tenant, new)))
    return tries(hooked, tenant, new)[-1]


def test_a_receiver_that_hangs_is_cut_off(runtime: Runtime, tenant: int, receiver: Receiver) -> None:
    row = fail_once(with_hooks(runtime, total_seconds=0.3), tenant, receiver, Reply(until=Event()))
    assert (row.outcome, row.status) == (Outcome.TIMED_OUT, None)


def test_an_answer_in_a_trickle_is_cut_off(runtime: Runtime, tenant: int, receiver: Receiver) -> None:
    receiver_done = Event()
    row = fail_once(with_hooks(runtime, total_seconds=0.5), tenant, receiver, Reply(drip=receiver_done))
    receiver_done.set()
    assert row.outcome is Outcome.TIMED_OUT


def test_a_receiver_that_is_away_is_tried_again(hooked: Runtime, tenant: int) -> None:
    with receiving() as receiver:
        new = make(hooked, tenant, receiver)
    say(hooked, tenant, "hello")
    deliver_until(hooked, lambda: len(tries(hooked, tenant, new)) >= 2)
    assert {row.outcome for row in tries(hooked, tenant, new)} == {Outcome.UNREACHABLE}
    assert one(hooked, tenant).failing_since is not None


def test_a_redirect_is_not_followed(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    with receiving() as trap:
        row = fail_once(hooked, tenant, receiver, Reply(302, {"location": trap.url}))
        assert row.outcome is Outcome.REDIRECTED
        assert trap.messages == []


def test_a_huge_answer_is_not_read(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    receiver.replies = [Reply(200, body=b"x" * 50_000_000)]
    new = make(hooked, tenant, receiver)
    say(hooked, tenant, "hello")
    deliver_until(hooked, lambda: bool(tries(hooked, tenant, new)))
    (row,) = tries(hooked, tenant, new)
    assert row.outcome is Outcome.DELIVERED
    # What an answer holds is nowhere to be found.
    assert "xxx" not in repr((row, one(hooked, tenant)))


def test_a_receiver_that_is_gone_pauses_its_webhook(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    row = fail_once(hooked, tenant, receiver, Reply(410), Reply(204))
    assert row.outcome is Outcome.GONE
    assert one(hooked, tenant).paused_reason == "gone"
    deliver_due(hooked)
    assert len(receiver.messages) == 1
    resumed = webhooks.change_webhook(
        hooked, tenant, one(hooked, tenant).id, change=WebhookChange(paused=False)
    )
    assert resumed.paused_reason is None
    deliver_until(hooked, lambda: len(receiver.messages) == 2)
    assert one(hooked, tenant).failing_since is None


def test_a_receiver_may_ask_for_a_pause(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    row = fail_once(hooked, tenant, receiver, Reply(429, {"retry-after": "600"}))
    assert row.outcome is Outcome.THROTTLED
    webhook = one(hooked, tenant)
    assert webhook.next_try_at is not None and webhook.failing_since is not None
    assert 500 < (webhook.next_try_at - webhook.failing_since).total_seconds() < 700
    deliver_due(hooked)
    assert len(receiver.messages) == 1


@pytest.mark.one_shard
def test_a_webhook_that_fails_for_days_is_given_up(
    hooked: Runtime, tenant: int, receiver: Receiver, owner: Engine
) -> None:
    fail_once(hooked, tenant, receiver, Reply(500))
    with transaction(hooked.engine, None) as connection:
        assert rows.state(connection).failing == 1
    with owner.begin() as connection:
        connection.execute(text("UPDATE webhooks SET failing_since = now() - interval '6 days'"))
    deliver_until(hooked, lambda: one(hooked, tenant).paused_reason is not None)
    assert one(hooked, tenant).paused_reason == "failing"
    with transaction(hooked.engine, None) as connection:
        state = rows.state(connection)
    assert (state.active, state.failing, state.given_up) == (0, 0, 1)


def test_one_that_hangs_holds_up_no_other(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    released = Event()
    with receiving(Reply(until=released)) as slow:
        make(hooked, tenant, slow)
        make(hooked, tenant, receiver)
        say(hooked, tenant, *(f"word {number}" for number in range(9)))
        receiver.on_message = lambda _: released.set() if len(receiver.targets()) >= 9 else None
        deliver_until(hooked, accept_all(receiver, 9))
        # All messages of one came while the first of the other was under way.
        assert len(slow.messages) == 1 or released.is_set()
        assert len({message.id for message in slow.messages[:1]}) == 1


def test_a_fault_of_ours_with_one_holds_up_no_other(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    def resolver(host: str, port: int) -> tuple[str, ...]:
        if port == broken.port:
            raise ZeroDivisionError
        return resolve(host, port)

    with receiving() as broken:
        make(hooked, tenant, broken)
        make(hooked, tenant, receiver)
        say(hooked, tenant, *(f"word {number}" for number in range(9)))
        post = replace(post_of(hooked.settings.webhooks), resolver=resolver)
        deliver_until(hooked, accept_all(receiver, 9), post=post)
        assert broken.messages == []


def test_the_hanging_ones_of_a_tenant_leave_room_for_others(
    runtime: Runtime, tenant: int, other_tenant: int, receiver: Receiver
) -> None:
    hooked = with_hooks(runtime, deliveries=4)
    released = Event()
    with receiving(Reply(until=released)) as slow:
        for _ in range(6):
            make(hooked, tenant, slow)
        make(hooked, other_tenant, receiver)
        say(hooked, tenant, "hello")
        say(hooked, other_tenant, "hello")
        receiver.on_message = lambda _: released.set()
        deliver_until(hooked, accept_all(receiver, 1))
        assert released.is_set()


def test_the_log_keeps_the_latest_only(runtime: Runtime, tenant: int, receiver: Receiver) -> None:
    hooked = with_hooks(runtime, log_rows=5, batch=1)
    new = make(hooked, tenant, receiver)
    turns = say(hooked, tenant, *(f"word {number}" for number in range(12)))
    deliver_until(hooked, accept_all(receiver, 12))
    log = tries(hooked, tenant, new)
    assert len(log) == 5
    assert [row.to_event for row in log] == receiver.event_ids()[:-6:-1]
    assert len(turns) == 12


@pytest.mark.one_shard
def test_an_idle_webhook_writes_nothing(
    hooked: Runtime, tenant: int, receiver: Receiver, owner: Engine
) -> None:
    make(hooked, tenant, receiver, types=["erasure"])
    with owner.connect() as connection:
        before = connection.execute(text("SELECT xmin, ctid FROM webhooks")).one()
    say(hooked, tenant, "hello")
    for _ in range(3):
        assert deliver_due(hooked) == 0
    with owner.connect() as connection:
        assert connection.execute(text("SELECT xmin, ctid FROM webhooks")).one() == before


# --- addresses ----------------------------------------------------------------------------------------------


def test_a_private_address_is_refused_when_made_and_when_delivered(
    runtime: Runtime, hooked: Runtime, tenant: int, receiver: Receiver
) -> None:
    closed = with_hooks(runtime, allow_private=False)
    with pytest.raises(InvalidInput, match="private"):
        make(closed, tenant, receiver)
    new = make(hooked, tenant, receiver)
    say(hooked, tenant, "hello")
    deliver_until(closed, lambda: bool(tries(hooked, tenant, new)))
    assert tries(hooked, tenant, new)[0].outcome is Outcome.ADDRESS_REFUSED
    assert receiver.messages == []


def test_a_name_that_resolves_otherwise_later_leads_nowhere(
    hooked: Runtime, tenant: int, receiver: Receiver
) -> None:
    asked: list[str] = []

    def rebind(host: str, port: int) -> tuple[str, ...]:
        asked.append(host)
        # Public at the first look, loopback at any later one.
        return ("203.0.113.7",) if len(asked) == 1 else resolve(host, port)

    usual = post_of(hooked.settings.webhooks)
    rules = Rules(allow_http=True, allow_private=False)
    post = replace(usual, rules=rules, resolver=rebind, connect_seconds=0.2, total_seconds=1)
    new = make(hooked, tenant, receiver)
    say(hooked, tenant, "hello")
    deliver_until(hooked, lambda: len(tries(hooked, tenant, new)) >= 2, post=post)
    assert receiver.messages == []
    assert {row.outcome for row in tries(hooked, tenant, new)} == {Outcome.ADDRESS_REFUSED}


def test_the_address_that_was_checked_is_the_one_connected_to(
    hooked: Runtime, tenant: int, receiver: Receiver
) -> None:
    asked: list[str] = []

    def once(host: str, port: int) -> tuple[str, ...]:
        asked.append(host)
        assert len(asked) == 1, "looked up again after the check"
        return ("127.0.0.1",)

    post = replace(post_of(hooked.settings.webhooks), resolver=once)
    url = receiver.url.replace("127.0.0.1", "localhost")
    new = webhooks.make_webhook(hooked, tenant, url=url, types=["turn.accepted"])
    say(hooked, tenant, "hello")
    deliver_until(hooked, lambda: bool(tries(hooked, tenant, new)), post=post)
    assert asked == ["localhost"]
    assert receiver.messages[0].headers["host"] == f"localhost:{receiver.port}"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return make_authority(tmp_path / "authority")


def test_certificates_are_those_of_the_name(runtime: Runtime, tenant: int, authority: Authority) -> None:
    certificate = authority.certify("hooks", hosts="DNS:localhost")
    with receiving(certificate=certificate) as receiver:
        trusting = with_hooks(runtime, ca_file=authority.file)
        by_name = receiver.url.replace("127.0.0.1", "localhost")
        new = webhooks.make_webhook(trusting, tenant, url=by_name, types=["turn.accepted"])
        say(trusting, tenant, "hello")
        deliver_until(trusting, accept_all(receiver, 1))
        # By its address it has not the name of the certificate, and without the authority nobody vouches for it.
        other = webhooks.make_webhook(trusting, tenant, url=receiver.url)
        assert webhooks.ping_webhook(trusting, tenant, other.webhook.id).outcome is Outcome.UNTRUSTED
        assert webhooks.ping_webhook(with_hooks(runtime), tenant, new.webhook.id).outcome is Outcome.UNTRUSTED
        assert webhooks.ping_webhook(trusting, tenant, new.webhook.id).outcome is Outcome.DELIVERED


def test_proxies_of_the_environment_are_not_used(
    hooked: Runtime, tenant: int, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        new = make(hooked, tenant, receiver)
        assert webhooks.ping_webhook(hooked, tenant, new.webhook.id).outcome is Outcome.DELIVERED
        assert proxy.messages == []


# --- what is configured -------------------------------------------------------------------------------------


def test_a_rotated_secret_signs_beside_the_old_one_for_a_while(
    hooked: Runtime, tenant: int, receiver: Receiver, owner: Engine
) -> None:
    new = make(hooked, tenant, receiver)
    rotated = webhooks.rotate_webhook(hooked, tenant, new.webhook.id, overlap_hours=1)
    assert rotated.secret != new.secret

    def verified_by(secret: str) -> bool:
        webhooks.ping_webhook(hooked, tenant, new.webhook.id)
        message = receiver.messages[-1]
        try:
            return bool(verify_webhook(message.headers, message.body, secret))
        except InvalidSignature:
            return False

    assert verified_by(new.secret) and verified_by(rotated.secret)
    with owner.begin() as connection:
        connection.execute(text("UPDATE webhooks SET previous_until = now()"))
    assert verified_by(rotated.secret) and not verified_by(new.secret)
    at_once = webhooks.rotate_webhook(hooked, tenant, new.webhook.id, overlap_hours=0)
    assert verified_by(at_once.secret) and not verified_by(rotated.secret)


def with_secret(runtime: Runtime, secret: str) -> Runtime:
    erasure = Erasure.model_validate({"secret": secret})
    return replace(runtime, settings=runtime.settings.model_copy(update={"erasure": erasure}))


def test_the_secret_of_the_settings_is_replaced_over_several_processes(
    hooked: Runtime, tenant: int, receiver: Receiver
) -> None:
    old = make(hooked, tenant, receiver)
    newer = "another secret of the server that is long"
    rolled = with_secret(hooked, f"{newer},{SERVER_SECRET}")
    webhooks.ping_webhook(rolled, tenant, old.webhook.id)
    assert verify_webhook(receiver.messages[-1].headers, receiver.messages[-1].body, old.secret)
    # One made under the new secret waits where a process does not know that yet, and nothing unsigned is sent.
    young = make(rolled, tenant, receiver)
    count = len(receiver.messages)
    assert webhooks.ping_webhook(hooked, tenant, young.webhook.id).outcome is Outcome.NO_SECRET
    assert len(receiver.messages) == count
    # Once the old one is gone, what was made with it needs another secret.
    alone = with_secret(hooked, newer)
    assert webhooks.ping_webhook(alone, tenant, old.webhook.id).outcome is Outcome.NO_SECRET
    webhooks.rotate_webhook(alone, tenant, old.webhook.id)
    assert webhooks.ping_webhook(alone, tenant, old.webhook.id).outcome is Outcome.DELIVERED


def test_a_secret_is_nowhere_in_the_database(
    hooked: Runtime, tenant: int, receiver: Receiver, owner: Engine
) -> None:
    new = make(hooked, tenant, receiver)
    say(hooked, tenant, "hello")
    deliver_until(hooked, accept_all(receiver, 1))
    with owner.connect() as connection:
        stored = repr(connection.execute(text("SELECT * FROM webhooks")).all())
    assert new.secret not in stored and SERVER_SECRET not in stored
    assert new.secret not in repr(new) and new.secret not in repr(one(hooked, tenant))


def test_without_a_secret_in_the_settings_none_is_made(
    runtime: Runtime, tenant: int, receiver: Receiver
) -> None:
    bare = with_hooks(runtime)
    bare = replace(bare, settings=bare.settings.model_copy(update={"erasure": Erasure()}))
    with pytest.raises(Conflict, match="MEMORY_ERASURE__SECRET"):
        make(bare, tenant, receiver)


def test_a_paused_webhook_goes_on_where_it_was(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    new = make(hooked, tenant, receiver)
    paused = webhooks.change_webhook(hooked, tenant, new.webhook.id, change=WebhookChange(paused=True))
    assert paused.paused_reason == "asked"
    turns = say(hooked, tenant, "one", "two")
    listen(hooked, tenant, 2, choice=Choice(types_of("turn.accepted")))
    deliver_due(hooked)
    assert receiver.messages == []
    webhooks.change_webhook(hooked, tenant, new.webhook.id, change=WebhookChange(paused=False))
    deliver_until(hooked, accept_all(receiver, 2))
    assert sorted(receiver.targets()) == sorted(turns)


def test_a_change_keeps_what_it_does_not_name(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    new = make(hooked, tenant, receiver, agent="ada", description="for the page")
    id = new.webhook.id
    with receiving() as other:
        changed = webhooks.change_webhook(hooked, tenant, id, change=WebhookChange(url=other.url))
    assert changed.url == other.url
    assert (changed.types, changed.agent) == (("turn.accepted",), "ada")
    assert changed.description == "for the page"
    changed = webhooks.change_webhook(hooked, tenant, id, change=WebhookChange(types=None, agent=None))
    assert (changed.types, changed.agent, changed.paused_reason) == (None, None, None)
    with pytest.raises(InvalidInput, match="types"):
        webhooks.change_webhook(hooked, tenant, id, change=WebhookChange(types=["turns"]))
    with pytest.raises(InvalidInput, match="url"):
        webhooks.change_webhook(hooked, tenant, id, change=WebhookChange(url="ftp://example.com"))


def test_events_are_sent_again_from_an_id(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    new = make(hooked, tenant, receiver)
    say(hooked, tenant, *(f"word {number}" for number in range(5)))
    deliver_until(hooked, accept_all(receiver, 5))
    ids = receiver.event_ids()
    receiver.messages.clear()
    webhooks.resend_webhook(hooked, tenant, new.webhook.id, after=ids[1])
    deliver_until(hooked, accept_all(receiver, 3))
    assert receiver.event_ids() == ids[2:]
    with pytest.raises(InvalidInput, match="after"):
        webhooks.resend_webhook(hooked, tenant, new.webhook.id, after="yesterday")


def test_what_was_sent_again_meanwhile_is_not_passed_over(
    hooked: Runtime, tenant: int, receiver: Receiver
) -> None:
    new = make(hooked, tenant, receiver)
    start = new.webhook.position
    say(hooked, tenant, "one", "two")

    def go_back(_: object) -> None:
        receiver.on_message = lambda _: None
        webhooks.resend_webhook(hooked, tenant, new.webhook.id, after=start)

    receiver.on_message = go_back
    deliver_until(hooked, lambda: len(receiver.messages) >= 2)
    # The success of the first came too late to move the position on.
    assert receiver.messages[0].events == receiver.messages[1].events
    assert receiver.messages[0].id != receiver.messages[1].id


def test_after_a_restore_a_webhook_hears_of_a_reset(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    epoch = "00000000"
    new = make(hooked, tenant, receiver, after=epoch + "-0000000000000001-0-" + "0" * 32)
    assert new.webhook.position.startswith(epoch)
    deliver_until(hooked, lambda: len(receiver.messages) >= 1)
    assert [event["type"] for event in receiver.messages[0].events] == ["reset"]
    (turn,) = say(hooked, tenant, "after it")
    deliver_until(hooked, lambda: len(receiver.messages) >= 2)
    assert [event["target"] for event in receiver.messages[1].events] == [turn]


def test_a_tenant_has_so_many_webhooks_even_at_once(
    runtime: Runtime, tenant: int, other_tenant: int, receiver: Receiver
) -> None:
    hooked = with_hooks(runtime, tenant_webhooks=3)

    def try_to_make(_: int) -> bool:
        try:
            make(hooked, tenant, receiver)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(try_to_make, range(6))) == 3
    assert make(hooked, other_tenant, receiver)


def test_a_deleted_webhook_hears_of_nothing_and_leaves_no_log(
    hooked: Runtime, tenant: int, receiver: Receiver, owner: Engine
) -> None:
    new = make(hooked, tenant, receiver)
    say(hooked, tenant, "one")
    deliver_until(hooked, accept_all(receiver, 1))
    webhooks.delete_webhook(hooked, tenant, new.webhook.id)
    say(hooked, tenant, "two")
    deliver_due(hooked)
    assert len(receiver.messages) == 1
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM deliveries")).scalar() == 0
    with pytest.raises(NotFound):
        webhooks.delete_webhook(hooked, tenant, new.webhook.id)


def test_a_webhook_of_one_person_goes_with_them(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    make(hooked, tenant, receiver, user="mira")
    make(hooked, tenant, receiver, user="kit")
    make(hooked, tenant, receiver, types=["erasure"])
    say(hooked, tenant, "hello")
    forget_user(hooked, tenant, "mira")
    assert [row.user for row in webhooks.list_webhooks(hooked, tenant)] == ["kit", None]


def test_a_webhook_of_one_agent_goes_with_it(hooked: Runtime, tenant: int, receiver: Receiver) -> None:
    make(hooked, tenant, receiver, agent="ada")
    make(hooked, tenant, receiver, agent="bob")
    say(hooked, tenant, "hello")
    forget_agent(hooked, tenant, "ada")
    finder.drain(hooked)
    assert [row.agent for row in webhooks.list_webhooks(hooked, tenant)] == ["bob"]


def test_a_lease_that_ran_out_is_taken_over_with_the_same_message(
    hooked: Runtime, tenant: int, receiver: Receiver, owner: Engine
) -> None:
    new = make(hooked, tenant, receiver)
    say(hooked, tenant, "hello")
    listen(hooked, tenant, 1, choice=Choice(types_of("turn.accepted")))
    died = Event()

    class Died(BaseException):
        """Stands for the end of a process between the delivery and its note."""

    def die(*_: object, **__: object) -> bool:
        died.set()
        raise Died

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(due_webhooks, "delivered", die)
        with pytest.raises(Died):
            deliver_due(hooked)
    assert died.is_set()
    # Nobody else takes it meanwhile.
    assert deliver_due(hooked) == 0
    with owner.begin() as connection:
        connection.execute(text("UPDATE webhooks SET lease_until = now() - interval '1 second'"))
    deliver_until(hooked, lambda: len(receiver.messages) >= 2)
    assert receiver.messages[0].id == receiver.messages[1].id
    assert receiver.messages[0].events == receiver.messages[1].events
    assert [row.attempt for row in tries(hooked, tenant, new)] == [2]


def test_settings_say_what_is_allowed(settings: Settings) -> None:
    assert not settings.webhooks.allow_private and not settings.webhooks.allow_http
    assert timedelta(days=settings.webhooks.give_up_days) == timedelta(days=5)
