"""The words that `guards` compares: negations, numbers, units, months, days, and words that exclude each other.

Small tables for the commonest languages. A word that is missing here is still told apart by its letters; a word
that is here is recognised in its other spelling, or as the opposite of one with which it shares nothing.
"""

from __future__ import annotations

from functools import lru_cache

from memory_app.domain.text import STOP_WORDS, terms


def _words(text: str) -> list[str]:
    return text.split()


@lru_cache(maxsize=16_384)
def stem_of(word: str) -> str:
    """The form under which the tables know a word: its stem, or the word itself where it has none."""
    return next(iter(terms(word)), word)


def _numbered(*rows: str) -> dict[str, int]:
    """Each word of the row with the row's number, from 1."""
    return {word: number for number, row in enumerate(rows, 1) for word in row.split()}


# --- negation -----------------------------------------------------------------------------------------------

_PLAIN = """not no none nobody nothing nowhere neither nor without non hardly barely lacks lack except avoid avoids
    avoiding refuse refuses refused unable fails failed
    nicht kein keine keinen keinem keiner ohne nichts niemand
    ne pas sans aucun aucune rien sin nada nadie ningún ninguna ningún tampoco senza niente nessuno nessuna
    não sem nenhum nenhuma ninguém niet geen zonder inte utan ingen ikke nie bez
    не нет без ничего никто değil yok нема لا ليس ليست لم لن بدون غير לא אין בלי
    không chẳng chưa tidak bukan tanpa belum"""
_NEVER = "never niemals jamais nunca jamás mai nooit aldrig aldri никогда nigdy nunca hiç asla أبدا"

NEGATIONS: dict[str, str] = {
    **dict.fromkeys(_PLAIN.split(), "not"),
    **dict.fromkeys(_NEVER.split(), "never"),
    "ended": "ended",
}
"""Word → kind. ``ended`` stands for every phrase of `ENDED`."""

ENDED = (
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
    r"nicht mehr",
    r"ne plus",
    r"ya no",
    r"больше не",
)
"""Phrases, as regular expressions, that say that something was so and is over."""

NEGATED_VERBS = tuple(
    _words("dont doesnt didnt isnt arent wasnt werent wont cant couldnt wouldnt shouldnt hasnt havent")
)
"""Contractions written without their apostrophe."""

NEGATION_SIGNS = tuple(_words("不 没 沒 无 無 非 未 别 ない ません なかった 않 못 없 안 नहीं मत बिना ไม่"))
"""Negations of scripts that do not set words apart; found anywhere in the text."""

# --- numbers ------------------------------------------------------------------------------------------------

NUMBER_WORDS: dict[str, float] = {
    **{
        word: float(number)
        for number, row in enumerate(
            (
                "zero null cero zéro ноль",
                "one eins un une einer один одна",
                "two zwei deux dos due dois duas twee två два две twice",
                "three drei trois tres tre três drie три thrice",
                "four vier quatre cuatro quattro quatro fyra четыре",
                "five fünf cinq cinco cinque vijf fem пять",
                "six sechs seis sei zes sex шесть",
                "seven sieben sept siete sette sete zeven sju семь",
                "eight acht huit ocho otto oito åtta восемь",
                "nine neun neuf nueve nove negen nio девять",
                "ten zehn dix diez dieci dez tien tio десять",
                "eleven elf onze undici onze elva одиннадцать",
                "twelve zwölf douze doce dodici doze twaalf tolv двенадцать dozen",
            )
        )
        for word in row.split()
    },
    **{word: float(number) for number, word in enumerate(_words("thirteen fourteen fifteen"), 13)},
    **{word: float(number) for number, word in enumerate(_words("sixteen seventeen eighteen nineteen"), 16)},
    **{
        word: 10.0 * tens
        for tens, row in enumerate(
            (
                "twenty zwanzig vingt veinte venti",
                "thirty",
                "forty fourty",
                "fifty",
                "sixty",
                "seventy",
                "eighty",
                "ninety",
            ),
            2,
        )
        for word in row.split()
    },
    **{
        word: float(number)
        for number, word in enumerate(
            _words("first second third fourth fifth sixth seventh eighth ninth tenth"), 1
        )
    },
    "half": 0.5,
    "hundred": 100.0,
    "hundert": 100.0,
    "cent": 100.0,
    "cien": 100.0,
    "thousand": 1e3,
    "tausend": 1e3,
    "mille": 1e3,
    "mil": 1e3,
    "million": 1e6,
    "billion": 1e9,
}

NUMBER_SIGNS = frozenset("一二两兩三四五六七八九十百千万萬亿億零〇")

UNITS: dict[str, str] = {
    word: row.split()[0]
    for row in (
        "% percent pct prozent",
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
        "min mins minute minutes minuten",
        "h hr hrs hour hours stunde stunden",
        "day days tag tage",
        "week weeks woche wochen",
        "month months monat monate",
        "year years yr yrs jahr jahre",
        "kb",
        "mb",
        "gb",
        "ms",
        "mph",
        "k",
        "times x",
    )
    for word in row.split()
}
"""Spelling → unit. A number is the same only with the same unit."""

# --- days ---------------------------------------------------------------------------------------------------

