"""The passage of a long text that bears on a query: where most of the weight of its words stands together. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from memory_app.records.quote import ELLIPSIS, shortened

OCCURRENCES_LIMIT = 200
"""Places of one word that are looked at; a word that stands everywhere says little about where to look."""

LEAD_SHARE = 4
"""A passage begins up to this part of its length before the first word, so that the words are read in context."""

Words = Mapping[str, float]
"""Beginnings of words in lower case, each with its weight."""


def passage(text: str, limit: int, words: Words) -> str:
    """Return ``text`` in at most ``limit`` characters: whole, or the part with most weight of ``words``.

    What is left out is marked by an ellipsis at either end; without any of the words it is the beginning.
    """
    if len(text) <= limit:
        return text
    start = _start(text, limit, words)
    if start <= 0:
        return shortened(text, limit)
    # On a line of its own the ellipsis leaves the next line its indentation.
    is_indented = text[start - 1] == "\n" and text[start].isspace()
    mark = f"{ELLIPSIS}\n" if is_indented else ELLIPSIS
    rest = text[start:]
    room = limit - len(mark)
    return mark + (shortened(rest, room) if len(rest) > room else rest)


def _start(text: str, limit: int, words: Words) -> int:
    """Where the passage begins; 0 where the beginning is as good as any other part."""
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few capitals have no small letter of one character, and places would no longer be the same.
        return 0
    places = sorted(_occurrences(lowered, words))
    if not places:
        return 0
    lead = limit // LEAD_SHARE
    first = _best_place(places, limit - lead)
    # The beginning says what a text is about: where it holds the words, too, it is the better part.
    if first + limit // 2 <= limit:
        return 0
    # Near the end the passage is the end.
    earliest = min(max(first - lead, 0), len(text) - limit + 1)
    return _word_start(text, earliest, first)


def _occurrences(lowered: str, words: Words) -> list[tuple[int, str, float]]:
    places = []
    for word, weight in words.items():
        place = lowered.find(word)
        for _ in range(OCCURRENCES_LIMIT):
            if place < 0:
                break
            # At the beginning of a word only: "art" does not stand in "part". Not so in scripts without spaces.
            if place == 0 or not word.isascii() or not lowered[place - 1].isalnum():
                places.append((place, word, weight))
            place = lowered.find(word, place + len(word))
    return places


def _best_place(places: list[tuple[int, str, float]], length: int) -> int:
    """The place from which ``length`` characters hold most weight, each word counted once; of equal ones the first."""
    best, best_weight = 0, 0.0
    counts: dict[str, int] = {}
    weight = 0.0
    end = 0
    # Both ends of the part only move on, so that each place is looked at twice, however many there are.
    for start, word, value in places:
        while end < len(places) and places[end][0] < start + length:
            _, other, other_value = places[end]
            counts[other] = counts.get(other, 0) + 1
            weight += other_value if counts[other] == 1 else 0.0
            end += 1
        if weight > best_weight + 1e-9:
            best, best_weight = start, weight
        counts[word] -= 1
        weight -= value if counts[word] == 0 else 0.0
    return best


def _word_start(text: str, earliest: int, latest: int) -> int:
    """The beginning of a sentence, or else of a word, between the two places."""
    for mark in ("\n", ". ", "! ", "? ", " "):
        place = text.find(mark, earliest, latest)
        if place >= 0:
            return place + len(mark)
    return earliest
