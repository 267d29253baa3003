"""Tell a text that a model took from our prompts from one that somebody said.

All prompts are looked at, whichever was sent: an example that came back once may stand in a memory that is shown again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from memory_app.extraction.llm.prompts import load_all_prompts
from memory_app.language.text import normalise

FEWEST_WORDS = 4
"""Words from which on a text that stands in a prompt was taken from it; fewer are a phrase like any other."""

_SPEAKER = re.compile(r"\| user \| ([^:\n]+):")
_WORD = re.compile(r"[^\W\d_]+")


def repeats_prompt(text: str, sources: Sequence[str]) -> bool:
    """Whether ``text`` stands in a prompt, or names somebody of an example, and no source says the same."""
    repeated = _repeated(text)
    return any(not _holds(sources, part) for part in repeated)


def _repeated(text: str) -> list[str]:
    """What of ``text`` comes from a prompt: all of it, or names."""
    names = [name for name in example_names() if name in map(str.casefold, _WORD.findall(text))]
    whole = normalise(text)
    is_sentence = len(whole.split()) >= FEWEST_WORDS
    return [*names, whole] if is_sentence and whole in _all_prompts() else names


def _holds(sources: Sequence[str], part: str) -> bool:
    return any(part in normalise(source) for source in sources)


@cache
def _all_prompts() -> str:
    # As one line: a sentence of a prompt may go over several.
    return normalise(" ".join(" ".join(prompt.text.split()) for prompt in load_all_prompts()))


@cache
def example_names() -> frozenset[str]:
    """Return the people of the prompts' examples, in lower case."""
    samples = "\n".join(sample for prompt in load_all_prompts() for sample in prompt.samples)
    return frozenset(name.strip().casefold() for name in _SPEAKER.findall(samples))
