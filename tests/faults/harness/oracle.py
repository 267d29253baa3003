"""The oracle: compares the ledger with the rows, read as the database's owner, and counts what went wrong.

It knows the rules of the load (one statement a turn) and nothing of how the product works inside.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, text

from harness.ledger import Entry
from harness.waiting import wait_until

IDLE_MOST_SECONDS = 90
"""I5: no session is due and idle for longer."""

_TURNS = text(
    """
    SELECT t.id, t.idempotency_key AS key, s.name AS session, t.session_id, t.scope_id, t.seq, t.text,
           t.indexed_at IS NOT NULL AS indexed, t.extracted_at IS NOT NULL AS extracted,
           t.failed_at IS NOT NULL AS failed, t.reason, t.embedding IS NOT NULL AS embedded,
           t.keywords::text AS keywords
    FROM turns t JOIN sessions s ON s.scope_id = t.scope_id AND s.id = t.session_id ORDER BY s.id, t.seq
    """
)
_EFFECTS = text(
    """
    SELECT e.turn_id, m.id, m.text, m.repeat_count, m.retired_at IS NOT NULL AS retired
    FROM evidence e JOIN memories m ON m.scope_id = e.scope_id AND m.id = e.memory_id ORDER BY m.created_at, m.id
    """
)
_RUNS = text(
    """
    SELECT session_id, from_seq, to_seq, report FROM runs
    WHERE name = 'extract' AND state = 'done' ORDER BY finished_at, id
    """
)
_SESSIONS = text(
    "SELECT id, name, next_seq, extracted_seq, fence, lease_until < now() AS overdue FROM sessions"
)
_IDLE = text(
    """
    SELECT name FROM sessions
    WHERE due_at < now() - make_interval(secs => :most) AND (lease_until IS NULL OR lease_until < now())
    """
)
_PENDING = text(
    """
    SELECT (SELECT count(*) FROM turns WHERE failed_at IS NULL AND (indexed_at IS NULL OR extracted_at IS NULL))
         + (SELECT count(*) FROM sessions WHERE lease_until > now())
    """
)
_PENDING_BEFORE = text(
    """
    SELECT count(*) FROM turns
    WHERE failed_at IS NULL AND (indexed_at IS NULL OR extracted_at IS NULL) AND accepted_at <= :instant
    """
)
_APPLIED = text("SELECT count(*) FROM turns WHERE indexed_at IS NOT NULL AND extracted_at IS NOT NULL")
_TERMS = text("SELECT scope_id, term, row_count FROM terms WHERE row_count > 0")
_WEIGHTS = text("SELECT scope_id, keywords::text AS keywords FROM memories WHERE keywords IS NOT NULL")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the oracle found. ``broken`` names each rule that did not hold and an example."""

    accepted: int
    applied: int
    lost: int
    doubled: int
    disordered: int
    dead: int
    broken: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.disordered or self.broken)


def pending(engine: Engine) -> int:
    """Turns that are neither applied nor failed, and leases held."""
    with engine.connect() as connection:
        return int(connection.execute(_PENDING).scalar_one())


def applied(engine: Engine) -> int:
    """Turns that are indexed and extracted."""
    with engine.connect() as connection:
        return int(connection.execute(_APPLIED).scalar_one())


def wait_for_quiet(engine: Engine, *, seconds: float) -> float:
    """Seconds until everything that was accepted is applied or failed."""
    return wait_until(lambda: pending(engine) == 0, "everything accepted is applied", seconds=seconds)


def wait_for_accepted(engine: Engine, *, seconds: float) -> float:
    """Seconds until what is accepted by now is applied or failed, whatever comes meanwhile."""
    with engine.connect() as connection:
        instant = connection.execute(text("SELECT clock_timestamp()")).scalar_one()

    def is_applied() -> bool:
        with engine.connect() as connection:
            return connection.execute(_PENDING_BEFORE, {"instant": instant}).scalar_one() == 0

    return wait_until(is_applied, "what was accepted before is applied", seconds=seconds)


def judge(engine: Engine, ledger: Iterable[Entry], *, ordered: bool = True) -> Verdict:
    """Compare, when the system is quiet. ``ordered``: each session had one client, which sent its turns in order."""
    entries = list(ledger)
    with engine.connect() as connection:
        turns = connection.execute(_TURNS).all()
        effects = _by(connection.execute(_EFFECTS).all(), "turn_id")
        idle = connection.execute(_IDLE, {"most": IDLE_MOST_SECONDS}).scalars().all()
        broken = [
            *_accepted_rows(entries, turns),
            *_sequences(connection, turns),
            *_runs(connection, turns),
            *_term_counts(connection, turns),
            *(f"I5: session {name} is due and idle" for name in idle),
        ]
    lost = _lost(entries, turns, effects)
    doubled = _doubled(turns, effects)
    disordered = _disordered(entries if ordered else [], turns, effects)
    dead = sum(turn.failed for turn in turns)
    applied = sum(turn.indexed and turn.extracted and not turn.failed for turn in turns)
    broken += [f"lost: {key}" for key in lost[:5]] + [f"doubled: {key}" for key in doubled[:5]]
    broken += [f"out of order: {key}" for key in disordered[:5]]
    return Verdict(len(entries), applied, len(lost), len(doubled), len(disordered), dead, tuple(broken))


