# ruff: noqa: E501 (a pattern stays in one piece)
"""What people eat, like and learn: rules in English."""

from __future__ import annotations

from memory_app.extraction.rules import words
from memory_app.extraction.rules.patterns import OBJECT, TAIL, Rule

_AT_ANY_TIME = r"(?![^,]* (?:on|before|after|in the|at night|for) )"
FOOD = (
    Rule(
        "am|is",
        rf"am (?:severely |very |deathly |highly |also |mildly )*allergic to {OBJECT}",
        relation="allergic_to",
        says="is allergic to {object}",
        each=True,
        importance=8,
    ),
    Rule(
        "am",
        rf"am not allergic to {OBJECT}",
        relation="not_allergic_to",
        says="is not allergic to {object}",
        each=True,
    ),
    Rule(
        "have",
        rf"have an? (?:severe |bad |mild |serious )?(?P<object>[\w -]+?) allergy{TAIL}",
        relation="allergic_to",
        says="is allergic to {object}",
        each=True,
        importance=8,
    ),
    Rule(
        "have",
        rf"have an? (?:severe |bad |mild |serious )?allergy to {OBJECT}",
        relation="allergic_to",
        says="is allergic to {object}",
        each=True,
        importance=8,
    ),
    Rule(
        "am",
        rf"am (?:an? )?(?:strict |mostly )?(?P<object>{words.DIETS}){TAIL}",
        relation="diet",
        says="is {object}",
        importance=7,
    ),
    Rule(
        "went|became",
        rf"(?:went|became) (?:an? )?(?P<object>{words.DIETS}){TAIL}",
        relation="diet",
        says="became {object}",
        importance=7,
        starts=True,
    ),
    Rule(
        "am",
        rf"am (?:no longer|not) (?:an? )?(?P<object>{words.DIETS})(?: any ?more)?{TAIL}",
        relation="no_longer_follows_diet",
        says="is no longer {object}",
    ),
    Rule(
        "do|never|cannot",
        rf"(?:do not eat|never eat|cannot eat|cannot have) {_AT_ANY_TIME}{OBJECT}",
        relation="does_not_eat",
        says="does not eat {object}",
        subtype="preference",
        importance=7,
    ),
    Rule(
        "do|never|cannot",
        rf"(?:do not|never|cannot) drink {_AT_ANY_TIME}{OBJECT}",
        relation="does_not_drink",
        says="does not drink {object}",
        subtype="preference",
        importance=6,
    ),
    Rule(
        "do|no",
        r"(?:do not|no longer) (?P<object>smoke|drink|drive|cook|fly)(?: any ?more| at all)?",
        relation="does_not",
        says="does not {object}",
        subtype="habit",
    ),
)

_LOVE = "like|love|enjoy|adore"
_NOT_ABOUT_THIS = (
    r"(?!the (?!(?:beach|sea|ocean|mountains?|outdoors|gym|countryside|forest|rain|snow|cold|heat|city|desert|"
    r"smell|sound|taste|feeling|theat(?:er|re)|opera|cinema|movies|woods|sun)\b|(?-i:[A-Z])))"
)
"""What "the" points at is in the talk, not in the sentence: "I love the colours" says nothing lasting."""
_FAN = (
    "into|obsessed with|passionate about|keen on|fond of|crazy about|interested in|addicted to|hooked on|"
    "(?:a|an|such a) (?:big|huge|massive|die-hard|real|total|avid|lifelong)? ?fan of|good at|really good at"
)

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
        "do",
        rf"do not (?:{_LOVE}|care for|fancy) {OBJECT}",
        relation="dislikes",
        says="does not like {object}",
        subtype="preference",
    ),
    Rule(
        "no|used",
        rf"(?:no longer|used to) (?P<base>{_LOVE}) {OBJECT}",
        relation="used_to_like",
        says="used to like {object}",
        subtype="preference",
    ),
    Rule(
        "am",
        rf"am not (?:really |very |much )*(?:{_FAN}|a fan of) {OBJECT}",
        relation="dislikes",
        says="does not like {object}",
        subtype="preference",
    ),
    Rule(
        "am",
        rf"am (?:so |super |very |really |pretty |quite |totally )*(?P<how>{_FAN}) {OBJECT}",
        relation="likes",
        says="is {how} {object}",
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
        "hate|dislike|detest|loathe|despise",
        rf"(?P<verb>hate|dislike|detest|loathe|despise) {OBJECT}",
        relation="dislikes",
        says="{verb} {object}",
        subtype="preference",
    ),
    Rule(
        "cannot",
        rf"cannot (?:stand|bear) {OBJECT}",
        relation="dislikes",
        says="cannot stand {object}",
        subtype="preference",
    ),
    Rule(
        "prefer",
        r"prefer (?!(?:it|this|that|them|these|those|you|your)\b)(?P<object>.+? (?:to|over) .+)",
        relation="prefers",
        says="prefers {object}",
        subtype="preference",
        whole=True,
    ),
    Rule("prefer", rf"prefer {OBJECT}", relation="prefers", says="prefers {object}", subtype="preference"),
    Rule(
        "would",
        r"would (?:really )?(?:love|like) to (?P<object>(?:visit|learn|travel|go|live|move|write|own|open|start|become|work|study|try|run|meet|build|adopt|climb|see|have|get|buy|volunteer|teach|play|support|help) .+)",
        relation="wants_to",
        says="would love to {object}",
    ),
    Rule(
        _LOVE,
        rf"(?P<verb>{_LOVE}) to (?P<object>\w+ .+)",
        relation="likes",
        says="{verb} to {object}",
        subtype="preference",
    ),
    Rule(
        _LOVE,
        rf"(?P<verb>{_LOVE}) (?P<object>{_NOT_ABOUT_THIS}.+)",
        relation="likes",
        says="{verb} {object}",
        subtype="preference",
    ),
    Rule(
        "collect", rf"collect {OBJECT}", relation="collects", says="collects {object}", subtype="preference"
    ),
)

STUDY = (
    Rule(
        "speak",
        rf"speak (?:fluent |some |a little |a bit of )?(?P<object>(?:{words.LANGUAGES}).*)",
        relation="speaks",
        says="speaks {object}",
        each=True,
    ),
    Rule(
        "do|cannot",
        rf"(?:do not|cannot) speak (?:any )?(?P<object>(?:{words.LANGUAGES}).*)",
        relation="does_not_speak",
        says="does not speak {object}",
        each=True,
    ),
    Rule("am", rf"am fluent in {OBJECT}", relation="speaks", says="is fluent in {object}", each=True),
    Rule(
        "=my",
        rf"my (?:native language|mother tongue|first language) is (?P<object>{words.LANGUAGES}).*",
        relation="native_language",
        says="has {object} as native language",
        own_only=True,
    ),
    Rule(
        "am|have",
        rf"(?:am|have been) (?:learning|studying) (?:how to |to )?{OBJECT}",
        relation="studies",
        says="is learning {object}",
        brief=True,
    ),
    Rule(
        "study",
        r"study (?P<object>(?!every|hard|a lot|for|all|at|in|with|on).+)",
        relation="studies",
        says="studies {object}",
        brief=True,
    ),
    Rule(
        "study|go",
        rf"(?:study|go to (?:school|college|university)) (?:at|in) {OBJECT}",
        relation="studies_at",
        says="studies at {object}",
        entity="org",
    ),
    Rule("am", rf"am majoring in {OBJECT}", relation="studies", says="is majoring in {object}", brief=True),
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
