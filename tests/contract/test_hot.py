"""Hot memory against a real Valkey: what each part promises, and what happens when Redis is away."""

from __future__ import annotations

import random
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import prometheus_client
import pytest
from free_ports import free_port
from hot_reads import cached_context, newest_turns, noted_expression
from redis import Redis
from redis.connection import Connection as RedisConnection

from memory_app.broker.dropped import Counting
from memory_app.broker.message import DropReason
from memory_app.errors import BadModelOutput, CircuitOpen, ProviderUnavailable, Transient
from memory_app.hot import (
    Hot,
    HotUnavailable,
    accepted,
    answer_drops,
    breaker,
    cache,
    connect,
    expression,
    hints,
    life,
    limits,
    narrative,
    recall_counts,
    shown_windows,
    stream,
)
from memory_app.hot.accepted import Accepted
from memory_app.hot.cache import CachedContext
from memory_app.hot.client import PAUSE_SECONDS, Outage
from memory_app.hot.erase import erase
from memory_app.hot.expression import Interaction
from memory_app.hot.keys import BREAKER, CONTEXT, HINT, KEYS, LIFE, LIMIT, STREAM, STREAM_EPOCH
from memory_app.hot.metrics import Pusher
from memory_app.hot.narrative import StoredNarrative, Wish
from memory_app.hot.shown_windows import ShownWindow
from memory_app.hot.stream import Entry
from memory_app.redis_url import read

NOON = datetime(2024, 5, 7, 12, 0, tzinfo=UTC)


def entries(n: int, *, session: int = 1, start: int = 1) -> list[Entry]:
    return [Entry(uuid4(), session, seq) for seq in range(start, start + n)]


def begin(hot: Hot, scope: int, some: list[Entry]) -> None:
    """A stream as after the first read of a scope whose table holds ``some``."""
    assert stream.rebuild(hot, scope, some, token=newest_turns(hot, scope).token)


# --- stream ---


def test_the_stream_gives_the_newest_turns_oldest_first(hot: Hot) -> None:
    some = entries(30)
    begin(hot, 7, some[:5])
    for entry in some[5:]:
        stream.append(hot, 7, [entry])
    found = newest_turns(hot, 7)
    assert found.entries == tuple(some[-20:])
    assert found.is_whole


def test_the_stream_keeps_fifty_turns(hot: Hot) -> None:
    some = entries(80)
    begin(hot, 7, some[:10])
    stream.append(hot, 7, some[10:])
    assert newest_turns(hot, 7, n=100).entries == tuple(some[-50:])
    assert newest_turns(hot, 7, n=50).is_whole
    assert not newest_turns(hot, 7, n=51).is_whole


def test_a_batch_longer_than_the_stream_leaves_its_end(hot: Hot) -> None:
    begin(hot, 7, entries(1))
    some = entries(120, session=2)
    stream.append(hot, 7, some)
    assert newest_turns(hot, 7, n=50).entries == tuple(some[-50:])


def test_a_session_can_be_asked_for_alone(hot: Hot) -> None:
    mine, other = entries(3, session=1), entries(60, session=2)
    begin(hot, 7, [])
    begin(hot, 7, mine)
    found = newest_turns(hot, 7, session_id=1)
    assert (found.entries, found.is_whole) == (tuple(mine), True)
    stream.append(hot, 7, other)
    assert newest_turns(hot, 7, session_id=2).entries == tuple(other[-20:])
    assert not newest_turns(hot, 7, session_id=1).is_whole


def test_scopes_have_streams_of_their_own(hot: Hot) -> None:
    begin(hot, 1, entries(3))
    assert newest_turns(hot, 11).entries == ()


def test_a_turn_never_begins_a_stream_that_would_pass_for_the_whole(hot: Hot) -> None:
    stream.append(hot, 7, entries(1, start=57))
    found = newest_turns(hot, 7)
    assert (found.entries, found.is_whole) == ((), False)


def test_a_rebuild_read_before_a_turn_does_not_displace_it(hot: Hot) -> None:
    token = newest_turns(hot, 7).token
    stream.append(hot, 7, entries(1))
    assert not stream.rebuild(hot, 7, [], token=token)
    assert not newest_turns(hot, 7).is_whole


def test_a_rebuild_read_before_a_flush_is_refused(hot: Hot, raw: Redis) -> None:
    token = newest_turns(hot, 7).token
    raw.delete(hot.scope_key(STREAM_EPOCH, 7))
    assert not stream.rebuild(hot, 7, entries(3), token=token)


