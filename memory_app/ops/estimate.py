"""Estimate what an agent's language model costs for 1,000 turns, before a single question is asked.

The agent's latest conversations are cut into the questions that workers would ask about them, and the tokens of these
are counted; without conversations a typical one stands in. Beside it stands what was counted so far. Answers can only
be guessed: as long as those counted, or as the facts that turns usually hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain, groupby
from urllib.parse import urlsplit
from uuid import UUID

from memory_app.agents import agents
from memory_app.db.db import transaction
from memory_app.extraction.llm import (
    Frame,
    is_worth_asking,
    tokens_about_memories,
    tokens_about_session,
    tokens_about_turns,
)
from memory_app.extraction.model_calls import prices_of
from memory_app.providers.chat import Usage, dollars, price_of
from memory_app.records.records import Role, Turn
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.settings import Settings
from memory_app.tenancy.policy import ExtractionMode, Policy
from memory_app.tenancy.rows.usage import UsageDay
from memory_app.tenancy.shards import in_usable
from memory_app.tenancy.usage import spending
from memory_app.turns import record
from memory_app.turns.batch import EARLIER_TURNS
from memory_app.turns.rows import samples
from memory_app.turns.rows.samples import SampleTurn
from memory_app.turns.rows.sessions import Debounce

PER_TURNS = 1_000
SESSIONS, TURNS = 50, 2_000
"""How much of an agent's latest conversations is looked at."""

FEWEST_TURNS = 20
"""Fewer turns say nothing about how people talk with the agent."""

FEWEST_CALLS = 20
"""Fewer calls say nothing about how long answers are."""

COUNTED_DAYS = 30

EMPTY_ANSWER, ANSWER_PER_TURN = 40, 45
"""Tokens of an answer without facts, and those that a turn of the user adds: every second one holds a fact."""

SESSION_ANSWER, DEEP_ANSWER = 500, 300

# A minute between exchanges is how people write; each exchange is then a question of its own.
_TYPICAL_TURNS, _TYPICAL_PAUSE = 20, timedelta(seconds=60)
_TYPICAL = (
    (Role.USER, "I had lunch with my sister today, and we talked about the trip to the coast in June."),
    (
        Role.ASSISTANT,
        "That sounds lovely! A trip with your sister is a fine plan for the summer. Shall we look at the trains "
        "together, put down what has to be booked early, and think about what you could do there if it rains? I can "
        "also write a short list of things to pack, so that nothing is forgotten on the last evening before you leave.",
    ),
)
_COUNTING_HOSTS = ("openai.com", "openai.azure.com", "openrouter.ai")
"""Servers that count the schema of the answer among the tokens sent; others turn it into a grammar."""


