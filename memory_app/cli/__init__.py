"""The command line ``memory``. Commands translate and call; what they do is done by services and by the stack.

Exit status 0, 1 (it failed: one line says why), 2 (wrong usage). A file per group of commands.
"""

from __future__ import annotations

import sys

import structlog
import typer
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from memory_app.cli import (
    bench,
    check,
    erasures,
    failed,
    forget,
    keys,
    look,
    parts,
    reembed,
    servers,
    sleep,
    transfer,
    verbs,
)
from memory_app.cli.output import complain
from memory_app.errors import MemoryAppError
from memory_app.log import configure

__all__ = ["app", "main"]

log = structlog.get_logger(__name__)

app = typer.Typer(
    name="memory",
    help="Long-term memory for chat apps and AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for _group in (
    servers.app,
    verbs.app,
    look.app,
    check.app,
    failed.app,
    forget.app,
    reembed.app,
    sleep.app,
    transfer.app,
    parts.app,
):
    app.add_typer(_group)
app.add_typer(keys.app, name="keys")
app.add_typer(erasures.app, name="erasures")
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command of this process's arguments and exit with its status."""
    configure(level="WARNING", form="console")
    try:
        app()
    except MemoryAppError as error:
        complain(error.message)
        sys.exit(1)
    except ValidationError as error:
        complain(_wrong_setting(error))
        sys.exit(1)
    except DBAPIError as error:
        complain(
            f"the database refused ({type(error.orig).__name__}); `memory doctor` says what is wrong with it"
        )
        sys.exit(1)
    except Exception as error:  # The edge of the program. Python would print what the error quotes.
        log.critical("command_broke", exc_info=error)
        sys.exit(1)
    finally:
        structlog.reset_defaults()


def _wrong_setting(error: ValidationError) -> str:
    first = error.errors()[0]
    name = "MEMORY_" + "__".join(str(part) for part in first["loc"]).upper()
    return f"setting {name}: {first['msg']}"
