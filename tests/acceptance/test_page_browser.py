"""The page in Debian's Chromium: every view of a small and of a large store opens without an error of the browser or a
request elsewhere, passes axe, and fits a phone; acts are done by click and by key, and seen in the database."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from api_server import serving
from own_servers import wait_until
from sqlalchemy import Engine, text

from memory_app.db.db import transaction
from memory_app.demo.conversation import MEETINGS
from memory_app.dispatch import finder
from memory_app.memories.remember import remember
from memory_app.records.records import NewTurn, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record
from memory_app.turns.rows import failed_turns

pytestmark = [pytest.mark.system, pytest.mark.slow]

CHROMIUM = "/usr/bin/chromium"
MIRA = Scope("Ada", "Mira")
PERSON = "/agents/Ada/users/Mira"
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
    f"{PERSON}/try",
    "/nowhere",
)
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1180, "height": 860}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1180, "height": 860}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
MANY_MEMORIES, MANY_TURNS = 20_000, 10_000


@dataclass(slots=True)
class Tab:
    """A tab of the browser, logged in, and what was noticed of it."""

    page: Any
    address: str
    said: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)
        self.page.wait_for_load_state("networkidle")

    def click(self, selector: str) -> None:
        self.page.click(selector)
        self.page.wait_for_load_state("networkidle")

    def faults(self) -> list[str]:
        """What axe finds wrong in the view that is shown."""
        axe = importlib.import_module("axe_playwright_python.sync_playwright").Axe()
        violations = axe.run(self.page).response["violations"]
        return [f"{fault['id']}: {fault['nodes'][0]['html'][:200]}" for fault in violations]

    def overflow(self) -> int:
        """Pixels by which the view is wider than the window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return width


@pytest.fixture
def small(runtime: Runtime, tenant: int) -> None:
    """The demo's store, with names and texts that are not nice, and a turn that failed."""
    for meeting in MEETINGS:
        turns = [NewTurn(Role(role), words) for role, words in meeting.turns]
        record(runtime, tenant, Scope("Ada", "Mira", meeting.name), new=turns)
    odd = Scope("Ada/1", "<script>alert(1)</script>", "chat / 1")
    texts = ("<img src=x onerror=alert(1)> I live in Porto.", "אני גרה בליסבון", "word " * 19_000)
    record(runtime, tenant, odd, new=[NewTurn(Role.USER, words) for words in texts])
    finder.drain(runtime)


@pytest.fixture
def broken(runtime: Runtime, tenant: int) -> UUID:
    (ticket,) = record(runtime, tenant, Scope("Ada", "Mira", "third"), new=[NewTurn(Role.USER, "I swim.")])
    with transaction(runtime.engine, tenant) as connection:
        scope = connection.execute(text("SELECT scope_id FROM turns WHERE id = :id"), {"id": ticket.id})
        failed_turns.fail(connection, scope.scalar_one(), [ticket.id], reason="no answer could be read")
    return ticket.id


def enlarge(owner: Engine) -> None:
    """Copy a memory and a turn of Mira's until there are many."""
    # Numbered within the copies: the keys of rows are unique.
    copies = {
        "memories": ("kind = 'fact' AND object IS NOT NULL", MANY_MEMORIES, "canonical_key"),
        "turns": ("seq = 1", MANY_TURNS, "seq"),
    }
    with owner.begin() as connection:
        for table, (which, count, key) in copies.items():
            value = "g + 100" if key == "seq" else "'copy ' || g"
            object_ = ", 'object_key', 'thing_' || g, 'single_valued', false" if table == "memories" else ""
            connection.execute(
                text(
                    f"""INSERT INTO {table} SELECT (jsonb_populate_record(m, jsonb_build_object(
                        'id', new_id(), 'text', m.text || ' ' || g, '{key}', {value}{object_}))).*
                    FROM {table} m CROSS JOIN generate_series(1, :count) g
                    WHERE m.id = (SELECT t.id FROM {table} t JOIN scopes c ON c.id = t.scope_id
                                  JOIN users u ON u.id = c.user_id AND u.name = 'Mira'
                                  WHERE {which} ORDER BY t.id LIMIT 1)"""
                ),
                {"count": count},
            )
        connection.execute(
            text("UPDATE sessions SET next_seq = :seq, extracted_seq = :seq - 1 WHERE name = 'first-chat'"),
            {"seq": MANY_TURNS + 101},
        )


