# ruff: noqa: E501 (a pattern stays in one piece)
"""What people have, who belongs to them, and what they find hard: rules in English."""

from __future__ import annotations

from memory_app.extraction.rules import words
from memory_app.extraction.rules.patterns import OBJECT, TAIL, Rule
from memory_app.language.english import CARDINALS

_PETS = "|".join(sorted(words.PETS))
_KIN = "|".join(sorted(words.KIN))
_NUMBER = rf"(?:{'|'.join(CARDINALS[1:11])}|\d{{1,2}}|several)"
_PLURAL_KIN = (
    "kids|children|sons|daughters|brothers|sisters|siblings|grandchildren|grandkids|cousins|nieces|nephews"
)

_THINGS = (
    r"(?:car|bike|bicycle|motorcycle|house|apartment|flat|garden|guitar|piano|violin|boat|van|truck|cabin|studio|blog|"
    r"podcast|youtube channel|shop|store|business|company|allotment|farm|balcony|tattoo|camera|drone|telescope|3d printer|"
    r"drive|laptop|computer|console|aquarium|terrarium|tent|rv|camper|necklace|pool|hot tub|trampoline|keyboard|drum kit|treadmill|"
    r"workshop|home office|home gym|whiteboard|cork board|journal|record player|air fryer|espresso machine|coffee machine|pizza oven|"
    r"vinyl collection|collection|tesla|greenhouse|motorbike|sewing machine|ps5|xbox|kindle)s?"
)

HOLDINGS = (
    Rule(
        "do",
        rf"do not have (?:any |an? )?(?P<object>(?:{_KIN}|{_PLURAL_KIN}|{_PETS}|{_THINGS}|pets|allergies|driver's license)){TAIL}",
        relation="has_no",
        says="does not have {object}",
    ),
    Rule(
        "have",
        rf"have (?:no) (?P<object>(?:{_PLURAL_KIN}|pets|allergies)){TAIL}",
        relation="has_no",
        says="has no {object}",
    ),
    Rule(
        "have",
        rf"have (?P<object>(?:an? |{_NUMBER} )(?:[\w-]+ ){{0,3}}{_THINGS}(?: (?:for|from|with|in|at) [\w' -]+?)?){TAIL}",
        relation="has",
        says="has {object}",
    ),
    Rule(
        "have",
        r"have (?P<object>(?:lots|a lot|tons|a ton|loads|a bunch|a collection) of (?!(?:fun|things?|time|work|respect|stuff|energy|faith|love|plans|choices|room|support|great|good|people|questions|ideas|different|experience|memories|hope|feelings|emotions|catching|thoughts)\b).+)",
        relation="has",
        says="has {object}",
        confidence=0.7,
    ),
    Rule("own", rf"own {OBJECT}", relation="owns", says="owns {object}"),
    Rule(
        "have",
        rf"have known {OBJECT}",
        relation="knows",
        says="has known {object}",
        subtype="relationship",
        needs_date=True,
    ),
    Rule(
        "have",
        r"have been (?P<object>married|single|divorced|vegan|vegetarian|sober|retired|self-employed)(?: .*)?",
        relation="is",
        says="has been {object}",
        needs_date=True,
    ),
)

_FEAR = "afraid of|scared of|terrified of|worried about|stressed about|anxious about|nervous about"
_TROUBLE = (
    "struggling with|struggling to|frustrated with|frustrated by|overwhelmed with|stuck on|stuck with|"
    "swamped with|having trouble with|having trouble|having problems with|having a hard time with|having a hard time|"
    "having difficulty|having issues with|behind on|burned out from|burnt out from"
)

FRICTION = (
    Rule(
        "am",
        rf"am (?:so |really |very |a bit |still |always |pretty |super |kind of |kinda |totally )*(?P<how>{_FEAR}|{_TROUBLE}) {OBJECT}",
        relation="struggles_with",
        says="is {how} {object}",
        subtype="friction",
        confidence=0.75,
    ),
    Rule(
        "have",
        rf"have been (?:really |also )?(?P<how>{_TROUBLE}) {OBJECT}",
        relation="struggles_with",
        says="has been {how} {object}",
        subtype="friction",
        confidence=0.75,
    ),
    Rule(
        "struggle",
        rf"struggle (?P<how>with|to) {OBJECT}",
        relation="struggles_with",
        says="struggles {how} {object}",
        subtype="friction",
    ),
    Rule(
        "have",
        rf"have (?P<how>trouble with|trouble|a hard time with|a hard time|problems with|difficulty|issues with) {OBJECT}",
        relation="struggles_with",
        says="has {how} {object}",
        subtype="friction",
    ),
    Rule(
        "keep",
        r"keep (?P<object>(?:forgetting|losing|missing|failing|procrastinating|waking|getting|messing|putting off) .+)",
        relation="struggles_with",
        says="keeps {object}",
        subtype="friction",
    ),
    Rule(
        "find",
        r"find (?:it )?(?P<how>hard|difficult|tough|stressful) to (?P<object>.+)",
        relation="struggles_with",
        says="finds it {how} to {object}",
        subtype="friction",
    ),
    Rule(
        "cannot",
        r"cannot (?:seem to |)(?P<object>(?:sleep|focus|concentrate|afford|relax)(?: .+)?)",
        relation="struggles_with",
        says="cannot {object}",
        subtype="friction",
        confidence=0.7,
    ),
)
