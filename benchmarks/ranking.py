"""Fit weights of signals of recall to labelled conversations.

Run ``python -m benchmarks.ranking --locomo FILE --beam FOLDER [SIGNAL …]``. The weights of the named signals are fitted
beside those of the preset ``balanced``, which stay as they are: by the softmax of the scores of a question's
candidates, in which those that answer are to stand out; each set of conversations counts the same. Prints recall at ten
and the mean reciprocal rank with the weights as they are, fitted without the conversation that is scored, and fitted
with all; and the fitted weights, to be rounded and put into `memory_app.records.scoring`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from memory_app import MemoryApp, Scope
from memory_app.bench import beam, locomo, retrieval, stage
from memory_app.bench.conversation import Conversation, Question
from memory_app.bench.figures import Ranking, mean_figures, rank_figures
from memory_app.records.records import Tier
from memory_app.records.scoring import PRESETS, SIGNAL_NAMES

Array = NDArray[np.float64]

SIGNALS = ("answers", "phrase", "addresses", "second_neighbour_keyword")

PULL = 0.02
"""How much it costs that a weight is not 0, in units of a signal's spread: with few questions, others count on nothing
that only they show."""

ROUNDS = 30
SMALLEST_STEP = 1e-4


@dataclass(frozen=True, slots=True)
class List:
    """The candidates of one question. ``signals`` is ``(candidates, 1 + signals)``: what the other signals add, and the
    fitted ones; ``relevant`` is 1 for those that answer."""

    source: str
    conversation: str
    question: Question
    ids: tuple[str, ...]
    signals: Array
    relevant: Array


def main() -> None:
    arguments = _arguments()
    console = Console()
    lists: list[List] = []
    # Some messages hold a whole file.
    with stage.prepared(None, say=console.print, record={"text_limit_chars": 1_000_000}) as memory:
        for source, conversations in _sources(arguments):
            for conversation in conversations:
                console.print(f"{source}: {conversation.name}")
                lists += _lists(memory, source, conversation, signals=arguments.signals)
    weights = PRESETS["balanced"]
    current = np.array([1.0, *(weights[name] for name in arguments.signals)])
    names = dict.fromkeys(row.conversation for row in lists)
    left_out = {name: fit([row for row in lists if row.conversation != name]) for name in names}
    fitted = fit(lists)
    table = Table("set", "weights", "questions", "recall@10", "MRR")
    for source in dict.fromkeys(row.source for row in lists):
        rows = [row for row in lists if row.source == source]
        for label, of_row in (
            ("as they are", [current] * len(rows)),
            ("fitted without the conversation", [left_out[row.conversation] for row in rows]),
            ("fitted with all", [fitted] * len(rows)),
        ):
            figures = mean_figures(
                [_figures(row, factors) for row, factors in zip(rows, of_row, strict=True)]
            )
            table.add_row(source, label, str(len(rows)), f"{figures.recall_at_10:.4f}", f"{figures.mrr:.4f}")
    console.print(table)
    for name, factor in zip(arguments.signals, fitted[1:], strict=True):
        console.print(f"{name}: {factor:.3f}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("signals", nargs="*", default=list(SIGNALS), metavar="SIGNAL")
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--beam", type=Path)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.signals if name not in SIGNAL_NAMES]
    if unknown:
        parser.error(f"unknown signal: {', '.join(unknown)}")
    return arguments


def _sources(arguments: argparse.Namespace) -> Iterator[tuple[str, tuple[Conversation, ...]]]:
    if arguments.locomo:
        yield "locomo", locomo.load(arguments.locomo)
    if arguments.beam:
        yield "beam", beam.load(arguments.beam)


def _lists(
    memory: MemoryApp, source: str, conversation: Conversation, *, signals: Sequence[str]
) -> Iterator[List]:
    ids = retrieval.load(memory, conversation)
    weights = PRESETS["balanced"]
    for question in conversation.questions:
        if question.apart:
            continue
        recalled = memory.recall(
            Scope(retrieval.AGENT, conversation.name),
            question.text,
            limit=retrieval.RETRIEVED,
            tiers=(Tier.DAILY_LOGS,),
            explain=True,
        )
        rows, names = [], []
        for hit in (*recalled.memories, *recalled.cut):
            explanation = hit.explain
            assert explanation is not None and isinstance(hit.id, UUID)
            # What repeats another row is never shown.
            if str(explanation.get("cut", "")).startswith("says the same"):
                continue
            found: Any = explanation["signals"]
            values = [found[name] for name in signals]
            fitted = sum(weights[name] * value for name, value in zip(signals, values, strict=True))
            rows.append([explanation["relevance"] - fitted, *values])
            names.append(ids[hit.id])
        relevant = np.array([float(name in question.evidence) for name in names])
        yield List(source, conversation.name, question, tuple(names), np.array(rows), relevant)


def fit(lists: Sequence[List]) -> Array:
    """The factor of each column of ``signals``, the first being 1: by Newton's method."""
    rows = [row for row in lists if row.relevant.any()]
    spread = np.concatenate([row.signals for row in rows]).std(axis=0) + 1e-9
    pull = np.full(len(spread), PULL)
    # What the other signals add is no guess.
    pull[0] = 0.0
    factors = np.zeros(len(spread))
    cost, gradient, curvature = _slope(rows, factors, spread=spread, pull=pull)
    for _ in range(ROUNDS):
        step = np.linalg.solve(curvature, gradient)
        lower, *slopes = _slope(rows, factors - step, spread=spread, pull=pull)
        # Far from the best point a whole step goes too far.
        while lower > cost and np.abs(step).max() > SMALLEST_STEP:
            step /= 2
            lower, *slopes = _slope(rows, factors - step, spread=spread, pull=pull)
        if np.abs(step).max() <= SMALLEST_STEP:
            break
        factors, cost, (gradient, curvature) = factors - step, lower, slopes
    unscaled = factors / spread
    return np.asarray(unscaled / unscaled[0])


def _slope(rows: Sequence[List], factors: Array, *, spread: Array, pull: Array) -> tuple[float, Array, Array]:
    """What is to be made small, with its first and second derivative."""
    sources = [row.source for row in rows]
    cost = 0.5 * float(pull @ factors**2)
    gradient, curvature = pull * factors, np.diag(pull + 1e-9)
    for row in rows:
        share = 1 / (sources.count(row.source) * len(set(sources)))
        wanted = row.relevant / row.relevant.sum()
        scaled = row.signals / spread
        scores = scaled @ factors
        chances = np.exp(scores - scores.max())
        total = chances.sum()
        chances /= total
        cost -= share * float(wanted @ (scores - scores.max() - np.log(total)))
        gradient = gradient + share * scaled.T @ (chances - wanted)
        centred = scaled - chances @ scaled
        curvature = curvature + share * (centred * chances[:, None]).T @ centred
    return cost, gradient, curvature


def _figures(row: List, factors: Array) -> Ranking:
    order = np.argsort(-(row.signals @ factors), kind="stable")
    ranked = [row.ids[place] for place in order[: retrieval.RETRIEVED]]
    return rank_figures(ranked, row.question.evidence)


if __name__ == "__main__":
    main()
