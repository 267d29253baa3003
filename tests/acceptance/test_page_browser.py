"""The page in Debian's Chromium: every view of a small and of a large store opens without an error of the browser or a
request elsewhere, passes axe, and fits a phone; acts are done by click and by key, and seen in the database."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import page_store
import pytest
from browser_tab import LOOKS, OpenTab, Tab, browsing, tabs
from own_servers import wait_until
from page_store import MIRA, Ids
from page_visitor import Visitor
from sqlalchemy import Engine, text

from memory_app.db.db import transaction
from memory_app.dispatch.job_table import JOBS
from memory_app.jobs import jobs
from memory_app.main.http import create_app
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record
from memory_app.turns.rows import failed_turns

pytestmark = [pytest.mark.system, pytest.mark.slow]

PERSON = "/agents/Ada/users/Mira"
ODD = "/agents/Ada%2F1/users/%3Cscript%3Ealert(1)%3C%2Fscript%3E"
VIEWS = (
    "/overview",
    "/overview?live=false",
    "/people",
    PERSON,
    f"{PERSON}/timeline",
    f"{PERSON}/memories",
    f"{PERSON}/memories?history=true",
    f"{PERSON}/sessions",
    f"{PERSON}/sessions/second-chat",
    f"{PERSON}/questions",
    f"{PERSON}/entities",
    f"{PERSON}/entities/person:mira",
    f"{PERSON}/nights",
    f"{PERSON}/imports",
    f"{PERSON}/try",
    "/nights",
    "/agents",
    "/agents/Ada",
    "/agents/Ada/policy",
    "/agents/Ada/defaults",
    "/agents/Nobody",
    "/keys",
    "/audit",
    "/audit/chain",
    "/erasures",
    "/users/Mira/forget",
    "/nowhere",
)


def views_of(ids: Ids) -> tuple[str, ...]:
    """Views of single nights, imports and receipts."""
    return (
        f"{PERSON}/nights/{ids.night}",
        f"{PERSON}/nights/{ids.tried_night}",
        f"{PERSON}/imports/{ids.imported}",
        f"{PERSON}/imports/{ids.tried_import}",
        f"/erasures/{ids.erasure}",
    )


@pytest.fixture
def small(runtime: Runtime, tenant: int) -> Ids:
    """The small store."""
    return page_store.fill(runtime, tenant)


@pytest.fixture
def broken(runtime: Runtime, tenant: int) -> UUID:
    """A turn that failed."""
    (ticket,) = record(runtime, tenant, Scope("Ada", "Mira", "third"), new=[NewTurn(Role.USER, "I swim.")])
    with transaction(runtime.engine, tenant) as connection:
        scope = connection.execute(text("SELECT scope_id FROM turns WHERE id = :id"), {"id": ticket.id})
        failed_turns.fail(connection, scope.scalar_one(), [ticket.id], reason="no answer could be read")
    return ticket.id


@pytest.fixture
def open_tab(runtime: Runtime, api_key: str) -> Iterator[OpenTab]:
    with browsing() as browser, tabs(browser, runtime, api_key) as open_tab:
        yield open_tab


@pytest.mark.parametrize("look", LOOKS)
def test_every_view_of_a_small_store_is_sound(
    open_tab: OpenTab, owner: Engine, small: Ids, broken: UUID, look: str
) -> None:
    with owner.connect() as connection:
        memory = connection.execute(text("SELECT id FROM memories WHERE object = 'Porto'")).scalars().first()
    odd = (
        ODD,
        *(
            f"{ODD}/{view}"
            for view in ("timeline", "memories", "sessions", "sessions/chat%20%2F%201", "nights")
        ),
    )
    views = (*VIEWS, *views_of(small), f"{PERSON}/memories/{memory}", *odd)

    with open_tab(look) as tab:
        assert tab.look_at(views) == {}


def test_every_view_says_that_there_is_nothing(open_tab: OpenTab, runtime: Runtime, tenant: int) -> None:
    remember(runtime, tenant, MIRA, statement=Statement("core", "Be brief."))
    views = tuple(view for view in VIEWS if "second-chat" not in view and "person:mira" not in view)

    with open_tab("phone") as tab:
        assert tab.look_at(views, store="empty") == {}


@pytest.mark.timeout(1_200)
def test_every_view_of_a_large_store_is_sound_and_a_page_long(
    open_tab: OpenTab, runtime: Runtime, owner: Engine, api_key: str, small: Ids
) -> None:
    page_store.enlarge(owner)
    scope = "/v1/agents/Ada/users/Mira"
    paint = milliseconds(runtime, api_key, "GET", f"/ui{PERSON}")
    card = milliseconds(runtime, api_key, "GET", f"/ui{PERSON}/card")
    recall = milliseconds(runtime, api_key, "POST", f"{scope}/recall", json={"query": "Where do I live?"})
    print(
        f"{page_store.MANY_MEMORIES} memories: page {paint:.0f} ms, its card {card:.0f} ms, recall {recall:.0f} ms"
    )
    views = (*VIEWS, *views_of(small), f"{PERSON}/sessions/first-chat")

    with open_tab("light") as tab:
        assert tab.look_at(views, store="large") == {}
        for view, row in (("timeline", ".lanes li a.said"), ("memories", "tbody tr")):
            tab.open(f"{PERSON}/{view}")
            assert 1 < tab.page.locator(row).count() <= 100, view
            tab.click('a[rel="next"]')
            assert tab.page.locator(row).count() > 1, view
        tab.open(f"{PERSON}/sessions/first-chat")
        assert tab.page.locator(".turns > li").count() == 50


def test_failed_turns_are_settled_by_click(
    open_tab: OpenTab, owner: Engine, small: Ids, broken: UUID
) -> None:
    state = text("SELECT failed_at IS NULL FROM turns WHERE id = :id")

    with open_tab("light") as tab:
        tab.click(f"#replay-{broken}")
        assert "on its way again" in tab.notice
    with owner.connect() as connection:
        assert connection.execute(state, {"id": broken}).scalar_one()


def test_an_open_question_stays_open_while_the_view_goes_on(
    open_tab: OpenTab, owner: Engine, small: Ids, broken: UUID
) -> None:
    state = text("SELECT extracted_at IS NOT NULL FROM turns WHERE id = :id")

    with open_tab("light") as tab:
        tab.page.click(f"#discard-{broken} summary")
        with tab.page.expect_response("**/overview/now"):
            pass
        tab.click(f"#discard-{broken} button")
        assert "was given up" in tab.notice
    with owner.connect() as connection:
        assert connection.execute(state, {"id": broken}).scalar_one()


def test_a_memory_is_looked_after_by_keyboard_alone(
    open_tab: OpenTab, runtime: Runtime, tenant: int, owner: Engine, small: Ids
) -> None:
    id = remember(runtime, tenant, MIRA, statement=Statement("fact", "Mira likes pears.")).id
    row = text("SELECT pinned, retired_reason, successor FROM memories WHERE id = :id")

    def reach(name: str) -> None:
        """Go on by Tab until the element with this text has the focus."""
        for _ in range(60):
            tab.page.keyboard.press("Tab")
            if tab.page.evaluate("document.activeElement.textContent.trim()") == name:
                return
        raise AssertionError(f"{name} cannot be reached")

    with open_tab("light") as tab:
        tab.open(f"{PERSON}/memories/{id}")
        tab.page.keyboard.press("Tab")
        assert tab.page.evaluate("document.activeElement.className") == "skip"
        reach("Pin")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("[role=status]")
        reach("Correct the words")
        tab.page.keyboard.press("Enter")
        tab.page.keyboard.press("Tab")
        tab.page.keyboard.press("ControlOrMeta+a")
        tab.page.keyboard.type("Mira likes plums.")
        reach("Store")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("text=This is what is remembered now")
        with owner.connect() as connection:
            pinned, reason, successor = connection.execute(row, {"id": id}).one()
        assert pinned and reason == "superseded"
        assert str(successor) in tab.page.url
        reach("Forget…")
        tab.page.keyboard.press("Enter")
        reach("Forget it")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("text=deleted for good")

    def is_gone() -> bool:
        with owner.connect() as connection:
            return connection.execute(row, {"id": successor}).one_or_none() is None

    wait_until(is_gone, "the memory is gone")


def test_logging_out_ends_the_session(open_tab: OpenTab, small: Ids) -> None:
    with open_tab("phone") as tab:
        tab.click("text=Log out")
        tab.open("/overview")
        assert urlsplit(tab.page.url).path == "/ui/login"


def milliseconds(runtime: Runtime, key: str, method: str, path: str, **sent: Any) -> float:
    """Time that the server takes for an answer: the median of nine, after two to warm up."""
    visitor = Visitor(create_app(runtime))
    visitor.log_in(key)
    times = []
    for _ in range(11):
        began = time.perf_counter()
        answer = visitor.client.request(method, path, headers={"Authorization": f"Bearer {key}"}, **sent)
        times.append(time.perf_counter() - began)
        assert answer.status_code == 200, answer.text
    return statistics.median(times[2:]) * 1_000


# --- nights ---------------------------------------------------------------------------------------------------


def run_of(tab: Tab) -> UUID:
    """The run whose view is shown."""
    return UUID(re.findall(r"[0-9a-f-]{36}", tab.page.url)[-1])


def count(owner: Engine, statement: str, **values: Any) -> int:
    with owner.connect() as connection:
        return int(connection.execute(text(statement), values).scalar_one())


CURRENT = "SELECT count(*) FROM memories WHERE retired_at IS NULL AND text LIKE 'Mira goes%'"


def test_a_night_is_tried_done_followed_and_undone(
    open_tab: OpenTab, runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for words in page_store.ALIKE:
        remember(runtime, tenant, MIRA, statement=Statement("fact", words), deduplicate=False)

    with open_tab("light") as tab:
        tab.open(f"{PERSON}/nights")
        assert tab.page.is_checked("[name=dry_run]")
        tab.click("text=Ask for it")
        assert "waits for a worker" in tab.text and tab.wrong("night that waits") == []
        jobs.perform(runtime, run_of(tab), JOBS)
        # without a click: the view follows its run
        tab.page.wait_for_selector("text=This is what it would do")
        assert tab.page.locator("del").count() == 3 and tab.page.locator("ins").count() == 1
        assert count(owner, CURRENT) == 3

        tab.click("a:text('Nights') >> nth=-1")
        tab.page.uncheck("[name=dry_run]")
        tab.click("text=Ask for it")
        jobs.perform(runtime, run_of(tab), JOBS)
        tab.page.wait_for_selector("ins")
        assert count(owner, CURRENT) == 1
        tab.open(f"{PERSON}/nights/{run_of(tab)}")
        tab.page.click("#undo summary")
        assert tab.wrong("night to be undone") == []
        tab.click("text=Undo all of it")
        assert "taken back" in tab.notice and "It was undone" in tab.text
    assert count(owner, CURRENT) == 3


# --- imports --------------------------------------------------------------------------------------------------


def test_a_file_is_tried_and_imported(
    open_tab: OpenTab, runtime: Runtime, owner: Engine, tenant: int, tmp_path: Path
) -> None:
    file = tmp_path / "chat.txt"
    file.write_bytes(page_store.CHAT)
    turns = "SELECT count(*) FROM turns"

    with open_tab("phone") as tab:
        tab.open(f"{PERSON}/imports")
        tab.page.set_input_files("#file", file)
        tab.click("text=Send the file")
        assert "The file is here" in tab.notice and tab.wrong("import that waits") == []
        jobs.perform(runtime, run_of(tab), JOBS)
        tab.page.wait_for_selector("text=nothing was stored")
        assert "2 turns of 1 conversation" in tab.text and "who of those who speak is the user?" in tab.text
        assert count(owner, turns) == 0

        tab.click("text=Choose the file again")
        tab.page.uncheck("[name=dry_run]")
        tab.page.set_input_files("#file", file)
        tab.page.click("text=What the file itself does not say")
        tab.page.fill("#speakers", "Mira=queen")
        tab.click("text=Send the file")
        assert tab.page.get_attribute("#speakers", "aria-invalid") == "true"
        assert tab.page.input_value("#speakers") == "Mira=queen" and tab.wrong("import that is refused") == []
        tab.page.set_input_files("#file", file)
        tab.page.fill("#speakers", "Mira=user")
        tab.click("text=Send the file")
        jobs.perform(runtime, run_of(tab), JOBS)
        tab.page.wait_for_selector("text=4 of 4 items")
    assert count(owner, turns) == 2


# --- agents ---------------------------------------------------------------------------------------------------


def test_an_agent_is_made_and_changed(open_tab: OpenTab, owner: Engine) -> None:
    agent = "SELECT count(*) FROM agents WHERE name = 'Nova / 2'"

    with open_tab("light") as tab:
        tab.open("/agents")
        tab.page.fill("#agent", "Nova / 2")
        tab.click("button:text('Open')")
        assert "new: saving makes it" in tab.text and count(owner, agent) == 0
        tab.page.fill("#name", "Nova")
        tab.page.fill("#trait-1", "curious")
        tab.page.fill("#means-1", "Asks <b>why</b>.")
        # the preview follows what is typed
        tab.page.wait_for_selector("#preview >> text=curious")
        assert tab.wrong("agent with a preview") == []
        tab.page.fill("#intensity-1", "much")
        tab.click("text=Save the persona")
        assert tab.page.get_attribute("#intensity-1", "aria-invalid") == "true"
        assert tab.wrong("agent that is refused") == [] and count(owner, agent) == 0
        tab.page.fill("#intensity-1", "9")
        tab.click("text=Save the persona")
        assert "The persona is saved" in tab.notice
        assert count(owner, agent + " AND persona::text LIKE '%curious%'") == 1

        tab.click("text=Policy")
        tab.page.fill("#after_turns", "7")
        tab.page.check("[name=group]")
        tab.click("text=Save the policy")
        assert "The policy is saved" in tab.notice
        assert (
            count(owner, agent + " AND (policy->>'after_turns')::int = 7 AND (policy->>'group')::bool") == 1
        )

        tab.click("text=Default memories")
        tab.page.fill("#text-1", "Nova never sleeps.")
        tab.page.check("[name=pinned] >> nth=0")
        tab.click("text=Save the default memories")
        assert "are saved" in tab.notice and tab.page.input_value("#text-1") == "Nova never sleeps."
        tab.click("text=Persona")
        tab.page.click("#reset summary")
        tab.click("text=Use the default persona")
        assert tab.page.input_value("#trait-1") != "curious"
    assert count(owner, agent + " AND persona::text LIKE '%curious%'") == 0


# --- keys, audit log ------------------------------------------------------------------------------------------


def test_a_key_is_made_limited_rotated_and_revoked(open_tab: OpenTab, owner: Engine) -> None:
    made = "SELECT count(*) FROM api_keys WHERE label = 'for the <b>bot</b>'"

    with open_tab("light") as tab:
        tab.open("/keys")
        tab.page.fill("#label", "for the <b>bot</b>")
        tab.click("button.main:has-text('Make')")
        assert tab.wrong("key that is new") == [] and count(owner, made) == 1
        secret = tab.page.input_value(".secret")
        tab.open("/keys")
        assert secret not in tab.page.content()
        row = tab.page.locator("tr", has_text="for the <b>bot</b>")
        number = int(row.locator("td").first.inner_text())
        tab.page.click(f"#change-{number} > summary")
        assert tab.wrong("key to be changed") == []
        tab.page.fill(f"#requests-{number}", "30")
        tab.click(f"text=Limit key {number}")
        assert "limits of the key are set" in tab.notice
        limited = " AND id = :id AND limits->>'requests_per_minute' = '30'"
        assert count(owner, made + limited, id=number) == 1

        tab.page.click(f"#change-{number} > summary")
        tab.click(f"text=Rotate key {number}")
        assert tab.page.input_value(".secret") != secret and count(owner, made) == 2
        tab.open("/keys")
        tab.page.click(f"#change-{number} > summary")
        tab.page.click(f"#revoke-{number} summary")
        tab.click(f"text=Revoke key {number}")
        assert "has ended" in tab.notice
        assert count(owner, made + " AND id = :id AND revoked_at IS NOT NULL", id=number) == 1

        # each act is in the log, which is searched and whole
        tab.open("/audit")
        tab.page.select_option("#action", "key.revoke")
        tab.click("text=Search")
        rows = tab.page.locator("tbody tr").all_inner_texts()
        assert len(rows) == 2 and all("key.revoke" in line for line in rows)
        tab.click("text=Verify the log")
        assert "The log is whole" in tab.text


# --- erasures -------------------------------------------------------------------------------------------------


def test_a_person_is_forgotten_after_the_plan(open_tab: OpenTab, owner: Engine, small: Ids) -> None:
    mira = "SELECT count(*) FROM users WHERE name = 'Mira'"

    with open_tab("light") as tab:
        tab.open(PERSON)
        tab.click("text=Forget this person…")
        tab.click("text=Show what would go")
        assert "turns" in tab.text and tab.wrong("person to be forgotten") == []
        tab.page.fill("#name", "mira")
        tab.click("button.danger")
        assert "nothing was forgotten" in tab.text and count(owner, mira) == 1
        tab.open("/users/Mira/forget")
        tab.click("text=Show what would go")
        tab.page.fill("#name", "Mira")
        tab.click("button.danger")
        tab.page.wait_for_selector("h1:has-text('Receipt')")
        assert count(owner, mira) == 0
        line = tab.page.inner_text("pre")

        tab.open("/erasures")
        tab.page.fill("#receipts", line)
        tab.page.fill("#of", "Mira")
        tab.click("text=Verify")
        cells = tab.page.locator("tbody td").all_inner_texts()
        assert "known" in cells and cells[-1] == "yes" and tab.wrong("receipt that is known") == []


# --- try ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", LOOKS)
def test_two_presets_are_tried_side_by_side(open_tab: OpenTab, small: Ids, look: str) -> None:
    with open_tab(look) as tab:
        tab.open(f"{PERSON}/try")
        tab.page.fill("#query", "Where do I live, and who is my cousin?")
        first, second = tab.page.locator("#preset option").all_inner_texts()[1:3]
        tab.page.select_option("#preset", first)
        tab.page.select_option("#other", second)
        tab.click("button.main")
        assert tab.page.locator(".hits .stack rect").count() > 2
        assert all(f"Recall by {name}" in tab.text for name in (first, second))
        assert tab.wrong("try") == []
