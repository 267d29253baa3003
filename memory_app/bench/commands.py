"""``bench retrieval``, ``context``, ``extraction``, ``latency``, ``throughput``, ``growth``, ``fairness``, ``shards``,
``erasure``, ``overhead`` and ``footprint``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from memory_app.bench import beam, cases, locomo, longmemeval, stage
from memory_app.bench import big_scopes as big_scopes_bench
from memory_app.bench import context as context_bench
from memory_app.bench import erasure as erasure_bench
from memory_app.bench import extraction as extraction_bench
from memory_app.bench import fairness as fairness_bench
from memory_app.bench import footprint as footprint_bench
from memory_app.bench import growth as growth_bench
from memory_app.bench import latency as latency_bench
from memory_app.bench import model_throughput as model_throughput_bench
from memory_app.bench import moves as moves_bench
from memory_app.bench import overhead as overhead_bench
from memory_app.bench import retrieval as retrieval_bench
from memory_app.bench import throughput as throughput_bench
from memory_app.bench.conversation import Conversation, read_json
from memory_app.console.output import as_json, out, say, write_table
from memory_app.errors import Misconfigured
from memory_app.local.stack.folder import temporary_folder
from memory_app.records.scoring import PRESETS
from memory_app.testing import Rule, StubProvider

app = typer.Typer(help="Measure retrieval, latency, throughput and growth.", no_args_is_help=True)

JsonFile = Annotated[Path | None, typer.Option("--json", help="File for all figures.")]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", help="Keep the servers here. Default: a temporary folder.", show_default=False),
]


class Format(StrEnum):
    """How the conversations are written down."""

    LOCOMO = "locomo"
    BEAM = "beam"
    LONGMEMEVAL = "longmemeval"


class Extraction(StrEnum):
    """Who turns conversation into statements."""

    RULES = "rules"
    LLM = "llm"


LOADERS = {Format.LOCOMO: locomo.load, Format.BEAM: beam.load, Format.LONGMEMEVAL: longmemeval.load}

Labelled = Annotated[
    Path, typer.Argument(help="Labelled conversations: a file (locomo, longmemeval) or a folder (beam).")
]
LabelledFormat = Annotated[Format, typer.Option(help="How they are written down.")]
Places = Annotated[str | None, typer.Option(help="Only these, by place from 0: 0,1")]
EmbedderName = Annotated[
    str | None, typer.Option(help="wordllama, hash, minilm or multilingual; else as the settings say.")
]


@app.command()
def retrieval(
    path: Labelled,
    format: LabelledFormat = Format.LOCOMO,
    conversations: Places = None,
    embedder: EmbedderName = None,
    preset: Annotated[str, typer.Option(help="Scoring preset.")] = "balanced",
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """How often the turns that hold the answer are found, beside keyword and vector search alone."""
    if preset not in PRESETS:
        raise typer.BadParameter(f"one of {', '.join(PRESETS)}", param_hint="--preset")
    chosen = _chosen(LOADERS[format](path), conversations)
    with stage.prepared(data, say=say, **_sections(embedder)) as memory:
        figures = retrieval_bench.measure(memory, chosen, preset=preset, say=say)
    figures = {"format": format.value, "machine": stage.machine(), **figures}
    _write(json_file, figures)
    _show_retrieval(figures)


@app.command()
def context(
    path: Labelled,
    format: LabelledFormat = Format.LOCOMO,
    conversations: Places = None,
    embedder: EmbedderName = None,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """How often the turns that hold the answer stand in the context window, by its budget."""
    chosen = _chosen(LOADERS[format](path), conversations)
    with stage.prepared(data, say=say, **_sections(embedder)) as memory:
        figures = context_bench.measure(memory, chosen, say=say)
    figures = {"format": format.value, "machine": stage.machine(), **figures}
    _write(json_file, figures)
    _show_context(figures)


@app.command()
def extraction(
    path: Annotated[Path, typer.Argument(help="Case file (TOML), or a folder of them.")],
    show: Annotated[
        bool, typer.Option("--show", help="Print every fault, with the words of the turn.")
    ] = False,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """What is kept of labelled turns, by language: precision, coverage and inventions."""
    files = cases.load(path)
    with stage.prepared(data, say=say) as memory:
        figures = extraction_bench.measure(memory, files, say=say)
    _write(json_file, {"machine": stage.machine(), "languages": figures})
    _show_extraction(figures, with_faults=show)


@app.command()
def latency(
    memories: Annotated[int, typer.Option(min=1, help="Rows in the scope that is asked.")] = 10_000,
    other_users: Annotated[int, typer.Option(min=0, help="Times as many rows of others.")] = 10,
    calls: Annotated[int, typer.Option(min=1, help="Calls of each kind that are timed.")] = 200,
    shards: Annotated[int, typer.Option(min=1, help="Shards; the user who is asked is in the last one.")] = 1,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """Times of accept, recall with each preset, and context."""
    with stage.prepared(data, say=say) as memory:
        figures = latency_bench.measure(
            memory, memories=memories, other_users=other_users, calls=calls, shards=shards, say=say
        )
    figures = {"machine": stage.machine(), **figures}
    _write(json_file, figures)
    _show_times("milliseconds", figures["times"])


@app.command()
def overhead(
    memories: Annotated[int, typer.Option(min=1, help="Rows in the scope that is recalled.")] = 1_000,
    rounds: Annotated[int, typer.Option(min=2, help="Blocks of each API, in turns.")] = 12,
    calls: Annotated[int, typer.Option(min=1, help="Calls of each kind in a block.")] = 50,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """What metrics and traces add to accept and recall, as ratios of processor time."""
    with stage.prepared(data, say=say) as memory, temporary_folder(None) as folder:
        figures = overhead_bench.measure(
            memory, folder, memories=memories, rounds=rounds, calls=calls, say=say
        )
    _write(json_file, {"machine": stage.machine(), "rounds": rounds, "calls": calls, "figures": figures})
    columns = ("what", "cpu ms a call", "ratio, quartiles", "ratio of the time waited")
    for operation, variants in figures.items():
        rows = [
            (name, one["cpu_ms"], " ".join(f"{ratio:.3f}" for ratio in one["cpu_ratio"]), one["wall_ratio"])
            for name, one in variants.items()
        ]
        write_table(operation, columns, rows)


@app.command()
def footprint(
    beside: Annotated[
        Path | None, typer.Option(help="Another checkout of the project, measured by turns with this one.")
    ] = None,
    turns: Annotated[int, typer.Option(min=40, help="Turns of a round, from four callers one by one.")] = 400,
    calls: Annotated[int, typer.Option(min=1, help="Searches, and context windows, of a round.")] = 100,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds that count; one more warms up.")] = 5,
    flower: Annotated[bool, typer.Option("--flower/--no-flower", help="Run Flower, too.")] = True,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """Processor time of a turn, a search and a context window over all processes of `memory up`, and what it holds at
    rest."""
    size = {"turns": turns, "calls": calls, "rounds": rounds}
    figures = footprint_bench.measure(data, beside=beside, flower=flower, say=say, **size)
    _write(json_file, {"machine": stage.machine(), "flower": flower, **size, "versions": figures})
    for name, version in figures.items():
        rows = [*version["start"].items(), *version["rates"].items()]
        write_table(name, ("what", "value"), rows)
        _show_times(f"{name}: milliseconds", version["times"])


@app.command()
def throughput(
    turns: Annotated[int, typer.Option(min=1, help="Turns to record.")] = 10_000,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions they are spread over.")] = 100,
    clients: Annotated[int, typer.Option(min=1, help="Callers at the same time.")] = 4,
    extraction: Annotated[Extraction, typer.Option(help="Who extracts; llm is our own server.")] = (
        Extraction.RULES
    ),
    model_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds for an answer of the model, with --extraction llm.")
    ] = 1.0,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """Turns accepted, indexed and extracted per second, with real worker processes."""
    size = {"turns": turns, "sessions": sessions, "clients": clients}
    with temporary_folder(data) as folder:
        if extraction is Extraction.LLM:
            figures = model_throughput_bench.measure(folder, **size, model_seconds=model_seconds, say=say)
        else:
            figures = throughput_bench.measure(folder, **size, say=say)
    figures = {"machine": stage.machine(), **figures}
    _write(json_file, figures)
    _show_times("milliseconds", figures["times"])
    rows = [(name, value) for name, value in figures["rates"].items()]
    write_table("rates", ("what", "value"), rows)


@app.command()
def growth(
    only: Annotated[
        list[str] | None,
        typer.Option(help=f"Only these groups: {', '.join(g.name for g in growth_bench.GROUPS)}."),
    ] = None,
    largest: Annotated[int, typer.Option("--most", min=1, help="Leave larger sizes out.")] = 100_000,
    beside: Annotated[
        Path | None, typer.Option(help="Figures of another version, as --json wrote them, to show beside.")
    ] = None,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """Blocks, rows and statements of the calls that must not grow with backlogs, scopes and memories."""
    groups = [group.name for group in growth_bench.GROUPS]
    if unknown := [name for name in only or () if name not in groups]:
        raise typer.BadParameter(f"{unknown[0]}: one of {', '.join(groups)}", param_hint="--only")
    former = [] if beside is None else read_json(beside)["figures"]
    figures = growth_bench.measure(data, only=only or (), largest=largest, say=say)
    _write(json_file, figures)
    _show_growth(figures["figures"], former)


@app.command()
def fairness(
    flood: Annotated[int, typer.Option(min=1, help="Turns that one tenant hands over at once.")] = 20_000,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions they are spread over.")] = 100,
    singles: Annotated[int, typer.Option(min=1, help="Single turns of the other tenant.")] = 100,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """How long one tenant's single turns wait for their index behind very many of another, with real workers."""
    with temporary_folder(data) as folder:
        figures = fairness_bench.measure(folder, flood=flood, sessions=sessions, singles=singles, say=say)
    figures = {"machine": stage.machine(), **figures}
    _write(json_file, figures)
    _show_times("milliseconds", figures["times"])
    write_table("fairness", ("what", "value"), list(figures["rates"].items()))


