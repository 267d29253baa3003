"""Estimate how many tokens a question to a language model has, without asking one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from memory_app.extraction.llm.answers import SynthesizeDeep, SynthesizeSession, SynthesizeTurn
from memory_app.extraction.llm.instructions import instructed
from memory_app.extraction.llm.material import show_turns
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.providers.chat import estimated_tokens, schema_in_words, shape_of
from memory_app.records.instructions import NO_INSTRUCTIONS, Instructions
from memory_app.records.records import Turn

MEMORY_TOKENS = 30
"""A memory in a prompt: a short sentence with its reference, kind and date."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What goes with every question of an agent: its instructions, and the schema where the server counts it."""

    instructions: Instructions = NO_INSTRUCTIONS
    counts_schema: bool = False


PLAIN = Frame()

_ZONE = ZoneInfo("UTC")


def tokens_about_turns(turns: Sequence[Turn], earlier: Sequence[Turn] = (), *, frame: Frame = PLAIN) -> int:
    """Tokens of the question about ``turns``."""
    transcript = show_turns(turns, earlier, zone=_ZONE).text
    return _tokens("synthesize_turn", SynthesizeTurn, transcript, frame)


def tokens_about_session(turns: Sequence[Turn], *, anchors: int, frame: Frame = PLAIN) -> int:
    """Tokens of the question about a session that has ended."""
    transcript = show_turns(turns, (), zone=_ZONE).text
    tokens = _tokens("synthesize_session", SynthesizeSession, transcript, frame)
    return tokens + anchors * MEMORY_TOKENS


def tokens_about_memories(memories: int, *, frame: Frame = PLAIN) -> int:
    """Tokens of the question about so many memories."""
    tokens = _tokens("synthesize_deep", SynthesizeDeep, "", frame)
    return tokens + memories * MEMORY_TOKENS


def _tokens(name: str, shape: type[BaseModel], material: str, frame: Frame) -> int:
    schema = schema_in_words(shape_of(shape)) if frame.counts_schema else ""
    prompt = instructed(load_prompt(name), frame.instructions)
    return estimated_tokens(prompt.text + material + schema)
