"""``estimate``: what a language model would cost for 1,000 turns of an agent, beside what it did cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import typer

from memory_app.console.connect import Tenant, connect
from memory_app.console.output import AsJson, out, write_json, write_table
from memory_app.console.settings import Data
from memory_app.ops import estimate as estimate_service
from memory_app.ops.estimate import PER_TURNS, Estimate
from memory_app.tenancy.policy import ExtractionMode

app = typer.Typer()


@app.command()
def estimate(
    agent: Annotated[str, typer.Option("--agent", help="The AI that remembers.")] = "assistant",
    extraction: Annotated[
        ExtractionMode | None, typer.Option(help="As if the agent's extraction were this; else as it is.")
    ] = None,
    tenant: Tenant = "default",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Estimate calls, tokens and money of a language model per 1,000 turns, beside what was counted."""
    with connect(data, tenant) as memory:
        result = estimate_service.estimate(memory.runtime, memory.tenant_id, agent, extraction=extraction)
    if as_json:
        write_json(result)
        return
    columns = ("question about", "model", "calls", "tokens in", "tokens out", "dollars")
    write_table(f"per {PER_TURNS:,} turns of {agent}", columns, _rows(result))
    source = f"{result.sampled} turns of the latest sessions" if result.sampled else "no turns of its own"
    for line in (f"estimated from {source}", *result.notes):
        out.print(line, markup=False, highlight=False)


def _rows(result: Estimate) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        (step.name, step.model, *_figures(step.calls, step.tokens_in, step.tokens_out), _money(step.cost_usd))
        for step in (*result.steps, result.total)
    ]
    counted = result.counted
    if counted is not None:
        name = f"counted in {counted.days} days"
        figures = _figures(counted.calls, counted.tokens_in, counted.tokens_out)
        rows.append((name, None, *figures, _money(counted.cost_usd)))
    return rows


def _figures(calls: float, tokens_in: float, tokens_out: float) -> tuple[str, str, str]:
    return f"{calls:,.0f}", f"{tokens_in:,.0f}", f"{tokens_out:,.0f}"


def _money(cost: Decimal | None) -> str | None:
    return None if cost is None else f"{cost:.4f}"