@app.command()
def shards(
    big_scopes: Annotated[
        int, typer.Option(min=0, help="Scopes with search indexes; 0 leaves them out.")
    ] = 60,
    rows: Annotated[int, typer.Option(min=100, help="Memories of each, with which a scope is big.")] = 15_000,
    indexed_max: Annotated[int, typer.Option(min=1, help="Most of them in one shard.")] = 50,
    callers: Annotated[int, typer.Option(min=1, help="Recalls at the same time.")] = 20,
    calls: Annotated[int, typer.Option(min=1, help="Recalls of each caller.")] = 10,
    users: Annotated[int, typer.Option(min=0, help="Users who are moved; 0 leaves the moves out.")] = 100,
    memories: Annotated[int, typer.Option(min=1, help="Memories of each.")] = 1_000,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """Big scopes that no longer fit into one shard, and users who are moved while they chat.

    Ends with 1 where a recall failed, or a turn or row was lost, doubled, out of order or changed.
    """
    figures: dict[str, Any] = {"machine": stage.machine()}
    if big_scopes:
        recall: dict[str, object] = {"scan_rows": rows, "big_scopes_max": indexed_max}
        with stage.prepared(_part(data, "big-scopes"), say=say, recall=recall) as memory:
            figures["big scopes"] = big_scopes_bench.measure(
                memory, scopes=big_scopes, rows=rows, callers=callers, calls=calls, say=say
            )
    if users:
        with stage.prepared(_part(data, "moves"), say=say) as memory:
            figures["moves"] = moves_bench.measure(memory, users=users, memories=memories, say=say)
    _write(json_file, figures)
    parts = {name: figures[name] for name in ("big scopes", "moves") if name in figures}
    for name, part in parts.items():
        _show_shards(name, part)
    if any(count for part in parts.values() for count in part["faults"].values()):
        raise typer.Exit(1)


@app.command()
def erasure(
    memories: Annotated[int, typer.Option(min=1, help="Memories of the person.")] = 20_000,
    turns: Annotated[int, typer.Option(min=1, help="Turns of the person.")] = 10_000,
    watch_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds in which nothing may come back.")
    ] = 120.0,
    json_file: JsonFile = None,
    data: DataFolder = None,
) -> None:
    """How long the erasure of a person takes while messages, workers, sleep, imports and re-embedding go on.

    Ends with 1 where something was left, came back, or was not counted.
    """
    with StubProvider(Rule(seconds=0.05)) as stub:
        chat: dict[str, object] = {"base_url": stub.base_url, "model": "stub"}
        with stage.prepared(data, say=say, chat=chat) as memory:
            figures = erasure_bench.measure(
                memory, memories=memories, turns=turns, watch_seconds=watch_seconds, say=say
            )
    _write(json_file, {"machine": stage.machine(), **figures})
    for title in ("rates", "counts", "work", "refusals", "faults"):
        write_table(f"erasure: {title}", ("what", "value"), list(figures[title].items()))
    if any(figures["faults"].values()):
        raise typer.Exit(1)


