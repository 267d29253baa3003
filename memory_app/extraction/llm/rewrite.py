"""Merge the texts of several memories into one sentence by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_app.errors import BadModelOutput
from memory_app.extraction.llm.answers import MergeTexts
from memory_app.extraction.llm.material import show_texts
from memory_app.extraction.llm.numbers import changes_numbers
from memory_app.extraction.llm.prompt_echo import repeats_prompt
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Provenance, ask, provenance_of


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The text, and how it was made."""

    text: str
    provenance: Provenance


def merge_texts(asking: Asking, texts: Sequence[str]) -> Rewritten:
    """Return one sentence that says what all ``texts`` say.

    Raises `BadModelOutput` when a number was changed, the text grew beyond its sources or comes from a prompt; the
    longest of them is then the better choice. Not asked for while the model is slow (`TooSlow`).
    """
    prompt = load_prompt("merge_texts")
    answer = ask(asking, prompt, [show_texts(texts)], shape=MergeTexts, optional=True)
    text = answer.value.text
    if changes_numbers(text, texts):
        raise BadModelOutput("the merged text has other numbers than its sources")
    if len(text) > sum(len(source) for source in texts):
        raise BadModelOutput("the merged text is longer than its sources")
    if repeats_prompt(text, texts):
        raise BadModelOutput("the merged text repeats the prompt")
    return Rewritten(text, provenance_of(prompt, answer))
