"""Questions over memory: what was said is answered with its evidence, what was not said is not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import all_shards
import pytest
from commands import Memory
from queries import rows
from sqlalchemy import Engine
from starlette.testclient import TestClient

from memory_app import MemoryApp, Scope
from memory_app.errors import Conflict, InvalidInput, NotFound, ProviderUnavailable
from memory_app.main.http import create_app
from memory_app.runtime import Runtime, build
from memory_app.settings import Ask, Chat, Settings
from memory_app.tenancy.rows import keys
from memory_app.testing import Mode, Rule, StubProvider
from memory_app.testing.schemas import message_texts

MIRA = Scope("Nova", "Mira")
S = "/v1/agents/Nova/users/Mira"

SAID = {
    "Where does Mira live?": "Mira moved to Lisbon in March.",
    "What does Mira do for work?": "Mira works at the harbour museum.",
    "What is Mira allergic to?": "Mira is allergic to peanuts.",
    "What is Mira's dog called?": "Mira has a dog called Pepper.",
    "Who is Mira's sister?": "Lea is the sister of Mira.",
    "When does Mira sing in the choir?": "Mira sings in the choir on Tuesdays.",
    "Where does Mira park her car?": "Mira parks her car on level 3 of the garage.",
    "Does Mira prefer tea or coffee?": "Mira prefers green tea to coffee.",
    "Which instrument is Mira learning?": "Mira is learning the violin.",
    "What is Mira afraid of?": "Mira is afraid of geese.",
}
NEVER_SAID = (
    "What is Mira's blood type?",
    "Which university did Mira attend?",
    "What is Mira's shoe size?",
    "Who is Mira's dentist?",
    "What is Mira's favourite film?",
    "How many brothers does Mira have?",
    "Which leg did Mira break?",
    "At which bank does Mira keep her money?",
    "What colour is Mira's bicycle?",
    "In which year was Mira born?",
)
INVENTIONS = (
    "Ann won the lottery in Monaco.",
    "Mira studied astronomy at the university of Vienna.",
    "Mira wears shoes of size 41.",
    "Mira's favourite colour is a deep kind of purple.",
    "Mira is not afraid of anything.",
)


def inventing(body: Any) -> object:
    """A model that always invents, each time with lines that are there; where one answers, it says so as well."""
    shown = message_texts(body)[-1]
    question = shown.rpartition("<question>")[2].partition("</question>")[0]
    references = [line.partition("]")[0][1:] for line in shown.splitlines() if line.startswith("[r")]
    sentences = [{"text": text, "evidence": references[:2]} for text in INVENTIONS]
    answer = SAID.get(question)
    for line in shown.splitlines():
        if answer is not None and line.endswith(answer):
            sentences.insert(2, {"text": answer, "evidence": [line.partition("]")[0][1:]]})
    return {"sentences": sentences, "search": []}


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as stub:
        yield stub


@pytest.fixture
def asking(settings: Settings, stub: StubProvider, tenant: int) -> Iterator[MemoryApp]:
    parts: dict[str, Any] = {"chat": Chat(base_url=stub.base_url, model="small")}
    with MemoryApp(all_shards.at_work(build(settings.model_copy(update=parts))), tenant) as memory:
        memory.change_agent("Nova", policy={"extraction": "llm"})
        yield memory


def answer_with(stub: StubProvider, answer: object, **more: Any) -> None:
    stub.follow(Rule(path="/chat/completions", answer=answer, **more))


def test_a_model_that_always_invents_answers_only_what_was_said(
    asking: MemoryApp, stub: StubProvider
) -> None:
    ids = {asking.remember(MIRA, text).id: text for text in SAID.values()}
    answer_with(stub, inventing)

    answered = {question: asking.ask(MIRA, question) for question in SAID}
    assert {question: result.text for question, result in answered.items()} == SAID
    for result in answered.values():
        (sentence,) = result.sentences
        assert [ids[id] for id in sentence.ids] == [sentence.text]
        assert sum(result.dropped.values()) == len(INVENTIONS)

    unknown = [asking.ask(MIRA, question) for question in NEVER_SAID]
    assert [(result.known, result.text) for result in unknown] == [(False, "not known")] * len(NEVER_SAID)


def test_a_turn_answers_before_it_is_extracted(asking: MemoryApp, stub: StubProvider) -> None:
    ticket = asking.record(Scope("Nova", "Mira", "chat"), "My new bicycle is yellow.")
    answer_with(
        stub, {"sentences": [{"text": "Mira's new bicycle is yellow.", "evidence": ["r1"]}], "search": []}
    )
    (sentence,) = asking.ask(MIRA, "What colour is the bicycle?").sentences
    assert sentence.ids == (ticket.id,)


def test_it_looks_again_for_what_the_model_asks(asking: MemoryApp, stub: StubProvider) -> None:
    for number in range(30):
        asking.remember(MIRA, f"Question {number} about the vehicle was answered.", deduplicate=False)
    asking.remember(MIRA, "Mira parks on level 3 of the garage.")

    def searching(body: Any) -> object:
        lines = [line for line in message_texts(body)[-1].splitlines() if "garage" in line]
        if not lines:
            return {"sentences": [], "search": ["parks on which level of the garage"]}
        reference = lines[0].partition("]")[0][1:]
        return {"sentences": [{"text": "Mira parks on level 3.", "evidence": [reference]}], "search": []}

    answer_with(stub, searching)
    answered = asking.ask(MIRA, "Question about the vehicle answered?")
    assert answered.text == "Mira parks on level 3."
    assert (answered.looks, answered.calls, answered.stopped) == (2, 2, None)


def test_looks_calls_and_time_are_bounded(settings: Settings, asking: MemoryApp, stub: StubProvider) -> None:
    for text in SAID.values():
        asking.remember(MIRA, text)
    # a model that never has enough, and always finds other words
    words = iter(SAID.values())
    answer_with(stub, lambda body: {"sentences": [], "search": [next(words)]})
    for limits, stopped in (
        (Ask(rows=1, looks=2), "looks"),
        (Ask(rows=1, looks=9, seconds=0.000_001), "seconds"),
        (Ask(rows=1, looks=9, tokens=1_000), "tokens"),
    ):
        parts = {"chat": Chat(base_url=stub.base_url, model="small"), "ask": limits}
        with MemoryApp(
            all_shards.at_work(build(settings.model_copy(update=parts))), asking.tenant_id
        ) as memory:
            before = len(stub.requests)
            answered = memory.ask(MIRA, "What else?")
        assert (answered.known, answered.stopped) == (False, stopped)
        assert answered.looks == answered.calls == len(stub.requests) - before <= 4


def test_nothing_is_asked_where_nothing_is_remembered(asking: MemoryApp, stub: StubProvider) -> None:
    with pytest.raises(NotFound):
        asking.ask(MIRA, "Where does Mira live?")
    asking.remember(MIRA, "Nova never gives medical advice.", kind="core")
    answer_with(stub, inventing)
    asking.ask(MIRA, "Where does Mira live?")
    assert len(stub.requests) <= 1


def test_without_a_model_the_error_says_what_to_set(runtime: Runtime, asking: MemoryApp, tenant: int) -> None:
    asking.remember(MIRA, "Mira is afraid of geese.")
    with pytest.raises(Conflict, match="MEMORY_CHAT__BASE_URL"):
        MemoryApp(runtime, tenant).ask(MIRA, "What is Mira afraid of?")
    asking.amend_agent("Nova", policy={"extraction": "rules"})
    with pytest.raises(Conflict, match="set its policy's extraction to llm"):
        asking.ask(MIRA, "What is Mira afraid of?")


@pytest.mark.parametrize("question", ["", " \u200b ", "x" * 2_001])
def test_a_question_that_is_none_is_refused(asking: MemoryApp, question: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        asking.ask(MIRA, question)
    assert refused.value.field == "question"


def test_an_answer_of_no_use_is_an_error_and_no_not_known(asking: MemoryApp, stub: StubProvider) -> None:
    asking.remember(MIRA, "Mira is afraid of geese.")
    answer_with(stub, None, mode=Mode.NOT_JSON)
    with pytest.raises(ProviderUnavailable, match="no answer of use"):
        asking.ask(MIRA, "What is Mira afraid of?")


def test_every_door_gives_the_same_answer(
    asking: MemoryApp, stub: StubProvider, owner: Engine, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, text = "What is Mira afraid of?", "Mira is afraid of geese."
    id = str(asking.remember(MIRA, text).id)
    answer_with(stub, inventing)
    with owner.begin() as connection:
        _, key = keys.create(connection, "acme", rights=("read",))
    client = TestClient(create_app(asking.runtime), headers={"Authorization": f"Bearer {key}"})

    answer = client.post(f"{S}/ask", json={"question": question})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["known"], body["text"], body["looks"], body["stopped"]) == (True, text, 1, None)
    assert body["sentences"] == [{"text": text, "ids": [id]}]
    assert client.post(f"{S}/ask", json={"question": "", "x": 1}).status_code == 422

    tool = asking.call_tool(MIRA, "ask_memory", {"question": question})
    assert (tool.data["known"], tool.data["sentences"]) == (True, [{"text": text, "ids": [id]}])

    monkeypatch.setenv("MEMORY_CHAT__BASE_URL", stub.base_url)
    monkeypatch.setenv("MEMORY_CHAT__MODEL", "small")
    whose = ("--tenant", "acme", "--agent", "Nova", "--user", "Mira")
    assert f"{text}  [{id}]" in memory("ask", question, *whose).out
    assert memory("ask", question, *whose, "--json").json["sentences"] == [{"text": text, "ids": [id]}]
    # what it cost is counted, and nothing else was written
    (used,) = rows(owner, "SELECT sum(calls) AS calls FROM usage")
    assert used.calls == 4
    assert len(rows(owner, "SELECT id FROM memories")) == 1