def test_a_lost_addition_shows_as_a_gap(hot: Hot) -> None:
    some = entries(5)
    begin(hot, 7, some[:3])
    stream.append(hot, 7, some[4:])
    assert not newest_turns(hot, 7).is_whole


def test_additions_in_the_wrong_order_and_twice_are_read_right(hot: Hot) -> None:
    some = entries(4)
    begin(hot, 7, some[:1])
    for entry in (some[2], some[1], some[3], some[2]):
        stream.append(hot, 7, [entry])
    found = newest_turns(hot, 7)
    assert (found.entries, found.is_whole) == (tuple(some), True)


def test_what_others_wrote_into_the_stream_is_left_out(hot: Hot, raw: Redis) -> None:
    some = entries(2)
    begin(hot, 7, some)
    for line in (b"\xff\xfe", b"not an entry", b"1 2 3", f"{uuid4()} x 3".encode(), b"9" * 10_000):
        raw.lpush(hot.scope_key(STREAM, 7), line)
    found = newest_turns(hot, 7)
    assert (found.entries, found.is_whole) == (tuple(some), False)


def test_clearing_drops_the_stream(hot: Hot) -> None:
    begin(hot, 7, entries(3))
    token = newest_turns(hot, 7).token
    stream.clear(hot, 7)
    assert newest_turns(hot, 7).entries == ()
    assert not stream.rebuild(hot, 7, entries(3), token=token)


def test_the_stream_lives_seven_days_after_the_last_turn(hot: Hot, raw: Redis) -> None:
    begin(hot, 7, entries(1))
    raw.pexpire(hot.scope_key(STREAM, 7), 1_000)
    stream.append(hot, 7, entries(1, start=2))
    assert raw.ttl(hot.scope_key(STREAM, 7)) > 6 * 86_400


def test_additions_from_many_threads_are_all_there(hot: Hot) -> None:
    first, *rest = entries(41)
    begin(hot, 7, [first])
    random.Random(3).shuffle(rest)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda entry: stream.append(hot, 7, [entry]), rest))
    found = newest_turns(hot, 7, n=50)
    assert [entry.seq for entry in found.entries] == list(range(1, 42))
    assert found.is_whole


# --- context cache ---

USER_SCOPE, AGENT_SCOPE = 7, 3
SCOPES = (USER_SCOPE, AGENT_SCOPE)


def some_context() -> CachedContext:
    return CachedContext(cache.asked_about("where?", "s1"), {"relationship": (uuid4(), uuid4()), "core": ()})


def test_a_context_is_served_until_it_expires(hot: Hot, raw: Redis) -> None:
    made = some_context()
    cache.put(hot, SCOPES, made, token=cached_context(hot, SCOPES).token)
    assert cached_context(hot, SCOPES).context == made
    assert 290 < raw.ttl(hot.scope_key(CONTEXT, USER_SCOPE)) <= 300
    raw.pexpire(hot.scope_key(CONTEXT, USER_SCOPE), 0)
    assert cached_context(hot, SCOPES).context is None


@pytest.mark.parametrize("changed", SCOPES, ids=["of the user", "of the agent"])
def test_a_changed_memory_drops_the_context(hot: Hot, changed: int) -> None:
    cache.put(hot, SCOPES, some_context(), token=cached_context(hot, SCOPES).token)
    cache.drop(hot, changed)
    assert cached_context(hot, SCOPES).context is None


@pytest.mark.parametrize("changed", SCOPES, ids=["of the user", "of the agent"])
def test_a_context_of_before_a_change_that_is_put_after_it_is_not_served(hot: Hot, changed: int) -> None:
    token = cached_context(hot, SCOPES).token
    cache.drop(hot, changed)
    cache.put(hot, SCOPES, some_context(), token=token)
    assert cached_context(hot, SCOPES).context is None


def test_a_context_from_before_a_flush_is_not_served(hot: Hot, raw: Redis) -> None:
    token = cached_context(hot, SCOPES).token
    raw.delete(*raw.keys(f"{hot.prefix}*"))
    cache.put(hot, SCOPES, some_context(), token=token)
    assert cached_context(hot, SCOPES).context is None


def test_other_scopes_keep_their_contexts(hot: Hot) -> None:
    made = some_context()
    cache.put(hot, (8, AGENT_SCOPE), made, token=cached_context(hot, (8, AGENT_SCOPE)).token)
    cache.drop(hot, USER_SCOPE)
    assert cached_context(hot, (8, AGENT_SCOPE)).context == made


