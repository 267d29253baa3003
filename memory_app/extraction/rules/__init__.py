"""The rule extractor: what a user says about themselves, read by tables of patterns, without a model.

``extract`` makes statements of turns, and ``read_declared`` says which fact a caller's statement is; ``resolve_dates``
reads words for time and also serves questions.
Each language is a pack of data, in `packs`. What is told in English with any verb, such as events and habits, no
pattern can list: sentences that the pack does not read go to tables with a grammar (`statement_rules`, `activities`).
"""

from __future__ import annotations

from memory_app.extraction.rules.dates import Precision, ResolvedDate, resolve_dates
from memory_app.extraction.rules.declared import read_declared
from memory_app.extraction.rules.extract import extract

__all__ = ["Precision", "ResolvedDate", "extract", "read_declared", "resolve_dates"]
