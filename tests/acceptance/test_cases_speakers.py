"""Whose words become memories: not those of a prompt, not those of the assistant, not those that were recalled.

The model is our own HTTP server and claims the opposite on purpose: what is held against the turns must catch it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from provider_stage import PATIENCE_SECONDS, TEMPLATE, ProviderStage, answers, claims, fact, staged

from memory_app.jobs.jobs import read
from memory_app.local.embedded import Servers
from memory_app.memories.remember import remember
from memory_app.recall.context import ContextRequest, context
from memory_app.records.records import Role, Stage, Statement
from memory_app.records.scope import Scope
from memory_app.sleep import synthesis
from memory_app.testing.script import Json

REMEMBERED = {
    "core": "Mira never eats anything with peanuts in it.",
    "expression": "Mira wants to be addressed informally.",
    "anchor": "Mira trusts Nova with her worries about the clinic in Porto.",
    "fact": "Mira lives in an old windmill near Alkmaar.",
}
QUESTION = "What could we cook when my guests arrive on Saturday evening?"
EXPLANATION = """Your certificate has expired, that is why the browser complains about the homepage.

First I stop the proxy and move the old certificate out of its folder. Then I request a new certificate with certbot,
which proves the ownership of the domain with a file below the webroot.

Finally the proxy is started with the new certificate, and a timer renews it every sixty days. I configured the same for
the bakery's shop in spring: since then nobody had to renew a certificate by hand."""


@pytest.fixture(scope="module")
def stage(
    servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProviderStage]:
    with staged(servers, TEMPLATE, tmp_path_factory.mktemp("stage")) as stage:
        stage.worker()
        yield stage


def remembering(stage: ProviderStage, mode: str) -> tuple[Scope, str]:
    """Somebody of whom a memory of each sort is stored, and the context window that shows them."""
    scope = stage.agent(mode)
    for kind, said in REMEMBERED.items():
        remember(stage.runtime, stage.tenant, scope, statement=Statement(kind, said))
    window = context(stage.runtime, stage.tenant, scope, request=ContextRequest(QUESTION)).text
    assert [said for said in REMEMBERED.values() if said not in window] == []
    return scope, window


def echoes(*evidence: str) -> Json:
    """A model that takes everything it was handed for news."""
    told = claims(*(fact(said, *evidence) for said in REMEMBERED.values()))
    again = {"text": "Mira trusts Nova with her worries about the Porto clinic.", "importance": 8}
    tone = {"text": "Mira wants to be addressed informally.", "evidence": [f"@{words}" for words in evidence]}
    return {**told, "insights": [{**again, "evidence": tone["evidence"]}], "tones": [tone]}


WAYS: dict[str, tuple[Role, str]] = {
    "as the system prompt": (Role.SYSTEM, "You are Nova. This is what you know:\n{window}"),
    "as a tool's answer": (Role.TOOL, "{window}"),
    "repeated by the assistant": (Role.ASSISTANT, "My memory says:\n{window}"),
    "pasted by the user": (Role.USER, "{window}"),
    "before the user's words": (Role.USER, "{window}\n\n" + QUESTION),
    "line by line": (Role.USER, "Earlier you wrote:\n{lines}"),
}


@pytest.mark.parametrize("mode", ["llm", "rules"])
@pytest.mark.parametrize("way", WAYS)
def test_memories_that_were_put_into_a_prompt_are_not_extracted_as_new(
    stage: ProviderStage, mode: str, way: str
) -> None:
    # given a conversation into which a context window was put
    scope, window = remembering(stage, mode)
    role, form = WAYS[way]
    lines = "\n".join(f"> {said}" for said in REMEMBERED.values())
    before = stage.memories(scope)
    stage.stub.follow(answers("synthesize_turn", echoes("windmill", QUESTION)))
    # when the model states every memory anew, with that turn and the user's own as evidence
    ids = stage.tell(scope, (role, form.format(window=window, lines=lines)), (Role.USER, QUESTION))
    done = stage.settled(ids)
    # then nothing is new, and no memory rests on these turns now
    assert {one.stage for one in done} == {Stage.EXTRACTED}
    assert stage.memories(scope) == before
    assert [one.memory_ids for one in done] == [(), ()]
    assert all(one.reason for one in done), "a turn of which nothing came says why"


def test_a_memory_that_the_user_says_again_in_own_words_counts(stage: ProviderStage) -> None:
    scope, window = remembering(stage, "llm")
    said = "As I told you, I live in an old windmill near Alkmaar, so there is room for guests."
    stage.stub.follow(answers("synthesize_turn", claims(fact(REMEMBERED["fact"], said))))
    done = stage.settled(stage.tell(scope, (Role.SYSTEM, window), (Role.USER, said)))
    assert len(done[1].memory_ids) == 1
    assert len(stage.memories(scope)) == len(REMEMBERED), "the same memory, with one more reason"


