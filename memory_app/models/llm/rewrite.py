"""One text from several: memories merged into one sentence, and the narrative of a context window."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from memory_app.domain.records import Memory
from memory_app.errors import BadModelOutput
from memory_app.models.llm.answers import MergeTexts, Summarize
from memory_app.models.llm.made import Asking, Made, ask, made_of
from memory_app.models.llm.material import numbered_memories, show_memories, show_texts
from memory_app.models.llm.numbers import changes_numbers, invents_numbers
from memory_app.models.llm.prompts import load_prompt

SENTENCES_AT_MOST = 4
NARRATIVE_CHARS = 1_200

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=\S)")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The text, and how it was made."""

    text: str
    made: Made


def merge_texts(asking: Asking, texts: Sequence[str]) -> Rewritten:
    """One sentence that says what all ``texts`` say. Raises `BadModelOutput` when a number was changed or the text
    grew beyond its sources; the longest of them is then the better choice.
    """
    prompt = load_prompt("merge_texts")
    answer = ask(asking, prompt, [show_texts(texts)], MergeTexts)
    text = answer.value.text
    if changes_numbers(text, texts):
        raise BadModelOutput("the merged text has other numbers than its sources")
    if len(text) > sum(len(source) for source in texts):
        raise BadModelOutput("the merged text is longer than its sources")
    return Rewritten(text, made_of(prompt, answer))


def summarize(asking: Asking, memories: Sequence[Memory], *, time_zone: ZoneInfo) -> Rewritten:
    """Two to four sentences over ``memories``. Left out (`CircuitOpen`) while the model is slow.

    Raises `BadModelOutput` when a number stands in it that no memory has.
    """
    prompt = load_prompt("summarize")
    shown = show_memories(numbered_memories(memories), zone=time_zone)
    answer = ask(asking, prompt, [shown], Summarize, optional=True)
    sentences = _SENTENCE_END.split(answer.value.summary)[:SENTENCES_AT_MOST]
    text = " ".join(sentences)[:NARRATIVE_CHARS]
    if invents_numbers(text, [shown]):
        raise BadModelOutput("the summary has numbers that no memory has")
    return Rewritten(text, made_of(prompt, answer))
