"""``trial model``: whether the configured language model is good enough, in a minute and without a database."""

from __future__ import annotations

from dataclasses import asdict

import typer

from memory_app import runtime
from memory_app.console.output import AsJson, out, say, write_json, write_table
from memory_app.console.settings import serverless_settings
from memory_app.errors import Misconfigured
from memory_app.ops.trial import ENOUGH_COVERAGE, ENOUGH_PRECISION, Trial, load_conversation, try_model

app = typer.Typer()


@app.callback()
def _trial() -> None:
    """Try parts of an installation on invented data."""


@app.command()
def model(as_json: AsJson = False) -> None:
    """Play a short invented conversation against the language model, and show what is kept of it and what is not.

    Stores nothing and counts no cost.
    """
    parts = runtime.build(serverless_settings())
    try:
        if parts.chat is None:
            raise Misconfigured(
                "no language model is set: name one with MEMORY_CHAT__BASE_URL and MEMORY_CHAT__MODEL"
            )
        trial = try_model(
            parts.chat.small,
            parts.chat.large,
            conversation=load_conversation(),
            say=(lambda step: None) if as_json else say,
        )
    finally:
        parts.close()
    if as_json:
        write_json({**asdict(trial), "wrong": trial.wrong, "is_enough": trial.is_enough})
    else:
        _show(trial)


def _show(trial: Trial) -> None:
    kept = [(item.step, item.kind, item.text, item.verdict.value, item.about) for item in trial.kept]
    write_table("kept", ("question", "kind", "text", "judged", "as"), kept)
    if trial.dropped:
        write_table(
            "dropped", ("question", "text", "why"), [(d.step, d.text, d.reason) for d in trial.dropped]
        )
    for line in _lines(trial):
        out.print(line, markup=False, highlight=False)


def _lines(trial: Trial) -> list[str]:
    others = [f"{name}: {count}" for name, count in trial.unreadable.items()]
    lines = [f"left out besides: {', '.join(others)}"] if others else []
    lines += [f"no answer of use about {step}: {reason}" for step, reason in trial.failed.items()]
    lines.append(
        f"precision {trial.precision:.2f}, coverage {trial.coverage:.2f}"
        + (f" (missed: {', '.join(trial.missed)})" if trial.missed else "")
    )
    if trial.wrong:
        lines.append(f"kept, and wrong: {', '.join(trial.wrong)}")
    lines.append(
        f"{trial.calls} calls, {trial.seconds:.1f} seconds, {trial.tokens_in:,} tokens in, {trial.tokens_out:,} out"
    )
    bar = f"coverage {ENOUGH_COVERAGE}, precision {ENOUGH_PRECISION}, nothing wrong, an answer each time"
    word = "good enough" if trial.is_enough else "not good enough"
    lines.append(f"{trial.model} is {word} ({bar})")
    return lines
