"""What `memory import` reads of its options and prints: a progress bar, and what came in or would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memory_app.console.output import err, out, write_json, write_table
from memory_app.errors import InvalidInput
from memory_app.records.reports import ImportReport

OnProgress = Callable[[ImportReport], None]


def roles_of(options: Sequence[str]) -> dict[str, str]:
    """Roles by name of options such as ``Anna=user``. Raises `InvalidInput`."""
    roles: dict[str, str] = {}
    for option in options:
        # The last one: a name may have the sign in it.
        name, sign, role = option.rpartition("=")
        if not sign or not name.strip():
            raise InvalidInput(f"--speaker {option}: write NAME=user or NAME=assistant", field="speakers")
        roles[name.strip()] = role.strip()
    return roles


@contextmanager
def shown_progress(*, hidden: bool) -> Iterator[OnProgress | None]:
    """A bar of turns and statements, on standard error."""
    if hidden:
        yield None
        return
    columns = (TextColumn("importing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("import", total=None)

        def show(report: ImportReport) -> None:
            total = report.survey.turns + report.survey.memories + sum(report.survey.left_out.values())
            bar.update(task, total=total, completed=report.progress.items)

        yield show


def tell_import(report: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the report of an import."""
    if as_json:
        write_json(report)
        return
    survey, progress = report["survey"], report["progress"]
    _line(
        f"{survey['format']}: turns {survey['turns']}, conversations {survey['conversation_count']}, "
        f"memories {survey['memories']}"
    )
    write_table(
        "conversations",
        ("session", "turns", "from", "to", "speakers"),
        [
            (
                conversation["session"],
                conversation["turns"],
                _minute(conversation["first_at"]),
                _minute(conversation["last_at"]),
                ", ".join(_speaker(speaker) for speaker in conversation["speakers"]),
            )
            for conversation in survey["conversations"]
        ],
    )
    if survey["left_out"]:
        counts = sorted(survey["left_out"].items())
        _line("left out: " + ", ".join(f"{reason} {count}" for reason, count in counts))
        write_table(
            "left out",
            ("place", "reason", "what"),
            [(item["place"], item["reason"], item["detail"]) for item in survey["places"]],
        )
    for problem in survey["missing"]:
        _line(problem)
    if report["dry_run"]:
        _line("a dry run: nothing was stored")
        return
    done = {name: progress[name] for name in ("recorded", "remembered", "known")}
    done |= {f"refused ({reason})": count for reason, count in progress["refused"].items()}
    _line(", ".join(f"{name} {count}" for name, count in done.items()))


def _line(text: str) -> None:
    out.print(text, markup=False, highlight=False)


def _minute(at: str | None) -> str | None:
    return None if at is None else at[:16].replace("T", " ")


def _speaker(speaker: Mapping[str, Any]) -> str:
    name = speaker["name"]
    role = speaker["role"] if name is None else f"{name} ({speaker['role']})"
    return f"{role} {speaker['turns']}"
