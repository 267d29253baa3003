"""Extract what a turn asks, as one short text: the node of the query graph. Pure."""

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
    """Return the sentences of ``text`` that ask something, or None when nothing is asked.

    A sentence asks when it ends with a question mark, in any script; a turn of one sentence also when it begins as
    questions and requests do.
    """
    sentences = list(filter(None, map(str.strip, _SENTENCE.findall(text))))
    questions = list(filter(_ENDS_ASKING.search, sentences))
    # Chats leave the question mark out. In a longer turn "how I did it" may begin a sentence that tells something.
    if not questions and len(sentences) == 1:
        questions = list(filter(_BEGINS_ASKING.match, sentences))
    question = " ".join(" ".join(questions).split())
    letters = sum(map(str.isalnum, question))
    return _end(question) if letters >= LEAST_LETTERS else None


def _end(question: str) -> str:
    """At most `QUESTION_LIMIT` characters of the end of ``question``, from the beginning of a word."""
    if len(question) <= QUESTION_LIMIT:
        return question
    end = question[-QUESTION_LIMIT:]
    return end.partition(" ")[2] or end
