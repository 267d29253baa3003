# ruff: noqa: E501 (a pattern stays in one piece)
"""English. The whole set of words, and the model for another language."""

from __future__ import annotations

import re

from memory_app.language.language import Language, first_words, numbered, words_in

CARDINALS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NUMBERS: dict[str, float] = {
    **numbered(CARDINALS, first=0),
    **numbered(_TENS, first=2, step=10.0),
    **numbered(_ORDINALS, first=1),
    "fourty": 40.0,
    "half": 0.5,
    "twice": 2.0,
    "thrice": 3.0,
    "dozen": 12.0,
    "hundred": 100.0,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
}
_COUNTS = {
    **dict(zip(CARDINALS[1:13], range(1, 13), strict=True)),
    "fifteen": 15,
    "twenty": 20,
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "couple of": 2,
    "a few": 3,
    "few": 3,
    "several": 5,
}

_MONTHS = (
    "January jan",
    "February feb",
    "March mar",
    "April apr",
    "May",
    "June jun",
    "July jul",
    "August aug",
    "September sept sep",
    "October oct",
    "November nov",
    "December dec",
)
_WEEKDAYS = (
    "Monday mondays",
    "Tuesday tuesdays",
    "Wednesday wednesdays",
    "Thursday thursdays",
    "Friday fridays",
    "Saturday saturdays",
    "Sunday sundays",
)
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_MONTH_NAMES = "|".join(name for name in first_words(_MONTHS) if name != "May").lower()
"""Without "may", which is nearly always the verb."""
_WEEKDAY_NAMES = "|".join(first_words(_WEEKDAYS)).lower()
_SEASON_NAMES = "|".join(_SEASONS)

