# ruff: noqa: E501 (a pattern stays in one piece)
"""What people eat, like and learn: rules in English."""

from __future__ import annotations

from memory_app.extraction.rules import words
from memory_app.extraction.rules.patterns import OBJECT, Rule

FOOD = (
    Rule(
        "do|no",
        r"(?:do not|no longer) (?P<object>smoke|drink|drive|cook|fly)(?: any ?more| at all)?",
        relation="does_not",
        says="does not {object}",
        subtype="habit",
    ),
)

_LOVE = "like|love|enjoy|adore"
TASTE = (
    Rule(
        "=my",
        rf"my (?:all-time |absolute |current |all time )?favou?rite (?P<thing>[\w -]{{2,40}}?) (?:is|are|was|has to be|has always been|would be) {OBJECT}",
        relation="favourite:{thing}",
        says="has {object} as favourite {thing}",
        subtype="preference",
        importance=6,
    ),
    Rule(
        "no|used",
        rf"(?:no longer|used to) (?P<base>{_LOVE}) {OBJECT}",
        relation="used_to_like",
        says="used to like {object}",
        subtype="preference",
    ),
    Rule(
        "have",
        rf"have (?:always )?(?P<be>been|had) (?P<how>(?:really |super |so )?(?:into|obsessed with|passionate about|interested in|a (?:big |huge )?fan of|a passion for|a love for)) {OBJECT}",
        relation="likes",
        says="has long {be} {how} {object}",
        subtype="preference",
    ),
    Rule(
        "have",
        r"have always had (?P<object>an? .+)",
        relation="likes",
        says="has always had {object}",
        subtype="preference",
    ),
    Rule(
        "am",
        r"am (?P<how>(?:so |really |very |super )*(?:lucky to have|grateful to have|thankful to have|blessed to have|grateful for|thankful for|proud of)) (?P<object>(?:my|an?) (?!(?:progress|work|part|chance|place)\b).+)",
        relation="values",
        says="is {how} {object}",
        subtype="preference",
        confidence=0.75,
    ),
    Rule(
        "cherish|treasure",
        rf"(?P<verb>cherish|treasure) {OBJECT}",
        relation="values",
        says="{verb} {object}",
        subtype="preference",
        confidence=0.7,
    ),
    Rule(
        "care|believe",
        rf"(?P<verb>care|believe) (?P<about>about|in) (?!(?:us|me|myself)\b){OBJECT}",
        relation="values",
        says="{verb} {about} {object}",
        subtype="preference",
        confidence=0.7,
    ),
    Rule(
        "loved|enjoyed|liked",
        r"(?P<past>loved|enjoyed|liked) (?P<object>(?:[\w-]+ing \w|(?-i:[A-Z][\w']+ )).+)",
        relation="likes",
        says="{past} {object}",
        subtype="preference",
        confidence=0.7,
    ),
    Rule(
        "have",
        rf"have always (?:loved|liked|enjoyed) {OBJECT}",
        relation="likes",
        says="has always loved {object}",
        subtype="preference",
    ),
    Rule(
        "am",
        rf"am (?P<how>(?:really |so |super |very |truly )*(?:passionate about|drawn to|into|obsessed with|fascinated by|interested in|keen on|fond of|crazy about|hooked on|an? (?:\w+ )?fan of|a sucker for)) {OBJECT}",
        relation="likes",
        says="is {how} {object}",
        subtype="preference",
    ),
    Rule(
        "love|enjoy|adore",
        rf"(?P<verb>(?-i:love|enjoy|adore)) (?!(?:the|how|that|when|what|to|helping|hearing|seeing)\b){OBJECT}",
        relation="likes",
        says="{verb} {object}",
        subtype="preference",
        confidence=0.75,
    ),
    Rule(
        _LOVE,
        rf"(?P<verb>{_LOVE}) to (?P<object>\w+ .+)",
        relation="likes",
        says="{verb} to {object}",
        subtype="preference",
    ),
    Rule(
        "collect", rf"collect {OBJECT}", relation="collects", says="collects {object}", subtype="preference"
    ),
)

STUDY = (
    Rule(
        "do|cannot",
        rf"(?:do not|cannot) speak (?:any )?(?P<object>(?:{words.LANGUAGES}).*)",
        relation="does_not_speak",
        says="does not speak {object}",
        each=True,
    ),
    Rule(
        "am|have",
        rf"(?:am|have been) (?:learning|studying) (?!how\b|to\b){OBJECT}",
        relation="studies",
        says="is learning {object}",
        brief=True,
    ),
    Rule(
        "study|go",
        rf"(?:study|go to (?:school|college|university)) (?:at|in) {OBJECT}",
        relation="studies_at",
        says="studies at {object}",
        entity="org",
    ),
    Rule(
        "major|majored",
        rf"major(?:ed)? in {OBJECT}",
        relation="studied",
        says="majored in {object}",
        brief=True,
    ),
    Rule("studied", rf"studied {OBJECT}", relation="studied", says="studied {object}", brief=True),
    Rule(
        "have",
        r"have an? (?P<object>(?:[\w' -]+ )?(?:degree|phd|master's|bachelor's|mba|masters|diploma|certificate|license|licence)(?: (?:in|from) .+)?)",
        relation="has",
        says="has a {object}",
    ),
    Rule(
        "am",
        r"am in (?P<object>(?:my )?(?:first|second|third|fourth|final|last|\d(?:st|nd|rd|th)) (?:year|semester|grade)(?: .+)?|high school|college|med(?:ical)? school|law school|grad(?:uate)? school)",
        relation="is_in",
        says="is in {object}",
    ),
)