def _part(data: Path | None, name: str) -> Path | None:
    """A folder for each part, so that none finds the shards of another."""
    return None if data is None else data / name


def _sections(embedder: str | None) -> dict[str, dict[str, object]]:
    """Settings for labelled conversations, of which some hold a whole file in one message."""
    sections: dict[str, dict[str, object]] = {"record": {"text_limit_chars": 1_000_000}}
    if embedder is not None:
        sections["embedding"] = {"provider": embedder}
    return sections


def _chosen(conversations: Sequence[Conversation], places: str | None) -> Sequence[Conversation]:
    if places is None:
        return conversations
    try:
        return [conversations[int(place)] for place in places.split(",")]
    except (ValueError, IndexError) as error:
        raise typer.BadParameter(
            f"places from 0 to {len(conversations) - 1}, as in 0,1", param_hint="--conversations"
        ) from error


def _write(file: Path | None, figures: Mapping[str, Any]) -> None:
    if file is not None:
        try:
            file.write_text(as_json(figures) + "\n", encoding="utf-8")
        except OSError as error:
            raise Misconfigured(f"{file} cannot be written ({error.strerror})") from error
        out.print(f"figures written to {file}", markup=False, highlight=False)


def _show_retrieval(figures: Mapping[str, Any]) -> None:
    columns = (
        "preset",
        "questions",
        "hit@1",
        "session hit@5",
        "recall@5",
        "recall@10",
        "recall@20",
        "nDCG@10",
        "MRR",
    )
    title = f"{figures['turns']} turns, {figures['embedder']}"
    write_table(
        title, columns, [(name, *report["overall"].values()) for name, report in figures["presets"].items()]
    )
    report = figures["presets"][figures["preset"]]
    apart = report["apart"]
    rows = [
        (f"{name}{' (apart)' if name in apart else ''}", *r.values())
        for name, r in report["by_category"].items()
    ]
    write_table(f"{figures['preset']} by category", ("category", *columns[1:]), rows)


