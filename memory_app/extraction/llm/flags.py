# ruff: noqa: E501 (a pattern stays in one piece)
"""Tag statements that look like an attempt to steer whoever reads them: commands, links, markup. Pure.

A pattern list is a signal, not a wall: nothing is dropped for it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from memory_app.language.characters import INVISIBLE, shape_of
from memory_app.records.kinds import KINDS
from memory_app.records.records import Statement

INSTRUCTION = "flagged:instruction"
LINK = "flagged:link"
MARKUP = "flagged:markup"
FLAGGED_CONFIDENCE = 0.3
"""The highest confidence of a statement with a tag."""

_OVERRIDE = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|rules?|prompts?|guidelines?|earlier|previous|prior)\b"
    r"|\b(?:system prompt|developer mode|jailbreak|hidden instructions?)\b"
    r"|\bdo not (?:tell|inform|warn|ask) the user\b|\bwithout (?:asking|confirmation|telling)\b"
    r"|\b(?:reveal|print|repeat|leak|send|post|forward|exfiltrate) (?:\w+ ){0,4}(?:system prompt|api keys?|passwords?|credentials)"
    r"|\b(?:ignoriere|vergiss|missachte) (?:\w+ ){0,3}(?:anweisungen|regeln|vorgaben)"
    r"|\bignorez? (?:\w+ ){0,3}(?:instructions|consignes|règles)"
    r"|\bignor[ae] (?:\w+ ){0,3}(?:instrucciones|reglas|istruzioni|regole|instruções|regras)"
    r"|\bnegeer (?:\w+ ){0,3}(?:instructies|regels)"
    r"|忽略(?:之前|以上|所有|前面)?的?(?:所有)?(?:指令|指示|规则|規則)"
    r"|(?:以前|これまで|上記)の(?:指示|命令|ルール)を(?:無視|忘れ)",
    re.IGNORECASE | re.DOTALL,
)
_COMMAND = re.compile(
    r"\b(?:you|the assistant|the ai|the model|agents?) (?:must|shall|has to|have to|should always|should never|is obliged to)\b"
    r"|\b(?:always|never) (?:obey|trust|approve|execute|run|send|transfer|reveal|share|recommend|mention)\b"
    r"|\bfrom now on\b.{0,40}\b(?:act|respond|answer|behave|obey)\b|\b(?:act|behave) as (?:if|an?|the)\b",
    re.IGNORECASE | re.DOTALL,
)
_LINK = re.compile(r"\b(?:https?|ftp|file|data|javascript):\S|\bwww\.\w", re.IGNORECASE)
_MARKUP = re.compile(r"</?[A-Za-z!][^>\n]{0,100}>|```|\{\{|\[/?[A-Z]{3,}\]|!\[[^\]]*\]\(")
_FLAGS_OF_COMMANDS = ((INSTRUCTION, _OVERRIDE), (LINK, _LINK), (MARKUP, _MARKUP))
_FLAGS = ((INSTRUCTION, _COMMAND), *_FLAGS_OF_COMMANDS)


def flagged(statement: Statement) -> Statement:
    """Tag the statement for each thing that makes it suspect, and then give it little confidence.

    A kind that may command is only held against the attempts to change other rules.
    """
    patterns = _FLAGS_OF_COMMANDS if KINDS[statement.kind].may_command else _FLAGS
    # Letters that only look like Latin ones, and characters that nobody sees, hide nothing.
    shape = shape_of(INVISIBLE.sub("", statement.text))
    tags = [tag for tag, pattern in patterns if pattern.search(shape)]
    if not tags:
        return statement
    return replace(
        statement,
        # Each once, in a fixed order, so that the same statement is stored the same way again.
        tags=tuple(dict.fromkeys((*statement.tags, *tags))),
        confidence=min(statement.confidence, FLAGGED_CONFIDENCE),
    )
