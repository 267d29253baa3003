"""Queries for an overview: "in what order did I bring up …", "summarise how … went". Knows English words.

Most of their words say what is to be done with what is found. They are rare in a conversation, so that they would count
more than those that name the subject, and are left out of the search (stop structure: Huston and Croft, SIGIR 2010).
"""

from __future__ import annotations

import re

_OVERVIEW = re.compile(
    r"\bin (?:what|which) order\b|\border in which\b|\bin order\b|\bsummar(?:y|i[sz]e)\b|\bover time\b"
    r"|\b(?:throughout|across) (?:our|my|all|the)\b|\btimeline\b|\bprogress(?:ed|ion)?\b|\bevolv(?:e|ed|ing)\b"
    r"|\boverview\b|\brecap\b",
    re.IGNORECASE,
)
_TO_DO = re.compile(
    r"\b(?:across|aspects?|bring|brought|chats?|comprehensive|conversations?|covering|different|discuss(?:ed|ions?)"
    r"|exactly|including|items?|list|mention(?:ed|ing)?|only|orders?|overview|recap|sessions?|show|summar(?:y|i[sz]e)"
    r"|tell|throughout|various|walk|three|four|five|six|seven|eight|nine|ten)\b",
    re.IGNORECASE,
)


def is_overview(query: str) -> bool:
    """Return whether ``query`` asks for an overview of many things rather than for one of them."""
    return _OVERVIEW.search(query) is not None


def subject_of(query: str) -> str:
    """Return the words of ``query`` that name its subject: all of them, unless it asks for an overview of one."""
    if not is_overview(query):
        return query
    rest = " ".join(word for word in query.split() if not _TO_DO.search(word))
    # "Summarize our conversations" names no subject; then all of its words are searched for.
    return rest or query
