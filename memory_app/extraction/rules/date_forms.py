# ruff: noqa: E501 (a pattern stays in one piece)
"""The ways in which English names a date: one named alternative per form, in one pattern."""

from __future__ import annotations

import re

from memory_app.language.calendar import COUNTS, MONTH_NUMBERS, MONTHS, SEASONS, WEEKDAY_NUMBERS

_PARTS = "morning|afternoon|evening|night"
_MONTH = "|".join(sorted(MONTH_NUMBERS, key=len, reverse=True))
_FULL_MONTH = "|".join(MONTHS).lower()
_WEEKDAY = "|".join(sorted(WEEKDAY_NUMBERS, key=len, reverse=True))
_SEASON = "|".join(SEASONS)
_COUNT = r"\d{1,3}|" + "|".join(sorted(COUNTS, key=len, reverse=True))
_YEAR = r"(?:19|20)\d\d"

FORMS: dict[str, str] = {
    "iso": r"(?P<iso_y>\d{4})-(?P<iso_m>\d\d)-(?P<iso_d>\d\d)(?![\d-])",
    "slash": r"(?P<sl_a>\d{1,2})/(?P<sl_b>\d{1,2})/(?P<sl_y>\d{4})(?!\d)",
    "daymonth": rf"(?P<dm_d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<dm_m>{_MONTH})\b\.?(?:,? (?P<dm_y>{_YEAR})\b)?",
    "monthday": rf"(?P<md_m>{_MONTH})\b\.? (?:the )?(?P<md_d>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (?P<md_y>{_YEAR})\b)?",
    "monthyear": rf"(?:early |mid-?|late )?(?P<my_m>{_MONTH})\b\.?(?: of)?,? (?P<my_y>{_YEAR})\b",
    "seasonyear": rf"(?P<sy_s>{_SEASON})(?: of)? (?P<sy_y>{_YEAR})\b",
    "named": (
        rf"day before yesterday|day after tomorrow|(?:earlier |later )?today|tonight|last night"
        rf"|(?:yesterday|tomorrow)(?: (?:{_PARTS}))?|this (?:{_PARTS})|other day"
    ),
    "weekday": rf"(?:(?P<wd_w>last|this past|past|this coming|this|coming|next) )?(?P<wd_d>{_WEEKDAY})\b(?: (?:{_PARTS}))?",
    "unit": (
        r"(?P<un_w>last|this past|past|this coming|this|coming|next|following) "
        rf"(?P<un_u>weekend|week|month|year|{_SEASON})\b"
    ),
    "weekend": r"(?P<we>weekend)",
    "ago": rf"(?:about |around |almost |nearly |over |just |like )?(?P<ag_n>{_COUNT}) (?P<ag_u>day|week|weekend|month|year)s? (?:ago|back)",
    "ahead": rf"(?P<ah_n>{_COUNT}) (?P<ah_u>day|week|month|year)s?(?: time)?",
    "whichmonth": rf"(?:(?P<wm_w>last|this past|this coming|this|next) |(?:early |mid-?|late ))?(?P<wm_m>{_FULL_MONTH})",
    "year": rf"(?P<yr>{_YEAR})(?![\d-])",
    "ordinal": r"(?P<or_d>\d{1,2})(?:st|nd|rd|th)",
}

_LEAD = (
    r"(?:(?P<since>ever since|since)|(?P<for>for (?:about |around |almost |nearly |over |more than )?)"
    r"|(?P<prep>back on|back in|sometime in|on|in|over|during|from|of|around|at))"
)
PATTERN = re.compile(
    rf"\b(?:(?:{_LEAD} ?)(?:the )?)?(?:the )?(?:(?P<span>(?:past |last )?(?P<sp_n>{_COUNT}) (?P<sp_u>day|week|month|year)s?"
    r"(?! ago| back| old|-old))|" + "|".join(f"(?P<{name}>{form})" for name, form in FORMS.items()) + r")\b",
    re.IGNORECASE,
)
CUE = re.compile(
    rf"\d|day\b|tonight|tomorrow|night\b|\bago\b|week|month|year|\b(?:this|last|next) |{_FULL_MONTH}|{_SEASON}",
    re.IGNORECASE,
)