@dataclass(frozen=True, slots=True)
class Step:
    """One sort of question. ``cost_usd`` is None where the model has no price."""

    name: str
    model: str
    calls: float
    tokens_in: float
    tokens_out: float
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Counted:
    """What `usage` counted in the last days, for 1,000 turns, of which there were ``turns``."""

    days: int
    turns: int
    calls: float
    tokens_in: float
    tokens_out: float
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class Estimate:
    """For 1,000 turns of the agent. ``sampled`` turns were looked at; none: a typical conversation was assumed."""

    agent: str
    extraction: str
    sampled: int
    steps: tuple[Step, ...]
    total: Step
    counted: Counted | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question that would be asked: its tokens, and those that its answer has by guess."""

    tokens_in: int
    tokens_out: int


def estimate(
    runtime: Runtime, tenant_id: int, agent: str, *, extraction: ExtractionMode | None = None
) -> Estimate:
    """Estimate for the agent at its settings, or with another ``extraction``. Asks no model, and writes nothing."""
    settings = runtime.settings
    policy = agents.agent(runtime, tenant_id, Scope(agent)).policy
    if extraction is not None:
        policy = replace(policy, extraction=extraction)

    def read(here: Runtime) -> tuple[tuple[SampleTurn, ...], int]:
        with transaction(here.engine, tenant_id) as connection:
            newest = samples.newest(connection, tenant_id, agent, sessions=SESSIONS, turns=TURNS)
            return newest, samples.read_by_model(connection, tenant_id, within=timedelta(days=COUNTED_DAYS))

    read_shards = in_usable(runtime, read)
    sample = tuple(chain.from_iterable(newest for newest, _ in read_shards))[:TURNS]
    turns = sum(counted for _, counted in read_shards)
    days = spending(runtime, tenant_id, days=COUNTED_DAYS)
    is_sampled = len(sample) >= FEWEST_TURNS
    talk = sample if is_sampled else tuple(typical_talk())
    per_model = _counted_answers(days)
    questions = _questions(talk, settings, policy)
    scale = PER_TURNS / len(talk)
    steps = tuple(
        _step(name, of_step, settings, scale=scale, answer_tokens=per_model)
        for name, of_step in questions.items()
    )
    return Estimate(
        agent=agent,
        extraction=policy.extraction,
        sampled=len(sample) if is_sampled else 0,
        steps=steps,
        total=_total(steps),
        counted=_counted(days, turns),
        notes=tuple(_notes(policy.extraction, settings, steps, is_sampled=is_sampled)),
    )


def typical_talk() -> Iterator[SampleTurn]:
    """Yield a conversation of short messages and longer answers, a minute between two exchanges."""
    at = datetime(2026, 1, 5, 18, tzinfo=UTC)
    for seq in range(1, _TYPICAL_TURNS + 1):
        role, text = _TYPICAL[(seq - 1) % 2]
        accepted_at = at + (seq - 1) // 2 * _TYPICAL_PAUSE
        turn = Turn(UUID(int=seq), "typical", seq, role, role, text, accepted_at)
        yield SampleTurn(turn, 0, accepted_at)


def batches(
    session: Sequence[SampleTurn], debounce: Debounce, *, limit: int
) -> Iterator[tuple[SampleTurn, ...]]:
    """Cut the turns of a session into those that are read together, as a worker that is never late would."""
    batch_turns = min(debounce.after_turns, limit)
    batch: list[SampleTurn] = []
    for turn in session:
        if batch and _is_due(batch, turn.accepted_at, debounce):
            yield tuple(batch)
            batch = []
        batch.append(turn)
        if len(batch) >= batch_turns:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)


def _is_due(batch: Sequence[SampleTurn], now: datetime, debounce: Debounce) -> bool:
    is_idle = now - batch[-1].accepted_at > debounce.idle
    is_old = now - batch[0].accepted_at > debounce.max_age
    return is_idle or is_old


def _questions(
    talk: Sequence[SampleTurn], settings: Settings, policy: Policy
) -> Mapping[str, list[_Question]]:
    debounce = record.debounce(policy, settings.extract)
    if debounce is None or policy.extraction is not ExtractionMode.LLM:
        return {}
    frame = Frame(policy.instructions, counts_schema=_counts_schema(settings.chat.base_url))
    of_turns: list[_Question] = []
    of_sessions: list[_Question] = []
    for _, group in groupby(talk, key=lambda item: (item.scope_id, item.turn.session)):
        session = tuple(group)
        turns = [item.turn for item in session]
        for batch in batches(session, debounce, limit=settings.extract.batch):
            batch_turns = [item.turn for item in batch]
            # No question is asked about greetings and thanks.
            if not is_worth_asking(batch_turns):
                continue
            earlier = [turn for turn in turns if 0 < batch_turns[0].seq - turn.seq <= EARLIER_TURNS]
            user_turns = sum(turn.role is Role.USER for turn in batch_turns)
            tokens = tokens_about_turns(batch_turns, earlier, frame=frame)
            of_turns.append(_Question(tokens, EMPTY_ANSWER + ANSWER_PER_TURN * user_turns))
        if is_worth_asking(turns):
            tokens = tokens_about_session(
                turns[-settings.synthesis.turns :],
                anchors=settings.synthesis.anchors,
                frame=frame,
            )
            of_sessions.append(_Question(tokens, SESSION_ANSWER))
    period = timedelta(hours=settings.schedule.deep_hours)
    periods = {(item.scope_id, item.accepted_at.timestamp() // period.total_seconds()) for item in talk}
    deep = _Question(tokens_about_memories(settings.synthesis.deep_memories, frame=frame), DEEP_ANSWER)
    return {"turns": of_turns, "sessions": of_sessions, "deep": [deep] * len(periods)}


def _counts_schema(base_url: str | None) -> bool:
    host = urlsplit(base_url or "").hostname or ""
    return host.endswith(_COUNTING_HOSTS)


def _step(
    name: str,
    questions: Sequence[_Question],
    settings: Settings,
    *,
    scale: float,
    answer_tokens: Mapping[str, float],
) -> Step:
    small = settings.chat.model or ""
    model = small if name == "turns" else settings.chat.large_model or small
    calls = len(questions) * scale
    tokens_in = sum(question.tokens_in for question in questions) * scale
    tokens_out = sum(question.tokens_out for question in questions) * scale
    # Where one model answers everything, its counted answers are of all sorts, mostly about turns.
    if name == "turns" and model in answer_tokens:
        tokens_out = answer_tokens[model] * calls
    prices = prices_of(settings)
    cost: Decimal | None = None
    if price_of(model, prices) is not None:
        cost = dollars(Usage(model, round(tokens_in), round(tokens_out), seconds=0), prices)
    return Step(name, model, calls, tokens_in, tokens_out, cost)


def _total(steps: Sequence[Step]) -> Step:
    costs = [step.cost_usd for step in steps if step.calls]
    # A sum that lacks a part would pass for the whole.
    priced = [cost for cost in costs if cost is not None]
    return Step(
        "total",
        ", ".join(dict.fromkeys(step.model for step in steps if step.model)),
        sum(step.calls for step in steps),
        sum(step.tokens_in for step in steps),
        sum(step.tokens_out for step in steps),
        sum(priced, Decimal(0)) if len(priced) == len(costs) else None,
    )


def _counted(days: Sequence[UsageDay], turns: int) -> Counted | None:
    if not turns or not days:
        return None
    scale = PER_TURNS / turns
    return Counted(
        days=COUNTED_DAYS,
        turns=turns,
        calls=sum(day.calls for day in days) * scale,
        tokens_in=sum(day.tokens_in for day in days) * scale,
        tokens_out=sum(day.tokens_out for day in days) * scale,
        cost_usd=sum((day.cost_usd for day in days), Decimal(0)) * PER_TURNS / turns,
    )


def _counted_answers(days: Sequence[UsageDay]) -> dict[str, float]:
    """Mean tokens of an answer by model, of those that answered often enough."""
    calls: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for day in days:
        calls[day.model] = calls.get(day.model, 0) + day.calls
        tokens[day.model] = tokens.get(day.model, 0) + day.tokens_out
    return {model: tokens[model] / count for model, count in calls.items() if count >= FEWEST_CALLS}


def _notes(
    mode: ExtractionMode, settings: Settings, steps: Sequence[Step], *, is_sampled: bool
) -> Iterator[str]:
    if mode is not ExtractionMode.LLM:
        yield f"extraction is {mode}: no model is asked; --extraction llm shows what one would cost"
        return
    if not is_sampled:
        yield (
            f"the agent has fewer than {FEWEST_TURNS} turns, so a typical conversation is assumed: "
            f"sessions of {_TYPICAL_TURNS} turns, an exchange a minute"
        )
    if settings.chat.model is None:
        yield "no model is set: name one with MEMORY_CHAT__MODEL"
    unpriced = dict.fromkeys(step.model for step in steps if step.model and step.cost_usd is None)
    if unpriced:
        yield f"no price of {', '.join(unpriced)}: set MEMORY_CHAT__PRICES"
    if settings.context.narrative:
        yield "narratives for context windows are not in it: at most one call for each user in 300 seconds"
    yield "the wording of merged memories by the model is not in it; it is asked for few of them"
