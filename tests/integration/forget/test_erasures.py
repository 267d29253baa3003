"""What was forgotten stays forgotten: receipts are kept apart from the database, and a restored backup is put right."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import all_shards
import pytest
from backups import dump, restore
from commands import Memory
from databases import failures, libpq_url, run_program, settings_for
from own_servers import postgres_server
from pydantic import SecretStr
from queries import tables_with
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from memory_app.db.db import transaction
from memory_app.forget import receipt_file
from memory_app.forget.forget import forget_memory, forget_session, forget_turn, forget_user
from memory_app.forget.receipt import parse_receipt, receipt_line
from memory_app.forget.receipts import Outcome, Replayed, compare, export_receipts, replay, tenants_of
from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.memories import remember
from memory_app.ops.check import Check, State
from memory_app.ops.doctor import diagnose
from memory_app.recall.context import ContextRequest, context
from memory_app.recall.recall import RecallQuery, recall
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime, build
from memory_app.settings import Database, Settings
from memory_app.tenancy import schema
from memory_app.tenancy.digests import Digests
from memory_app.tenancy.rows import names
from memory_app.turns.extract import extract_session
from memory_app.turns.index import index_turns
from memory_app.turns.record import record
from memory_app.turns.rows import sessions

ERASED = ("quokka", "zeppelin", "marzipan", "obsidian", "saxophone")
"""A word of each that is forgotten, which stands nowhere else."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A database that was restored from a backup."""

    settings: Settings
    runtime: Runtime
    owner: Engine


def say(runtime: Runtime, tenant: int, user: str, *texts: str, session: str = "chat") -> list[UUID]:
    """Turns of a user, indexed and extracted."""
    scope = Scope("ada", user, session)
    tickets = record(runtime, tenant, scope, [NewTurn(Role.USER, each) for each in texts])
    index_turns(runtime)
    with transaction(runtime.engine, tenant) as connection:
        row = names.need_scope(connection, tenant, scope)
        stored = sessions.find(connection, row.id, session)
    assert stored is not None
    extract_session(runtime, stored.id)
    return [ticket.id for ticket in tickets]


def tell(runtime: Runtime, tenant: int, user: str, words: str, **fields: Any) -> UUID:
    return remember.remember(
        runtime, tenant, Scope("ada", user), statement=Statement("fact", words, **fields)
    ).id


def rows_of(owner: Engine, user: str) -> dict[str, list[str]]:
    """Everything of one user, table by table."""
    tables = text("SELECT table_name FROM information_schema.columns WHERE column_name = 'scope_id'")
    scopes = text("SELECT c.id FROM scopes c JOIN users u ON u.id = c.user_id WHERE u.name = :user")
    with owner.connect() as connection:
        ids = list(connection.execute(scopes, {"user": user}).scalars())
        assert ids
        return {
            table: list(
                connection.execute(
                    text(f"SELECT t::text FROM {table} t WHERE scope_id = ANY(:ids) ORDER BY 1"), {"ids": ids}
                ).scalars()
            )
            for table in connection.execute(tables).scalars()
        }


def assert_terms_equal_a_recount(owner: Engine) -> None:
    with owner.connect() as connection:
        wrong = connection.execute(
            text(
                """
                WITH held AS (
                    SELECT scope_id, unnest(terms || 0) AS term FROM memories WHERE terms IS NOT NULL
                    UNION ALL SELECT scope_id, unnest(terms || 0) FROM turns WHERE terms IS NOT NULL
                ), counted AS (SELECT scope_id, term, count(*) AS n FROM held GROUP BY 1, 2)
                SELECT t.term, t.row_count, c.n FROM terms t
                FULL JOIN counted c ON c.scope_id = t.scope_id AND c.term = t.term
                WHERE coalesce(t.row_count, 0) <> coalesce(c.n, 0)
                """
            )
        ).all()
    assert wrong == []


def replayed(copy: Copy, path: Path, **options: Any) -> list[Replayed]:
    return list(replay(copy.runtime, tenants_of(copy.runtime, None), [path], **options))


