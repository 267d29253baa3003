"""Tell whether a person asks that what they say in a turn is not kept: "Don't remember this: …", "Off the record"."""

from __future__ import annotations

import re

from memory_app.extraction.rules.packs.pack import Pack

# "I do not remember that" has the same words in the middle of a sentence.
_BEGINNING = re.compile(r"(?:^|[.!?;:,…()\n–—-])[\s\"'“”„«»]*$")
# "Do not remember this restaurant being so good" goes on; a new sentence without a sign begins with a capital.
_END = re.compile(r"[\s\"'“”„«»]*(?:$|[.,:;!?…()–—-])|\s+[^\W\d_](?<=[A-ZÄÖÜÀ-Þ])")


def asks_for_privacy(pack: Pack, own: str) -> bool:
    """Whether a sentence of ``own``, an `own_text`, begins with such a request."""
    return any(
        _BEGINNING.search(own[: match.start()]) and _END.match(own, match.end())
        for match in pack.stop_private.finditer(own)
    )
