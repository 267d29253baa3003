"""The rule extractor: what a user says about themselves, read by tables of patterns, without a model.

``extract`` makes statements of turns; ``resolve_dates`` reads words for time and also serves questions.
English stands in tables (`words`, `calendar`, `statements`, `activities`, `requests`) that the engine around
them looks up, so another language is other tables.
"""

from __future__ import annotations

from memory_app.extraction.rules.dates import Precision, ResolvedDate, resolve_dates
from memory_app.extraction.rules.extract import extract

__all__ = ["Precision", "ResolvedDate", "extract", "resolve_dates"]