_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about after again all am an and any are as at be because been before being both but by
        can could did do does doing for from had has have having he her here hers herself him himself
        his how i if in into is it its itself just let me more most my myself no nor not now of off on
        once only or other our ours out over own same she should so some such than that the their
        theirs them then there these they this those through to too under until up very was we were
        what when where which while who whom why with would you your yours yourself s t re ve ll d m
        don""",
    )
)
"""A name, a month and a country are not among them: will, may, us."""

_SAID_BEFORE = r"as (?:i|we|you) (?:said|told you|mentioned|know)"

_ORDERS = (
    "add|address|adjust|answer|ask|assume|avoid|begin|call|check|cite|combine|compare|confirm|convert|describe|draw|end|"
    "ensure|explain|follow|format|give|highlight|include|keep|label|limit|list|make sure|mention|name|note|offer|omit|"
    "point out|present|provide|put|quote|recommend|refer|remind|reply|report|respond|return|round|separate|show|sign|"
    "skip|speak|spell|state|suggest|summari[sz]e|tell|translate|use|warn|write"
)
"""What somebody can be told to do for another in a conversation. "Never give up" is said to cheer."""

ENGLISH = Language(
    name="english",
    # --- words that carry little meaning
    stop_words=_STOP_WORDS,
    first_person=words_in("i me my mine myself"),
    second_person=words_in("you your yours yourself"),
    common=words_in("""user users user's speaker person really very quite lot lots much also always currently usually mostly
        particularly especially each every some any many few kind sort bit recently still even ever get gets got
        getting take takes taking took would could may might us one thing things way ended"""),
    directions=words_in("from over than before after instead by rather"),
    joiners=words_in("and or & , ; plus"),
    # --- dates
    months=_MONTHS,
    ambiguous_months=frozenset(("may", "march", "mar")),
    weekdays=_WEEKDAYS,
    weekday_abbreviations={
        "mon": 0,
        "tue": 1,
        "tues": 1,
        "wed": 2,
        "thu": 3,
        "thur": 3,
        "thurs": 3,
        "fri": 4,
    },
    seasons=_SEASONS,
    relative_days=words_in("yesterday today tomorrow tonight ago noon midnight"),
    # --- numbers
    numbers=_NUMBERS,
    quantities=(*CARDINALS[2:13], "dozen", "hundred", "thousand", "twice", "half"),
    counts=_COUNTS,
    units=(
        "% percent pct",
        "$ dollar dollars usd bucks",
        "€ euro euros eur",
        "£ pound pounds gbp quid",
        "¥ yen yuan jpy cny",
        "° degree degrees",
        "km kilometre kilometres kilometer kilometers",
        "m metre metres meter meters",
        "cm centimetre centimetres centimeter centimeters",
        "mm millimetre millimetres millimeter millimeters",
        "mi mile miles",
        "ft foot feet",
        "inch inches",
        "kg kilo kilos kilogram kilograms",
        "g gram grams",
        "lb lbs",
        "l litre litres liter liters",
        "ml millilitre millilitres milliliter milliliters",
        "sec secs s",
        "min mins minute minutes",
        "h hr hrs hour hours",
        "day days",
        "week weeks",
        "month months",
        "year years yr yrs",
        "kb",
        "mb",
        "gb",
        "ms",
        "mph",
        "k",
        "times x",
    ),
    # --- words that turn a meaning round
    negations=words_in("""not no none nobody nothing nowhere neither nor without non hardly barely lacks lack except avoid avoids
        avoiding refuse refuses refused unable fails failed"""),
    never=frozenset(("never",)),
    ended_patterns=(
        r"no longer",
        r"not any ?more",
        r"any ?more",
        r"any longer",
        r"used to",
        r"stop(?:s|ped|ping)?",
        r"quit(?:s|ting)?",
        r"g[ai]ve(?:s|n)? up",
        r"formerly",
        r"former",
        r"ex",
    ),
    contracted_negations=words_in(
        "dont doesnt didnt isnt arent wasnt werent wont cant couldnt wouldnt shouldnt hasnt havent"
    ),
    unreal=words_in("""plan plans hope hopes want wants wish wishes intend intends consider considers dream dreams try tries
        might maybe perhaps possibly probably would could should almost nearly if unless"""),
    family=(
        "mother mom mum mommy mummy mama",
        "father dad daddy papa",
        "parent parents",
        "brother brothers",
        "sister sisters",
        "sibling siblings",
        "son sons",
        "daughter daughters",
        "child children kid kids",
        "wife",
        "husband",
        "partner spouse",
        "girlfriend",
        "boyfriend",
        "grandmother grandma granny",
        "grandfather grandpa",
        "grandparent grandparents",
        "aunt",
        "uncle",
        "cousin cousins",
        "niece",
        "nephew",
        "friend friends",
        "boss manager",
        "colleague colleagues coworker",
        "neighbour neighbor neighbours neighbors",
        "roommate flatmate",
    ),
    opposites=(
        "like love enjoy fond fan appreciate | dislike hate detest loathe despise",
        "before | after",
        "left | right",
        "more | less fewer",
        "most | least",
        "all every each everyone everything | most | many several | some | few | both | half",
        "increase rise grow gain | decrease drop shrink reduce",
        "up | down",
        "above | below",
        "inside indoor indoors | outside outdoor outdoors",
        "always | usually often frequently regularly | sometimes occasionally | rarely seldom",
        "first | last",
        "start begin began begun started | end finish finished",
        "join joined | left leave resign",
        "buy purchase bought | sell sold",
        "win won | lose lost",
        "hot | warm | cool | cold",
        "open | close closed shut",
        "accept approve agree allow | reject decline refuse forbid disagree",
        "arrive | depart",
        "alive | dead die died",
        "single | married marry | divorced divorce | engaged | widowed",
        "vegetarian | vegan | carnivore",
        "north northern | south southern | east eastern | west western",
        "big large huge | small little tiny",
        "high | low",
        "long | short concise brief",
        "old | new | young",
        "good great wonderful fantastic amazing awesome excellent lovely nice | bad terrible awful horrible",
        "better | worse",
        "best | worst",
        "true correct | false wrong",
        "early | late",
        "earlier | later",
        "same | different",
        "cheap | expensive",
        "easy simple | hard difficult tough",
        "fast quick rapid | slow",
        "happy glad | sad",
        "healthy | sick ill",
        "public | private",
        "past | future",
        "minimum min | maximum max",
        "remember | forget forgot forgotten",
        "daily | weekly | monthly | yearly annually annual",
        "morning mornings | afternoon afternoons | evening evenings | night nights",
        "spring | summer | autumn | winter",
        "light | dark",
        "red | blue | green | yellow | orange | purple | pink | brown | black | white | grey gray | silver | gold | turquoise | teal",
        "man men boy | woman women girl",
        "succeed success | fail failure",
        "import | export",
        "enable | disable",
        "add | remove delete",
        "hire | fire",
        "lend | borrow",
        "teach taught | learn study",
        "give gave | receive",
        "safe | dangerous",
        "strong | weak",
        "rich | poor",
        "introvert | extrovert",
        "is are am | was were",
        "has have | had",
        "do does | did",
        "go goes | went gone",
        "i me my mine myself | you your yours yourself | he him his himself | she her hers herself | we us our ours ourselves",
    ),
    synonyms=(
        "kid child",
        "job work profession occupation",
        "car automobile",
        "movie film",
        "answer reply response respond",
        "picture photo photograph",
        "doctor physician",
        "bike bicycle",
        "phone telephone",
        "television tv",
        "live reside",
        "speak talk",
        "want wish",
        "colour color",
        "favourite favorite",
        "travel trip journey",
        "help assist",
        "need require",
        "use utilise utilize",
        "make create build",
        "think believe",
        "sofa couch",
        "programmer developer",
        "holiday vacation",
        "hobby pastime",
        "named called name call",
    ),
    # --- conversation
    acknowledgements=words_in("""ok okay k kk thanks thank you thx ty cheers lol haha hahaha yes yeah yep yup no nope sure cool great nice
        good fine wow alright right got it gotcha perfect awesome hi hello hey bye goodbye please very much so lot
        a many again sounds indeed exactly absolutely"""),
    affirmations=words_in("yes yeah yep yup right exactly correct true indeed sure absolutely definitely"),
    question_patterns=(
        r"(?:who|whom|whose|what|which|when|where|why|how)\b(?!\s+(?:about\s+that|nice|lovely|great|funny)\b)",
        r"(?:do|does|did|can|could|will|would|is|are|was|were|have|has|should)\s+(?:you|we|i|he|she|it|they|there|my)\b",
        r"(?:please\s+)?(?:tell|remind|show)\s+me\b",
    ),
    frame_openings=(
        r"by the way",
        r"just so you know",
        r"so you know",
        r"for the record",
        r"to be (?:clear|honest)",
        r"in case you forgot",
        rf"{_SAID_BEFORE}(?: (?:before|earlier|already))?",
        r"like i (?:said|told you)",
        r"as mentioned",
        r"honestly|frankly|anyway|anyhow|again|well|btw|fyi|of course|you know|look|listen|oh|hey|ok|okay",
    ),
    frame_endings=(
        r"you know|really|honestly|as always|of course|by the way|to be (?:clear|honest)",
        _SAID_BEFORE,
    ),
    # --- what a text says, and what a query is after
    # Runs of blanks are bounded: a text of nothing but line ends must not be looked through once for each of them.
    standing_patterns=(
        r"(?:^|[.!?:;\n][ \t]{0,3}|\b(?:please|to),?[ \t]{1,3})(?:always|never|don['’]t ever) (?:please )?"
        rf"(?:{_ORDERS})\b(?! up\b)",
        r"\b(?:from now on|in (?:the )?future|going forward|whenever i ask|every time i ask|each time i ask)\b"
        rf"[^.!?\n]{{0,60}}?,?[ \t]{{0,3}}(?:please|{_ORDERS}|i want you)\b",
    ),
    preference_patterns=(
        r"\bi(?:['’]d| would)?(?: really| much)? prefer\b",
        r"\bmy preference\b",
        r"\bi(?:['’]d| would) rather\b",
    ),
    health_patterns=(
        r"allerg|anaphyla|asthma|blood pressure|cancer\b|coeliac|celiac|diabet|dialysis|epilep|epipen|gluten[- ]free",
        r"heart (?:attack|condition|disease)|insulin|intoleran|pacemaker|pregnan|vegan|vegetarian",
        r"(?:takes?|taking|on) (?:\w+ )?(?:medication|medicines?|antidepressants|blood thinners)",
    ),
    moment_patterns=(
        rf"yesterday|today|tonight|tomorrow|ago|weekend|recently|since|{_WEEKDAY_NAMES}",
        rf"(?:last|next) (?:\w+ )?(?:night|week|month|year|{_SEASON_NAMES})",
        rf"this (?:week|month|year|morning|{_SEASON_NAMES})",
        _MONTH_NAMES,
        r"for (?:\w+ )?(?:years|months|weeks|days)",
    ),
    wants_quantity_patterns=(
        r"\bhow (?:many|much|long|often|old|far|big|fast|tall)\b",
        r"\bwhat(?:['’]s| is| was| are| were)? (?:the |my |your |his |her |their )?(?:\w+ ){0,3}"
        r"(?:number|percentage|percent|average|total|quota|rate|score|price|cost|amount|budget|version|age|size|limit|ratio|"
        r"coverage|count)\b",
    ),
    wants_moment_patterns=(
        r"\bwhen\b",
        r"\b(?:what|which) (?:day|date|month|year|time|week)\b",
        r"\bhow long\b|\bdeadline\b|\bbirthday\b",
        r"\bhow (?:many|much) (?:days|weeks|months|years|hours|time)\b",
    ),
    wants_advice_patterns=(
        r"\b(?:recommend|suggest|advise|advice|help me|should i|(?:can|could) (?:i|you)|would you|"
        r"how (?:can|should|could|would|do) i|walk me|guide me|what['’]s the best|ideas for|tips)\b",
    ),
    wants_assistant_patterns=(
        r"\b(?:did|have|had) you (?:\w+ ){0,2}?(?:sa(?:y|id)|suggest|recommend|advise|propose|tell|told|mention|explain"
        r"|describe|list|name|give|gave|given|write|wrote|written|show|warn|call|promise)",
        r"\byou (?:just |once |also |had |have )?(?:said|suggested|recommended|advised|proposed|told|mentioned|explained"
        r"|described|listed|named|gave|wrote|showed|warned|promised)\b",
        r"\byour (?:\w+ )?(?:suggestion|recommendation|advice|answer|explanation|proposal|tips?|idea|list)s?\b",
    ),
    # --- secrets
    secret_names=(
        r"passwords?|passcodes?|passphrases?|pin|cvv|ssn|social security",
        r"card number|api keys?|secret keys?|token|access tokens?",
    ),
    secret_places=(
        r"(?:is|are|was|were) (?:written (?:down )?|kept |taped |stuck |stored |pinned )?"
        r"(?:on|in|under|behind|inside|beside|near|above|below|next to|on top of|at the back of|on the back of) "
        r"(?:the|my|our|a|an|his|her|their)\b",
    ),
)
