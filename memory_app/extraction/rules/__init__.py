"""The rule extractor: what a user says about themselves, read by tables of patterns, without a model.

``extract`` makes statements of turns, and ``read_declared`` says which fact a caller's statement is; ``resolve_dates``
reads words for time and also serves questions.
English stands in tables (`words`, `date_forms`, `statement_rules`, `activities`, `requests`) with an engine of their
own. All other languages are packs of data, in `packs`.
"""

from __future__ import annotations

from memory_app.extraction.rules.dates import Precision, ResolvedDate, resolve_dates
from memory_app.extraction.rules.declared import read_declared
from memory_app.extraction.rules.extract import extract

__all__ = ["Precision", "ResolvedDate", "extract", "read_declared", "resolve_dates"]
