"""Numbers that a state gives a person, by form and check digits of python-stdnum.

Forms that nothing else has are found anywhere. Bare digits, of which every tenth order number passes a check digit,
only behind the name of such a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from stdnum.be import nn as be_nn
from stdnum.br import cpf
from stdnum.ca import sin
from stdnum.ch import ssn as ch_ssn
from stdnum.cn import ric
from stdnum.de import idnr
from stdnum.dk import cpr
from stdnum.es import dni, nie
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.in_ import aadhaar
from stdnum.it import codicefiscale
from stdnum.nl import bsn
from stdnum.no import fodselsnummer
from stdnum.pl import pesel
from stdnum.pt import cc as pt_cc
from stdnum.pt import nif as pt_nif
from stdnum.se import personnummer
from stdnum.us import itin, ssn

from memory_app.language.redaction.kinds import PrivateKind, Span

Check = Callable[[str], bool]


def _is_american(number: str) -> bool:
    return bool(ssn.is_valid(number) or itin.is_valid(number))


def _is_nordic(number: str) -> bool:
    return bool(personnummer.is_valid(number) or cpr.is_valid(number))


def _is_british(number: str) -> bool:
    """A national insurance number has no check digit; these beginnings are not given out (HMRC, NIM39110)."""
    return number[:2].upper() not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}


_FORMS: tuple[tuple[re.Pattern[str], Check], ...] = tuple(
    (re.compile(rf"(?<![A-Za-z0-9_.-])(?:{form})(?![A-Za-z0-9_]|[.-]\d)", re.IGNORECASE), check)
    for form, check in (
        (r"\d{3}-\d{2}-\d{4}", _is_american),
        (r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]", _is_british),
        (r"\d{3}\.\d{3}\.\d{3}-\d{2}", cpf.is_valid),
        (r"756\.?\d{4}\.?\d{4}\.?\d{2}", ch_ssn.is_valid),
        (r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2A|2B) ?\d{3} ?\d{3} ?\d\d", nir.is_valid),
        (r"[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPR-T][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]", codicefiscale.is_valid),
        (r"\d{8}-?[A-Z]", dni.is_valid),
        (r"[XYZ]-?\d{7}-?[A-Z]", nie.is_valid),
        (r"\d{17}[\dX]", ric.is_valid),
        (r"\d{4} \d{4} \d{4}", aadhaar.is_valid),
        (r"\d{6}[-+A-FU-Y]\d{3}[\dA-Z]", hetu.is_valid),
        (r"(?:\d\d)?\d{6}[-+]\d{4}", _is_nordic),
        (r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", be_nn.is_valid),
        (r"\d{8} ?\d [A-Z0-9]{2}\d", pt_cc.is_valid),
    )
)

_NAMED: tuple[tuple[str, str, Check], ...] = (
    (
        r"ssn|social security(?: number)?|itin|tax(?:payer)? id",
        r"\d{3} ?\d{2} ?\d{4}",
        _is_american,
    ),
    (r"sin|social insurance(?: number)?", r"\d{3}[ -]?\d{3}[ -]?\d{3}", sin.is_valid),
    (r"nhs(?: number| no)?", r"\d{3} ?\d{3} ?\d{4}", nhs.is_valid),
    (r"cpf", r"\d{11}", cpf.is_valid),
    (
        r"steuer[- ]?id(?:entifikationsnummer|nummer|nr)?|idnr|steuerliche identifikationsnummer",
        r"\d\d ?\d{3} ?\d{3} ?\d{3}",
        idnr.is_valid,
    ),
    (r"bsn|burgerservicenummer|sofinummer", r"\d{4}[. ]?\d\d[. ]?\d{3}", bsn.is_valid),
    (r"pesel", r"\d{11}", pesel.is_valid),
    (r"nif|contribuinte|número fiscal", r"\d{3} ?\d{3} ?\d{3}", pt_nif.is_valid),
    (r"fødselsnummer|fodselsnummer|personnummer", r"\d{6} ?\d{5}", fodselsnummer.is_valid),
    (r"personnummer|personal number", r"(?:\d\d)?\d{10}", personnummer.is_valid),
    (r"cpr(?:-nummer)?", r"\d{10}", cpr.is_valid),
    (r"aadhaar|aadhar", r"\d{12}", aadhaar.is_valid),
    (r"rijksregisternummer|numéro national|numéro de registre national", r"\d{11}", be_nn.is_valid),
    # Neither has check digits by which it could be told.
    (
        r"passport|reisepass|pasaporte|passeport|passaporto|paspoort|identity card|id card|personalausweis"
        r"|driving licen[cs]e"
        r"|driver['’]?s licen[cs]e|führerschein",
        r"(?=[A-Z0-9]{0,11}\d{3})[A-Z0-9]{6,12}",
        lambda _: True,
    ),
)
_BEHIND_NAME = tuple(
    (
        re.compile(
            rf"(?<![^\W_])(?:{name})(?:[ -]?(?:number|no|nr|nummer|numero|número|numéro|id))?\.?"
            r"(?:[ \t]{1,2}(?:is|ist|lautet|es|est|é|è|number))?[\s:=#]{0,4}"
            rf"({form})(?![A-Za-z0-9_]|[.-]\d)",
            re.IGNORECASE,
        ),
        check,
    )
    for name, form, check in _NAMED
)


def find_national_ids(text: str) -> Iterator[Span]:
    """Yield numbers of social security, taxes, identity cards and passports."""
    for pattern, check in _FORMS:
        for match in pattern.finditer(text):
            if check(match[0]):
                yield Span(match.start(), match.end(), PrivateKind.NATIONAL_ID)
    for pattern, check in _BEHIND_NAME:
        for match in pattern.finditer(text):
            if check(match[1]):
                yield Span(match.start(1), match.end(1), PrivateKind.NATIONAL_ID)
