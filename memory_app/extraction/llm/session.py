"""Synthesize a session that has ended: what remains of the conversation, held against the anchors known so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from memory_app.extraction.llm.answers import AnchorAnswer, SynthesizeSession
from memory_app.extraction.llm.draft import (
    Scene,
    draft_bond,
    draft_fact,
    draft_insight,
    sift,
)
from memory_app.extraction.llm.guards import (
    NEW_NAME,
    NUMBERS,
    SAMPLE,
    SECRET,
    Draft,
    has_wrong_speaker,
    states_new_name,
)
from memory_app.extraction.llm.instructions import instructed
from memory_app.extraction.llm.material import numbered_memories, plain_reference, show_memories
from memory_app.extraction.llm.numbers import invents_numbers
from memory_app.extraction.llm.prompt_echo import repeats_prompt
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Provenance, ask, provenance_of
from memory_app.extraction.llm.turns import Talk, is_worth_asking, scene_of
from memory_app.extraction.llm.unions import PINNED
from memory_app.language.secrets import holds_secret
from memory_app.memories.forbidden import FORBIDDEN, is_forbidden
from memory_app.records.kinds import KINDS
from memory_app.records.records import Memory, Origin, Statement, SynthesisType

FACTS_SHARE = 0.1
"""Curated facts together take at most this part of the conversation's characters."""

SUMMARY_CHARS = 4_000
"""A longer summary is cut."""

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
    """What is to be written after a session.

    ``statements`` go through the write path; a strengthened anchor is among them with its own text, so that it is
    reinforced. ``changed`` are new rows for old anchors. ``summary`` is an `episode` over all turns, or None.
    ``rejected`` are texts that a guard rejected, each with its reason; they are stored nowhere.
    """

    statements: tuple[Statement, ...]
    changed: tuple[Changed, ...]
    summary: Statement | None
    provenance: Provenance
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _KnownAnchor:
    """What a session did to an anchor known before: ``change`` is "strengthened" or "changed"."""

    change: str
    memory_id: UUID
    statement: Statement


def synthesize_session(asking: Asking, talk: Talk, anchors: Sequence[Memory] = ()) -> SessionSynthesis:
    """Return what remains of the session.

    Asks the model once, or not at all for a session without content. Raises what `Chat.complete` does.
    """
    if not is_worth_asking(talk.turns):
        return SessionSynthesis(
            statements=(),
            changed=(),
            summary=None,
            provenance=Provenance(),
        )
    prompt = instructed(load_prompt("synthesize_session"), asking.instructions)
    scene = scene_of(talk, asking.instructions)
    numbered = numbered_memories(anchors, "a")
    material = [
        show_memories(numbered, zone=talk.time_zone, tag="known_anchors"),
        scene.transcript.text,
    ]
    answer = ask(asking, prompt, material, shape=SynthesizeSession)
    # The model has just read the anchors: what repeats one of them is not fresh.
    handed_in = (*scene.ground.injected, *(anchor.text for anchor in anchors))
    fresh = sift(_fresh(answer.value, scene), replace(scene.ground, injected=handed_in))
    curated, trimmed = curate(fresh.statements, sum(len(turn.text) for turn in talk.turns))
    strengthened: list[Statement] = []
    changed: list[Changed] = []
    dropped = Counter(fresh.dropped)
    for anchor in _known_anchors(answer.value.anchors, numbered, scene, dropped):
        if anchor.change == "strengthened":
            strengthened.append(anchor.statement)
        else:
            changed.append(Changed(anchor.memory_id, anchor.statement))
    if trimmed:
        dropped[TRIMMED] = trimmed
    summary: str | None = answer.value.summary
    fault = None if summary is None else fault_of_summary(summary, scene)
    if fault is not None:
        summary = None
        dropped[fault] += 1
    return SessionSynthesis(
        statements=(*curated, *strengthened),
        changed=tuple(changed),
        summary=_summary(summary, talk),
        provenance=provenance_of(prompt, answer, dropped),
        rejected=fresh.rejected_texts,
    )