def outcomes(rows: list[Replayed]) -> list[Outcome]:
    return [row.outcome for row in rows]


def export(runtime: Runtime, path: Path) -> tuple[int, int]:
    return export_receipts(runtime, tenants_of(runtime, None), path)


def erasure_check(settings: Settings, path: Path) -> Check:
    checks = diagnose(settings.model_copy(update={"erasures_file": path}))
    return next(check for check in checks if check.name == "erasures")


@pytest.fixture
def restored(
    settings: Settings, servers: Servers, tmp_path: Path
) -> Iterator[Callable[[Callable[[], None]], Copy]]:
    """Makes a backup, lets something happen, and restores the backup into a database of its own."""
    copies: list[tuple[Copy, str]] = []

    def make(after_the_backup: Callable[[], None]) -> Copy:
        owner_url = settings.database.owner_url
        assert owner_url is not None
        dump(owner_url.get_secret_value(), tmp_path / "memory.dump")
        after_the_backup()
        name = f"restored_{uuid4().hex[:12]}"
        made = embedded.create_database(servers, name)
        restore(tmp_path / "memory.dump", made.owner_url)
        database = Database(url=SecretStr(made.app_url), owner_url=SecretStr(made.owner_url))
        own = settings.model_copy(update={"database": all_shards.with_servers(database)})
        schema.upgrade(own)
        copy = Copy(own, all_shards.at_work(build(own)), all_shards.owner_engine(made.owner_url))
        copies.append((copy, name))
        return copy

    yield make
    for copy, name in copies:
        copy.runtime.close()
        copy.owner.dispose()
        embedded.drop_database(servers, name)


# --- a restored backup ----------------------------------------------------------------------------------------


def test_a_restored_backup_does_not_bring_the_erased_back(
    runtime: Runtime,
    tenant: int,
    other_tenant: int,
    owner: Engine,
    restored: Callable[[Callable[[], None]], Copy],
    tmp_path: Path,
) -> None:
    say(runtime, tenant, "mira", "I have a dog named Quokka.", "I live in Lisbon these days.")
    tell(runtime, tenant, "mira", "Mira feeds the quokka.")
    say(runtime, tenant, "tom", "My zeppelin lands in Porto.", session="secret")
    say(runtime, tenant, "tom", "I play chess.")
    turn, _ = say(runtime, tenant, "lea", "I am allergic to marzipan.", "I like rain.")
    stone = tell(runtime, tenant, "ben", "Ben collects obsidian.")
    tell(runtime, tenant, "ben", "Ben likes tea.")
    tell(runtime, tenant, "ida", "Ida plays the saxophone in a band with old friends from school.")
    say(runtime, other_tenant, "mira", "I keep bees.")

    def forget_some() -> None:
        forget_user(runtime, tenant, "mira")
        forget_session(runtime, tenant, Scope("ada", "tom", "secret"))
        forget_turn(runtime, tenant, turn)
        forget_memory(runtime, tenant, stone)
        # What is forgotten here was made after the backup, of a row that stands alone in it.
        longer = Statement("fact", "Ida plays the saxophone in a band with old friends from her school.")
        merged = remember.remember(runtime, tenant, Scope("ada", "ida"), statement=longer)
        assert merged.merged_count == 1
        forget_memory(runtime, tenant, merged.id)
        assert [tables_with(owner, word) for word in ERASED] == [[]] * len(ERASED)

    copy = restored(forget_some)
    file = tmp_path / "erasures.jsonl"
    assert export(runtime, file) == (5, 5)
    before = {user: rows_of(copy.owner, user) for user in ("ben", "tom", "lea")}
    others = tables_with(copy.owner, "bees")
    assert all(tables_with(copy.owner, word) for word in ERASED)
    assert not any(word in file.read_text() for word in ("mira", "tom", "secret", *ERASED))

    check = erasure_check(copy.settings, file)
    assert (check.state, "5 of 5 receipts" in check.found) == (State.WARN, True)
    assert f"memory erasures replay {file}" in check.to_do

    dry = replayed(copy, file, dry_run=True)
    assert {user: rows_of(copy.owner, user) for user in before} == before
    assert all(tables_with(copy.owner, word) for word in ERASED)

    done = replayed(copy, file)
    assert outcomes(done) == [Outcome.ERASED] * 5
    assert [row.counts for row in done] == [row.counts for row in dry]
    assert [tables_with(copy.owner, word) for word in (*ERASED, "secret")] == [[]] * (len(ERASED) + 1)
    assert tables_with(copy.owner, "bees") == others
    assert [hit.text for hit in hits(copy.runtime, tenant, "tom", "chess")] == ["tom plays chess."]
    assert [hit.text for hit in hits(copy.runtime, tenant, "ben", "tea")] == ["Ben likes tea."]
    assert_terms_equal_a_recount(copy.owner)

    assert outcomes(replayed(copy, file)) == [Outcome.KNOWN] * 5
    assert erasure_check(copy.settings, file).state is State.OK
    # The restored database gives the same receipts as the one they were made in.
    again = tmp_path / "again.jsonl"
    export(copy.runtime, again)
    assert sorted(again.read_text().splitlines()) == sorted(file.read_text().splitlines())


