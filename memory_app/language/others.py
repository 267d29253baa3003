"""Words of languages that have no module of their own yet: what keeps two statements in them apart.

Only negations, numbers, dates and a few opposites of the commonest languages. A word that is missing here is still
compared by its letters.
"""

from __future__ import annotations

from memory_app.language.language import Language, words_in

_NUMBER_ROWS = (
    "null cero zéro ноль",
    "eins un une einer один одна",
    "zwei deux dos due dois duas twee två два две",
    "drei trois tres tre três drie три",
    "vier quatre cuatro quattro quatro fyra четыре",
    "fünf cinq cinco cinque vijf fem пять",
    "sechs seis sei zes sex шесть",
    "sieben sept siete sette sete zeven sju семь",
    "acht huit ocho otto oito åtta восемь",
    "neun neuf nueve nove negen nio девять",
    "zehn dix diez dieci dez tien tio десять",
    "elf onze undici onze elva одиннадцать",
    "zwölf douze doce dodici doze twaalf tolv двенадцать",
)

OTHERS = Language(
    name="others",
    wants_assistant_patterns=(
        r"\b(?:hast|hattest) du (?:\w+ ){0,4}?(?:gesagt|empfohlen|vorgeschlagen|geraten|erklärt|genannt)\b",
        r"\bdeine? (?:empfehlung|vorschlag|vorschläge|rat|antwort|erklärung)\b",
        r"\b(?:m['’]as|as)(?:[- ]tu)? (?:dit|recommandé|conseillé|proposé|suggéré|expliqué)\b",
        r"\bme (?:dijiste|recomendaste|sugeriste|aconsejaste|explicaste)\b|\btu (?:recomendación|sugerencia|consejo)\b",
        r"\bmi hai (?:detto|consigliato|suggerito|raccomandato|spiegato)\b",
        r"\bvocê (?:me )?(?:disse|recomendou|sugeriu|aconselhou|explicou)\b",
        r"\bheb je (?:\w+ ){0,4}?(?:gezegd|aanbevolen|aangeraden|voorgesteld|uitgelegd)\b",
    ),
    joiners=words_in("und oder et ou y o e"),
    months=(
        "januar janvier enero gennaio janeiro januari января январь",
        "februar février febrero febbraio fevereiro februari февраля февраль",
        "märz mars marzo março maart марта март",
        "avril abril aprile апреля апрель",
        "mai mayo maggio maio mei мая май",
        "juni juin junio giugno junho июня июнь",
        "juli juillet julio luglio julho июля июль",
        "août agosto augustus августа август",
        "septembre septiembre settembre setembro сентября сентябрь",
        "oktober okt octobre octubre ottobre outubro октября октябрь",
        "novembre noviembre novembro ноября ноябрь",
        "dezember dez décembre diciembre dicembre dezembro декабря декабрь",
    ),
    weekdays=(
        "montag montags lundi lunes lunedì понедельник",
        "dienstag dienstags mardi martes martedì вторник",
        "mittwoch mittwochs mercredi miércoles mercoledì среда среду",
        "donnerstag donnerstags jeudi jueves giovedì четверг",
        "freitag freitags vendredi viernes venerdì пятница пятницу",
        "samstag samstags samedi sábado sabato суббота субботу",
        "sonntag sonntags dimanche domingo domenica воскресенье",
    ),
    relative_days=words_in("""gestern heute morgen hier aujourd'hui demain ayer hoy mañana ieri oggi domani
        вчера сегодня завтра"""),
    numbers={
        **{word: float(number) for number, row in enumerate(_NUMBER_ROWS) for word in row.split()},
        **dict.fromkeys(words_in("zwanzig vingt veinte venti"), 20.0),
        **dict.fromkeys(words_in("hundert cent cien"), 100.0),
        **dict.fromkeys(words_in("tausend mille mil"), 1e3),
    },
    number_signs=frozenset("一二两兩三四五六七八九十百千万萬亿億零〇"),
    units=(
        "% prozent",
        "min minuten",
        "h stunde stunden",
        "day tag tage",
        "week woche wochen",
        "month monat monate",
        "year jahr jahre",
    ),
    negations=words_in("""nicht kein keine keinen keinem keiner ohne nichts niemand
        ne pas sans aucun aucune rien sin nada nadie ningún ninguna ningún tampoco senza niente nessuno nessuna
        não sem nenhum nenhuma ninguém niet geen zonder inte utan ingen ikke nie bez
        не нет без ничего никто değil yok нема لا ليس ليست لم لن بدون غير לא אין בלי
        không chẳng chưa tidak bukan tanpa belum"""),
    never=words_in("niemals jamais nunca jamás mai nooit aldrig aldri никогда nigdy hiç asla أبدا"),
    ended_patterns=(r"nicht mehr", r"ne plus", r"ya no", r"больше не"),
    negation_signs=words_in("不 没 沒 无 無 非 未 别 ない ません なかった 않 못 없 안 नहीं मत बिना ไม่"),
    family=(
        "mother mutter mère madre",
        "father vater père padre",
        "parent eltern padres",
        "brother bruder frère hermano",
        "sister schwester soeur hermana",
        "son sohn fils hijo",
        "daughter tochter fille hija",
        "wife ehefrau épouse esposa",
        "husband ehemann mari marido",
        "grandmother oma",
        "grandfather opa",
        "aunt tante",
        "uncle onkel",
    ),
    opposites=(
        "like mag liebt aime adore gusta любит | dislike hasst déteste odia ненавидит",
        "before vor avant antes до | after nach après después после",
        "left links gauche izquierda | right rechts droite derecha",
        "more mehr más больше | less weniger moins menos меньше",
    ),
    health_patterns=(
        r"al+[eé]rg|asth?m|asma\b|diab[eè]t|zuckerkrank|zöliaki|cel[ií]ac|coeliak|epilep|[eé]pilep|insulin|intoler",
        r"unverträglich|schwanger|enceinte|embaraza|incinta|grávida|zwanger|vegan|v[eé]g[eé]tari|vegetari",
    ),
    acknowledgements=words_in(
        """danke vielen dank ja nein gut merci oui non gracias si sí vale bien grazie obrigado obrigada sim
        好的 谢谢 ありがとう はい спасибо да нет"""
    ),
    affirmations=words_in("sí si oui ja da sim hai はい うん 是 对 네"),
)