def curate(statements: Sequence[Statement], log_chars: int) -> tuple[tuple[Statement, ...], int]:
    """Return all that is no fact, with the most important facts up to a tenth of the log; and how many facts went."""
    room = max(FACTS_SHARE * log_chars, LEAST_FACTS_CHARS)
    facts = [statement for statement in statements if KINDS[statement.kind].is_curated]
    # By identity, since two statements may be equal and only one of them have room.
    dropped: set[int] = set()
    for fact in sorted(facts, key=_curation_order):
        # A long fact that has no room leaves it to the shorter ones behind it.
        if len(fact.text) <= room:
            room -= len(fact.text)
        else:
            dropped.add(id(fact))
    rest = (statement for statement in statements if id(statement) not in dropped)
    return tuple(rest), len(dropped)


def _curation_order(fact: Statement) -> tuple[float, int]:
    # The shorter first among equals, so that more of them have room.
    return (-(fact.importance or 0), len(fact.text))


def _fresh(answer: SynthesizeSession, scene: Scene) -> Iterator[Draft]:
    # Anchors that were strengthened or changed take another way: see `_known_anchors`.
    new = (draft_insight(anchor, scene) for anchor in answer.anchors if anchor.change == "new")
    yield from filter(None, new)
    yield from draft_bond(answer, scene)
    for fact in answer.facts:
        yield draft_fact(fact, scene)


def _known_anchors(
    answers: Sequence[AnchorAnswer], anchors: Mapping[str, Memory], scene: Scene, dropped: Counter[str]
) -> list[_KnownAnchor]:
    """Anchors the session showed again or changed; each known anchor once, with turns of the user behind it.

    Counts in ``dropped`` what would have changed a pinned one.
    """
    by_anchor: dict[UUID, _KnownAnchor] = {}
    for answer in answers:
        anchor = anchors.get(plain_reference(answer.of or ""))
        if anchor is None or answer.change == "new":
            continue
        # Whoever pinned it wants these words.
        if anchor.pinned and answer.change == "changed":
            dropped[PINNED] += 1
            continue
        statement = _anchor_statement(answer, anchor, scene)
        if statement is None:
            continue
        change = _KnownAnchor(
            change=answer.change,
            memory_id=anchor.id,
            statement=statement,
        )
        # The first answer counts: an anchor that was replaced cannot be strengthened as well.
        by_anchor.setdefault(anchor.id, change)
    return list(by_anchor.values())


def _anchor_statement(answer: AnchorAnswer, anchor: Memory, scene: Scene) -> Statement | None:
    """The statement that strengthens or changes ``anchor``, or None where a guard rejects it.

    That it repeats what was handed in is its nature, so the anchors do not count as such here.
    """
    draft = draft_insight(answer, scene)
    if draft is None or has_wrong_speaker(draft, scene.ground):
        return None
    if answer.change == "strengthened":
        # Its own text again, so that the write path reinforces the row.
        return replace(draft.statement, text=anchor.text)
    if not sift([draft], scene.ground).statements:
        return None
    return replace(draft.statement, parents=(anchor.id,))


def fault_of_summary(text: str, scene: Scene) -> str | None:
    """Why the summary may not be kept, or None. It tells of the whole session, so all turns are its evidence."""
    ground = scene.ground
    texts = [turn.text for turn in ground.turns]
    if holds_secret(text):
        return SECRET
    if is_forbidden(text, ground.instructions.never):
        return FORBIDDEN
    if repeats_prompt(text, [ground.user_label, ground.agent_label, *texts]):
        return SAMPLE
    # Days and times stand before each turn that was shown.
    if invents_numbers(text, [scene.transcript.text]):
        return NUMBERS
    if states_new_name(text, ground, evidence="\n".join(texts)):
        return NEW_NAME
    return None


def _summary(text: str | None, talk: Talk) -> Statement | None:
    if text is None:
        return None
    return Statement(
        kind="episode",
        text=text[:SUMMARY_CHARS],
        origin=Origin.SYNTHESIZED,
        synthesis_type=SynthesisType.CONSOLIDATION,
        # When the last of it was said.
        valid_from=talk.turns[-1].at,
        evidence=tuple(turn.id for turn in talk.turns),
        source=talk.agent_label,
    )
