"""Extraction and synthesis by a language model: records in, records out, everything it says held against the turns.

Nothing here opens a transaction, keeps time or tries again. `Asking` names the model and who is told the cost.
"""

from memory_app.extraction.llm.deep import DeepLink, DeepSynthesis, Union, synthesize_deep
from memory_app.extraction.llm.narrative import Narrative, narrate
from memory_app.extraction.llm.prompt_size import (
    Frame,
    tokens_about_memories,
    tokens_about_session,
    tokens_about_turns,
)
from memory_app.extraction.llm.provenance import Asking, Provenance
from memory_app.extraction.llm.question import Look, Row, Sentence, look
from memory_app.extraction.llm.rewrite import Rewritten, merge_texts
from memory_app.extraction.llm.session import Changed, SessionSynthesis, synthesize_session
from memory_app.extraction.llm.turns import Extracted, Talk, is_worth_asking, synthesize_turns

__all__ = [
    "Asking",
    "Changed",
    "DeepLink",
    "DeepSynthesis",
    "Extracted",
    "Frame",
    "Look",
    "Narrative",
    "Provenance",
    "Rewritten",
    "Row",
    "Sentence",
    "SessionSynthesis",
    "Talk",
    "Union",
    "is_worth_asking",
    "look",
    "merge_texts",
    "narrate",
    "synthesize_deep",
    "synthesize_session",
    "synthesize_turns",
    "tokens_about_memories",
    "tokens_about_session",
    "tokens_about_turns",
]