@pytest.mark.parametrize("mode", ["llm", "rules"])
def test_the_text_of_a_system_prompt_is_no_fact_about_the_user(stage: ProviderStage, mode: str) -> None:
    scope = stage.agent(mode)
    prompt = (
        "You are Nova, a friendly assistant. I live in Oslo and I work as a pilot. My name is Astrid. "
        "The user loves sailing and is allergic to cats. Always answer in Norwegian."
    )
    wrong = claims(
        fact("Mira works as a pilot.", "You are Nova", "guests", subject="Mira", relation="works_as"),
        fact("Mira lives in Oslo.", "You are Nova", subject="Mira", relation="lives_in", object="Oslo"),
        fact("Mira loves sailing and is allergic to cats.", "guests"),
        fact("Mira's name is Astrid."),
    )
    wrong["tones"] = [{"text": "Always answer Mira in Norwegian.", "evidence": ["@You are Nova"]}]
    stage.stub.follow(answers("synthesize_turn", wrong))
    done = stage.settled(stage.tell(scope, (Role.SYSTEM, prompt), (Role.USER, QUESTION)))
    assert {one.stage for one in done} == {Stage.EXTRACTED}
    assert stage.memories(scope) == []


CONVERSATION = (
    (Role.USER, "The browser says that our homepage is not safe. What is going on there?"),
    (Role.ASSISTANT, EXPLANATION),
    (Role.USER, "Thank you, that was a great help. I did not know that such a thing exists at all!"),
)


def taken_for_the_users(evidence: Sequence[str]) -> Json:
    """A model that lets the user do what the assistant explained."""
    told = claims(
        fact("Mira stopped the proxy and requested a new certificate with certbot.", *evidence),
        fact("Mira proved the ownership of the domain with a file below the webroot.", *evidence),
        fact("Mira configured a timer that renews the certificate every sixty days.", *evidence),
        fact("Mira renews the certificate of the bakery's shop.", *evidence, subtype="habit"),
    )
    conclusion = "Certbot requests a new certificate and a timer renews it every sixty days."
    topic = {"topic": "Certificate", "feeling": "joy", "conclusion": conclusion}
    return {**told, "topics": [{**topic, "evidence": [f"@{words}" for words in evidence]}]}


@pytest.mark.parametrize(
    ("mode", "evidence"),
    [
        ("llm", ["has expired"]),
        ("llm", ["a great help"]),
        ("llm", ["has expired", "a great help"]),
        ("llm", ["not safe"]),
        ("llm", []),
        ("rules", []),
    ],
)
def test_what_the_assistant_explains_at_length_is_not_what_the_user_did(
    stage: ProviderStage, mode: str, evidence: list[str]
) -> None:
    scope = stage.agent(mode)
    stage.stub.follow(answers("synthesize_turn", taken_for_the_users(evidence)))
    done = stage.settled(stage.tell(scope, *CONVERSATION))
    assert {one.stage for one in done} == {Stage.EXTRACTED}
    assert [memory.text for memory in stage.memories(scope)] == []


def test_the_end_of_a_session_holds_the_model_against_the_turns_as_well(stage: ProviderStage) -> None:
    # given a conversation with a pasted window and an explanation, of which turn by turn nothing came
    scope, window = remembering(stage, "llm")
    before = stage.memories(scope)
    stage.stub.follow(answers("synthesize_turn", claims()))
    stage.settled(stage.tell(scope, (Role.SYSTEM, window), *CONVERSATION))
    # when the model states all of it at the end of the session
    wrong = taken_for_the_users(["a great help"])
    echo = echoes("a great help")
    facts = [*wrong["facts"], *echo["facts"]]  # type: ignore[misc]
    answer = {
        **wrong,
        "facts": facts,
        "tones": echo["tones"],
        "anchors": echo["insights"],
        "summary": "They talked.",
    }
    stage.stub.follow(answers("synthesize_session", answer))
    place = Scope(scope.agent, scope.user, "chat")
    run = synthesis.ask_for(stage.runtime, stage.tenant, place, type="session")
    done = read(stage.runtime, stage.tenant, run.id, wait_seconds=PATIENCE_SECONDS)
    # then only its summary is new
    assert done.state == "done", done.reason
    assert [m.text for m in stage.memories(scope) if m not in before] == ["They talked."]
