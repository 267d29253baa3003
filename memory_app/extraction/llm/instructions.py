"""Give an agent's instructions to a model with a prompt, and tell what it took from them from what somebody said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memory_app.extraction.llm.prompts import Prompt, load_prompt
from memory_app.language.text import terms
from memory_app.records.instructions import Instructions
from memory_app.records.quote import quoted

FROM_INSTRUCTIONS = "words of the instructions"

TAKEN = 0.6
"""Share of a text's words in one line of the instructions from which on it was taken from there."""

FEWEST_WORDS = 3
"""Shorter texts share their words with a line by chance: "Mira takes medicine." tells of what the line asks for."""


def instructed(prompt: Prompt, instructions: Instructions) -> Prompt:
    """Return ``prompt`` with the instructions behind it; the same prompt where there are none."""
    if not instructions:
        return prompt
    frame = load_prompt("instructions")
    # Quoted, so that no line can close the tags, although whoever wrote it may be trusted.
    lines = [f"{name}: {quoted(line)}" for name, line in _lines(instructions)]
    text = "\n".join([prompt.text, "", frame.text, "<instructions>", *lines, "</instructions>"])
    return Prompt(f"{prompt.name}+{frame.name}", text, prompt.samples)


def _lines(instructions: Instructions) -> Iterator[tuple[str, str]]:
    for line in instructions.keep:
        yield "keep", line
    for line in instructions.never:
        yield "never", line
    for name, type in instructions.entity_types.items():
        yield "entity", f"{name} ({type})"
    for relation in instructions.relations:
        yield "relation", relation


def repeats_instructions(text: str, sources: Sequence[str], instructions: Instructions) -> bool:
    """Whether ``text`` says what a line of the instructions says, and the sources do not."""
    words = terms(text).keys()
    if len(words) < FEWEST_WORDS:
        return False
    taken = max((len(words & terms(line).keys()) for line in instructions.lines), default=0)
    if taken < TAKEN * len(words):
        return False
    said = terms("\n".join(sources)).keys()
    return len(words & said) < taken