@pytest.mark.parametrize("value", [b"", b"\xff", b"{}", b"[1]", b"[" * 100_000, b'{"token": 1}', b"null"])
def test_what_others_wrote_into_the_cache_is_a_miss(hot: Hot, raw: Redis, value: bytes) -> None:
    raw.set(hot.scope_key(CONTEXT, USER_SCOPE), value, px=60_000)
    assert cached_context(hot, SCOPES).context is None


def test_what_was_asked_is_kept_as_a_digest(hot: Hot, raw: Redis) -> None:
    assert cache.asked_about("a", "b") != cache.asked_about("ab") != cache.asked_about("b", "a")
    made = CachedContext(cache.asked_about("canary"), {})
    cache.put(hot, SCOPES, made, token=cached_context(hot, SCOPES).token)
    assert b"canary" not in raw.get(hot.scope_key(CONTEXT, USER_SCOPE))


# --- hints ---


def test_a_burst_sends_one_message(hot: Hot) -> None:
    with ThreadPoolExecutor(8) as pool:
        claimed = list(pool.map(lambda _: hints.claim(hot, "memory.index_turns", life_ms=5_000), range(50)))
    assert claimed.count(True) == 1


def test_after_the_worker_began_the_next_turn_sends_a_message(hot: Hot) -> None:
    assert hints.claim(hot, "memory.index_turns", life_ms=5_000)
    hints.clear(hot, "memory.index_turns")
    assert hints.claim(hot, "memory.index_turns", life_ms=5_000)


def test_a_lost_message_holds_its_followers_back_for_its_life_only(hot: Hot, raw: Redis) -> None:
    assert hints.claim(hot, "memory.index_turns", life_ms=5_000)
    key = hot.named_key(HINT, "memory.index_turns")
    assert 0 < raw.pttl(key) <= 5_000
    raw.pexpire(key, 0)
    assert hints.claim(hot, "memory.index_turns", life_ms=5_000)


def test_no_life_is_longer_than_the_table_says(hot: Hot, raw: Redis) -> None:
    hints.claim(hot, "long", life_ms=10**12)
    assert raw.ttl(hot.named_key(HINT, "long")) <= HINT.life.total_seconds()


def test_hints_of_different_names_do_not_hold_each_other_back(hot: Hot) -> None:
    assert hints.claim(hot, "memory.extract_session:1", life_ms=5_000)
    assert hints.claim(hot, "memory.extract_session:2", life_ms=5_000)


def test_no_turn_is_overlooked_by_claim_send_clear_look(hot: Hot) -> None:
    """Senders and workers at once, a set for the table: when all is quiet, every turn has been seen."""
    committed: set[int] = set()
    seen: set[int] = set()

    def work() -> None:
        hints.clear(hot, "look")
        seen.update(set(committed))

    def send(number: int) -> None:
        committed.add(number)
        if hints.claim(hot, "look", life_ms=60_000):
            workers.submit(work)

    with ThreadPoolExecutor(2) as workers, ThreadPoolExecutor(6) as senders:
        list(senders.map(send, range(400)))
    assert seen == committed


# --- accepted turns ---


def note_accepted(hot: Hot, some: list[Entry]) -> bool:
    interaction = Interaction(session_id=1, at=NOON, tone="warm", session_started_at=NOON)
    return accepted.note(hot, Accepted(7, some, interaction), hint="memory.index_turns", hint_life_ms=5_000)


def test_an_accepted_turn_is_streamed_noted_and_hinted_at_once(hot: Hot) -> None:
    first, second = entries(2)
    begin(hot, 7, [first])
    assert note_accepted(hot, [second])
    assert newest_turns(hot, 7).entries == (first, second)
    assert noted_expression(hot, 7) == expression.Expression(NOON, "warm", 1, NOON)
    assert not hints.claim(hot, "memory.index_turns", life_ms=5_000)
    assert not note_accepted(hot, entries(1, start=3)), "the message is under way"


def test_a_turn_is_noted_whole_after_redis_lost_its_scripts(hot: Hot) -> None:
    hot.redis.script_flush()
    assert note_accepted(hot, entries(1))
    assert noted_expression(hot, 7) == expression.Expression(NOON, "warm", 1, NOON)
    hot.redis.script_flush()
    assert not note_accepted(hot, entries(1, start=2))


def test_accepted_turns_take_one_round_trip(hot: Hot, monkeypatch: pytest.MonkeyPatch) -> None:
    note_accepted(hot, entries(1))
    sent: list[int] = []
    send = RedisConnection.send_packed_command

    def count(connection: RedisConnection, command: Any, check_health: bool = True) -> None:
        sent.append(1)
        send(connection, command, check_health)

    monkeypatch.setattr(RedisConnection, "send_packed_command", count)
    note_accepted(hot, entries(1, start=2))
    assert len(sent) == 1