def hits(runtime: Runtime, tenant: int, user: str, query: str) -> Any:
    return recall(runtime, tenant, Scope("ada", user), query=RecallQuery(query)).memories[:1]


def test_a_backup_restored_into_an_empty_cluster_is_put_right_as_well(
    runtime: Runtime, tenant: int, settings: Settings, servers: Servers, tmp_path: Path
) -> None:
    say(runtime, tenant, "mira", "I have a dog named Quokka.")
    say(runtime, tenant, "tom", "I live in Bergen these days.")
    owner_url = settings.database.owner_url
    assert owner_url is not None
    dump(owner_url.get_secret_value(), tmp_path / "memory.dump")
    forget_user(runtime, tenant, "mira")
    file = tmp_path / "erasures.jsonl"
    export(runtime, file)
    with postgres_server(settings=all_shards.TWO_PHASES) as postgres:
        postgres.create_database("memory")
        url = libpq_url(postgres.url("memory"))
        # What names our roles fails: there are none yet. Migrate makes them and all that was lost with them.
        run_program(postgres, "pg_restore", "--no-owner", f"--dbname={url}", str(tmp_path / "memory.dump"))
        own = settings_for(postgres, servers)
        database = all_shards.with_servers(own.database)
        own = own.model_copy(update={"embedding": settings.embedding, "database": database})
        schema.upgrade(own)
        owner = create_engine(postgres.url("memory"), poolclass=NullPool)
        with closing(all_shards.at_work(build(own))) as other:
            copy = Copy(own, other, owner)
            assert erasure_check(own, file).state is State.WARN

            assert outcomes(replayed(copy, file)) == [Outcome.ERASED]

            assert [tables_with(owner, word) for word in ("quokka", "mira")] == [[], []]
            assert erasure_check(own, file).state is State.OK
            assert outcomes(replayed(copy, file)) == [Outcome.KNOWN]
            assert failures(own) == {}
            (hit,) = hits(other, tenant, "tom", "Where does Tom live?")
            assert "Bergen" in hit.text


def test_what_came_with_new_consent_stays(
    runtime: Runtime, tenant: int, restored: Callable[[Callable[[], None]], Copy], tmp_path: Path
) -> None:
    say(runtime, tenant, "mira", "I have a dog named Quokka.")
    say(runtime, tenant, "tom", "My zeppelin lands in Porto.")
    file = tmp_path / "erasures.jsonl"

    def forget_both() -> None:
        forget_user(runtime, tenant, "mira")
        forget_session(runtime, tenant, Scope("ada", "tom", "chat"))
        export(runtime, file)

    copy = restored(forget_both)
    # The service was opened too early: both go on talking before the receipts are replayed.
    say(copy.runtime, tenant, "mira", "I live in Bergen these days.", session="fresh")
    tell(copy.runtime, tenant, "mira", "Mira prefers short answers.")
    say(copy.runtime, tenant, "tom", "I moved to Kyoto.")

    assert outcomes(replayed(copy, file)) == [Outcome.ERASED] * 2

    assert [tables_with(copy.owner, word) for word in ("quokka", "zeppelin", "porto")] == [[]] * 3
    assert "memories" in tables_with(copy.owner, "short answers")
    assert "turns" in tables_with(copy.owner, "kyoto")
    window = context(
        copy.runtime, tenant, Scope("ada", "mira"), request=ContextRequest("Where does Mira live?")
    )
    assert "I live in Bergen these days." in window.text
    assert_terms_equal_a_recount(copy.owner)


