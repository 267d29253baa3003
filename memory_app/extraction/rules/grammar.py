# ruff: noqa: E501 (a pattern stays in one piece)
"""English grammar for the rules: contractions, first person to third, and where an object ends.

Pure text functions. Each works on one clause of bounded length, and each pattern is linear.
"""

from __future__ import annotations

import re

_CONTRACTIONS = {
    "i'm": "I am",
    "im": "I am",
    "i've": "I have",
    "ive": "I have",
    "i'll": "I will",
    "i'd": "I would",
    "we're": "we are",
    "we've": "we have",
    "we'll": "we will",
    "we'd": "we would",
    "it's": "it is",
    "that's": "that is",
    "can't": "cannot",
    "cant": "cannot",
    "won't": "will not",
    "dont": "do not",
    "doesnt": "does not",
    "didnt": "did not",
    "isnt": "is not",
    "gonna": "going to",
    "wanna": "want to",
    "name's": "name is",
    "birthday's": "birthday is",
    "favorite": "favourite",
    "i": "I",
}
_CONTRACTED = re.compile(
    r"\b(?:" + "|".join(re.escape(key) for key in sorted(_CONTRACTIONS, key=len, reverse=True)) + r")\b(?!')",
    re.IGNORECASE,
)
# Without "can't" and "won't", which lose more than their ending and stand in the table.
_NOT = re.compile(r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should|must)n't\b", re.IGNORECASE)

_THIRD = {
    "i am": "they are",
    "i was": "they were",
    "i": "they",
    "me": "them",
    "my": "their",
    "mine": "theirs",
    "myself": "themselves",
    "we": "they",
    "us": "them",
    "our": "their",
    "ours": "theirs",
    "ourselves": "themselves",
}
_FIRST = re.compile(
    r"(?<!-)\b(?:I am|I was|I(?= [a-z])|me|my|mine|myself|we|us|our|ours|ourselves)\b(?![-'])", re.IGNORECASE
)

_IRREGULAR = {"am": "is", "have": "has", "do": "does", "go": "goes", "are": "is"}
_CONSONANT_Y = re.compile(r"[^aeiou]y\Z")
_FIRST_OF = {"is": "am", "has": "have", "does": "do", "goes": "go", "was": "was"}

