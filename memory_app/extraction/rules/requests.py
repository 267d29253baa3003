# ruff: noqa: E501 (a pattern stays in one piece)
"""Read outright requests: a name to be called by, a way to be spoken to."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_app.extraction.rules import words
from memory_app.extraction.rules.names import NAME, is_name

_OPENING = r"^(?:(?:hey|hi|please|also|and|just|so|oh|ok|okay|btw|but|well|actually)[ ,]+)*"
_CALL_ME = re.compile(
    _OPENING
    + r"(?:you (?:can|may) (?:just |also )?call me|(?:my )?(?:friends|everyone|everybody|people|family) (?:all )?calls? me|"
    rf"(?:just )?call me) (?P<name>{NAME})(?:$|[.!,]| (?:please|from|instead|for short|by the way|and)\b)",
    re.IGNORECASE,
)
_REPLIES = r"(?:it|things|this|your (?:answers?|replies|reply|responses?|messages?|explanations?)|answers|replies|responses)"
_STYLE = (
    r"short|brief|concise|simple|casual|formal|professional|detailed|direct|honest|blunt|friendly|polite|playful|informal|"
    r"technical|to the point|light|funny|serious|gentle|patient"
)
_ACTS = (
    r"us(?:e|ing)|call(?:ing)?|mention(?:ing)?|ask(?:ing)?|send(?:ing)?|talk(?:ing)?|say(?:ing)?|start(?:ing)?|add(?:ing)?|"
    r"apologi[sz](?:e|ing)|repeat(?:ing)?|suggest(?:ing)?|bring(?:ing)? up|end(?:ing)?|includ(?:e|ing)|giv(?:e|ing) me|"
    r"tell(?:ing)?|lecture|lecturing|joke|joking|address(?:ing)?|interrupt(?:ing)?|recommend(?:ing)?|answer(?:ing)?|"
    r"reply(?:ing)?|respond(?:ing)?|write|writing|speak(?:ing)?|swear(?:ing)?|explain(?:ing)?"
)
_HOW_TO_SPEAK = re.compile(
    _OPENING
    + "(?P<wish>"
    + "|".join(
        (
            rf"keep {_REPLIES} (?:\w+ )?(?:{_STYLE})\b.*",
            rf"be (?:more |less |very |a bit more |a little more )?(?:{_STYLE})(?: with me| when .*| in your .*)?$",
            r"(?:from now on|in (?:the )?future|going forward),? .+",
            rf"always (?:{_ACTS}|keep|be|include|format|assume|convert|cite|show(?! up| off))\b .+",
            rf"(?:never|do not ever|stop|avoid) (?!say never)(?:{_ACTS})\b .+",
            r"do not (?:use|call me|mention|bring up|send me|lecture|start|end|address me)\b .+",
            rf"(?:answer|reply|respond|speak|talk|write)(?: to me)? (?:only )?in (?:{words.LANGUAGES}|short sentences|bullet points|plain \w+|simple \w+)(?: only)?(?: from now on)?$",
            r"use (?:bullet points|(?:fewer|more|no|less) emojis?|simple \w+|plain \w+|metric(?: units)?|my first name|short sentences)\b.*",
        )
    )
    + ")",
    re.IGNORECASE,
)
_AGAINST_RULES = re.compile(
    r"\b(?:instructions?|system|prompt|ignore|disregard|rules?|pretend|jailbreak|developer mode|policy|reveal|memory|tag)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wish:
    """``relation`` and ``object`` of an `expression`; ``says`` follows the speaker's name in its text."""

    relation: str
    object: str
    says: str


_LONGEST_WISH = 200
"""Characters. A longer sentence is pasted text, not a wish."""


def wish_of(sentence: str, *, agent_label: str) -> Wish | None:
    """Return how the speaker wants to be addressed or spoken to, or None if ``sentence`` does not ask for that."""
    plain = sentence.strip(" .!")
    call = _CALL_ME.match(plain)
    if call:
        name = call["name"]
        # "Call me Monday": no name, and no wish of another kind either.
        if not is_name(name):
            return None
        return Wish("preferred_name", name, says=f"wants to be called {name}")
    match = _HOW_TO_SPEAK.match(plain)
    if match is None or not _is_plain_wish(plain):
        return None
    wish = match["wish"].removesuffix(" please").strip(" ,")
    return Wish("wants_replies", wish, says=f"asked {agent_label or 'for this'}: {wish}")


def _is_plain_wish(sentence: str) -> bool:
    """Whether a wish may be stored: what is stored stands in every later prompt, so attacks on it are no wishes."""
    if sentence.endswith("?") or len(sentence) > _LONGEST_WISH:
        return False
    return _AGAINST_RULES.search(sentence) is None
