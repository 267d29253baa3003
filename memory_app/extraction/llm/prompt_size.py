"""Estimate how many tokens a question to a language model has, without asking one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from memory_app.extraction.llm.answers import SynthesizeDeep, SynthesizeSession, SynthesizeTurn
from memory_app.extraction.llm.material import show_turns
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.providers.chat import estimated_tokens, schema_in_words, shape_of
from memory_app.records.records import Turn

MEMORY_TOKENS = 30
"""A memory in a prompt: a short sentence with its reference, kind and date."""

_ZONE = ZoneInfo("UTC")


def tokens_about_turns(
    turns: Sequence[Turn], earlier: Sequence[Turn] = (), *, with_schema: bool = False
) -> int:
    """Tokens of the question about ``turns``; ``with_schema``: the server counts the schema of the answer, too."""
    transcript = show_turns(turns, earlier, zone=_ZONE).text
    return _tokens("synthesize_turn", SynthesizeTurn, transcript, with_schema=with_schema)


def tokens_about_session(turns: Sequence[Turn], *, anchors: int, with_schema: bool = False) -> int:
    """Tokens of the question about a session that has ended."""
    transcript = show_turns(turns, (), zone=_ZONE).text
    tokens = _tokens("synthesize_session", SynthesizeSession, transcript, with_schema=with_schema)
    return tokens + anchors * MEMORY_TOKENS


def tokens_about_memories(memories: int, *, with_schema: bool = False) -> int:
    """Tokens of the question about so many memories."""
    tokens = _tokens("synthesize_deep", SynthesizeDeep, "", with_schema=with_schema)
    return tokens + memories * MEMORY_TOKENS


def _tokens(prompt: str, shape: type[BaseModel], material: str, *, with_schema: bool) -> int:
    schema = schema_in_words(shape_of(shape)) if with_schema else ""
    return estimated_tokens(load_prompt(prompt).text + material + schema)
