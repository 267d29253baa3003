"""Turns to statements by a language model: facts alone, or with what they mean for the relationship.

The same records as the rule extractor's, and the same reasons for what is not worth asking about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.llm.answers import SynthesizeTurn
from memory_app.extraction.llm.draft import (
    Scene,
    Sifted,
    draft_fact,
    draft_identity,
    draft_insight,
    draft_tone,
    draft_topic,
    sift,
)
from memory_app.extraction.llm.guards import Draft, Ground
from memory_app.extraction.llm.material import handed_over, show_turns
from memory_app.extraction.llm.prompts import Prompt, load_prompt
from memory_app.extraction.llm.provenance import Asking, Made, ask, made_of
from memory_app.extraction.rules.clauses import own_words
from memory_app.extraction.rules.extract import (
    ACKNOWLEDGEMENT,
    NOT_NOTEWORTHY,
    NOT_THE_USER,
    SHORTEST,
    TOO_SHORT,
)
from memory_app.extraction.rules.names import mentions_of
from memory_app.language.replies import ACKNOWLEDGEMENTS
from memory_app.records.records import Extraction, Mention, Role, Turn


@dataclass(frozen=True, slots=True)
class Extracted:
    """What came of turns, and how it was made."""

    extraction: Extraction
    made: Made


@dataclass(frozen=True, slots=True)
class Talk:
    """A stretch of conversation and who takes part in it.

    ``earlier`` are turns before ``turns``, read already. ``known`` are labels of the scope's entities, ``injected``
    memories that were handed to the assistant, as far as the caller knows them.
    """

    turns: tuple[Turn, ...]
    user_label: str
    agent_label: str
    time_zone: ZoneInfo
    earlier: tuple[Turn, ...] = ()
    known: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()


def synthesize_turns(asking: Asking, talk: Talk) -> Extracted:
    """Facts, entities, anchors, artifacts, identity and expression of the turns.

    Asks the model once, or not at all when no turn holds anything worth asking about. Raises what `Chat.complete` does.
    """
    prompt = load_prompt("synthesize_turn")
    if not is_worth_asking(talk.turns):
        return _nothing(talk)
    scene = scene_of(talk, prompt)
    answer = ask(asking, prompt, [scene.shown.text], SynthesizeTurn)
    sifted = sift(_drafts(answer.value, scene), scene.ground)
    return Extracted(_extraction(talk, sifted), made_of(prompt, answer, sifted.dropped))


def _drafts(answer: SynthesizeTurn, scene: Scene) -> list[Draft]:
    insights = (draft_insight(insight, scene) for insight in answer.insights)
    return [
        *(draft_fact(fact, scene) for fact in answer.facts),
        *(insight for insight in insights if insight is not None),
        *(draft_topic(topic, scene) for topic in answer.topics),
        *(draft_identity(note, scene) for note in answer.identity_notes),
        *(draft_tone(tone, scene) for tone in answer.tones),
    ]


def scene_of(talk: Talk, prompt: Prompt) -> Scene:
    """What is shown of ``talk``, and what the answer is held against."""
    shown = show_turns(talk.turns, talk.earlier, zone=talk.time_zone, known=talk.known)
    every = (*talk.earlier, *talk.turns)
    ground = Ground(
        turns=every,
        user_label=talk.user_label,
        agent_label=talk.agent_label,
        zone=talk.time_zone,
        injected=(*talk.injected, *handed_over(every)),
        samples=tuple(line for sample in prompt.samples for line in sample.splitlines()),
    )
    return Scene(shown, ground)


def is_worth_asking(turns: Iterable[Turn]) -> bool:
    """Whether the user said anything that could be kept."""
    return any(reason_to_skip(turn) is None for turn in turns)


def reason_to_skip(turn: Turn) -> str | None:
    """Why a turn by itself states nothing worth keeping, or None."""
    if turn.role is not Role.USER:
        return NOT_THE_USER
    text = turn.text.strip()
    words = "".join(c if c.isalnum() or c == "'" else " " for c in text[:200].lower()).split()
    if len(words) <= 12 and all(word in ACKNOWLEDGEMENTS for word in words):
        return ACKNOWLEDGEMENT
    return TOO_SHORT if len(text) < SHORTEST else None


def _nothing(talk: Talk) -> Extracted:
    return Extracted(_extraction(talk, Sifted((), {}, ())), Made())


def _extraction(talk: Talk, sifted: Sifted) -> Extraction:
    told = {turn_id for statement in sifted.statements for turn_id in statement.evidence}
    guarded = {turn.id: fault for draft, fault in sifted.rejected for turn in draft.turns}
    reasons = {
        turn.id: reason_to_skip(turn)
        or (f"guarded: {guarded[turn.id]}" if turn.id in guarded else NOT_NOTEWORTHY)
        for turn in talk.turns
        if turn.id not in told
    }
    return Extraction(sifted.statements, _mentions(talk), reasons)


def _mentions(talk: Talk) -> dict[UUID, tuple[Mention, ...]]:
    """Names in each turn, read by rule: a model names those of statements only."""
    people = {turn.speaker for turn in (*talk.earlier, *talk.turns)} - {"user", "assistant", ""}
    spoken = (turn for turn in talk.turns if turn.role in (Role.USER, Role.ASSISTANT))
    return {turn.id: mentions_of(own_words(turn.text), people=people, known=talk.known) for turn in spoken}