# --- expression ---


def test_the_last_interaction_is_remembered(hot: Hot) -> None:
    expression.note(hot, 7, Interaction(session_id=1, at=NOON, tone="warm", session_started_at=NOON))
    later = NOON + timedelta(minutes=3)
    expression.note(hot, 7, Interaction(session_id=1, at=later))
    assert noted_expression(hot, 7) == expression.Expression(later, "warm", 1, NOON)


def test_nothing_is_known_at_first(hot: Hot) -> None:
    assert noted_expression(hot, 7) == expression.Expression()


def test_an_older_interaction_does_not_displace_a_later_one(hot: Hot) -> None:
    expression.note(hot, 7, Interaction(session_id=2, at=NOON, tone="calm"))
    expression.note(hot, 7, Interaction(session_id=1, at=NOON - timedelta(days=1), tone="sad"))
    assert noted_expression(hot, 7) == expression.Expression(NOON, "calm", 2, None)


def test_the_start_of_a_session_can_be_filled_in_later(hot: Hot) -> None:
    expression.note(hot, 7, Interaction(session_id=2, at=NOON))
    start = NOON - timedelta(hours=1)
    expression.note(hot, 7, Interaction(session_id=2, at=start, session_started_at=start))
    assert noted_expression(hot, 7) == expression.Expression(NOON, None, 2, start)


def test_another_session_has_another_start(hot: Hot) -> None:
    expression.note(hot, 7, Interaction(session_id=1, at=NOON, session_started_at=NOON))
    expression.note(hot, 7, Interaction(session_id=2, at=NOON + timedelta(hours=1)))
    assert noted_expression(hot, 7).session_started_at is None


def test_a_session_can_be_restarted(hot: Hot) -> None:
    expression.note(hot, 7, Interaction(session_id=1, at=NOON, tone="calm", session_started_at=NOON))
    later = NOON + timedelta(hours=1)
    expression.restart_session(hot, 7, session_id=1, at=later)
    assert noted_expression(hot, 7) == expression.Expression(NOON, "calm", 1, later)


@pytest.mark.parametrize(
    ("tone", "kept"),
    [
        ("warm", "warm"),
        ("half-joking", "half-joking"),
        ("спокойный", "спокойный"),
        ("my password is hunter2", None),
        ("", None),
        ("x" * 33, None),
    ],
)
def test_only_a_word_is_kept_as_a_tone(hot: Hot, tone: str, kept: str | None) -> None:
    expression.note(hot, 7, Interaction(session_id=1, at=NOON, tone=tone))
    assert noted_expression(hot, 7).tone == kept


def test_broken_values_are_unknown(hot: Hot, raw: Redis) -> None:
    expression.note(hot, 7, Interaction(session_id=1, at=NOON))
    (key,) = raw.keys(f"{hot.prefix}*")
    raw.hset(key, mapping={"last_interaction_at": "9" * 30, "session_id": "x", "tone": b"\xff"})
    found = noted_expression(hot, 7)
    assert (found.last_interaction_at, found.session_id) == (None, None)
    expression.note(hot, 7, Interaction(session_id=1, at=NOON))


# --- limits ---


def test_a_bucket_gives_its_size_and_then_says_when(hot: Hot) -> None:
    verdicts = [limits.take(hot, "key:1", rate_per_second=0.1, burst=5) for _ in range(6)]
    assert [verdict.allowed for verdict in verdicts] == [True] * 5 + [False]
    assert 9 < verdicts[-1].retry_after_seconds <= 10


def test_tokens_come_back_with_time(hot: Hot, raw: Redis) -> None:
    for _ in range(5):
        limits.take(hot, "key:1", rate_per_second=0.1, burst=5)
    key = hot.named_key(LIMIT, "key:1")
    raw.hset(key, "at", float(raw.hget(key, "at")) - 20)
    taken = [limits.take(hot, "key:1", rate_per_second=0.1, burst=5).allowed for _ in range(4)]
    assert taken == [True, True, False, False]


def test_a_clock_that_went_back_takes_nothing_away(hot: Hot, raw: Redis) -> None:
    limits.take(hot, "key:1", rate_per_second=0.1, burst=5)
    raw.hset(hot.named_key(LIMIT, "key:1"), "at", time.time() + 7_200)
    assert limits.take(hot, "key:1", rate_per_second=0.1, burst=5).allowed


