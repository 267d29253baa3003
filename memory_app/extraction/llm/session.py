"""The end of a session: what remains of the whole conversation, held against the anchors known so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from memory_app.extraction.llm.answers import AnchorAnswer, SynthesizeSession
from memory_app.extraction.llm.draft import (
    Scene,
    draft_fact,
    draft_identity,
    draft_insight,
    draft_tone,
    draft_topic,
    sift,
)
from memory_app.extraction.llm.guards import Draft, has_wrong_speaker
from memory_app.extraction.llm.material import numbered_memories, show_memories
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Made, ask, made_of
from memory_app.extraction.llm.turns import Talk, is_worth_asking, scene_of
from memory_app.records.kinds import KINDS
from memory_app.records.records import Memory, Origin, Statement, SynthesisType

FACTS_SHARE = 0.1
"""Curated facts together take at most this part of the conversation's characters."""

LEAST_FACTS_CHARS = 300
"""What a short conversation may leave all the same: two or three facts."""

TRIMMED = "beyond a tenth of the log"


@dataclass(frozen=True, slots=True)
class Changed:
    """``statement`` takes the place of the anchor ``memory_id``, which is superseded."""

    memory_id: UUID
    statement: Statement


@dataclass(frozen=True, slots=True)
class SessionSynthesis:
    """``statements`` go through the write path; a strengthened anchor is among them with its own text, so that it is
    reinforced. ``changed`` are new rows for old anchors. ``summary`` is an `episode` over all turns, or None.
    """

    statements: tuple[Statement, ...]
    changed: tuple[Changed, ...]
    summary: Statement | None
    made: Made


def synthesize_session(asking: Asking, talk: Talk, anchors: Sequence[Memory] = ()) -> SessionSynthesis:
    """What remains of the session. One question, or none for a session without content. Raises as `Chat.complete`."""
    if not is_worth_asking(talk.turns):
        return SessionSynthesis((), (), None, Made())
    prompt = load_prompt("synthesize_session")
    scene = scene_of(talk, prompt)
    numbered = numbered_memories(anchors, "a")
    material = [show_memories(numbered, zone=talk.time_zone, tag="known_anchors"), scene.shown.text]
    answer = ask(asking, prompt, material, SynthesizeSession)
    handed_in = (*scene.ground.injected, *(anchor.text for anchor in anchors))
    fresh = sift(_fresh(answer.value, scene), replace(scene.ground, injected=handed_in))
    repeated = _known_anchors(answer.value.anchors, numbered, scene)
    curated, trimmed = curate(fresh.statements, sum(len(turn.text) for turn in talk.turns))
    dropped = {**fresh.dropped, **({TRIMMED: trimmed} if trimmed else {})}
    return SessionSynthesis(
        statements=(*curated, *(statement for change, _, statement in repeated if change == "strengthened")),
        changed=tuple(
            Changed(anchor.id, statement) for change, anchor, statement in repeated if change == "changed"
        ),
        summary=_summary(answer.value.summary, talk),
        made=made_of(prompt, answer, dropped),
    )


def curate(statements: Sequence[Statement], log_chars: int) -> tuple[tuple[Statement, ...], int]:
    """All that is no fact, and the most important facts up to a tenth of the log; and how many facts went."""
    room = max(FACTS_SHARE * log_chars, LEAST_FACTS_CHARS)
    facts = sorted(
        (statement for statement in statements if KINDS[statement.kind].is_curated),
        key=lambda statement: (-(statement.importance or 0), len(statement.text)),
    )
    chosen: set[int] = set()
    for fact in facts:
        if len(fact.text) <= room:
            chosen.add(id(fact))
            room -= len(fact.text)
    remaining = tuple(s for s in statements if not KINDS[s.kind].is_curated or id(s) in chosen)
    return remaining, len(facts) - len(chosen)


def _fresh(answer: SynthesizeSession, scene: Scene) -> Iterator[Draft]:
    for anchor in answer.anchors:
        draft = draft_insight(anchor, scene) if anchor.change == "new" else None
        if draft is not None:
            yield draft
    yield from (draft_topic(topic, scene) for topic in answer.topics)
    yield from (draft_identity(note, scene) for note in answer.identity_notes)
    yield from (draft_tone(tone, scene) for tone in answer.tones)
    yield from (draft_fact(fact, scene) for fact in answer.facts)


def _known_anchors(
    answers: Sequence[AnchorAnswer], anchors: Mapping[str, Memory], scene: Scene
) -> list[tuple[str, Memory, Statement]]:
    """Anchors the session showed again or changed; each known anchor once, with turns of the user behind it.

    That they repeat what was handed in is their nature, so the anchors do not count as such here.
    """
    by_anchor: dict[UUID, tuple[str, Memory, Statement]] = {}
    for answer in answers:
        anchor = anchors.get((answer.of or "").strip().strip("[]").lower())
        draft = draft_insight(answer, scene)
        if (
            answer.change == "new"
            or anchor is None
            or draft is None
            or has_wrong_speaker(draft, scene.ground)
        ):
            continue
        if answer.change == "changed" and not sift([draft], scene.ground).statements:
            continue
        again = replace(draft.statement, text=anchor.text)
        statement = (
            again if answer.change == "strengthened" else replace(draft.statement, parents=(anchor.id,))
        )
        by_anchor.setdefault(anchor.id, (answer.change, anchor, statement))
    return list(by_anchor.values())


def _summary(text: str, talk: Talk) -> Statement:
    return Statement(
        kind="episode",
        text=text[:4_000],
        origin=Origin.SYNTHESIZED,
        synthesis_type=SynthesisType.CONSOLIDATION,
        valid_from=talk.turns[-1].at,
        evidence=tuple(turn.id for turn in talk.turns),
        source=talk.agent_label,
    )
