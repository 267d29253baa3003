"""Import on the page: tried first, then done and followed; what does not fit is said beside its field."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from fastapi import FastAPI
from page_visitor import Visitor
from sqlalchemy import Engine, text

from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.main.http import create_app
from memory_app.runtime import Runtime
from memory_app.tenancy import audit
from memory_app.tenancy.rows import keys

IMPORTS = "/agents/ada/users/an%2Fna/imports"
CHAT = b"""31/12/2025, 21:40 - Messages and calls are end-to-end encrypted.
31/12/2025, 21:41 - Anna: I moved to <b>Graz</b>.
31/12/2025, 21:42 - Ben: How is it?
31/12/2025, 21:43 - Anna: <Media omitted>
"""


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI, api_key: str) -> Visitor:
    visitor = Visitor(app)
    visitor.log_in(api_key)
    visitor.get(IMPORTS)
    return visitor


def turns(owner: Engine) -> int:
    with owner.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM turns")).scalar_one())


def imported(runtime: Runtime, visitor: Visitor, content: bytes = CHAT, **fields: str) -> str:
    """Send a file, have a worker import it, and show what came of it; the address of that."""
    answer = visitor.send_file(IMPORTS, content, **fields)
    assert "The file is here" in visitor.text and "waits for a worker" in visitor.text, visitor.text
    run = UUID(re.findall(r"[0-9a-f-]{36}", answer.url.path)[-1])
    jobs.perform(runtime, run, JOBS)
    visitor.get(f"{IMPORTS}/{run}")
    return f"{IMPORTS}/{run}"


def test_a_dry_run_tells_what_comes_in_and_what_is_left_out(
    runtime: Runtime, owner: Engine, visitor: Visitor
) -> None:
    assert "None so far." in visitor.text

    imported(runtime, visitor, dry_run="true")

    assert "A dry run: nothing was stored." in visitor.text and "hx-trigger" not in visitor.html
    assert "2 turns of 1 conversation" in visitor.text
    assert "media without text 1" in visitor.text and "written by the program 1" in visitor.text
    assert "who of those who speak is the user?" in visitor.text
    assert "Anna assistant, 1 · Ben assistant, 1" in visitor.text
    assert turns(owner) == 0
    visitor.get(IMPORTS)
    assert "whatsapp" in visitor.text and "dry run" in visitor.text


def test_a_file_is_imported_once_and_the_log_has_it(
    runtime: Runtime, tenant: int, owner: Engine, visitor: Visitor
) -> None:
    imported(runtime, visitor, speakers="Anna=user\r\n")
    assert "4 of 4 items" in visitor.text and "turns stored 2" in visitor.text
    assert turns(owner) == 2

    visitor.get(IMPORTS)
    imported(runtime, visitor, speakers="Anna=user")
    assert "turns stored 0" in visitor.text and "known before 2" in visitor.text
    assert turns(owner) == 2
    outcomes = [(entry.action, entry.outcome) for entry in audit.all_entries(runtime, tenant)]
    assert outcomes == [("import", "begun"), ("import", "done")] * 2


@pytest.mark.parametrize(
    ("content", "fields", "field"),
    [
        (b"", {}, "file"),
        (CHAT, {"format": "word"}, "format"),
        (CHAT, {"speakers": "Anna"}, "speakers"),
        (CHAT, {"speakers": "Anna=queen"}, "speakers"),
        (CHAT, {"time_zone": "Mars/Base"}, "time_zone"),
        (CHAT, {"session": "\x07"}, "session"),
    ],
)
def test_what_does_not_fit_is_said_beside_its_field(
    owner: Engine, visitor: Visitor, content: bytes, fields: dict[str, str], field: str
) -> None:
    answer = visitor.send_file(IMPORTS, content, owner="<b>", **fields)

    assert answer.status_code == 422
    assert f'aria-describedby="{field}-wrong"' in visitor.html
    # with what was typed
    assert 'value="&lt;b&gt;"' in visitor.html
    with owner.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM runs")).scalar_one() == 0


def test_a_file_that_cannot_be_read_ends_with_its_reason(
    runtime: Runtime, owner: Engine, visitor: Visitor
) -> None:
    imported(runtime, visitor, b'[{"role": "user", "content": "I keep')

    assert "It ended before all was in." in visitor.text and 'role="alert"' in visitor.html
    assert turns(owner) == 0
    visitor.get(IMPORTS)
    assert 'class="warn"' in visitor.html


def test_a_file_larger_than_a_form_arrives_whole(runtime: Runtime, owner: Engine, visitor: Visitor) -> None:
    usual = runtime.settings.http.body_limit_bytes
    message = b'{"role": "user", "content": "%s"}' % (b"x" * 9_000)
    count = usual // len(message) + 2

    imported(runtime, visitor, b"[" + b",".join([message] * count) + b"]", session="long")

    assert f"{count} of {count} items" in visitor.text, visitor.text
    assert turns(owner) == count


def test_an_import_needs_the_right_and_a_form_of_ours(
    runtime: Runtime, app: FastAPI, owner: Engine, visitor: Visitor
) -> None:
    with owner.begin() as connection:
        reader = keys.create(connection, "acme", rights=("read",))[1]
        stranger = keys.create(connection, "acme", rights=keys.RIGHTS, user="eve")[1]
    visitor.html = visitor.html.replace('name="token" value="', 'name="token" value="x')
    assert visitor.send_file(IMPORTS, CHAT).status_code == 403
    visitor.get(IMPORTS)
    run = imported(runtime, visitor, dry_run="true")
    other = run.replace("an%2Fna", "eve")
    assert visitor.get(other).status_code == 404

    for key, status in ((reader, 200), (stranger, 403)):
        someone = Visitor(app)
        someone.log_in(key)
        assert someone.get(run).status_code == status
        assert someone.get(IMPORTS).status_code == status and "Send the file" not in someone.text
        assert someone.send_file(IMPORTS, CHAT, speakers="Anna=user").status_code == 403
    assert turns(owner) == 0