def test_threads_share_a_bucket_exactly(hot: Hot) -> None:
    with ThreadPoolExecutor(8) as pool:
        verdicts = list(
            pool.map(lambda _: limits.take(hot, "key:1", rate_per_second=0.001, burst=20), range(60))
        )
    assert sum(verdict.allowed for verdict in verdicts) == 20


def test_of_several_buckets_either_each_gives_or_none(hot: Hot) -> None:
    small, large = (limits.Taking(f"key:{burst}", rate_per_second=0.001, burst=burst) for burst in (1, 3))
    assert limits.take_all(hot, [large, small]).allowed
    for _ in range(5):
        verdict = limits.take_all(hot, [large, small])
        assert (verdict.allowed, verdict.refused_by) == (False, 1)
        assert verdict.retry_after_seconds > 900
    # What the other bucket refused was not taken from this one.
    assert [limits.take_all(hot, [large]).allowed for _ in range(3)] == [True, True, False]


def test_buckets_of_different_names_are_apart(hot: Hot) -> None:
    assert limits.take(hot, "key:1", rate_per_second=0.1, burst=1).allowed
    assert limits.take(hot, "key:2", rate_per_second=0.1, burst=1).allowed
    assert not limits.take(hot, "key:1", rate_per_second=0.1, burst=1).allowed


def test_a_cost_above_the_size_passes_a_full_bucket(hot: Hot) -> None:
    assert limits.take(hot, "bytes:1", rate_per_second=1, burst=100, cost=1_000).allowed
    assert not limits.take(hot, "bytes:1", rate_per_second=1, burst=100, cost=1).allowed


def test_a_full_bucket_is_not_kept(hot: Hot, raw: Redis) -> None:
    limits.take(hot, "key:1", rate_per_second=10, burst=20)
    assert raw.pttl(hot.named_key(LIMIT, "key:1")) <= 1_100


# --- breaker ---


def fail(hot: Hot, times: int, *, name: str = "llm") -> None:
    for _ in range(times):
        with pytest.raises(ProviderUnavailable), breaker.guarded(hot, name):
            raise ProviderUnavailable("down")


def turn_forward(hot: Hot, raw: Redis, seconds: float, *, name: str = "llm") -> None:
    key = hot.named_key(BREAKER, name)
    for field in ("open_until", "probe_until"):
        if raw.hexists(key, field):
            raw.hset(key, field, int(raw.hget(key, field)) - int(seconds * 1000))


def is_open(hot: Hot, *, name: str = "llm") -> bool:
    try:
        with breaker.guarded(hot, name):
            return False
    except CircuitOpen:
        return True


def test_five_failures_in_a_row_open_the_circuit(hot: Hot) -> None:
    fail(hot, 5)
    with pytest.raises(CircuitOpen) as raised, breaker.guarded(hot, "llm"):
        pytest.fail("called while open")
    assert 59 < (raised.value.retry_after or 0) <= 60


def test_an_answer_between_failures_starts_the_count_again(hot: Hot) -> None:
    fail(hot, 4)
    assert not is_open(hot)
    fail(hot, 4)
    assert not is_open(hot)


def test_a_bad_answer_is_an_answer(hot: Hot) -> None:
    fail(hot, 4)
    with pytest.raises(BadModelOutput), breaker.guarded(hot, "llm"):
        raise BadModelOutput("not JSON")
    fail(hot, 4)
    assert not is_open(hot)


def test_after_a_minute_one_probe_goes_through_and_closes(hot: Hot, raw: Redis) -> None:
    fail(hot, 5)
    turn_forward(hot, raw, 61)
    with breaker.guarded(hot, "llm"):
        assert is_open(hot), "only one probe at a time"
    assert not is_open(hot)
    fail(hot, 4)
    assert not is_open(hot)


def test_while_a_probe_is_under_way_others_wait_for_a_moment_only(hot: Hot, raw: Redis) -> None:
    fail(hot, 5)
    turn_forward(hot, raw, 61)
    with breaker.guarded(hot, "llm"), pytest.raises(CircuitOpen) as raised, breaker.guarded(hot, "llm"):
        pytest.fail("called while a probe is under way")
    assert 0 < (raised.value.retry_after or 0) <= 2


def test_a_failed_probe_opens_for_another_minute(hot: Hot, raw: Redis) -> None:
    fail(hot, 5)
    turn_forward(hot, raw, 61)
    fail(hot, 1)
    assert is_open(hot)
    turn_forward(hot, raw, 61)
    assert not is_open(hot)