def _show_context(figures: Mapping[str, Any]) -> None:
    columns = ("questions", "evidence", "mean", "whole", "tokens_mean", "tokens_most")
    rows = [(of["text"], of["budget"] or "", *(of[name] for name in columns)) for of in figures["texts"]]
    write_table("evidence that stands in the text", ("text", "budget", *columns), rows)
    budgets = context_bench.BUDGETS
    by_category = [
        (category, *(shares.get(budget) for budget in budgets))
        for category, shares in figures["by_category"].items()
    ]
    write_table("evidence in the window by category", ("category", *map(str, budgets)), by_category)


def _show_extraction(figures: Mapping[str, Any], *, with_faults: bool) -> None:
    totals = ("turns", "facts", "coverage", "memories", "precision", "inventions")
    pairs = ("states", "dates")
    rows = [
        (
            language,
            *(of[name] for name in totals),
            *(f"{of[f'{name}_right']} of {of[name]}" for name in pairs),
        )
        for language, of in figures.items()
    ]
    write_table("extraction", ("language", *totals, *(f"{name} right" for name in pairs)), rows)
    counts = ("facts", "kept", "memories", "right")
    for language, of in figures.items():
        by_relation = [(name, *(row[what] for what in counts)) for name, row in of["by_relation"].items()]
        write_table(f"{language} by relation", ("relation", *counts), by_relation)
        by_group = [(name, *(row[what] for what in totals)) for name, row in of["by_group"].items()]
        write_table(f"{language} by group", ("group", *totals), by_group)
        if with_faults:
            columns = ("group", "fault", "turn", "what")
            faults = [tuple(fault[column] for column in columns) for fault in of["faults"]]
            write_table(f"{language}: faults", columns, faults)


def _show_growth(figures: Sequence[Mapping[str, Any]], former: Sequence[Mapping[str, Any]]) -> None:
    """Each call at each size; where there are figures of another version, those first."""
    counted = ("statements", "blocks", "rows", "note")
    before = {(figure["call"], figure["size"], figure["of"]): figure for figure in former}
    columns = ("call", "size", "of", *(f"{name} before" for name in counted if former), *counted)
    rows = []
    for figure in figures:
        key = (figure["call"], figure["size"], figure["of"])
        # A call that the other version did not measure has empty cells.
        old = [before.get(key, {}).get(name) for name in counted if former]
        rows.append((*key, *old, *(figure[name] for name in counted)))
    write_table("growth", columns, rows)


def _show_shards(name: str, figures: Mapping[str, Any]) -> None:
    write_table(name, ("what", "value"), list(figures["rates"].items()))
    if planning := figures.get("planning"):
        write_table("one recall of a big scope", tuple(planning[0]), [tuple(of.values()) for of in planning])
    _show_times("milliseconds", figures["times"])
    for title in ("refusals", "faults"):
        if counts := figures[title]:
            write_table(f"{name}: {title}", ("what", "count"), list(counts.items()))


def _show_times(title: str, times: Mapping[str, Mapping[str, Any]]) -> None:
    columns = ("call", "count", "p50", "p95", "p99", "most")
    write_table(title, columns, [(name, *of.values()) for name, of in times.items()])
