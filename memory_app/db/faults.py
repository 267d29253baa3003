"""What goes wrong between us and PostgreSQL, told apart: one sentence for each fault, which says what to do.

A login that fails carries no SQLSTATE, only a text. The driver's own texts are English; those of the server are in the
language of its setting ``lc_messages``, so one that is not in the table is quoted. Our sentences name the setting that
holds the address, never the address: it may carry a password, and an API shows them to whoever asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from memory_app.errors import ReferenceGone, StoreBusy, StoreRefused, StoreUnavailable

SETTING = "MEMORY_DATABASE__URL"
OWNER_SETTING = "MEMORY_DATABASE__OWNER_URL"

RETRY_SECONDS = 1.0
RETRY_LASTING_SECONDS = 10.0
"""Nothing changes before a person has acted."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who connects to what, as the setting with that name says."""

    setting: str
    role: str
    database: str

    @classmethod
    def of(cls, engine: Engine) -> Login:
        """Whose engine this is."""
        setting = str(engine.get_execution_options().get("setting", SETTING))
        role = engine.url.username or "(the user of this process)"
        return cls(setting, role, engine.url.database or role)


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure by the driver's text. ``is_lasting``: it does not pass by itself, so that waiting for it is in vain."""

    name: str
    pattern: str
    sentence: str
    is_lasting: bool = False


FAULTS = (
    Fault(
        "name not resolved",
        r"failed to resolve host|could not translate host name",
        "the host name in {setting} is not known; mend it, or wait until the host is there",
    ),
    Fault(
        "no answer",
        r"timeout expired|Connection timed out|no answer within the time limit",
        "PostgreSQL does not answer in time at the address in {setting}; see whether it hangs, or a firewall drops "
        "what is sent",
    ),
    Fault(
        "TLS not offered",
        r"does not support SSL",
        "{setting} asks for TLS and the server speaks none; turn it on there (ssl = on), or take sslmode out of "
        "the address",
        is_lasting=True,
    ),
    Fault(
        "TLS required",
        r"SSL required",
        "the server wants TLS; add sslmode=verify-full and sslrootcert to the address in {setting}",
        is_lasting=True,
    ),
    Fault(
        "certificate of another host",
        r"server certificate for .* does not match host name",
        "the certificate of the server is for another host name than the one in {setting}; write the name that is in "
        "the certificate",
        is_lasting=True,
    ),
    Fault(
        "certificate not trusted",
        r"certificate verify failed",
        "the certificate of the server is not signed by a CA that sslrootcert in {setting} names, or has expired; name "
        "the file of the right CA, or renew the certificate",
        is_lasting=True,
    ),
    Fault(
        "no file of CAs",
        r"root certificate file .* does not exist|could not read root certificate file",
        "{setting} asks for the certificate of the server to be verified, and there is no file of CAs; name it with "
        "sslrootcert",
        is_lasting=True,
    ),
    Fault(
        "client certificate required",
        r"requires a valid client certificate|certificate required|could not load private key file|"
        r"certificate present, but not private key file",
        "the server wants a certificate of the client; name its files with sslcert and sslkey in {setting}",
        is_lasting=True,
    ),
    Fault(
        "no PostgreSQL",
        r"received invalid response|expected authentication request",
        "what answers at the address in {setting} is no PostgreSQL; mend the host or the port",
        is_lasting=True,
    ),
    Fault(
        "no password",
        r"no password supplied",
        "the server asks role {role} for a password and {setting} carries none; add it to the address",
        is_lasting=True,
    ),
    Fault(
        "password wrong",
        r"password authentication failed|SASL authentication failed",
        "the server does not accept the password of role {role} in {setting}, or has no such role; {remedy}",
        is_lasting=True,
    ),
    Fault(
        "role missing",
        r'role ".*" does not exist|role ".*" is not permitted to log in',
        "the server has no role {role} that may log in; {remedy}",
        is_lasting=True,
    ),
    # Before the next one, whose pattern fits this text as well.
    Fault(
        "not let in without TLS",
        r"pg_hba\.conf .*no encryption",
        "pg_hba.conf of the server lets role {role} into database {database} from here by no line, not without TLS at "
        "least; add a line there, or sslmode=verify-full to the address in {setting}",
        is_lasting=True,
    ),
    Fault(
        "not let in",
        r"pg_hba\.conf",
        "pg_hba.conf of the server lets role {role} into database {database} from here by no line; add one there",
        is_lasting=True,
    ),
    Fault(
        "database missing",
        r'database ".*" does not exist|no such database',
        "the server has no database {database}; create it with CREATE DATABASE, or mend {setting}",
        is_lasting=True,
    ),
    Fault(
        "right to connect missing",
        r"permission denied for database",
        "role {role} may not connect to database {database}; let its owner run "
        "GRANT CONNECT ON DATABASE {database} TO {role}",
        is_lasting=True,
    ),
    Fault(
        "options behind a pooler",
        r"unsupported startup parameter",
        "the pooler at the address in {setting} refuses what the address asks for; take options out of it",
        is_lasting=True,
    ),
    Fault(
        "pooler in statement mode",
        r"statement pooling mode",
        "the pooler at the address in {setting} allows no transactions; set its pool_mode to transaction",
        is_lasting=True,
    ),
    Fault(
        "pooler without a server",
        r"server login has been failing|query_wait_timeout|server_login_retry|pgbouncer cannot connect|"
        r"server conn crashed|client_login_timeout",
        "the pooler at the address in {setting} gets no connection to PostgreSQL; see whether the server runs and "
        "knows the pooler's passwords",
    ),
    Fault(
        "too many connections",
        r"too many (connections|clients)|remaining connection slots|no more connections allowed",
        "PostgreSQL has no connection left; lower MEMORY_DATABASE__POOL_SIZE, or raise max_connections there",
    ),
    Fault(
        "starting or stopping",
        r"the database system is|not yet accepting connections|not currently accepting connections|pooler is shut",
        "PostgreSQL is starting, stopping or recovering; try again in a moment",
    ),
    Fault(
        "no address",
        r"invalid \S+ value|invalid port number|invalid connection option|invalid integer value",
        "{setting} is no address that the driver understands; check its port, sslmode and other parameters",
        is_lasting=True,
    ),
    Fault(
        "away",
        r"Connection refused|No such file or directory|No route to host|Network is unreachable|Host is down|"
        r"Connection reset by peer|server closed the connection unexpectedly",
        "PostgreSQL is away: nobody answers at the address in {setting}; start it, or mend the address",
    ),
)
"""The first that fits counts: several addresses may have failed, each in its own way."""