def test_a_probe_that_dies_is_replaced(hot: Hot, raw: Redis) -> None:
    fail(hot, 5)
    turn_forward(hot, raw, 61)
    probe = breaker.guarded(hot, "llm")
    probe.__enter__()
    assert is_open(hot)
    turn_forward(hot, raw, 61)
    assert not is_open(hot)


def test_one_probe_among_many_threads(hot: Hot, raw: Redis) -> None:
    fail(hot, 5)
    turn_forward(hot, raw, 61)
    together = Barrier(8)

    def probe(_: int) -> bool:
        together.wait(timeout=30)
        try:
            with breaker.guarded(hot, "llm"):
                together.wait(timeout=30)
                return True
        except CircuitOpen:
            together.wait(timeout=30)
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(probe, range(8))) == 1


def test_a_late_failure_does_not_lengthen_the_rest(hot: Hot, raw: Redis) -> None:
    fail(hot, 5)
    turn_forward(hot, raw, 30)
    before = raw.hget(hot.named_key(BREAKER, "llm"), "open_until")
    breaker.failed(hot, "llm")
    assert raw.hget(hot.named_key(BREAKER, "llm"), "open_until") == before


def test_providers_have_circuits_of_their_own(hot: Hot) -> None:
    fail(hot, 5)
    assert not is_open(hot, name="embedder")


# --- without Redis ---


@pytest.fixture
def dead() -> Iterator[Hot]:
    """Hot memory at a port where nobody listens."""
    hot = connect(read(f"redis://127.0.0.1:{free_port()}/0"), timeout_seconds=0.2)
    yield hot
    hot.close()


