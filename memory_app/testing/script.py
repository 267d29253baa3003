"""What the stub provider is told to do: rules tried in order, the first that fits a request decides its answer."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Lock

from memory_app.errors import InvalidInput

Json = dict[str, object]
Answerer = Callable[[Json], object]
"""From the request's body to the answer of the model: JSON to be written out, or a string as it is."""


class Mode(StrEnum):
    """How a request is answered. Where nothing else is said, the answer is otherwise a good one."""

    GOOD = "good"
    # The provider fails.
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    BAD_REQUEST = "bad_request"
    NO_SCHEMA = "no_schema"
    """Refuses `response_format` of the type json_schema, as older servers do."""
    NO_FORMAT = "no_format"
    """Refuses any `response_format`."""
    NO_TEMPERATURE = "no_temperature"
    """Refuses `temperature` and `max_tokens`, as reasoning models do."""
    REDIRECT = "redirect"
    HANG = "hang"
    DRIP = "drip"
    CUT = "cut"
    """The connection ends in the middle of the body."""
    BROKEN_BODY = "broken_body"
    """200 with a body that is no JSON, as a gateway's error page."""
    HUGE = "huge"
    # The model answers badly.
    NOT_JSON = "not_json"
    WRONG_SCHEMA = "wrong_schema"
    FENCE = "fence"
    PREAMBLE = "preamble"
    THINKING = "thinking"
    BARE_LIST = "bare_list"
    RENAMED_KEYS = "renamed_keys"
    ECHOED_SCHEMA = "echoed_schema"
    UNCLOSED = "unclosed"
    """The closing brackets at the end are missing."""
    CUT_JSON = "cut_json"
    """Ends in the middle of a text."""
    EMPTY = "empty"
    REFUSAL = "refusal"
    REFUSAL_TEXT = "refusal_text"
    LENGTH = "length"
    DUPLICATE_TOOL_CALLS = "duplicate_tool_calls"
    DIFFERENT_TOOL_CALLS = "different_tool_calls"
    ODD_ITEMS = "odd_items"
    """Odd items in every list beside the good ones: a sentence of the prompt, unions of what is not alike, nothing."""
    # Servers in their own way of speaking; see `memory_app.testing.dialects`.
    OPENAI_REASONING = "openai_reasoning"
    """Takes neither `max_tokens` nor a temperature."""
    AZURE = "azure"
    """An old version of the API, without JSON schemas."""
    AZURE_FILTER = "azure_filter"
    """The filter refuses the question, with 400."""
    LLAMA_CPP = "llama_cpp"
    """Fails (500) on a schema that its grammar cannot express; thoughts in a field."""
    VLLM = "vllm"
    """Refuses schemas with 422, and its error does not stand where others have it."""
    LM_STUDIO = "lm_studio"
    """Takes no form at all; thoughts in channels of the text."""
    OPENROUTER = "openrouter"
    """No provider behind it takes a schema (404)."""
    OLLAMA = "ollama"
    MAGISTRAL = "magistral"
    GEMMA = "gemma"
    """Thoughts in square brackets, and in tags of another name."""
    ANSWER_IN_THOUGHT = "answer_in_thought"
    """The answer stands in the field of thoughts, and the content is null."""
    TOOL_CALL_TEXT = "tool_call_text"
    TOOL_CALL_OBJECT = "tool_call_object"
    FUNCTION_CALL = "function_call"
    """A tool is called that nobody offered: in the text, with arguments that are no text, and in the old way."""
    STREAM_ONLY = "stream_only"
    """Streams whether or not it was asked to."""
    STREAM_REQUIRED = "stream_required"
    """Refuses whoever does not ask for a stream."""
    ERROR_IN_BODY = "error_in_body"
    """200 with an error in place of the answer, as routers send for the provider behind them."""
    NO_USAGE = "no_usage"
    """Counts no tokens."""
    # The embedder answers badly.
    WRONG_DIMENSION = "wrong_dimension"
    NAN = "nan"
    ZERO = "zero"
    FEWER_ROWS = "fewer_rows"
    UNORDERED = "unordered"
    """Good rows in another order, each with its index."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One instruction. Without conditions it fits every request of a model (not the control calls)."""

    mode: Mode = Mode.GOOD
    times: int | None = None
    """How many requests it decides; None for all."""
    path: str = ""
    """End of the path, such as ``/embeddings``."""
    contains: str | tuple[str, ...] = ()
    """Texts that all stand in the body, such as the name of a schema and a sentence somebody said."""
    matches: str = ""
    """A regular expression that fits somewhere in the body, where line ends are written ``\\n``."""
    share: float = 1.0
    """Part of the fitting requests it decides, 0–1, by chance."""
    seconds: float = 0.0
    """Waited before the answer; how long `Mode.HANG` hangs (0: an hour); pause between the bytes of a drip."""
    until_in_flight: int = 0
    """Wait with the answer until so many requests were under way at the same time; 0 does not wait."""
    retry_after: str | None = None
    """The header of that name, with `Mode.RATE_LIMITED` and `Mode.SERVER_ERROR`."""
    size_bytes: int = 50_000_000
    """Length of a huge answer."""
    answer: object = None
    """What the model says: JSON, or in the same process an `Answerer`; None for the stub's own.

    "@some words" in a list "evidence" stands for the reference of the turn that holds these words. What finds no
    turn in the request is left out, so that one answer serves however the turns were batched.
    """
    call: Mapping[str, object] | None = None
    """A tool that the model calls in place of an answer: its ``name`` and ``arguments``."""

    def fits(self, path: str, body: str) -> bool:
        texts = (self.contains,) if isinstance(self.contains, str) else self.contains
        if not path.endswith(self.path) or not all(text in body for text in texts):
            return False
        return not self.matches or re.search(self.matches, body) is not None


def parse_rule(fields: Mapping[str, object]) -> Rule:
    """A rule from JSON. Raises `InvalidInput` for an unknown field or mode."""
    unknown = set(fields) - set(Rule.__slots__)
    if unknown:
        raise InvalidInput(f"rule: unknown field {sorted(unknown)[0]!r}", field=sorted(unknown)[0])
    mode = fields.get("mode", "good")
    if mode not in set(Mode):
        raise InvalidInput(f"mode: one of {', '.join(Mode)}", field="mode")
    contains = fields.get("contains", ())
    return replace(
        Rule(**fields),  # type: ignore[arg-type]
        mode=Mode(str(mode)),
        contains=tuple(map(str, contains)) if isinstance(contains, list) else str(contains or ""),
    )


@dataclass(slots=True)
class Script:
    """The rules in force. Safe between threads."""

    rules: list[Rule] = field(default_factory=list)
    # Seeded, so that a run that failed can be had again.
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    _lock: Lock = field(default_factory=Lock)

    def follow(self, *rules: Rule) -> None:
        """These rules from now on, and no others."""
        with self._lock:
            self.rules = list(rules)

    def add(self, *rules: Rule) -> None:
        """These rules after those in force."""
        with self._lock:
            self.rules += rules

    def decide(self, path: str, body: str) -> Rule:
        """The rule for one request; a good answer when none fits."""
        with self._lock:
            for place, rule in enumerate(self.rules):
                if not rule.fits(path, body):
                    continue
                if rule.share < 1 and self.chance.random() >= rule.share:
                    continue
                if rule.times is not None:
                    self._use(place, rule, rule.times)
                return rule
        return Rule()

    def _use(self, place: int, rule: Rule, times: int) -> None:
        if times <= 1:
            del self.rules[place]
        else:
            self.rules[place] = replace(rule, times=times - 1)