STATES = {
    "25006": "PostgreSQL takes no writes at the address in {setting}; let it lead to the primary",
    "53100": "the disk of PostgreSQL is full; make room there",
    "53200": "PostgreSQL is out of memory; see its log",
    "53300": "PostgreSQL has no connection left; lower MEMORY_DATABASE__POOL_SIZE, or raise max_connections there",
    "57P01": "PostgreSQL ended the connection; try again in a moment",
    "57P02": "PostgreSQL crashed and is recovering; try again in a moment",
    "57P03": "PostgreSQL is starting, stopping or recovering; try again in a moment",
}
"""By SQLSTATE, of a connection that was open."""

BUSY_STATES = {
    "40001": "another transaction changed the same rows",
    "40P01": "two transactions waited for each other",
    "55P03": "another transaction holds what this one needs",
    "57014": "a statement took too long and was ended",
}
"""Why a statement ended, by SQLSTATE; it may do so no more when it is sent again."""

PASSING_STATES = frozenset({"25P03", "25P04"})
"""Time-outs of an idle transaction."""

REFERENCE_GONE = "23503"

RIGHT_MISSING = "42501"

_FATAL = re.compile(r"FATAL:\s+(.*)")


def fault_of(error: DBAPIError, login: Login) -> StoreUnavailable | None:
    """Our error for what the driver raised; None for one that is neither the server's state nor the address."""
    cause = error.orig
    if not isinstance(cause, psycopg.Error):
        return None
    state = cause.sqlstate
    if is_right_missing(cause):
        return _lasting(
            f"role {login.role} lacks a right ({cause.diag.message_primary}); {_remedy(login, 'gives it')}"
        )
    # No state at a login that failed; PgBouncer gives this one to everything it has to say itself.
    if state is None or state == "08P01":
        return _by_text(error, cause, login)
    if state in STATES:
        return _passing(STATES[state].format(setting=login.setting))
    if state == REFERENCE_GONE:
        return ReferenceGone("the database is busy (23503); try again", retry_after=RETRY_SECONDS)
    if state in BUSY_STATES:
        reason = BUSY_STATES[state]
        return StoreBusy(f"the database is busy: {reason} ({state}); try again", retry_after=RETRY_SECONDS)
    if state in PASSING_STATES:
        return _passing(f"the database is busy ({state}); try again")
    if error.connection_invalidated or isinstance(cause, psycopg.OperationalError):
        return _passing(f"PostgreSQL is away or busy ({state}); try again")
    return None


def is_right_missing(error: BaseException | None) -> bool:
    """Whether a right was never given; a row that row-level security turns away has the same SQLSTATE."""
    if not isinstance(error, psycopg.Error) or error.sqlstate != RIGHT_MISSING:
        return False
    # The function of the server that checks the policies; its messages are in any language.
    return error.diag.source_function != "ExecWithCheckOptions"


def _by_text(error: DBAPIError, cause: psycopg.Error, login: Login) -> StoreUnavailable | None:
    text = str(cause)
    for fault in FAULTS:
        if re.search(fault.pattern, text):
            sentence = fault.sentence.format(
                setting=login.setting,
                role=login.role,
                database=login.database,
                remedy=_remedy(login, "makes the role and sets its password"),
            )
            return _lasting(sentence) if fault.is_lasting else _passing(sentence)
    if not isinstance(cause, psycopg.OperationalError):
        return None
    # In the server's language, so it could not be in the table; the words are about the login, not about rows.
    refusal = _FATAL.search(text)
    if refusal:
        return _passing(f"PostgreSQL refuses the connection of {login.setting}: {refusal[1]}")
    return _passing("the connection to PostgreSQL broke; try again")


def _remedy(login: Login, what: str) -> str:
    if login.setting == OWNER_SETTING:
        return f"mend {OWNER_SETTING}"
    return f"mend {login.setting}, or run `memory migrate`, which {what}"


def _passing(sentence: str) -> StoreUnavailable:
    return StoreUnavailable(sentence, retry_after=RETRY_SECONDS)


def _lasting(sentence: str) -> StoreRefused:
    return StoreRefused(sentence, retry_after=RETRY_LASTING_SECONDS)
