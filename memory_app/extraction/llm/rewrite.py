"""Merge the texts of several memories into one sentence by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_app.errors import BadModelOutput
from memory_app.extraction.llm.answers import MergeTexts
from memory_app.extraction.llm.instructions import instructed
from memory_app.extraction.llm.material import show_texts
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Provenance, ask, provenance_of
from memory_app.extraction.llm.unions import fault_of_union


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The text, and how it was made."""

    text: str
    provenance: Provenance


def merge_texts(asking: Asking, texts: Sequence[str]) -> Rewritten:
    """Return one sentence that says what all ``texts`` say.

    Raises `BadModelOutput` where it cannot stand for all of them (see `unions`); the longest of them is then the better
    choice. Not asked for while the model is slow (`TooSlow`).
    """
    prompt = instructed(load_prompt("merge_texts"), asking.instructions)
    answer = ask(asking, prompt, [show_texts(texts)], shape=MergeTexts, optional=True)
    text = answer.value.text
    fault = fault_of_union(text, texts)
    if fault is not None:
        raise BadModelOutput(f"the merged text was not taken: {fault}")
    return Rewritten(text, provenance_of(prompt, answer))
