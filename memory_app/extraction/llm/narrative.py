"""Have a model tell in a few sentences what a user's memory holds on one subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from memory_app.extraction.llm.answers import Narrate
from memory_app.extraction.llm.instructions import instructed
from memory_app.extraction.llm.prompts import load_prompt
from memory_app.extraction.llm.provenance import Asking, Provenance, ask, provenance_of
from memory_app.extraction.llm.question import Row, Sentence, Shown

SENTENCES_LIMIT = 4


@dataclass(frozen=True, slots=True)
class Narrative:
    """At most four sentences, each with what it rests on; none where nothing stands."""

    sentences: tuple[Sentence, ...]
    provenance: Provenance


def narrate(asking: Asking, rows: Sequence[Row], *, zone: ZoneInfo, names: Sequence[str] = ()) -> Narrative:
    """Tell what ``rows`` say, best first; each sentence is held against its rows like that of an answer.

    Asks the model once; not while it is slow (`TooSlow`). Raises what `Chat.complete` does.
    """
    prompt = instructed(load_prompt("narrate"), asking.instructions)
    shown = Shown.of(rows, zone=zone, names=names, instructions=asking.instructions)
    answer = ask(asking, prompt, [shown.text], shape=Narrate, optional=True)
    sentences, dropped = shown.standing(answer.value.sentences)
    return Narrative(sentences[:SENTENCES_LIMIT], provenance_of(prompt, answer, dropped))
