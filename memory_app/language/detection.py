"""Tell in which language a text is written, with the library py3langid. Offline; its model is part of the package.

The model takes about 100 MB of memory and a second to load. A worker that extracts loads it before it makes its
children, which then share it; whatever else calls this loads it with the first call. A client of the API needs neither
the library nor the model.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

EXAMINED_CHARS = 2_000
"""Characters from which the language is told; more changes nothing."""

RANKED = 12
"""So many languages are told of a text; all others are far less probable."""

SURE = 0.8
"""Probability from which a language is believed that nobody expected: 1,564 of the 1,858 turns in the case files of
seven languages reach it, and none of them is told wrongly."""

_QUOTED = re.compile(
    '["\u201e\u201c\u00ab][^"\u201d\u201c\u00bb\n]{1,300}["\u201d\u201c\u00bb]|`[^`\n]{1,300}`|https?://\\S+'
)
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Guess:
    """A language by its code of two or three letters, and how probable it is, 0 to 1."""

    language: str
    probability: float


def guesses(text: str) -> tuple[Guess, ...]:
    """The languages in which ``text`` may be, the most probable first; empty for a text without letters."""
    # "What does … mean?" is asked in one language and quotes another.
    words = _QUOTED.sub(" ", text[:EXAMINED_CHARS])
    if not any(map(str.isalpha, words)):
        return ()
    ranked = _identifier().rank(words)[:RANKED]
    return tuple(Guess(language, float(probability)) for language, probability in ranked)


def load() -> None:
    """Load the model now, if it is not loaded yet."""
    _identifier()


def _identifier() -> LanguageIdentifier:
    # Two threads would load it twice.
    with _LOCK:
        return _loaded()


@cache
def _loaded() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