def test_who_came_back_before_the_backup_is_left_alone(
    runtime: Runtime, tenant: int, restored: Callable[[Callable[[], None]], Copy], tmp_path: Path
) -> None:
    say(runtime, tenant, "mira", "I have a quokka.")
    forget_user(runtime, tenant, "mira")
    say(runtime, tenant, "mira", "I live in Lisbon these days.")
    file = tmp_path / "erasures.jsonl"
    copy = restored(lambda: None)
    export(runtime, file)
    before = rows_of(copy.owner, "mira")

    assert outcomes(replayed(copy, file)) == [Outcome.KNOWN]
    # Even where the receipt was lost with the database: what came after the erasure stays.
    with copy.owner.begin() as connection:
        connection.execute(text("DELETE FROM erasures"))
    assert outcomes(replayed(copy, file)) == [Outcome.ABSENT]

    assert rows_of(copy.owner, "mira") == before


def test_what_workers_made_of_old_turns_after_the_restore_goes_with_them(
    runtime: Runtime, tenant: int, restored: Callable[[Callable[[], None]], Copy], tmp_path: Path
) -> None:
    file = tmp_path / "erasures.jsonl"
    turns = [NewTurn(Role.USER, "I live in Lisbon these days.")]
    record(runtime, tenant, Scope("ada", "mira", "chat"), turns)

    def forget_mira() -> None:
        forget_user(runtime, tenant, "mira")
        export(runtime, file)

    copy = restored(forget_mira)
    index_turns(copy.runtime)
    with copy.owner.connect() as connection:
        session_id = connection.execute(text("SELECT id FROM sessions")).scalar_one()
    extract_session(copy.runtime, session_id)
    assert "memories" in tables_with(copy.owner, "lisbon")

    assert outcomes(replayed(copy, file)) == [Outcome.ERASED]

    assert [tables_with(copy.owner, word) for word in ("lisbon", "mira")] == [[]] * 2


def test_receipts_of_a_tenant_that_is_not_here_change_nothing(
    runtime: Runtime, tenant: int, settings: Settings, owner: Engine, tmp_path: Path
) -> None:
    say(runtime, tenant, "mira", "I live in Lisbon these days.")
    here = Copy(settings, runtime, owner)
    forget_user(runtime, tenant, "tom")
    file = tmp_path / "erasures.jsonl"
    export(runtime, file)
    line = file.read_text()
    receipt = parse_receipt(line)
    # Another tenant had this number before the backup was restored.
    file.write_text(line.replace('"acme"', '"initech"').replace(str(receipt.id), str(uuid4())))

    assert outcomes(replayed(here, file)) == [Outcome.OTHER_TENANT]
    assert compare(runtime.engine, tenants_of(runtime, None), file).only_in_file == 0


# --- the file -------------------------------------------------------------------------------------------------