@pytest.fixture
def browser() -> Iterator[Any]:
    with importlib.import_module("playwright.sync_api").sync_playwright() as playwright:
        # Root, as in a container, may not use the sandbox.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_tab(browser: Any, runtime: Runtime, api_key: str) -> Iterator[Callable[..., Any]]:
    """Opens a tab in one of the looks, logged in."""
    with serving(runtime) as port:

        @contextmanager
        def open_one(look: str) -> Iterator[Tab]:
            context = browser.new_context(**LOOKS[look])
            tab = Tab(context.new_page(), f"http://127.0.0.1:{port}/ui")
            tab.page.on("console", lambda message: tab.said.append(message.text))
            tab.page.on("pageerror", lambda error: tab.said.append(str(error)))
            tab.page.on("request", lambda request: tab.hosts.add(urlsplit(request.url).netloc))
            tab.open("/login")
            assert tab.faults() == []
            tab.page.fill("#key", api_key)
            tab.page.keyboard.press("Enter")
            tab.page.wait_for_url("**/ui/overview")
            yield tab
            context.close()
            assert tab.hosts == {f"127.0.0.1:{port}"}

        yield open_one


def look_at(tab: Tab, views: tuple[str, ...]) -> dict[str, list[str]]:
    """What is wrong in each view."""
    wrong = {}
    for view in views:
        tab.said.clear()
        tab.open(view)
        # The browser notes the status of a page that is not there, which is as it should be.
        said = [line for line in tab.said if "404" not in line]
        wide = [f"{tab.overflow()} px too wide"] if tab.overflow() > 0 else []
        wrong[view] = [*said, *wide, *tab.faults()]
    return {view: faults for view, faults in wrong.items() if faults}


@pytest.mark.parametrize("look", LOOKS)
def test_every_view_of_a_small_store_is_sound(
    open_tab: Callable[..., Any], owner: Engine, small: None, broken: UUID, look: str
) -> None:
    with owner.connect() as connection:
        memory = connection.execute(text("SELECT id FROM memories WHERE object = 'Porto'")).scalars().first()
    odd = "/agents/Ada%2F1/users/%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    views = (*VIEWS, f"{PERSON}/memories/{memory}", odd, f"{odd}/sessions/chat%20%2F%201")

    with open_tab(look) as tab:
        assert look_at(tab, views) == {}


@pytest.mark.timeout(1_200)
def test_every_view_of_a_large_store_is_sound_and_a_page_long(
    open_tab: Callable[..., Any], owner: Engine, small: None
) -> None:
    enlarge(owner)

    with open_tab("light") as tab:
        assert look_at(tab, (*VIEWS, f"{PERSON}/sessions/first-chat")) == {}
        for view, row in (("timeline", ".lanes li a.said"), ("memories", "tbody tr")):
            tab.open(f"{PERSON}/{view}")
            assert 1 < tab.page.locator(row).count() <= 100, view
            tab.click('a[rel="next"]')
            assert tab.page.locator(row).count() > 1, view
        tab.open(f"{PERSON}/sessions/first-chat")
        assert tab.page.locator(".turns > li").count() == 50


def test_failed_turns_are_settled_by_click(
    open_tab: Callable[..., Any], owner: Engine, small: None, broken: UUID
) -> None:
    state = text("SELECT failed_at IS NULL FROM turns WHERE id = :id")

    with open_tab("light") as tab:
        tab.click(f"#replay-{broken}")
        assert "on its way again" in tab.page.inner_text("[role=status]")
    with owner.connect() as connection:
        assert connection.execute(state, {"id": broken}).scalar_one()


def test_an_open_question_stays_open_while_the_view_goes_on(
    open_tab: Callable[..., Any], owner: Engine, small: None, broken: UUID
) -> None:
    state = text("SELECT extracted_at IS NOT NULL FROM turns WHERE id = :id")

    with open_tab("light") as tab:
        tab.page.click(f"#discard-{broken} summary")
        with tab.page.expect_response("**/overview/now"):
            pass
        tab.click(f"#discard-{broken} button")
        assert "was given up" in tab.page.inner_text("[role=status]")
    with owner.connect() as connection:
        assert connection.execute(state, {"id": broken}).scalar_one()


def test_a_memory_is_looked_after_by_keyboard_alone(
    open_tab: Callable[..., Any], runtime: Runtime, tenant: int, owner: Engine, small: None
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


def test_logging_out_ends_the_session(open_tab: Callable[..., Any], small: None) -> None:
    with open_tab("phone") as tab:
        tab.click("text=Log out")
        tab.open("/overview")
        assert urlsplit(tab.page.url).path == "/ui/login"