def _by(rows: Iterable[Row[Any]], column: str) -> dict[Any, list[Row[Any]]]:
    grouped: dict[Any, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        grouped[getattr(row, column)].append(row)
    return grouped


def _accepted_rows(entries: Sequence[Entry], turns: Sequence[Row[Any]]) -> list[str]:
    """I6: what a client was told stands in a row, under the id and number it was told."""
    rows = {turn.key: turn for turn in turns}
    return [
        f"I6: {entry.key} was accepted as {entry.id}/{entry.seq}"
        for entry in entries
        if entry.key not in rows
        or (str(rows[entry.key].id), rows[entry.key].seq) != (entry.id, entry.seq)
        or rows[entry.key].session != entry.session
    ][:5]


def _lost(
    entries: Sequence[Entry], turns: Sequence[Row[Any]], effects: dict[Any, list[Row[Any]]]
) -> list[str]:
    """I1: every accepted turn is dead with a reason, or indexed, extracted and with its one statement."""
    rows = {turn.key: turn for turn in turns}
    lost = []
    for entry in entries:
        turn = rows.get(entry.key)
        is_applied = turn is not None and turn.embedded and turn.extracted and turn.id in effects
        if turn is None or not (turn.failed or is_applied):
            lost.append(entry.key)
    return lost


def _doubled(turns: Sequence[Row[Any]], effects: dict[Any, list[Row[Any]]]) -> list[str]:
    """I2: one row per key; one memory per turn, said once."""
    per_key = Counter(turn.key for turn in turns if turn.key is not None)
    twice = [key for key, count in per_key.items() if count > 1]
    for turn in turns:
        found = effects.get(turn.id, [])
        if len(found) > 1 or any(row.repeat_count != 1 or row.retired for row in found):
            twice.append(turn.key)
    return twice


def _disordered(
    entries: Sequence[Entry], turns: Sequence[Row[Any]], effects: dict[Any, list[Row[Any]]]
) -> list[str]:
    """Order of acceptance is the order in which a client sent, and effects came in that order."""
    wrong = []
    told: dict[str, int] = defaultdict(int)
    for entry in entries:
        if entry.seq <= told[entry.session]:
            wrong.append(entry.key)
        told[entry.session] = max(told[entry.session], entry.seq)
    place = {row.id: number for number, row in enumerate(row for rows in effects.values() for row in rows)}
    latest: dict[int, int] = defaultdict(lambda: -1)
    for turn in turns:
        for row in effects.get(turn.id, []):
            if place[row.id] < latest[turn.session_id]:
                wrong.append(turn.key)
            latest[turn.session_id] = max(latest[turn.session_id], place[row.id])
    return wrong


def _sequences(connection: Connection, turns: Sequence[Row[Any]]) -> list[str]:
    """Numbers are gapless from 1, progress has reached the last, and no lease is left behind."""
    numbers = {id: [turn.seq for turn in rows] for id, rows in _by(turns, "session_id").items()}
    broken = []
    for session in connection.execute(_SESSIONS).all():
        if numbers.get(session.id, []) != list(range(1, session.next_seq)):
            broken.append(f"I3: numbers of session {session.name} have a gap")
        if session.extracted_seq != session.next_seq - 1:
            broken.append(
                f"I3: session {session.name} stopped at {session.extracted_seq} of {session.next_seq - 1}"
            )
        if session.overdue:
            broken.append(f"I5: session {session.name} keeps a lease that ran out")
    return broken[:5]


def _runs(connection: Connection, turns: Sequence[Row[Any]]) -> list[str]:
    """I3, I4: the finished runs of a session follow each other without overlap; only dead turns lie between."""
    dead = {(turn.session_id, turn.seq) for turn in turns if turn.failed}
    reached: dict[int, int] = defaultdict(int)
    broken = []
    for run in connection.execute(_RUNS).all():
        before = reached[run.session_id]
        skipped = range(before + 1, run.from_seq)
        if run.from_seq <= before or any((run.session_id, seq) not in dead for seq in skipped):
            broken.append(f"I3: a run of session {run.session_id} began at {run.from_seq} after {before}")
        reached[run.session_id] = run.to_seq
    return broken[:5]


def _term_counts(connection: Connection, turns: Sequence[Row[Any]]) -> list[str]:
    """I2 for indexing: each row is counted once in the document frequencies of its scope."""
    counted: Counter[tuple[int, int]] = Counter()
    rows = [(turn.scope_id, turn.keywords) for turn in turns if turn.keywords is not None]
    rows += [(row.scope_id, row.keywords) for row in connection.execute(_WEIGHTS).all()]
    for scope_id, keywords in rows:
        counted[scope_id, 0] += 1
        for pair in keywords[1 : keywords.index("}")].split(","):
            if pair:
                counted[scope_id, int(pair.partition(":")[0])] += 1
    stored = Counter({(row.scope_id, row.term): row.row_count for row in connection.execute(_TERMS).all()})
    wrong = [key for key in counted.keys() | stored.keys() if counted[key] != stored[key]]
    return [
        f"I2: scope {scope}: term {term} is counted {stored[scope, term]} times, not {counted[scope, term]}"
        for scope, term in wrong[:5]
    ]
