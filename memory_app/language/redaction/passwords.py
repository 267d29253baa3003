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
# A passphrase is made of ordinary words, so that only several of them tell it from what is said about one.
_PHRASE = re.compile(
    rf"(?<![^\W_])(?:pass[- ]?phrase|passsatz|frase de contrase[ñn]a|phrase secrète)s?[\"'`]?"
    rf"\s{{0,3}}{_IS}\s{{0,3}}[\"'`“”„«»「]?(?P<phrase>[^\W\d_]{{2,40}}(?:[ -][^\W\d_]{{2,40}}){{1,11}})",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[A-Za-z_][\w.]{0,80}[(\[]|\$\{|\{\{|<[a-z]|os\.|process\.|settings\.|\*{3}|\[[a-z]+\]?$", re.ASCII
)
_SAID_ABOUT = words_in(
    """
    a aber abgelaufen about above access achter again all als also always an and anotada any are as at
    atrás auch auf aufgeschrieben bajo be been before behind bei beneath beside bij by caché can cannot
    change changed collé compromised correct da dans das de debaixo debajo del dentro der derrière des
    detrás die dietro do does doesn't du e een ein eine el em en errada errata escrita est et expire
    expired expires expiring falsch false field for forgotten from für geschreven gespeichert geändert
    gone good guardada has hash hashed have here het hidden hint hinter how i if im immer in incorrect
    incorrecta incorrecto inside invalid is isn't ist it it's kein kept kurz la lang las le leaked leer
    les less link long longer los lost manager managers managing missing mit more must my na nascosta
    near neben never new nicht no noch none not noted notiert noté now null não o oder ok old olvidada
    on onder onjuist only opgeschreven or oublié our out page para pas perdu pinned plus policies policy
    por pour prompt protect protected protection que required requirement requirements reset resets
    reused richtig right rotated rotation rules safe same saved sbagliata schon scritta secret secure
    see segura sehr sent sequence set short shorter should shown sicher siehe so sobre sopra sotto sous
    steht stolen store stored str strength string strong stuck sur taped than that the their them there
    they this to today too true un una und undefined under une unknown unsafe unsicher unter until
    updated use used valid van vergessen vergeten verkeerd verloren versteckt very war was weak were
    what when where which who will with without won't working written wrong wurde y yesterday you your
    zu zurück zurückgesetzt écrit über
    """
)
"""Words that follow "password is" where something is said about it."""
_TALK = _SAID_ABOUT | words_in("auf dem enough inside near of short those")
"""Words of which no passphrase is made, behind its first."""


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
    for match in _PHRASE.finditer(text):
        if _is_phrase(match["phrase"]):
            yield Span(match.start("phrase"), match.end("phrase"), PrivateKind.PASSWORD)


def _is_phrase(words: str) -> bool:
    """ "correct horse battery", but not "on the fridge" nor "very long": at most the first is a word of talk."""
    return not any(word.lower() in _TALK for word in re.split("[ -]", words)[1:])


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
