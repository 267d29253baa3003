"""English word tables of the rules. Tables only: another language is another such module."""

from __future__ import annotations

KIN = {
    "wife": "wife",
    "husband": "husband",
    "hubby": "husband",
    "spouse": "partner",
    "partner": "partner",
    "girlfriend": "girlfriend",
    "gf": "girlfriend",
    "boyfriend": "boyfriend",
    "bf": "boyfriend",
    "fiance": "fiance",
    "fiancé": "fiance",
    "fiancée": "fiance",
    "fiancee": "fiance",
    "mother": "mother",
    "mom": "mother",
    "mum": "mother",
    "father": "father",
    "dad": "father",
    "son": "son",
    "daughter": "daughter",
    "stepson": "son",
    "stepdaughter": "daughter",
    "kid": "child",
    "child": "child",
    "baby": "child",
    "brother": "brother",
    "sister": "sister",
    "sibling": "sibling",
    "twin": "sibling",
    "grandmother": "grandmother",
    "grandma": "grandmother",
    "grandfather": "grandfather",
    "grandpa": "grandfather",
    "aunt": "aunt",
    "uncle": "uncle",
    "cousin": "cousin",
    "niece": "niece",
    "nephew": "nephew",
    "grandson": "grandson",
    "granddaughter": "granddaughter",
    "friend": "friend",
    "bestie": "friend",
    "roommate": "roommate",
    "flatmate": "roommate",
    "neighbor": "neighbour",
    "neighbour": "neighbour",
    "boss": "boss",
    "colleague": "colleague",
    "coworker": "colleague",
    "co-worker": "colleague",
    "mentor": "mentor",
    "coach": "coach",
    "teacher": "teacher",
    "therapist": "therapist",
    "doctor": "doctor",
}

PLURAL_KIN = {
    "kids": "child",
    "children": "child",
    "sons": "son",
    "daughters": "daughter",
    "brothers": "brother",
    "sisters": "sister",
    "siblings": "sibling",
    "friends": "friend",
    "cousins": "cousin",
    "nieces": "niece",
    "nephews": "nephew",
    "roommates": "roommate",
    "twins": "child",
}

_ANIMALS = (
    "dog puppy pup cat kitten kitty hamster rabbit bunny parrot bird budgie fish goldfish turtle tortoise horse "
    "pony lizard gecko snake guinea-pig ferret rat mouse pet hedgehog canary iguana dogs cats puppies kittens "
    "pets turtles rabbits birds chickens horses fishes hamsters snakes"
)
PETS = frozenset(_ANIMALS.split())

KIN_QUALITIES = (
    "older|younger|little|big|elder|eldest|youngest|oldest|middle|best|good|close|old|dear|new|late|twin|own|"
    "beloved|lovely|sweet|childhood|other|first|second"
)

DEMONYMS = (
    "american|british|english|scottish|welsh|irish|german|french|italian|spanish|portuguese|dutch|belgian|swiss|"
    "austrian|polish|czech|slovak|hungarian|romanian|bulgarian|greek|turkish|russian|ukrainian|swedish|norwegian|"
    "danish|finnish|icelandic|estonian|latvian|lithuanian|croatian|serbian|slovenian|canadian|mexican|brazilian|"
    "argentinian|argentine|chilean|colombian|peruvian|venezuelan|cuban|australian|japanese|chinese|korean|"
    "taiwanese|vietnamese|thai|indonesian|malaysian|filipino|filipina|indian|pakistani|bangladeshi|nepali|"
    "iranian|iraqi|israeli|lebanese|syrian|egyptian|moroccan|algerian|tunisian|nigerian|ghanaian|kenyan|"
    "ethiopian|south african|singaporean|maltese"
)

LANGUAGES = (
    "english|german|french|italian|spanish|portuguese|dutch|polish|czech|slovak|hungarian|romanian|bulgarian|greek|"
    "turkish|russian|ukrainian|swedish|norwegian|danish|finnish|icelandic|estonian|latvian|lithuanian|croatian|"
    "serbian|japanese|mandarin|cantonese|chinese|korean|vietnamese|thai|indonesian|malay|tagalog|hindi|urdu|"
    "bengali|tamil|telugu|punjabi|arabic|hebrew|persian|farsi|swahili|catalan|basque|gaelic|welsh|irish|"
    "american sign language|sign language|esperanto|latin"
)

_LASTING = (
    "bought adopted started joined graduated founded opened published launched signed enrolled sold learned "
    "learnt built became moved"
)
PAST_LASTING = tuple(_LASTING.split())
"""Past events worth keeping even without a date."""

_DATED = (
    "went visited attended met saw watched read finished completed took made wrote painted drew cooked baked ran "
    "hiked swam climbed biked cycled drove flew traveled travelled sailed played performed sang danced won lost "
    "broke fixed repaired set planted organized organised hosted volunteered donated helped taught presented gave "
    "spoke passed failed tried ordered received celebrated hung had ate drank tried competed participated "
    "registered applied interviewed called emailed returned came camped skied surfed skated practiced practised "
    "recorded released designed created submitted hurt injured sprained fell adopted picked booked rented "
    "cleaned renovated redecorated explored toured discovered checked worked spent sent"
)
PAST_DATED = tuple(_DATED.split())
"""Past events kept when the sentence dates them."""

_OTHERS = (
    "found retook put caught dug fed fought flew froze grew hid held laid led lent rode rang rose sewed shot slept "
    "sold stole swept threw tore woke withdrew rebuilt rewrote chose dealt lit paid drank forgave"
)
PAST_OTHERS = frozenset(_OTHERS.split())
"""Other verbs whose past has no "ed" and tells of an act."""

PAST_PARTICLES = "to|up for|up|out with|on|at|in|with|for|from|into|through|around"
