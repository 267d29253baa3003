"""What a turn asks, as one short text: the node of the query graph. Pure."""

from __future__ import annotations

import re

from memory_app.language.table import alternatives

QUESTION_LIMIT = 300
"""Longest question kept, in characters; of a longer one the end, where the question mark stands."""

LEAST_LETTERS = 6
"""A question shorter than this ("Why?") says nothing without what went before."""

_SENTENCE = re.compile(r"[^.!?\u3002\uff01\uff1f\u061f\n]+[.!?\u3002\uff01\uff1f\u061f]*")
_ENDS_ASKING = re.compile("[?\uff1f\u061f\u037e]\\s*$")
_BEGINS_ASKING = re.compile(
    rf"\s*(?:{alternatives(lambda language: language.question_patterns)})", re.IGNORECASE
)


def question_of(text: str) -> str | None:
    """The sentences of ``text`` that ask something, or None when nothing is asked.

    A sentence asks when it ends with a question mark, in any script; a turn of one sentence also when it begins as
    questions and requests do.
    """
    sentences = [match[0].strip() for match in _SENTENCE.finditer(text) if match[0].strip()]
    asking = [sentence for sentence in sentences if _ENDS_ASKING.search(sentence)]
    if not asking and len(sentences) == 1 and _BEGINS_ASKING.match(sentences[0]):
        asking = sentences
    said = " ".join(" ".join(asking).split())
    if sum(character.isalnum() for character in said) < LEAST_LETTERS:
        return None
    return (
        said
        if len(said) <= QUESTION_LIMIT
        else said[-QUESTION_LIMIT:].partition(" ")[2] or said[-QUESTION_LIMIT:]
    )
