"""Extraction and synthesis by a language model: records in, records out, everything it says held against the turns.

Nothing here opens a transaction, keeps time or tries again. `Asking` names the model and who is told the cost.
"""

from memory_app.extraction.llm.deep import DeepLink, DeepSynthesis, Union, synthesize_deep
from memory_app.extraction.llm.provenance import Asking, Provenance
from memory_app.extraction.llm.rewrite import Rewritten, merge_texts
from memory_app.extraction.llm.session import Changed, SessionSynthesis, synthesize_session
from memory_app.extraction.llm.turns import Extracted, Talk, synthesize_turns

__all__ = [
    "Asking",
    "Changed",
    "DeepLink",
    "DeepSynthesis",
    "Extracted",
    "Provenance",
    "Rewritten",
    "SessionSynthesis",
    "Talk",
    "Union",
    "merge_texts",
    "synthesize_deep",
    "synthesize_session",
    "synthesize_turns",
]