MONTH_NUMBERS = _numbered(
    "january jan januar janvier enero gennaio janeiro januari января январь",
    "february feb februar février febrero febbraio fevereiro februari февраля февраль",
    "march mar märz mars marzo março maart марта март",
    "april apr avril abril aprile апреля апрель",
    "may mai mayo maggio maio mei мая май",
    "june jun juni juin junio giugno junho июня июнь",
    "july jul juli juillet julio luglio julho июля июль",
    "august aug août agosto augustus августа август",
    "september sept sep septembre septiembre settembre setembro сентября сентябрь",
    "october oct oktober okt octobre octubre ottobre outubro октября октябрь",
    "november nov novembre noviembre novembro ноября ноябрь",
    "december dec dezember dez décembre diciembre dicembre dezembro декабря декабрь",
)

WEEKDAYS = _numbered(
    "monday mondays montag montags lundi lunes lunedì понедельник",
    "tuesday tuesdays dienstag dienstags mardi martes martedì вторник",
    "wednesday wednesdays mittwoch mittwochs mercredi miércoles mercoledì среда среду",
    "thursday thursdays donnerstag donnerstags jeudi jueves giovedì четверг",
    "friday fridays freitag freitags vendredi viernes venerdì пятница пятницу",
    "saturday saturdays samstag samstags samedi sábado sabato суббота субботу",
    "sunday sundays sonntag sonntags dimanche domingo domenica воскресенье",
)

RELATIVE_DAYS = frozenset(
    _words("""yesterday today tomorrow tonight ago noon midnight
    gestern heute morgen hier aujourd'hui demain ayer hoy mañana ieri oggi domani вчера сегодня завтра""")
)

# --- who and what -------------------------------------------------------------------------------------------

FAMILY: dict[str, str] = {
    stem_of(word): row.split()[0]
    for row in (
        "mother mom mum mommy mummy mama mutter mère madre",
        "father dad daddy papa vater père padre",
        "parent parents eltern padres",
        "brother brothers bruder frère hermano",
        "sister sisters schwester soeur hermana",
        "sibling siblings",
        "son sons sohn fils hijo",
        "daughter daughters tochter fille hija",
        "child children kid kids",
        "wife ehefrau épouse esposa",
        "husband ehemann mari marido",
        "partner spouse",
        "girlfriend",
        "boyfriend",
        "grandmother grandma granny oma",
        "grandfather grandpa opa",
        "grandparent grandparents",
        "aunt tante",
        "uncle onkel",
        "cousin cousins",
        "niece",
        "nephew",
        "friend friends",
        "boss manager",
        "colleague colleagues coworker",
        "neighbour neighbor neighbours neighbors",
        "roommate flatmate",
    )
    for word in row.split()
}
"""Spelling → person. A text about somebody's mother is not one about somebody."""

UNREAL = frozenset(
    stem_of(word)
    for word in _words(
        """plan plans hope hopes want wants wish wishes intend intends consider considers dream dreams try tries
        might maybe perhaps possibly probably would could should almost nearly if unless"""
    )
)
"""Words of what is not, or not yet, so."""

_COLOURS = "red|blue|green|yellow|orange|purple|pink|brown|black|white|grey gray|silver|gold|turquoise|teal"

_EXCLUSIVE = (
    "like love enjoy adore fond fan appreciate mag liebt aime adore gusta любит "
    "| dislike hate detest loathe despise hasst déteste odia ненавидит",
    "before vor avant antes до | after nach après después после",
    "left links gauche izquierda | right rechts droite derecha",
    "more mehr más больше | less fewer weniger moins menos меньше",
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
    _COLOURS,
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
    "i me my mine myself | you your yours yourself | he him his himself | she her hers herself "
    "| we us our ours ourselves",
)


def _sides() -> dict[str, list[tuple[int, int]]]:
    sides: dict[str, list[tuple[int, int]]] = {}
    for group, row in enumerate(_EXCLUSIVE):
        for side, words in enumerate(row.split("|")):
            for word in words.split():
                sides.setdefault(stem_of(word), []).append((group, side))
    return sides


SIDES = _sides()
"""Word → (group, side). Texts that take different sides in one group say different things."""

_SAME = (
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
)


def _synonyms() -> dict[str, str]:
    rows = [side for row in _EXCLUSIVE for side in row.split("|")] + list(_SAME)
    found: dict[str, str] = {}
    for words in rows:
        first, *others = (stem_of(word) for word in words.split())
        for other in others:
            found.setdefault(other, found.get(first, first))
    found.update({stem_of(word): unit for word, unit in UNITS.items()})
    return found | FAMILY


SYNONYMS = _synonyms()
"""Stem → the stem that stands for all of the same meaning."""

COMMON = STOP_WORDS | frozenset(
    _words("""user users user's speaker person really very quite lot lots much also always currently usually mostly
    particularly especially each every some any many few kind sort bit recently still even ever get gets got
    getting take takes taking took would could may might us one thing things way ended""")
)
"""Words whose presence alone changes nothing: not compared as content, never taken for names."""

DIRECTIONS = frozenset(_words("from over than before after instead by rather"))
"""Words that give the order of the others a meaning: tea over coffee, from Rome to Oslo."""

JOINERS = frozenset(_words("and or & , ; plus und oder et ou y o e"))
"""Between these the order is free: tea and coffee."""
