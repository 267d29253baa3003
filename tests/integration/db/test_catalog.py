"""Doctor compares the schema with the one that the code expects, object by object, and migrate mends what it can."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from memory_app.db import catalog
from memory_app.local.embedded import Servers
from memory_app.ops.check import State
from memory_app.ops.doctor import diagnose
from memory_app.settings import Settings
from memory_app.tenancy import schema

MENDED = {
    "policy": ("DROP POLICY tenant ON memories", "policy memories.tenant is missing"),
    "open_policy": (
        "ALTER POLICY tenant ON turns USING (true)",
        "policy turns.tenant is different",
    ),
    "right": ("REVOKE INSERT ON turns FROM memory_app", "right of memory_app on table turns is different"),
    "added_right": (
        "GRANT UPDATE ON tenants TO memory_app",
        "right of memory_app on table tenants is different",
    ),
    "right_of_all": ("GRANT SELECT ON turns TO PUBLIC", "right of public on table turns is unexpected"),
    "column_right": (
        "REVOKE SELECT (due_at) ON schedules FROM memory_finder",
        "right of memory_finder on table schedules is different",
    ),
    "function": ("DROP FUNCTION pipeline_state()", "function pipeline_state() is missing"),
    "body": (
        "CREATE OR REPLACE FUNCTION tenant_named(wanted text) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER "
        "AS 'SELECT 1::bigint'",
        "function tenant_named(text) is different",
    ),
    "owner_of_function": (
        "ALTER FUNCTION authenticate(bytea) OWNER TO CURRENT_USER",
        "function authenticate(bytea) is different",
    ),
    "execute": (
        "GRANT EXECUTE ON FUNCTION claim_turns TO PUBLIC",
        "right of public on function claim_turns(integer,interval) is unexpected",
    ),
    "trigger": ("DROP TRIGGER keep_image ON links", "trigger links.keep_image is missing"),
    "sleeping_trigger": (
        "ALTER TABLE links DISABLE TRIGGER keep_image",
        "trigger links.keep_image is different",
    ),
    "row_level_security": ("ALTER TABLE links NO FORCE ROW LEVEL SECURITY", "table links is different"),
}
"""What `memory migrate` puts right: statement that breaks it, and what doctor says."""

BY_HAND = {
    "column": (
        "ALTER TABLE turns DROP COLUMN emotional_tone",
        "column turns.emotional_tone is missing",
        "restore table turns from a backup, or ALTER TABLE turns ADD COLUMN emotional_tone text",
    ),
    "type": (
        "ALTER TABLE sessions ALTER COLUMN starts TYPE bigint",
        "column sessions.starts is different",
        "ALTER TABLE sessions so that starts is integer NOT NULL DEFAULT 0",
    ),
    "default": (
        "ALTER TABLE memories ALTER COLUMN repeat_count DROP DEFAULT",
        "column memories.repeat_count is different",
        "ALTER TABLE memories so that repeat_count is integer NOT NULL DEFAULT 1",
    ),
    "index": (
        "DROP INDEX evidence_turn_idx",
        "index evidence_turn_idx is missing",
        "CREATE INDEX evidence_turn_idx ON public.evidence USING btree (turn_scope_id, turn_id)",
    ),
    "constraint": (
        "ALTER TABLE links DROP CONSTRAINT links_ends_check",
        "constraint links.links_ends_check is missing",
        "ALTER TABLE links ADD CONSTRAINT links_ends_check CHECK ((source_id <> target_id))",
    ),
    "table": (
        "DROP TABLE usage",
        "table usage is missing",
        "restore table usage from a backup",
    ),
    "storage": (
        "ALTER TABLE terms RESET (fillfactor)",
        "storage terms is missing",
        "ALTER TABLE terms SET (fillfactor=70)",
    ),
    "added_policy": (
        "CREATE POLICY everybody ON turns USING (true)",
        "policy turns.everybody is unexpected",
        "DROP POLICY everybody ON turns",
    ),
    "added_trigger": (
        "CREATE TRIGGER twice AFTER INSERT ON links FOR EACH ROW EXECUTE FUNCTION keep_image()",
        "trigger links.twice is unexpected",
        "DROP TRIGGER twice ON links",
    ),
}
"""What only an operator can decide: statement, what doctor says, and what it says to do."""

HARMLESS = (
    "CREATE TABLE reports (id integer, tenant_id bigint)",
    "CREATE INDEX turns_role_idx ON turns (role)",
    "CREATE FUNCTION report() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
)


def schema_check(settings: Settings) -> tuple[State, str, str]:
    check = next(check for check in diagnose(settings) if check.name == "schema")
    return check.state, check.found, check.to_do


def test_the_expected_objects_are_those_of_a_migrated_database(database: Servers) -> None:
    with create_engine(database.app_url, poolclass=NullPool).begin() as connection:
        actual = catalog.objects(connection)
    assert catalog.render(actual) == catalog.EXPECTED.read_text(), "run python -m tests.manifest"
    kinds = {name.partition(" ")[0] for name in actual}
    structure = {"table", "column", "constraint", "index", "storage"}
    assert kinds == structure | {"policy", "trigger", "function", "right", "role"}


@pytest.mark.one_shard
@pytest.mark.parametrize("damage", MENDED)
def test_doctor_names_what_migrate_mends(settings: Settings, owner: Engine, damage: str) -> None:
    statement, words = MENDED[damage]
    with owner.begin() as connection:
        connection.execute(text(statement))

    state, found, to_do = schema_check(settings)

    assert state is State.FAIL
    assert words in found
    assert to_do == "run `memory migrate`"
    schema.upgrade(settings)
    assert schema_check(settings)[0] is State.OK


@pytest.mark.one_shard
@pytest.mark.parametrize("damage", BY_HAND)
def test_doctor_names_what_an_operator_must_mend(settings: Settings, owner: Engine, damage: str) -> None:
    statement, words, remedy = BY_HAND[damage]
    with owner.begin() as connection:
        connection.execute(text(statement))

    state, found, to_do = schema_check(settings)

    assert state is State.FAIL
    assert words in found
    assert remedy in to_do
    assert "more" not in found


@pytest.mark.one_shard
def test_migrate_says_what_it_could_not_make_again(owner: Engine, environment: dict[str, str]) -> None:
    with owner.begin() as connection:
        connection.execute(text("ALTER TABLE turns DROP COLUMN emotional_tone"))
        connection.execute(text("DROP POLICY tenant ON links"))

    done = subprocess.run(
        [sys.executable, "-m", "memory_app", "migrate"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "column turns.emotional_tone is missing: restore table turns from a backup" in done.stderr
    assert "links" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.one_shard
def test_what_somebody_else_keeps_in_the_database_is_no_difference(settings: Settings, owner: Engine) -> None:
    with owner.begin() as connection:
        for statement in HARMLESS:
            connection.execute(text(statement))

    assert schema_check(settings)[0] is State.OK
