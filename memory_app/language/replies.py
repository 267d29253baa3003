"""Words of replies that state nothing by themselves: thanks, and yes."""

from __future__ import annotations

from memory_app.language.table import words_of_all

ACKNOWLEDGEMENTS = words_of_all(lambda language: language.acknowledgements)
AFFIRMATIONS = words_of_all(lambda language: language.affirmations)
