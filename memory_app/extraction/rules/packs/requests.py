"""Keep what the author asks to be remembered and no rule reads: "remember that the cleaner comes on Tuesdays". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from memory_app.extraction.rules.packs import slot_values
from memory_app.extraction.rules.packs.clauses import stated_parts, without_opening
from memory_app.extraction.rules.packs.fact import Fact
from memory_app.extraction.rules.packs.format import PackRule
from memory_app.extraction.rules.packs.pack import Pack

FEWEST_WORDS = 3
"""Words of what is to be remembered; "remember that song" states nothing."""

_RULE = PackRule(relation="asked_to_remember", says="", importance=7)


def request_in(pack: Pack, sentence: str) -> re.Match[str] | None:
    """The words with which ``sentence`` asks for what follows them to be remembered."""
    return pack.request.match(without_opening(pack, sentence)) or pack.request.match(sentence)


def requested(pack: Pack, match: re.Match[str]) -> str:
    """What is to be remembered. "Can you remember that …?" is no question."""
    rest = match.string[match.end() :]
    is_asked = pack.question.match(match[0]) is not None
    return rest.rstrip(" ?") if is_asked else rest


def facts_in_words(pack: Pack, match: re.Match[str]) -> Iterator[Fact]:
    """What is to be remembered, in the author's words: each thing by itself, where several are joined."""
    template = pack.file.request.says
    text = requested(pack, match)
    if template is None or not _is_statement(pack, match[0], text):
        return
    parts = takewhile(lambda part: _is_about_author(pack, part.text), stated_parts(pack, text))
    stated = "".join(part.separator + part.text for part in parts)
    for thing in filter(None, pack.request_joint.split(stated)):
        words = thing.split()
        if len(words) >= FEWEST_WORDS:
            reported = slot_values.reported(pack, thing)
            yield Fact(_RULE, _RULE.relation, reported, template.format(text=reported), is_request=True)


def _is_about_author(pack: Pack, text: str) -> bool:
    """Whether no word points at the talk instead: "that you said it was fine"."""
    return pack.words.not_in_requests.isdisjoint(text.lower().split())


def _is_statement(pack: Pack, request: str, text: str) -> bool:
    """Whether something is stated: "remember the milk" is a task, "remember that …" and "remember: …" are not."""
    if not text.strip() or text.rstrip().endswith("?"):
        return False
    plain = request.rstrip()
    has_sign = plain.endswith((",", ":", ";")) or plain.lower().endswith(f" {pack.file.request.that}")
    words = text.lower().split()
    is_clause = words[0] in pack.file.reported or not pack.words.verbs.isdisjoint(words)
    return has_sign or is_clause
