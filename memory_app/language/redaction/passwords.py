"""Passwords, personal identification numbers and codes, by the words that introduce them.

In doubt a value counts as a secret. Left alone is what people say *about* a password: "is required", "ist falsch".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_app.language.language import words_in
from memory_app.language.redaction.kinds import PrivateKind, Span

_NAMES = (
    r"pass(?:word|wort|phrase|code)s?|kennw[oö]rt|passwd|pwd|login data|contrase[ñn]as?|mot de passe|senha"
    r"|palavra[- ]passe|parola d['’]ordine|wachtwoord|пароль|密码|密碼|パスワード|비밀번호"
)
_IS = r"(?:is now|was|is|ist|lautet|war|es|era|est|était|foi|é|è|são|was|:=|=>|=|：|:|是|は)"
_VALUE = re.compile(
    rf"(?<![^\W_])(?:{_NAMES})[\"'`]?(?P<link>\s{{0,3}}{_IS}\s{{0,3}}|\s{{1,3}})"
    r"(?P<quote>[\"'`“„«「]?)(?P<value>[^\s\"'`“”„«»」]{3,200})",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![^\W_])(?:pin|pin[- ]?(?:code|number|nummer)|geheimzahl|cvv2?|cvc2?|card verification|security code|"
    r"verification code|one[- ]time (?:code|password)|otp|2fa code|bestätigungscode|tan|code pin"
    r"|código de verificación)"
    r"(?:[ \t]{1,3}(?:number|code|for (?:my|the) card))?[\"'`]?\s{0,3}(?:is|ist|lautet|es|est|é|è|=|:)?\s{0,3}[\"'`]?"
    r"(\d(?:[ -]?\d){2,9})(?![\d\w]|[.,:/-]\d)",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[A-Za-z_][\w.]{0,80}[(\[]|\$\{|\{\{|<[a-z]|os\.|process\.|settings\.|\*{3}|\[[a-z]+\]?$", re.ASCII
)
_SAID_ABOUT = words_in(
    """
    a aber abgelaufen about access again all als also always an and any are as at auch be been before by
    can cannot change changed compromised correct da das de del der des die do does doesn't du e een ein
    eine el em en errada errata est et expire expired expires expiring falsch false field for forgotten
    from für gespeichert geändert gone good has hash hashed have here het hint how i if im immer in
    incorrect incorrecta incorrecto invalid is isn't ist it it's kein kept la las le leaked leer les
    less link los lost manager managers managing missing mit more must my na never new nicht no noch
    none not now null não o oder ok old olvidada on onjuist only or oublié our out page para pas perdu
    plus policies policy por pour prompt protect protected protection que required requirement
    requirements reset resets reused richtig right rotated rotation rules safe same saved sbagliata
    schon secret secure see segura sehr sent sequence set should shown sicher siehe so stolen store
    stored str strength string strong that the their them there they this to today too true un una und
    undefined une unknown unsafe unsicher until updated use used valid van vergessen vergeten verkeerd
    verloren very war was weak were what when where which who will with without won't working wrong
    wurde y yesterday you your zu zurück zurückgesetzt
    """
)
"""Words that follow "password is" where something is said about it."""


def find_passwords(text: str) -> Iterator[Span]:
    """Yield what a text gives as a password, a PIN or a code; the words that introduce it stay."""
    for match in _VALUE.finditer(text):
        start = match.start("value")
        # The end of the sentence is no part of it, in quotes everything is.
        value = match["value"] if match["quote"] else match["value"].rstrip(".,;:!?)]}")
        if _is_password(value, link=match["link"], is_quoted=bool(match["quote"])):
            yield Span(start, start + len(value), PrivateKind.PASSWORD)
    for match in _NUMBER.finditer(text):
        yield Span(match.start(1), match.end(1), PrivateKind.PASSWORD)


def _is_password(value: str, *, link: str, is_quoted: bool) -> bool:
    if len(value) < 3 or _is_code(value):
        return False
    is_word = value.replace("-", "").isalpha()
    if not link.strip():
        # "password hunter2": without a verb only what no word looks like.
        return not is_word and any(map(str.isdigit, value))
    if is_quoted and value.lower() not in _SAID_ABOUT:
        return True
    return not is_word or value.lower() not in _SAID_ABOUT


def _is_code(value: str) -> bool:
    """A call, an attribute or a template of a program, in which the password does not stand, or a mark of ours."""
    return _CODE.match(value) is not None
