"""Decide by which rules a turn is read: those of English, of a pack, or of none."""

from __future__ import annotations

from collections.abc import Sequence

from memory_app.extraction.rules.packs.pack import LANGUAGES
from memory_app.language.detection import SURE, Guess, guesses
from memory_app.records.records import Role, Turn

ENGLISH = "en"

FEW_LETTERS = 24
"""A text with fewer letters is read in the language of the session, unless another one is sure."""


_LAST_LATIN = "\u024f"
"""The end of the block Latin Extended-B."""

READ_LANGUAGES = LANGUAGES | {ENGLISH}
"""The languages that rules read."""


def language_of(turn: Turn, before: Sequence[Turn]) -> str:
    """The language of ``turn``; where it is in doubt, that of the user's turns in ``before``, or else English.

    A language that no rules read is named only where it is sure.
    """
    own = guesses(turn.text)
    if not own:
        return ENGLISH
    best = own[0]
    if best.probability >= SURE or _is_foreign_script(turn.text, best):
        return best.language
    usual = _usual(before)
    if usual and (_letters(turn.text) < FEW_LETTERS or best.language not in READ_LANGUAGES):
        return usual
    return _readable(own)


def _is_foreign_script(text: str, best: Guess) -> bool:
    """Whether a text is in letters that no pack has, however short it is: all packs are written in Latin letters."""
    return best.language not in READ_LANGUAGES and not any(map(_is_latin, text))


def _is_latin(sign: str) -> bool:
    return sign.isalpha() and sign <= _LAST_LATIN


def _usual(before: Sequence[Turn]) -> str | None:
    text = "\n".join(turn.text for turn in before if turn.role is Role.USER)
    return _readable(guesses(text)) if _letters(text) >= FEW_LETTERS else None


def _readable(ranked: Sequence[Guess]) -> str:
    """The most probable of the languages that rules read."""
    return next((guess.language for guess in ranked if guess.language in READ_LANGUAGES), ENGLISH)


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))
