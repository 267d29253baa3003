"""One suite over every language model: good answers come back in shape, bad ones as named errors, never as nothing.

A real server joins when MEMORY_TEST_CHAT_URL and MEMORY_TEST_CHAT_MODEL (and _KEY where needed) are set.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import urlsplit

import pytest
from pydantic import BaseModel, SecretStr

from memory_app.errors import (
    BadModelOutput,
    CircuitOpen,
    MemoryAppError,
    Misconfigured,
    ProviderUnavailable,
    RateLimited,
)
from memory_app.hot import Hot, breaker, limits
from memory_app.providers.chat import (
    Answer,
    Cap,
    Chat,
    Form,
    LanguageModel,
    Message,
    Price,
    Usage,
    dollars,
    wait_for_cap,
)
from memory_app.providers.provider import Gate, Rates, Timeouts, Wire, connect
from memory_app.testing import Mode, Rule, ScriptedModel, StubProcess, StubProvider

QUICK = Timeouts(connect=30, read=0.5, total=1)
"""For a provider that never answers. One that does may take its time, on a busy machine."""

PATIENT = Timeouts(connect=120, read=120, total=120)


class City(BaseModel):
    name: str
    country: str


class Cities(BaseModel):
    cities: list[City]


class Trip(BaseModel):
    cities: list[City]
    notes: list[str]


GOOD = {"cities": [{"name": "Lisbon", "country": "Portugal"}, {"name": "Porto", "country": "Portugal"}]}
ASKED = [
    Message("system", "You list cities as JSON. Each city has a name and a country."),
    Message("user", "Name two cities of Portugal."),
]


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider(Rule(answer=GOOD)) as stub:
        yield stub


def chat_with(stub: StubProvider, **settings: object) -> Chat:
    given = {"timeouts": PATIENT, "provider": "the language model"}
    given |= {name: settings.pop(name) for name in ("timeouts", "response_limit_bytes") if name in settings}
    return opened(connect(stub.base_url, SecretStr("sk-secret"), **given), **settings)  # type: ignore[arg-type]


OPENED: list[Chat] = []


def opened(connection: Wire, model: str = "stub-small", **settings: object) -> Chat:
    """Closed after the test."""
    OPENED.append(Chat(connection, model, **settings))  # type: ignore[arg-type]
    return OPENED[-1]


@pytest.fixture(autouse=True)
def closed_afterwards() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def chat(stub: StubProvider) -> Chat:
    return chat_with(stub)


def bad(mode: Mode, *, times: int = 1, **more: object) -> tuple[Rule, Rule]:
    """``times`` answers of that mode, then good ones."""
    return Rule(mode, times=times, answer=GOOD, **more), Rule(answer=GOOD)  # type: ignore[arg-type]


# --- every model ---

REAL = "MEMORY_TEST_CHAT_URL"


@pytest.fixture(params=["stub", "scripted", *(["real"] if REAL in os.environ else [])])
def any_model(request: pytest.FixtureRequest) -> LanguageModel:
    if request.param == "scripted":
        return ScriptedModel(GOOD, GOOD)
    if request.param == "stub":
        return request.getfixturevalue("chat")
    key = os.environ.get("MEMORY_TEST_CHAT_KEY")
    connection = connect(os.environ[REAL], SecretStr(key) if key else None)
    return opened(connection, os.environ["MEMORY_TEST_CHAT_MODEL"])


def test_an_answer_has_the_shape_asked_for_and_says_what_it_cost(any_model: LanguageModel) -> None:
    usages: list[Usage] = []
    answer = any_model.complete(ASKED, Cities, on_usage=usages.append)
    assert [type(city) for city in answer.value.cities] == [City, City]
    assert answer.calls == len(usages) == 1
    assert answer.tokens_in == usages[0].tokens_in > 0
    assert answer.tokens_out == usages[0].tokens_out > 0
    assert answer.text


# --- what is sent ---


def test_the_schema_is_sent_where_the_server_takes_one(stub: StubProvider, chat: Chat) -> None:
    chat.complete(ASKED, Cities)
    (seen,) = stub.requests
    assert seen.body["model"] == "stub-small"
    sent = seen.body["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert sent["name"] == "cities"
    assert sent["schema"]["additionalProperties"] is False
    assert sent["schema"]["$defs"]["City"]["required"] == ["name", "country"]


@pytest.mark.parametrize(
    ("mode", "form", "calls"), [(Mode.NO_SCHEMA, Form.OBJECT, 2), (Mode.NO_FORMAT, Form.TEXT, 3)]
)
def test_a_simpler_form_is_found_once_and_remembered(
    stub: StubProvider, chat: Chat, mode: Mode, form: Form, calls: int
) -> None:
    stub.follow(Rule(mode, answer=GOOD))
    assert chat.complete(ASKED, Cities).value == Cities(**GOOD)
    assert (chat.dialect.form, stub.stats.calls.total()) == (form, calls)
    chat.complete(ASKED, Cities)
    assert stub.stats.calls.total() == calls + 1
    assert '"required": ["cities"]' in stub.requests[-1].body["messages"][-1]["content"]


def test_parameters_a_model_does_not_take_are_left_out(stub: StubProvider, chat: Chat) -> None:
    stub.follow(Rule(Mode.NO_TEMPERATURE, answer=GOOD))
    assert chat.complete(ASKED, Cities).value.cities
    last = stub.requests[-1].body
    assert "temperature" not in last
    assert "max_tokens" not in last
    assert last["max_completion_tokens"] == 4_000
    assert chat.dialect.form is Form.SCHEMA


# --- servers, each in its way of speaking ---


@pytest.mark.parametrize(
    ("mode", "form", "calls"),
    [
        (Mode.OPENAI_REASONING, Form.SCHEMA, 3),
        (Mode.AZURE, Form.OBJECT, 2),
        (Mode.LLAMA_CPP, Form.OBJECT, 2),
        (Mode.VLLM, Form.OBJECT, 2),
        (Mode.LM_STUDIO, Form.TEXT, 3),
        (Mode.OPENROUTER, Form.OBJECT, 2),
        (Mode.OLLAMA, Form.SCHEMA, 1),
        (Mode.MAGISTRAL, Form.SCHEMA, 1),
        (Mode.GEMMA, Form.SCHEMA, 1),
        (Mode.ANSWER_IN_THOUGHT, Form.SCHEMA, 1),
        (Mode.TOOL_CALL_TEXT, Form.SCHEMA, 1),
        (Mode.TOOL_CALL_OBJECT, Form.SCHEMA, 1),
        (Mode.FUNCTION_CALL, Form.SCHEMA, 1),
    ],
)
def test_each_server_is_understood_and_its_way_remembered(
    stub: StubProvider, chat: Chat, mode: Mode, form: Form, calls: int
) -> None:
    stub.follow(Rule(mode, answer=GOOD))
    usages: list[Usage] = []
    answer = chat.complete(ASKED, Cities, on_usage=usages.append)
    assert (answer.value, answer.calls, len(usages)) == (Cities(**GOOD), 1, 1)
    assert (chat.dialect.form, stub.stats.calls.total()) == (form, calls)
    # What a server refuses costs no tokens, and is asked for once.
    assert chat.complete(ASKED, Cities).value == Cities(**GOOD)
    assert stub.stats.calls.total() == calls + 1


def test_newer_models_are_given_their_limit_under_its_newer_name(stub: StubProvider, chat: Chat) -> None:
    stub.follow(Rule(Mode.OPENAI_REASONING, answer=GOOD))
    chat.complete(ASKED, Cities)
    last = stub.requests[-1].body
    assert last["max_completion_tokens"] == 4_000
    assert not {"max_tokens", "temperature"} & last.keys()


@pytest.mark.parametrize("mode", [Mode.STREAM_ONLY, Mode.STREAM_REQUIRED])
def test_a_server_that_only_streams_is_named(stub: StubProvider, chat: Chat, mode: Mode) -> None:
    stub.follow(Rule(mode, answer=GOOD))
    # The work waits: who runs it may choose another server.
    with pytest.raises(ProviderUnavailable, match="only answers as a stream"):
        chat.complete(ASKED, Cities)
    assert stub.stats.calls.total() == 1


def test_a_question_that_a_filter_refuses_is_no_matter_of_form(stub: StubProvider, chat: Chat) -> None:
    stub.follow(Rule(Mode.AZURE_FILTER, answer=GOOD))
    with pytest.raises(BadModelOutput, match="filter of the language model refused"):
        chat.complete(ASKED, Cities)
    assert stub.stats.calls.total() == 1
    assert chat.dialect.form is Form.SCHEMA


def test_an_error_in_the_body_of_an_answer_is_that_error(stub: StubProvider, chat: Chat) -> None:
    stub.follow(Rule(Mode.ERROR_IN_BODY))
    with pytest.raises(RateLimited) as raised:
        chat.complete(ASKED, Cities)
    assert "sk-echoed" not in str(raised.value)


def test_a_server_that_counts_nothing_is_estimated(stub: StubProvider, chat: Chat) -> None:
    exact = chat.complete(ASKED, Cities)
    stub.follow(Rule(Mode.NO_USAGE, answer=GOOD))
    estimated = chat.complete(ASKED, Cities)
    assert estimated.tokens_in == pytest.approx(exact.tokens_in, rel=0.5)
    assert estimated.tokens_out == pytest.approx(exact.tokens_out, rel=0.2)


def test_a_failure_that_speaks_of_nothing_is_still_a_failure(stub: StubProvider, chat: Chat) -> None:
    stub.follow(Rule(Mode.SERVER_ERROR))
    with pytest.raises(ProviderUnavailable):
        chat.complete(ASKED, Cities)
    assert chat.dialect.form is Form.SCHEMA


# --- answers in another form ---

TOLERATED = [
    Mode.FENCE,
    Mode.PREAMBLE,
    Mode.THINKING,
    Mode.BARE_LIST,
    Mode.RENAMED_KEYS,
    Mode.UNCLOSED,
    Mode.DUPLICATE_TOOL_CALLS,
]


@pytest.mark.parametrize("mode", TOLERATED)
def test_an_odd_form_is_read_without_asking_again(stub: StubProvider, chat: Chat, mode: Mode) -> None:
    stub.follow(Rule(mode, answer=GOOD))
    answer = chat.complete(ASKED, Cities)
    assert (answer.value, answer.calls) == (Cities(**GOOD), 1)


REPAIRED = [
    Mode.NOT_JSON,
    Mode.WRONG_SCHEMA,
    Mode.ECHOED_SCHEMA,
    Mode.CUT_JSON,
    Mode.EMPTY,
    Mode.REFUSAL_TEXT,
    Mode.LENGTH,
    Mode.DIFFERENT_TOOL_CALLS,
]


@pytest.mark.parametrize("mode", REPAIRED)
def test_an_unreadable_answer_is_asked_for_once_more(stub: StubProvider, chat: Chat, mode: Mode) -> None:
    stub.follow(*bad(mode))
    usages: list[Usage] = []
    answer = chat.complete(ASKED, Cities, on_usage=usages.append)
    assert (answer.value, answer.calls, len(usages)) == (Cities(**GOOD), 2, 2)
    assert answer.tokens_in == sum(usage.tokens_in for usage in usages)
    said = stub.requests[-1].body["messages"]
    assert [message["role"] for message in said] == ["system", "user", "assistant", "user"]
    assert "could not be used" in said[-1]["content"]


@pytest.mark.parametrize("mode", REPAIRED)
def test_what_stays_unreadable_is_an_error_with_its_reason_and_its_cost(
    stub: StubProvider, chat: Chat, mode: Mode
) -> None:
    stub.follow(Rule(mode, answer=GOOD))
    usages: list[Usage] = []
    with pytest.raises(BadModelOutput, match="after one repair") as raised:
        chat.complete(ASKED, Cities, on_usage=usages.append)
    assert len(usages) == 2
    assert "Lisbon" not in str(raised.value), "an answer repeats what people said"


def test_a_refusal_is_not_asked_again(stub: StubProvider, chat: Chat) -> None:
    stub.follow(Rule(Mode.REFUSAL))
    with pytest.raises(BadModelOutput, match="refused"):
        chat.complete(ASKED, Cities)
    assert stub.stats.calls.total() == 1


@pytest.mark.parametrize("answer", [{}, [], "null", '""', {"cities": None}, {"notes": []}])
def test_an_answer_without_its_parts_is_never_a_success(
    stub: StubProvider, chat: Chat, answer: object
) -> None:
    stub.follow(Rule(answer=answer))
    with pytest.raises(BadModelOutput):
        chat.complete(ASKED, Trip)


def test_an_empty_list_is_an_answer_where_it_was_asked_for(stub: StubProvider, chat: Chat) -> None:
    stub.follow(Rule(answer={"cities": []}))
    assert chat.complete(ASKED, Cities).value.cities == []


def test_a_bare_list_finds_its_place_among_several(stub: StubProvider, chat: Chat) -> None:
    stub.follow(Rule(answer=GOOD["cities"]))
    assert chat.complete(ASKED, Trip).value == Trip(cities=GOOD["cities"], notes=[])


@pytest.mark.parametrize(
    "answer",
    ["[" * 100_000, '{"cities": [' * 5_000, "{" * 1_000_000, '{"cities": [NaN]}', '"' * 300_000, "\ud83d{"],
    ids=["deep list", "deep objects", "braces", "NaN", "quotes", "half an emoji"],
)
def test_hostile_text_is_refused(stub: StubProvider, answer: str) -> None:
    stub.follow(Rule(answer=answer))
    chat = chat_with(stub, timeouts=Timeouts(read=60, total=60))
    with pytest.raises(BadModelOutput):
        chat.complete(ASKED, Cities)


# --- the provider fails ---


@pytest.mark.parametrize(
    ("rule", "error", "wait"),
    [
        (Rule(Mode.RATE_LIMITED, retry_after="7"), RateLimited, 7),
        (Rule(Mode.RATE_LIMITED, retry_after="nan"), RateLimited, None),
        (Rule(Mode.RATE_LIMITED, retry_after="999999"), RateLimited, 3600),
        (Rule(Mode.RATE_LIMITED, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), RateLimited, 0),
        (Rule(Mode.RATE_LIMITED), RateLimited, None),
        (Rule(Mode.SERVER_ERROR, retry_after="3"), ProviderUnavailable, 3),
        (Rule(Mode.UNAUTHORIZED), ProviderUnavailable, None),
        (Rule(Mode.NOT_FOUND), ProviderUnavailable, None),
        (Rule(Mode.REDIRECT), ProviderUnavailable, None),
        (Rule(Mode.BROKEN_BODY), ProviderUnavailable, None),
        (Rule(Mode.CUT, answer=GOOD), ProviderUnavailable, None),
        (Rule(Mode.HANG), ProviderUnavailable, None),
        (Rule(Mode.DRIP, seconds=0.1, answer=GOOD), ProviderUnavailable, None),
        (Rule(Mode.BAD_REQUEST), BadModelOutput, None),
    ],
    ids=lambda value: value.mode if isinstance(value, Rule) else None,
)
def test_a_failure_is_named_and_tried_only_once(
    stub: StubProvider, rule: Rule, error: type[MemoryAppError], wait: float | None
) -> None:
    stub.follow(rule)
    chat = chat_with(stub, timeouts=QUICK if rule.mode in (Mode.HANG, Mode.DRIP) else PATIENT)
    with pytest.raises(error) as raised:
        chat.complete(ASKED, Cities)
    assert type(raised.value).kind == error.kind
    assert raised.value.retry_after == wait
    assert stub.stats.calls.total() == 1
    assert "sk-" not in f"{raised.value} {raised.value.__cause__}", "bodies are not repeated"


def test_an_answer_without_end_is_cut_off_early(stub: StubProvider) -> None:
    stub.follow(Rule(Mode.HUGE))
    chat = chat_with(stub, timeouts=Timeouts(), response_limit_bytes=100_000)
    with pytest.raises(BadModelOutput, match="more than 100000 bytes"):
        chat.complete(ASKED, Cities)


def test_nobody_listening_is_named() -> None:
    with StubProvider() as gone:
        address = gone.base_url
    with pytest.raises(ProviderUnavailable):
        opened(connect(address, timeouts=QUICK)).complete(ASKED, Cities)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "ftp://host/v1",
        "http://",
        "http://user:pw@host/v1",
        "http://host/v1?key=1",
        "http://169.254.169.254/v1",
        "http://[fe80::1]/v1",
        "http://[::ffff:169.254.169.254]/v1",
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(url: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        connect(url)
    assert "pw" not in str(raised.value)


def test_the_key_is_sent_and_shown_nowhere(
    stub: StubProvider, chat: Chat, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-from-elsewhere")
    caplog.set_level(logging.DEBUG)
    asked = [*ASKED, Message("user", "the canary sings at noon")]
    other = chat_with(stub)
    other.complete(asked, Cities)
    assert stub.requests[-1].headers["authorization"] == "Bearer sk-secret"
    assert "openai-organization" not in stub.requests[-1].headers
    assert "sk-secret" not in repr(other) + repr(other._connection) + caplog.text
    assert "canary" not in caplog.text


def test_without_a_key_none_is_taken_from_the_environment(
    stub: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-somebody-else")
    opened(connect(stub.base_url)).complete(ASKED, Cities)
    assert "sk-for" not in str(stub.requests[-1].headers)


# --- many at once ---


def test_calls_of_many_threads_overlap(stub: StubProvider) -> None:
    stub.follow(Rule(answer=GOOD, until_in_flight=32))
    chat = chat_with(stub)
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda _: chat.complete(ASKED, Cities), range(32)))
    assert stub.stats.in_flight_most == 32


NO_LIMIT = Rates()


def gate(hot: Hot, *, rates: Rates = NO_LIMIT, slept: list[float] | None = None) -> Gate:
    def take(name: str, **given: float) -> limits.Verdict:
        return limits.take(hot, name, **given)

    waits = [] if slept is None else slept
    return Gate(
        "llm", take=take, guarded=lambda: breaker.guarded(hot, "llm"), rates=rates, sleep=waits.append
    )


def test_a_failing_provider_opens_the_circuit_for_every_worker(stub: StubProvider, hot: Hot) -> None:
    stub.follow(Rule(Mode.SERVER_ERROR))
    first, second = chat_with(stub, gate=gate(hot)), chat_with(stub, gate=gate(hot))
    for chat in (first, second, first, second, first):
        with pytest.raises(ProviderUnavailable):
            chat.complete(ASKED, Cities)
    with pytest.raises(CircuitOpen) as raised:
        second.complete(ASKED, Cities)
    assert stub.stats.calls.total() == 5
    assert raised.value.retry_after


def test_bad_answers_do_not_open_the_circuit(stub: StubProvider, hot: Hot) -> None:
    stub.follow(Rule(Mode.NOT_JSON))
    chat = chat_with(stub, gate=gate(hot))
    for _ in range(7):
        with pytest.raises(BadModelOutput):
            chat.complete(ASKED, Cities)


def test_a_limit_holds_over_all_workers(stub: StubProvider, hot: Hot) -> None:
    rates = Rates(requests_per_minute=0.6, burst_seconds=300, patience_seconds=0)
    chats = [chat_with(stub, gate=gate(hot, rates=rates)) for _ in range(2)]
    for number in range(3):
        chats[number % 2].complete(ASKED, Cities)
    with pytest.raises(RateLimited) as raised:
        chats[1].complete(ASKED, Cities)
    assert 0 < (raised.value.retry_after or 0) <= 100
    assert stub.stats.calls.total() == 3
    with breaker.guarded(hot, "llm"):
        pass


def test_a_short_wait_is_waited_for(stub: StubProvider, hot: Hot) -> None:
    slept: list[float] = []
    rates = Rates(requests_per_minute=1, burst_seconds=60, patience_seconds=300)
    chat = chat_with(stub, gate=gate(hot, rates=rates, slept=slept))
    chat.complete(ASKED, Cities)
    with pytest.raises(RateLimited):
        chat.complete(ASKED, Cities)  # the clock stands still here, so patience ends
    assert 180 < sum(slept) <= 300


def test_tokens_that_came_back_count_against_the_limit(stub: StubProvider, hot: Hot) -> None:
    stub.follow(Rule(answer={"cities": [{"name": "x" * 8_000, "country": "Portugal"}]}))
    rates = Rates(tokens_per_minute=2_000, burst_seconds=60, patience_seconds=0)
    chat = chat_with(stub, gate=gate(hot, rates=rates), timeouts=Timeouts())
    chat.complete(ASKED, Cities)
    with pytest.raises(RateLimited):
        for _ in range(3):
            chat.complete(ASKED, Cities)


def test_what_is_optional_is_left_out_while_the_model_is_slow(stub: StubProvider) -> None:
    ticks = iter(range(0, 10_000, 10))
    chat = chat_with(stub, slow_after_seconds=3, question_seconds=1_000, clock=lambda: float(next(ticks)))
    for _ in range(5):
        chat.complete(ASKED, Cities)
    with pytest.raises(CircuitOpen):
        chat.complete(ASKED, Cities, optional=True)
    assert isinstance(chat.complete(ASKED, Cities), Answer)


def test_no_repair_is_asked_for_when_the_time_is_over(stub: StubProvider) -> None:
    stub.follow(*bad(Mode.NOT_JSON))
    chat = chat_with(stub, question_seconds=-1)
    with pytest.raises(BadModelOutput):
        chat.complete(ASKED, Cities)
    assert stub.stats.calls.total() == 1


# --- money ---


def test_the_longest_beginning_of_a_models_name_has_its_price() -> None:
    prices = {"m": Price(Decimal(1), Decimal(2)), "m-mini": Price(Decimal("0.15"), Decimal("0.60"))}
    assert dollars(Usage("m-mini-2026", 1_000_000, 500_000, 1.0), prices) == Decimal("0.45")
    assert dollars(Usage("m-large", 1_000, 0, 1.0), prices) == Decimal("0.001")
    assert dollars(Usage("of-our-own", 1_000, 1_000, 1.0), prices) == 0


NOON = datetime(2024, 3, 6, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cap", "wait"),
    [
        (Cap(), 0),
        (Cap(tokens_per_day=1_001, dollars_per_day=Decimal("0.51")), 0),
        (Cap(tokens_per_day=1_000), 12 * 3600),
        (Cap(dollars_per_day=Decimal("0.50")), 12 * 3600),
    ],
)
def test_a_spent_cap_waits_for_the_next_day(cap: Cap, wait: float) -> None:
    assert wait_for_cap(1_000, Decimal("0.50"), cap, now=NOON) == wait


# --- the stub itself ---


def test_a_stub_in_a_process_of_its_own_is_told_over_http_what_to_do() -> None:
    with StubProcess() as stub:
        chat = opened(connect(stub.base_url, timeouts=PATIENT))
        stub.follow(Rule(Mode.SERVER_ERROR, times=1), Rule(answer=GOOD))
        with pytest.raises(ProviderUnavailable):
            chat.complete(ASKED, Cities)
        assert chat.complete(ASKED, Cities).value == Cities(**GOOD)
        assert stub.stats()["modes"] == {"server_error": 1, "good": 1}
        assert [seen["path"] for seen in stub.requests()] == ["/v1/chat/completions"] * 2
        stub.reset()
        assert stub.stats()["calls"] == {}


def test_a_provider_can_be_off_and_come_back_at_the_same_address() -> None:
    with StubProcess(Rule(answer=GOOD)) as stub:
        chat = opened(connect(stub.base_url, timeouts=PATIENT))
        assert chat.complete(ASKED, Cities).calls == 1
        stub.stop()
        with pytest.raises(ProviderUnavailable):
            chat.complete(ASKED, Cities)
        # Nobody takes its port meanwhile.
        with socket.socket() as another, pytest.raises(OSError, match="in use"):
            another.bind(("127.0.0.1", urlsplit(stub.address).port))
        stub.start()
        stub.follow(Rule(answer=GOOD))
        assert chat.complete(ASKED, Cities).calls == 1


def test_a_provider_that_cannot_listen_says_so() -> None:
    with StubProcess() as stub:
        stub.stop()
        with socket.create_server(("127.0.0.1", 0)) as another:
            stub.address = f"http://127.0.0.1:{another.getsockname()[1]}"
            with pytest.raises(RuntimeError, match="instead of listening"):
                stub.start()


@pytest.mark.parametrize("told", [{"mode": "sulk"}, {"colour": "red"}, [], {"rules": 3}])
def test_an_unknown_order_is_refused(stub: StubProvider, told: object) -> None:
    request = urllib.request.Request(f"{stub.address}/control", json.dumps(told).encode())
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request, timeout=10)
    raised.value.close()
    assert raised.value.code == 400


def test_closing_the_stub_lets_hanging_requests_go(stub: StubProvider) -> None:
    stub.follow(Rule(Mode.HANG))
    chat = chat_with(stub)
    failed: list[MemoryAppError] = []

    def ask() -> None:
        try:
            chat.complete(ASKED, Cities)
        except MemoryAppError as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while not stub.stats.in_flight:
        asking.join(0.01)
    stub.close()
    asking.join(60)  # less than the chat would wait by itself
    assert [error.kind for error in failed] == ["provider_unavailable"]


def test_part_of_the_requests_can_be_made_to_fail(stub: StubProvider, chat: Chat) -> None:
    stub.follow(Rule(Mode.SERVER_ERROR, share=0.3), Rule(answer=GOOD))
    outcomes = []
    for _ in range(60):
        try:
            chat.complete(ASKED, Cities)
            outcomes.append(True)
        except ProviderUnavailable:
            outcomes.append(False)
    assert 30 <= sum(outcomes) < 58
