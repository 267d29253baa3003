"""Redact what a log line says about errors and messages of other libraries: types, places and ids, no words.

The words of an exception quote what it stumbled over: a database error its row, a failed validation its input, a
decoder its document. So an exception is written as the types of its chain and the places it came through. A message of
another library is written as it stands in that library's code, each argument left out that is not a number, an id or
one of our own names; a message that was put together at run time is left out, and the place that wrote it stays.

Local variables and source lines are never written.
"""

from __future__ import annotations

import errno
import logging
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from types import FrameType, ModuleType
from typing import Any

from structlog.typing import EventDict, Processor, WrappedLogger

from memory_app.errors import MemoryAppError, Misconfigured

OWN = ("memory_app.", "workers.")
OWN_PLACES = 6
LAST_PLACES = 3
CHAIN_LIMIT = 5
"""Errors of a chain of causes that are named."""

OMITTED = "…"

OPERATORS_WORDS = frozenset(
    {
        "%s ready.",
        "Uvicorn running on %s://%s:%d (Press CTRL+C to quit)",
        "Connected to %s",
        "beat: Starting...",
    }
)
"""Messages whose arguments are the operator's own: the name of a worker, the address of a server."""

_SQL_STATE = re.compile("[0-9A-Z]{5}")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def redactor(names: Collection[str] = ()) -> Processor:
    """Return a structlog processor for every logger. ``names`` are words of ours that may stand as an argument."""

    def redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        record: logging.LogRecord = event["_record"]
        arguments = event.pop("positional_args", None)
        # A stack quotes lines of source, which are never written.
        event.pop("stack_info", None)
        error, traceback = _error_of(event.pop("exc_info", None))
        if not event["_from_structlog"]:
            event["event"] = message(record, arguments, names)
            # Without its words a message is known only by the place that wrote it; an error names its own below.
            if error is None and event["event"] == OMITTED:
                event["at"] = [f"{record.module}:{record.lineno} {record.funcName}"]
        for name, value in event.items():
            if isinstance(value, BaseException):
                event[name] = kinds(value)
        if error is not None:
            event.update(error=kinds(error), at=places(error, traceback))
        return event

    return redact


def message(record: logging.LogRecord, arguments: Any, names: Collection[str]) -> str:
    """Return the message of another library without its arguments; `OMITTED` if its text stands nowhere in its code."""
    if isinstance(record.msg, BaseException):
        return kinds(record.msg)
    template = str(record.msg)
    if not _is_literal(template, record):
        return OMITTED
    try:
        text = template % _arguments(template, arguments, names) if arguments else template
    except (TypeError, ValueError, KeyError):
        # The arguments do not fit, or a number was left out.
        text = template
    # Below the first line Celery shows the message that it received.
    return text.strip().partition("\n")[0]


def kinds(error: BaseException) -> str:
    """Return the types of an error and of its causes, outermost first, each with its code if it has one."""
    return " < ".join(_kind(link) for link in _chain(error))


def places(error: BaseException, traceback: object = None) -> list[str]:
    """Return where an error and its causes came from, innermost last, as ``module:line function``.

    ``traceback`` is that of ``error`` if it has none of its own.
    """
    own, *of_causes = [link.__traceback__ for link in _chain(error)]
    tracebacks = (own or traceback, *of_causes)
    # A cause shares places with the error that it became; each is named once.
    return list(dict.fromkeys(chain.from_iterable(map(_places, tracebacks))))


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(CHAIN_LIMIT):
        if link is None:
            return
        yield link
        link = _cause(link)


def _cause(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    # A chain goes on with one; the first stands for all.
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions[0]
    return None if error.__suppress_context__ else error.__context__


def _kind(error: BaseException) -> str:
    """The class, and what tells two of the class apart without quoting anything."""
    name = type(error).__name__
    # About settings and servers: the operator's own words.
    if isinstance(error, Misconfigured):
        return f"{name} ({error.message})"
    if isinstance(error, MemoryAppError):
        return name
    code = _code(error)
    return name if code is None else f"{name} {code}"


def _code(error: BaseException) -> str | int | None:
    """The error's number of the operating system, of SQL or of HTTP, where it has one."""
    if isinstance(error, OSError) and error.errno is not None:
        return errno.errorcode.get(error.errno, error.errno)
    # SQLAlchemy keeps the driver's error, which has the state, in ``orig``.
    state = getattr(getattr(error, "orig", error), "sqlstate", None)
    if isinstance(state, str) and _SQL_STATE.fullmatch(state):
        return state
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _places(traceback: object) -> list[str]:
    """Our own places and the innermost ones."""
    all_places = list(map(_place, _links(traceback)))
    own = [place for place in all_places[:-LAST_PLACES] if place.startswith(OWN)]
    return own[-OWN_PLACES:] + all_places[-LAST_PLACES:]


def _links(traceback: object) -> Iterator[object]:
    while traceback is not None:
        yield traceback
        traceback = getattr(traceback, "tb_next", None)


def _place(link: object) -> str:
    # Celery hands over copies of tracebacks, which lack most attributes.
    frame = getattr(link, "tb_frame", None)
    module = getattr(frame, "f_globals", {}).get("__name__", "?")
    function = getattr(getattr(frame, "f_code", None), "co_name", "?")
    return f"{module}:{getattr(link, 'tb_lineno', '?')} {function}"


def _error_of(info: Any) -> tuple[BaseException | None, object]:
    """The exception of a record's ``exc_info`` and its traceback, in all the forms that it may have."""
    if isinstance(info, BaseException):
        return info, info.__traceback__
    if isinstance(info, tuple) and len(info) == 3 and isinstance(info[1], BaseException):
        return info[1], info[2]
    if not info:
        return None, None
    # ``exc_info=True`` asks for the exception that is being handled.
    return sys.exc_info()[1], None


def _is_literal(template: str, record: logging.LogRecord) -> bool:
    """Whether the text stands in the function that logs, in its module, or in a module that this one imports."""
    frame = _frame_of(record)
    if frame is None:
        return False
    imports = (vars(value) for value in frame.f_globals.values() if isinstance(value, ModuleType))
    # Imported modules as well, since libraries keep their messages as constants of another one.
    modules = (frame.f_globals, *imports)
    constants = chain(frame.f_code.co_consts, *(module.values() for module in modules))
    texts = (constant.strip() for constant in constants if isinstance(constant, str))
    return template.strip() in texts


def _frame_of(record: logging.LogRecord) -> FrameType | None:
    """The function that logs; it is still running while its record is formatted."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_lineno == record.lineno and frame.f_code.co_filename == record.pathname:
            return frame
        frame = frame.f_back
    return None


def _arguments(template: str, arguments: Any, names: Collection[str]) -> Any:
    if template in OPERATORS_WORDS:
        return arguments
    if isinstance(arguments, Mapping):
        return {name: _argument(value, names) for name, value in arguments.items()}
    return tuple(_argument(value, names) for value in arguments)


def _argument(value: object, names: Collection[str]) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, BaseException):
        return _Word(kinds(value))
    if isinstance(value, str) and (value in names or _ID.fullmatch(value)):
        return _Word(value)
    return _Word(OMITTED)


class _Word(str):
    """A text without quotes around it, for ``%s`` as for ``%r``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
