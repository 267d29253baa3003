"""Extract statements from turns by a language model: facts, and what they mean for the relationship.

The same records as the rule extractor's, and the same reasons for what is not worth asking about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from uuid import UUID
from zoneinfo import ZoneInfo

from memory_app.extraction.llm.answers import SynthesizeTurn
from memory_app.extraction.llm.draft import (
    Scene,
    Sifted,
    draft_bond,
    draft_fact,
    draft_insight,
    sift,
)
from memory_app.extraction.llm.guards import Draft, Ground
from memory_app.extraction.llm.instructions import instructed
from memory_app.extraction.llm.material import handed_over, show_turns
from memory_app.extraction.llm.prompt_echo import samples
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Provenance, ask, provenance_of
from memory_app.extraction.rules.clauses import own_words
from memory_app.extraction.rules.extract import NOT_NOTEWORTHY, reason_of_turn
from memory_app.extraction.rules.names import mentions_of
from memory_app.records.instructions import Instructions
from memory_app.records.records import WITHHELD, Extraction, Mention, Role, Turn

TAGS = ("auto-synthesized", "turn-synthesis")
"""Of every memory that a model makes of turns."""

UNREAD = "(unreadable in the model's answer: {count})"
"""Behind the reason of a turn that nothing was stated of, where items of the answer were dropped."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The statements of turns, and by which model and prompt they were made.

    ``rejected`` are the texts that a guard rejected, each with its reason; they are stored nowhere.
    """

    extraction: Extraction
    provenance: Provenance
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Talk:
    """A stretch of conversation and who takes part in it.

    ``earlier`` are turns before ``turns``, read already. ``labels`` are those of the scope's entities, ``known_people``
    those of the people among them, ``injected`` memories that were handed to the assistant, as far as the caller knows
    them.
    """

    turns: tuple[Turn, ...]
    user_label: str
    agent_label: str
    time_zone: ZoneInfo
    earlier: tuple[Turn, ...] = ()
    labels: tuple[str, ...] = ()
    known_people: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()


def synthesize_turns(asking: Asking, talk: Talk) -> Extracted:
    """Return facts, entities, anchors, artifacts, identity and expression of the turns.

    Asks the model once, or not at all when no turn holds anything worth asking about. Raises what `Chat.complete` does.
    """
    # Most of a chat is small talk, and each call costs money.
    if not is_worth_asking(talk.turns):
        return Extracted(_extraction(talk, Sifted((), {}, ()), unread=0), Provenance())
    prompt = instructed(load_prompt("synthesize_turn"), asking.instructions)
    scene = scene_of(talk, asking.instructions)
    answer = ask(asking, prompt, [scene.transcript.text], shape=SynthesizeTurn)
    sifted = sift(_drafts(answer.value, scene), scene.ground)
    extraction = _extraction(talk, sifted, unread=sum(answer.dropped.values()))
    return Extracted(extraction, provenance_of(prompt, answer, sifted.dropped), sifted.rejected_texts)


def _drafts(answer: SynthesizeTurn, scene: Scene) -> Iterator[Draft]:
    for fact in answer.facts:
        yield draft_fact(fact, scene)
    yield from filter(None, (draft_insight(insight, scene) for insight in answer.insights))
    yield from draft_bond(answer, scene)


def scene_of(talk: Talk, instructions: Instructions) -> Scene:
    """Return what is shown of ``talk``, and what the answer is held against."""
    shown = tuple(turn for turn in talk.turns if reason_of_turn(turn) != WITHHELD)
    all_turns = (*talk.earlier, *shown)
    ground = Ground(
        turns=all_turns,
        user_label=talk.user_label,
        agent_label=talk.agent_label,
        zone=talk.time_zone,
        # Windows that an app put into a message count as well: the caller does not know of them.
        injected=(*talk.injected, *handed_over(all_turns)),
        # Of all prompts: what came back once from another one may stand in a memory that is shown.
        samples=samples(),
        labels=talk.labels,
        instructions=instructions,
    )
    transcript = show_turns(shown, talk.earlier, zone=talk.time_zone, labels=talk.labels)
    return Scene(transcript, ground)


def is_worth_asking(turns: Iterable[Turn]) -> bool:
    """Whether the user said anything that could be kept."""
    return any(reason_of_turn(turn) is None for turn in turns)


def _extraction(talk: Talk, sifted: Sifted, *, unread: int) -> Extraction:
    """``unread``: how many items of the answer could not be read."""
    evidence = set(chain.from_iterable(statement.evidence for statement in sifted.statements))
    faults: dict[UUID, str] = {}
    for draft, fault in sifted.rejected:
        faults |= dict.fromkeys((turn.id for turn in draft.turns), fault)
    # An item that could not be read may have been about any of them.
    usual = f"{NOT_NOTEWORTHY} {UNREAD.format(count=unread)}" if unread else NOT_NOTEWORTHY
    reasons = {
        turn.id: _reason(turn, faults.get(turn.id), usual=usual)
        for turn in talk.turns
        if turn.id not in evidence
    }
    return Extraction(
        statements=tuple(replace(item, tags=(*item.tags, *TAGS)) for item in sifted.statements),
        mentions=_mentions(talk),
        reasons=reasons,
    )


def _reason(turn: Turn, fault: str | None, *, usual: str) -> str:
    """Why nothing was stated of ``turn``; ``fault`` is that of a statement a guard rejected."""
    # What the turn itself shows comes first: no statement was to be expected of it.
    without_model = reason_of_turn(turn)
    if without_model is not None:
        return without_model
    return f"guarded: {fault}" if fault else usual


def _mentions(talk: Talk) -> dict[UUID, tuple[Mention, ...]]:
    """Names in each turn, read by rule: a model names those of statements only."""
    people = {turn.speaker for turn in (*talk.earlier, *talk.turns)} - {"user", "assistant", ""}
    return {
        turn.id: mentions_of(own_words(turn.text), people=people, labels=talk.labels)
        for turn in talk.turns
        if turn.role in (Role.USER, Role.ASSISTANT)
    }
