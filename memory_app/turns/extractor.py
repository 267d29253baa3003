"""Turn a part of a conversation into statements, by rules or by a language model, as the agent's policy says.

Both give the same kind of answer. No transaction is open during a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from memory_app.extraction import model_calls, rules
from memory_app.extraction.llm import Talk, synthesize_turns
from memory_app.memories.forbidden import FORBIDDEN, is_forbidden
from memory_app.records.instructions import Instructions
from memory_app.records.records import Extraction
from memory_app.runtime import Runtime
from memory_app.tenancy.policy import ExtractionMode, Policy

RULES = "rules-1"
"""Name and version of the rule extractor, kept with each run."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of an extractor; ``made`` has its prompt, model, tokens, seconds and what was dropped."""

    extraction: Extraction
    made: Mapping[str, Any]

    @property
    def asked_model(self) -> bool:
        return self.model != RULES

    @property
    def model(self) -> str:
        return str(self.made.get("model") or RULES)

    @property
    def prompt(self) -> str | None:
        return self.made.get("prompt") or None


def answer(runtime: Runtime, tenant_id: int, talk: Talk, *, policy: Policy) -> Answered:
    """Ask the extractor of the policy. Raises what the language model raises; rules never fail."""
    if policy.extraction is ExtractionMode.LLM:
        extracted = synthesize_turns(model_calls.small(runtime, tenant_id, policy), talk)
        model_calls.count_dropped(runtime, extracted.provenance.dropped)
        return Answered(extracted.extraction, extracted.provenance.as_dict())
    extraction = rules.extract(
        talk.turns,
        talk.earlier,
        user_label=talk.user_label,
        agent_label=talk.agent_label,
        time_zone=talk.time_zone,
        labels=talk.labels,
        known_people=talk.known_people,
    )
    return Answered(allowed(extraction, policy.instructions), {"model": RULES})


def allowed(extraction: Extraction, instructions: Instructions) -> Extraction:
    """Leave out what the agent's instructions forbid to keep, with the reason of its turns."""
    never = instructions.never
    if not never:
        return extraction
    forbidden = [item for item in extraction.statements if is_forbidden(item.text, never)]
    kept = tuple(item for item in extraction.statements if item not in forbidden)
    used = set(chain.from_iterable(item.evidence for item in kept))
    turns = set(chain.from_iterable(item.evidence for item in forbidden)) - used
    reasons = extraction.reasons | dict.fromkeys(turns, f"guarded: {FORBIDDEN}")
    return replace(extraction, statements=kept, reasons=reasons)