@pytest.fixture
def silent() -> Iterator[tuple[Hot, socket.socket]]:
    """Hot memory at a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        hot = connect(read(f"redis://127.0.0.1:{server.getsockname()[1]}/0"), timeout_seconds=0.2)
        yield hot, server
        hot.close()


def test_every_call_fails_with_one_error(dead: Hot) -> None:
    calls = [
        lambda: stream.append(dead, 7, entries(1)),
        lambda: note_accepted(dead, entries(1)),
        lambda: newest_turns(dead, 7),
        lambda: stream.rebuild(dead, 7, entries(1), token="x"),
        lambda: stream.clear(dead, 7),
        lambda: cached_context(dead, SCOPES),
        lambda: cache.put(dead, SCOPES, some_context(), token="x"),
        lambda: cache.drop(dead, 7),
        lambda: hints.claim(dead, "look", life_ms=1),
        lambda: hints.clear(dead, "look"),
        lambda: expression.note(dead, 7, Interaction(session_id=1, at=NOON)),
        lambda: noted_expression(dead, 7),
        lambda: expression.restart_session(dead, 7, session_id=1, at=NOON),
        lambda: erase(dead, [7]),
        dead.ping,
    ]
    for call in calls:
        dead.outage.answered()
        with pytest.raises(HotUnavailable):
            call()


def test_limits_and_breakers_let_everything_through(dead: Hot) -> None:
    assert limits.take(dead, "key:1", rate_per_second=1, burst=1, cost=9) == limits.Verdict(allowed=True)
    fail(dead, 9)
    assert not is_open(dead)


def test_a_silent_server_costs_one_time_out_per_pause(silent: tuple[Hot, socket.socket]) -> None:
    hot, _ = silent
    pool = hot.redis.connection_pool
    connect, attempts = pool.get_connection, []

    def count_and_connect(*arguments: Any, **options: Any) -> Any:
        attempts.append(time.monotonic())
        return connect(*arguments, **options)

    pool.get_connection = count_and_connect
    for _ in range(200):
        with pytest.raises(HotUnavailable):
            newest_turns(hot, 7)
    pauses = [later - earlier for earlier, later in pairwise(attempts)]
    assert all(pause >= PAUSE_SECONDS for pause in pauses), "one time-out per pause, not one for each call"


def test_nothing_is_tried_twice(silent: tuple[Hot, socket.socket]) -> None:
    hot, server = silent
    with pytest.raises(HotUnavailable):
        hot.ping()
    server.settimeout(0.2)
    server.accept()[0].close()
    with pytest.raises(TimeoutError):
        server.accept()


def test_during_a_pause_calls_fail_at_once_and_then_one_tries() -> None:
    now = 100.0
    outage = Outage(pause_seconds=3, clock=lambda: now)
    outage.admit()
    outage.failed()
    with pytest.raises(HotUnavailable) as raised:
        outage.admit()
    assert raised.value.retry_after == 3
    now = 103.0
    outage.admit()
    with pytest.raises(HotUnavailable):
        outage.admit()
    outage.answered()
    outage.admit()


def test_a_restarted_server_is_used_again_at_once(hot: Hot, raw: Redis) -> None:
    hot.ping()
    raw.client_kill_filter(_type="normal", skipme=True)
    hot.ping()


def test_a_refusal_is_not_an_outage(hot: Hot, raw: Redis) -> None:
    raw.set(hot.scope_key(STREAM, 7), "not a list", px=60_000)
    with pytest.raises(HotUnavailable):
        newest_turns(hot, 7)
    hot.ping()
    raw.delete(hot.scope_key(STREAM, 7))


def test_scripts_survive_a_server_that_forgot_them(hot: Hot, raw: Redis) -> None:
    limits.take(hot, "key:1", rate_per_second=0.1, burst=1)
    raw.script_flush()
    assert not limits.take(hot, "key:1", rate_per_second=0.1, burst=1).allowed


def test_the_error_is_transient_and_shows_no_address(dead: Hot) -> None:
    with pytest.raises(Transient) as raised:
        dead.ping()
    assert "127.0.0.1" not in str(raised.value)


def test_showing_the_connection_shows_no_password() -> None:
    assert "secret" not in repr(connect(read("redis://:secret@host")))


# --- signs of life ---


def test_a_sign_tells_how_old_it_is_and_what_is_in_hand(hot: Hot) -> None:
    life.note(hot, ["worker-ingest", "worker-model"], "host:1", tasks=3)

    signs = life.read(hot, ["worker-ingest", "worker-model", "beat"])

    (sign,) = signs["worker-ingest"]
    assert (sign.instance, sign.tasks, sign.is_silent) == ("host:1", 3, False)
    assert [len(signs[kind]) for kind in ("worker-model", "beat")] == [1, 0]


def test_a_process_that_says_nothing_for_half_a_minute_is_silent(hot: Hot, raw: Redis) -> None:
    life.note(hot, ["finder"], "host:1")
    life.note(hot, ["finder"], "host:2")
    grow_old(hot, raw, "host:1", seconds=31)

    (living, silent) = life.read(hot, ["finder"])["finder"]

    assert (living.instance, living.is_silent) == ("host:2", False)
    assert (silent.instance, silent.is_silent) == ("host:1", True)
    assert 31 <= silent.age_seconds < 60


def test_a_process_that_ends_in_order_takes_its_sign_away(hot: Hot) -> None:
    life.note(hot, ["finder"], "host:1")
    life.note(hot, ["finder"], "host:2")

    life.leave(hot, ["finder"], "host:1")

    assert [sign.instance for sign in life.read(hot, ["finder"])["finder"]] == ["host:2"]


def test_a_killed_process_is_forgotten_where_another_lives(hot: Hot, raw: Redis) -> None:
    life.note(hot, ["finder"], "host:1")
    grow_old(hot, raw, "host:1", seconds=601)
    assert len(life.read(hot, ["finder"])["finder"]) == 1, "the last of its kind is not forgotten"

    life.note(hot, ["finder"], "host:2")

    assert [sign.instance for sign in life.read(hot, ["finder"])["finder"]] == ["host:2"]


def grow_old(hot: Hot, raw: Redis, instance: str, *, seconds: int) -> None:
    """Let the sign of a finder be as old as this."""
    key = hot.named_key(LIFE, "finder")
    now, _ = raw.time()
    raw.hset(key, instance, f"{(now - seconds) * 1000} 0")


# --- all of it ---


def use_everything(hot: Hot, scope: int) -> None:
    begin(hot, scope, entries(3))
    stream.append(hot, scope, entries(1, start=4))
    cache.put(hot, (scope, 3), some_context(), token=cached_context(hot, (scope, 3)).token)
    expression.note(hot, scope, Interaction(session_id=1, at=NOON, tone="calm", session_started_at=NOON))
    hints.claim(hot, "memory.index_turns", life_ms=5_000)
    limits.take(hot, "key:1", rate_per_second=0.001, burst=1_000)
    recall_counts.note(hot, 1, [uuid4()])
    fail(hot, 2)
    life.note(hot, ["finder"], "host:1")
    Counting(hot.prefix, Counter({DropReason.MALFORMED: 1})).write(hot.redis)
    answer_drops.note(hot, {"no evidence": 1})
    narrative.wish(hot, scope, Wish(1, (uuid4(),)))
    narrative.put(
        hot, scope, StoredNarrative("Rex is well.", frozenset()), token=narrative.token(hot, (scope, 3))
    )
    pipeline = hot.redis.pipeline()
    shown_windows.put_to(pipeline, hot, ShownWindow(scope, "monday", NOON, (uuid4(),)))
    pipeline.execute()
    counted = prometheus_client.CollectorRegistry()
    pusher = Pusher(hot, counted)
    prometheus_client.Counter("accepted", "Turns.", registry=counted).inc()
    pusher.push()


def test_every_row_of_the_table_is_in_use(hot: Hot, raw: Redis) -> None:
    """With the check after each test: every key has an expiry and the type of the table."""
    use_everything(hot, 7)
    made = {key.decode() for key in raw.scan_iter(f"{hot.prefix}*")}
    for row in KEYS:
        assert any(name.endswith(f":{row.name}") or f"{row.name}:" in name for name in made), row.name


def test_forgetting_a_scope_leaves_none_of_its_keys(hot: Hot, raw: Redis) -> None:
    use_everything(hot, 7)
    use_everything(hot, 77)
    rebuild_token, context_token = newest_turns(hot, 7).token, cached_context(hot, (7, 3)).token
    assert erase(hot, [7]) == 8
    assert list(raw.scan_iter(f"{hot.prefix}scope:{{7}}*")) == []
    assert newest_turns(hot, 77).is_whole
    assert not stream.rebuild(hot, 7, entries(2), token=rebuild_token)
    cache.put(hot, (7, 3), some_context(), token=context_token)
    assert cached_context(hot, (7, 3)).context is None
    assert erase(hot, []) == 0


def test_two_prefixes_on_one_server_do_not_meet(hot: Hot, redis_url: str, raw: Redis) -> None:
    other = connect(read(redis_url), prefix=f"{hot.prefix}other:", timeout_seconds=5)
    use_everything(hot, 7)
    assert newest_turns(other, 7).entries == ()
    assert hints.claim(other, "memory.index_turns", life_ms=5_000)
    other.close()
    raw.delete(*raw.keys(f"{other.prefix}*"))


def test_a_flush_loses_nothing_that_cannot_be_rebuilt(hot: Hot, raw: Redis) -> None:
    table = entries(4)
    begin(hot, 7, table)
    expression.note(hot, 7, Interaction(session_id=1, at=NOON, tone="calm", session_started_at=NOON))
    before = (newest_turns(hot, 7).entries, noted_expression(hot, 7))
    raw.delete(*raw.keys(f"{hot.prefix}*"))
    begin(hot, 7, table)
    expression.note(hot, 7, Interaction(session_id=1, at=NOON, tone="calm", session_started_at=NOON))
    assert (newest_turns(hot, 7).entries, noted_expression(hot, 7)) == before


def test_ids_come_back_as_they_went_in(hot: Hot) -> None:
    ids = (UUID(int=0), UUID(int=2**128 - 1))
    made = CachedContext("x", {"core": ids})
    cache.put(hot, (7,), made, token=cached_context(hot, (7,)).token)
    assert cached_context(hot, (7,)).context == made


def test_nothing_that_a_person_said_reaches_redis(hot: Hot, raw: Redis) -> None:
    """Free text put into every place that takes a string leaves no trace in a key or a value."""
    said = "the canary sings at noon"
    cache.put(hot, (7,), CachedContext(cache.asked_about(said), {}), token=cached_context(hot, (7,)).token)
    expression.note(hot, 7, Interaction(session_id=1, at=NOON, tone=said))
    hints.claim(hot, said, life_ms=5_000)
    limits.take(hot, said, rate_per_second=0.001, burst=100)
    fail(hot, 1, name=said)
    names = list(raw.scan_iter(f"{hot.prefix}*"))
    assert len(names) >= 5
    assert b"canary" not in b" ".join(names)
    assert not any(b"canary" in content(raw, name) for name in names)


def content(raw: Redis, name: bytes) -> bytes:
    if raw.type(name) == b"hash":
        return b" ".join(part for pair in raw.hgetall(name).items() for part in pair)
    return b" ".join(raw.lrange(name, 0, -1)) if raw.type(name) == b"list" else raw.get(name)


# --- what was dropped of a model's answers ---


def test_dropped_items_are_counted_by_reason(hot: Hot, raw: Redis) -> None:
    assert answer_drops.read(hot) == {}
    answer_drops.note(hot, {"no evidence": 2, "unreadable facts": 1})
    answer_drops.note(hot, {"no evidence": 1})
    assert answer_drops.read(hot) == {"no evidence": 3, "unreadable facts": 1}
    (key,) = raw.scan_iter(f"{hot.prefix}*")
    assert 0 < raw.ttl(key) <= 24 * 3600