# The first that fits counts; "ss" stands before "s", so that "pass" stays whole.
_FIRST_PERSON_ENDINGS = (
    ("ies", "y"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("sses", "ss"),
    ("xes", "x"),
    ("zes", "z"),
    ("ss", "ss"),
    ("s", ""),
)

_END = re.compile(
    r"\s*(?:[;()!?\u2013\u2014*~|<>\[\]{}#]|:(?!\w)|\s-+\s|(?<=\w)-\s|\.\.+|\u2026|,|\.$|"
    # "A good cause" is a noun.
    r"(?<!-)\b(?:because|cause(?= (?:I|we|it|he|she|they|you|my|our|there|that|this)\b)|but|although|though|whereas|while|when|whenever|which|who|whom|where|until|till|unless|after|before|together|"
    r"that (?:I|we|you|it|they|he|she|this|these|the|my|our|there|an?)|if|"
    r"than|since|instead|"
    r"so|and (?:I|we|it|they|he|she|you|my|our|that|this|there|am|is|was|were|have|had|just|now|then|will|would|how|the\s\w+\s(?:is|was|were))|"
    r"and (?:hoping|trying|thinking|wondering|wishing)\b|"
    r"and \w+ed (?:it|them|some|a|the|my|with)|"
    r"as (?:well|I|it|a way|they|we)|too|these days|right now|nowadays|anymore|any more|lately|recently|a lot|"
    r"so much|very much|the most|more than anything|for now|for a living|at the moment|currently|again|already|actually|"
    r"lol|haha|to be honest|and stuff|or something|for sure|either|though|(?<!ing )(?<!remind )(?<!by )(?<!for )myself|personally|after all|now|today|at all|someday|some day|one day)\b)",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"[^\W_][\w' -]{0,24}(?:, (?!(?:but|so|which|and (?:I|it|we))\b)[\w' -]{1,24}){1,6},? (?:and|or) [\w'-]{1,24}(?: [\w'-]{1,24})?",
)
_DANGLING = re.compile(
    r"(?:\s+(?:in|on|at|to|for|with|of|from|by|about|and|or|the|a|an|my|is|was|very|really|just|as|into|like|also|a few|few|some|not|even more|more))+$",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"^(?:a|an|the|my|our|some|their)\s+", re.IGNORECASE)
_UNRESOLVED = re.compile(
    r"^(?:it|its|that|this|these|those|them|him|her|his|she|he|they|you|your|how|what|when|where|why|who|whether|if|"
    r"there|here|so|such|to|one|ones|everything|something|anything|doing something|the hard way|nothing|all|both|each|every\w*|someone|everyone|"
    r"people|things|stuff|more|some(?! (?:of (?:my|our) \w|(?!(?:of|more|people|things?|stuff|time|other|kind|sort|way|ways|good|great|fun|help|advice|words|love|new ones)\b)[a-z-]{3,}))|much|too|not|and|or|of|is|are|was|were|be|been|the (?:one|idea|way|fact|thing|"
    r"same|other|rest|best|most|first|last)s?|a (?:lot|few|bit|little|while|ton|bunch|couple|great|good)(?: (?:of|time))?)\b"
    r"(?! (?:else)\b)|\b(?:you|your|yours|yourself|u|ur)\b|"
    r"\b(?:it|this|them|these|those|they|he|she|here|him)\b|\b(?:make|made|get|got|let|do) that\b|"
    r"\b(?:that|this|these|those) [\w-]+$|\b(?:their|theirs|his|her)\b|\b(?:that|there|one|ones|another|same)$|"
    r"^(?:few|most|many|some|more|(?:an?|the|my|our|any)(?: own)?|"
    r"(?:to )?(?:help )?mak(?:e|ing) an? (?:\w+ )?(?:difference|impact)|"
    r"doing|being|having|making|getting|going|trying|working|(?:an?|some|new|my|our) (?:new )?(?:projects?|things?|stuff))$",
    re.IGNORECASE,
)
_HALF = re.compile(r"\ban? [\w-]+$", re.IGNORECASE)
_MORE = re.compile(
    r", (?!(?:and|but|so|or|I|it|we|which|who|because|they|he|she|you|just|too|though)\b)[a-z]+(?:,| [a-z])"
)
_WORDS_LIMIT = 14
"""A longer object has run into the rest of the sentence."""

_STRAIGHT_QUOTES = str.maketrans("‘’“”", "''\"\"")


def expand(text: str) -> str:
    """Write contractions out and make curly quotes straight: "I’m" → "I am", "don't" → "do not"."""
    text = _NOT.sub(r"\1 not", text.translate(_STRAIGHT_QUOTES))
    return _CONTRACTED.sub(lambda match: _CONTRACTIONS[match[0].lower()], text)


def third_person(text: str) -> str:
    """ "my sister and me" → "their sister and them"; the subject itself is not part of ``text``."""
    return _FIRST.sub(lambda match: _THIRD[match[0].lower()], text)


def conjugate(verb: str) -> str:
    """Third person singular of a present verb: "play" → "plays", "study" → "studies"."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    # After a vowel the y stays: "play", "enjoy".
    if _CONSONANT_Y.search(verb):
        return verb[:-1] + "ies"
    return verb + "s"


def first_person(verb: str) -> str:
    """The verb of "my sister lives …" as "I" would say it: "lives" → "live", "is" → "am"; past stays."""
    if verb in _FIRST_OF:
        return _FIRST_OF[verb]
    for ending, plain in _FIRST_PERSON_ENDINGS:
        if verb.endswith(ending):
            return verb.removesuffix(ending) + plain
    return verb


def cut_object(text: str) -> str | None:
    """Return the object at the start of ``text``, without what follows it; None when it does not stand alone."""
    # The commas of a list do not end it.
    series = _LIST.match(text)
    match = _END.search(text, series.end() if series else 0)
    end = match.start() if match else len(text)
    # The noun behind the second adjective is out of reach of the patterns, so nothing is better than half of it.
    if _cuts_adjectives(text, end):
        return None
    # The end may leave a preposition or an article behind: "tea with my".
    phrase = _DANGLING.sub("", text[:end]).strip(" .,'\"-")
    return phrase if _stands_alone(phrase) else None


def _cuts_adjectives(text: str, end: int) -> bool:
    """Whether the comma at ``end`` stands between two adjectives: "a safe, inviting place"."""
    return bool(_HALF.search(text[:end]) and _MORE.match(text, end))


def _stands_alone(phrase: str) -> bool:
    # "It", "this" and "you" mean something only in their conversation.
    if not any(map(str.isalnum, phrase)) or _UNRESOLVED.search(phrase):
        return False
    return len(phrase.split()) <= _WORDS_LIMIT


def bare_object(phrase: str) -> str:
    """Return ``phrase`` as a triple holds it: without article or possessive, in third person."""
    return third_person(_DETERMINER.sub("", phrase))