def test_each_erasure_is_added_to_the_file_that_the_settings_name(
    settings: Settings, tenant: int, tmp_path: Path
) -> None:
    file = tmp_path / "kept" / "erasures.jsonl"
    file.parent.mkdir()
    runtime = all_shards.at_work(build(settings.model_copy(update={"erasures_file": file})))
    try:
        say(runtime, tenant, "mira", "I live in Lisbon these days.")
        forget_user(runtime, tenant, "mira", dry_run=True)
        assert not file.exists()
        run = forget_user(runtime, tenant, "mira")
        forget_session(runtime, tenant, Scope("ada", "tom", "chat"))

        lines = list(receipt_file.read(file))
        assert [line.receipt.id for line in lines if line.receipt][:1] == [UUID(run.report["erasure"])]
        assert len(lines) == 2
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert export(runtime, file) == (2, 0)
        assert erasure_check(runtime.settings, file).state is State.OK

        # A file that cannot be written keeps nobody from being forgotten; doctor names what it lacks.
        file.unlink()
        file.parent.rmdir()
        forget_user(runtime, tenant, "lea")
        file.parent.mkdir()
        forget_user(runtime, tenant, "ben")
        check = erasure_check(runtime.settings, file)
        assert (check.state, "lacks 3 receipts" in check.found) == (State.WARN, True)
        assert export(runtime, file) == (4, 3)
    finally:
        runtime.close()


def test_a_line_that_was_cut_costs_only_itself(
    runtime: Runtime, tenant: int, settings: Settings, owner: Engine, tmp_path: Path
) -> None:
    say(runtime, tenant, "mira", "I live in Lisbon these days.")
    forget_user(runtime, tenant, "mira")
    file = tmp_path / "erasures.jsonl"
    export(runtime, file)
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])

    assert export(runtime, file) == (1, 1)

    rows = replayed(Copy(settings, runtime, owner), file)
    assert [(row.line, row.outcome) for row in rows] == [(1, Outcome.UNREADABLE), (2, Outcome.KNOWN)]
    assert erasure_check(settings, file).state is State.WARN


def test_an_export_keeps_what_only_the_file_knows(
    runtime: Runtime, tenant: int, restored: Callable[[Callable[[], None]], Copy], tmp_path: Path
) -> None:
    file = tmp_path / "erasures.jsonl"

    def forget_tom() -> None:
        forget_user(runtime, tenant, "tom")
        export(runtime, file)

    copy = restored(forget_tom)
    forget_user(copy.runtime, tenant, "mira")

    assert export(copy.runtime, file) == (2, 1)
    (known, _) = [line.receipt for line in receipt_file.read(file)]
    assert known is not None
    assert receipt_line(known, Digests()) in file.read_text()


# --- the command line -----------------------------------------------------------------------------------------


def test_the_commands_list_export_and_replay_receipts(
    memory: Memory,
    runtime: Runtime,
    tenant: int,
    restored: Callable[[Callable[[], None]], Copy],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    say(runtime, tenant, "mira", "I have a quokka.")
    file = str(tmp_path / "erasures.jsonl")

    def forget_mira() -> None:
        assert memory("forget", "mira", "--tenant", "acme", "--yes").status == 0
        done = memory("erasures", "export", file)
        assert (done.status, "1 receipts, 1 of them new" in done.out) == (0, True)

    copy = restored(forget_mira)
    listed = memory("erasures", "list", "--json")
    assert (listed.status, '"of": "user"' in listed.out, "mira" in listed.out) == (0, True, False)
    assert "acme" in memory("erasures", "list", "--tenant", "acme").out

    for name in ("url", "owner_url"):
        url = getattr(copy.settings.database, name).get_secret_value()
        monkeypatch.setenv(f"MEMORY_DATABASE__{name.upper()}", url)
    for name, url in all_shards.variables(copy.settings).items():
        monkeypatch.setenv(name, url)
    assert "would be erased again" in memory("erasures", "replay", file, "--dry-run").out
    assert ": erased again, " in memory("erasures", "replay", file).out
    assert "nothing to do" in memory("erasures", "replay", file).out
    assert tables_with(copy.owner, "quokka") == []

    Path(file).write_text("no receipt\n")
    broken = memory("erasures", "replay", file)
    assert (broken.status, broken.err.count("\n")) == (1, 1)
    assert f"{file}:1: unreadable" in broken.out
    missing = memory("erasures", "replay", str(tmp_path / "nowhere"))
    assert (missing.status, "cannot be read" in missing.err) == (1, True)
