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

RUN_WORDS = 5
"""So many words of a text in a row that stand in a prompt were taken from it, whatever stands around them."""

_SPEAKER = re.compile(r"\| user \| ([^:\n]+):")
_WORD = re.compile(r"[^\W\d_]+")


def repeats_prompt(text: str, sources: Sequence[str]) -> bool:
    """Whether ``text`` stands in a prompt, or names somebody of an example, and no source says the same."""
    repeated = _repeated(text)
    return any(not _holds(sources, part) for part in repeated)


def _repeated(text: str) -> list[str]:
    """What of ``text`` comes from a prompt: words in a row, or names."""
    words_of_text = set(map(str.casefold, _WORD.findall(text)))
    names = [name for name in example_names() if name in words_of_text]
    words = normalise(text).split()
    # A text of fewer words than a run is looked for as a whole.
    length = min(len(words), RUN_WORDS)
    if length < FEWEST_WORDS:
        return names
    runs = (" ".join(words[start : start + length]) for start in range(len(words) - length + 1))
    return [*names, *(run for run in runs if run in _all_prompts())]


def _holds(sources: Sequence[str], part: str) -> bool:
    return any(part in normalise(source) for source in sources)


@cache
def _all_prompts() -> str:
    # As one line: a sentence of a prompt may go over several.
    return normalise(" ".join(" ".join(prompt.text.split()) for prompt in load_all_prompts()))


@cache
def samples() -> tuple[str, ...]:
    """Return the examples of all prompts line by line, since what comes from one repeats a line of it."""
    return tuple(
        line for prompt in load_all_prompts() for sample in prompt.samples for line in sample.splitlines()
    )


@cache
def example_names() -> frozenset[str]:
    """Return the people of the prompts' examples, in lower case."""
    return frozenset(name.strip().casefold() for name in _SPEAKER.findall("\n".join(samples())))
