"""Prepare the machine for the servers: a system user, folders that it may pass, small private files.

Postgres refuses to run as root. Root therefore runs it as a user of its own, who cannot pass a private folder
such as root's home. Such folders are not opened to everybody: the programs and the database files then go to
`OUTSIDE`, and a link in the folder of the servers points there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
import time
from importlib import util
from pathlib import Path

from memory_app.errors import Misconfigured

try:
    import pwd
except ImportError:  # Windows, where `memory_app.local.embedded.is_available` says that no server is started
    pwd = None  # type: ignore[assignment]

INSTALL = "pip install 'memory-app[embedded]'"
SYSTEM_USER = "memory-postgres"
OUTSIDE = Path("/var/lib/memory-app")


def wheel(package: str) -> Path | None:
    """The folder of an installed wheel, or None."""
    # Not imported: on import the Postgres wheel makes lock files and reads settings.
    spec = util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]).resolve()


def prepare(folder: Path) -> Path:
    """Make the folder of the servers, private to us. One that exists keeps its rights."""
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            # Root's Postgres runs as another user, who must be able to pass. Nobody may list.
            folder.chmod(0o711 if os.geteuid() == 0 else 0o700)
    except OSError as error:
        raise Misconfigured(f"cannot make the folder {folder}: {error.strerror}") from error
    return folder


def outside() -> Path:
    """`OUTSIDE`, made if there is none."""
    try:
        OUTSIDE.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise Misconfigured(
            f"{SYSTEM_USER}, who runs Postgres for root, may not pass to the data or the programs, and"
            f" {OUTSIDE} cannot be made ({error.strerror}); use folders that all may pass, or do not be root"
        ) from error
    return OUTSIDE


def may_pass(path: Path) -> bool:
    """Whether every user may enter ``path`` (or run it, for a program) and all folders above it."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


def system_user() -> pwd.struct_passwd | None:
    """The user who runs Postgres for root, made on first use; None for everybody else."""
    if os.geteuid() != 0:
        return None
    program = shutil.which("useradd")
    # Several processes may make the user at the same moment, and useradd of all but one fails: so look again.
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(SYSTEM_USER)
        if program is None:
            break
        command = [program, "--system", "--no-create-home", "--shell", "/bin/false", SYSTEM_USER]
        subprocess.run(command, capture_output=True, check=False)
    raise Misconfigured(
        f"Postgres refuses to run as root, and the user {SYSTEM_USER} cannot be made; do not be root"
    )


def give(path: Path, user: pwd.struct_passwd | None) -> None:
    """Make ``path`` the user's, if there is another user than ourselves."""
    if user is not None:
        os.chown(path, user.pw_uid, user.pw_gid)


def run(
    command: list[str],
    *,
    log: Path,
    lock: int,
    user: pwd.struct_passwd | None = None,
    cwd: Path = Path("/"),
    text: str = "",
) -> int:
    """Exit status. The command reads ``text``, and inherits ``lock``."""
    # To a file and not through a pipe, whose end a daemon never closes.
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            input=text.encode(),
            stdout=output,
            stderr=output,
            pass_fds=(lock,),
            # Out of reach of Ctrl-C, which is for this process: it stops the servers in order.
            start_new_session=True,
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
            check=False,
        ).returncode
    finally:
        os.close(output)


def read(path: Path) -> str | None:
    """What `write` wrote, or None. Raises `Misconfigured` for what belongs to somebody else."""
    try:
        return path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise Misconfigured(
            f"{path} may not be read: run this as the user who started the servers"
        ) from error


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all, for its owner only."""
    # mkstemp makes it with the rights 0600, and a rename replaces the old file in one step.
    descriptor, new = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(new).replace(path)


def tail(log: Path) -> str:
    """The last lines of a log, for an error message."""
    return "\n".join((read(log) or "nothing was logged").splitlines()[-8:])
