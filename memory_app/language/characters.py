"""Characters that nobody sees, that cannot be stored, or that look like others. One place for all of them."""

from __future__ import annotations

import re
import unicodedata

_ZERO_WIDTH = "\u00ad\u200b\u200e\u200f\u2060-\u2069\ufeff"
_OVERRIDES = "\u202a-\u202e"  # direction overrides
_CONTROLS = "\x00-\x08\x0e-\x1f\x7f"  # all but tab, line ends and page breaks
_PAGE_BREAKS = "\x0b\x0c"
_SURROGATES = "\ud800-\udfff"

UNSTORABLE = re.compile(f"[{_CONTROLS}{_PAGE_BREAKS}{_SURROGATES}]")
"""What PostgreSQL and JSON cannot hold, and control characters."""

UNCOMPARED = re.compile(f"[{_ZERO_WIDTH}\u2028\u2029{_OVERRIDES}]")
"""Left out before texts are compared. Part of every canonical key: a change raises `text.NORMALISER_VERSION`."""

INVISIBLE = re.compile(
    "["
    f"{_CONTROLS}{_SURROGATES}\x80-\x84\x86-\x9f"
    f"{_ZERO_WIDTH}{_OVERRIDES}"
    "\u061c\u180e\u206a-\u206f"  # Arabic letter mark, Mongolian vowel separator, deprecated format marks
    "\ufff9-\ufffb"  # annotations
    "\U000e0000-\U000e0fff"  # tags and supplementary selectors: letters nobody sees
    "]"
)
"""Removed before a text is shown to a model, where it could hide an instruction."""

DECORATION = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640\u200b-\u200f\ufe0f]"
)
"""Accents, vowel points and joiners: words are indexed without them. A change concerns every stored keyword."""

PUNCTUATION_TWINS = str.maketrans(
    {
        "‘": "'",
        "’": "'",
        "‛": "'",
        "ʼ": "'",
        "“": '"',
        "”": '"',
        "„": '"',
        "«": '"',
        "»": '"',
        "–": "-",
        "—": "-",
        "−": "-",
    }
)
"""Quotes and dashes to the one of them on every keyboard."""


_CONFUSABLE = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХЬԌԚԜаеѕіјкмнорстухԁԛԝһӏ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοιαντρυ" + "ıɩɡⅼ" + "꞉∶ː᛬᠄" + "ˋ",
        "ABESIJKMHOPCTYXbGQWaesijkmhopctyxdqwhl" + "ABEZHIKMNOPTYXoiavtpu" + "iigl" + ":::::" + "`",
        strict=True,
    )
)
"""Letters of Cyrillic and Greek that look like Latin ones, colons and a grave accent that look like those of ASCII."""


class _Shapes(dict[int, int]):
    """For `str.translate`: each character as the plain one that it looks like, one for one, so that places stay."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        plain = unicodedata.normalize("NFKC", character)
        # A ligature or a fraction would become several characters.
        shape = plain if len(plain) == 1 else character
        shape = _CONFUSABLE.get(shape, shape)
        self[code] = ord(shape)
        return self[code]


SHAPES = _Shapes()
"""What a reader takes a character for. Only for looking: what is found is changed in the text itself."""


def shape_of(text: str) -> str:
    """What a reader takes ``text`` for: as long as it, each character as in `SHAPES`."""
    # Plain ASCII looks like itself, and nearly all text is that.
    return text if text.isascii() else text.translate(SHAPES)
