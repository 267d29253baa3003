"""Debian's Chromium, driven by Playwright: tabs of the page in several looks, and what is noticed of them."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from api_server import serving

from memory_app.runtime import Runtime

CHROMIUM = "/usr/bin/chromium"

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1180, "height": 860}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1180, "height": 860}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}

PICTURES = os.environ.get("PAGE_PICTURES")
"""A folder that gets a picture of each view that is looked at; none by default."""


@dataclass(slots=True)
class Tab:
    """A tab of the browser, logged in, and what was noticed of it."""

    page: Any
    address: str
    look: str = "light"
    said: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)
        self.page.wait_for_load_state("networkidle")

    def click(self, selector: str) -> None:
        self.page.click(selector)
        self.page.wait_for_load_state("networkidle")

    @property
    def notice(self) -> str:
        """What is said of the last act."""
        return str(self.page.inner_text(".notice"))

    @property
    def text(self) -> str:
        return str(self.page.inner_text("main"))

    def faults(self) -> list[str]:
        """What axe finds wrong in the view that is shown."""
        axe = importlib.import_module("axe_playwright_python.sync_playwright").Axe()
        violations = axe.run(self.page).response["violations"]
        return [f"{fault['id']}: {fault['nodes'][0]['html'][:200]}" for fault in violations]

    def overflow(self) -> int:
        """Pixels by which the view is wider than the window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return width

    def wrong(self, name: str) -> list[str]:
        """All that is wrong in the view that is shown. ``name`` is that of its picture."""
        if PICTURES:
            file = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
            self.page.screenshot(path=Path(PICTURES) / f"{file}.{self.look}.png", full_page=True)
        # The browser notes the status of what is not there, or was refused, which is as it should be.
        said = [line for line in self.said if not re.search("status of (404|422)", line)]
        wide = [f"{self.overflow()} px too wide"] if self.overflow() > 0 else []
        return [*said, *wide, *self.faults()]

    def look_at(self, views: tuple[str, ...], *, store: str = "small") -> dict[str, list[str]]:
        """What is wrong in each view; the views in which nothing is are left out."""
        wrong = {}
        for view in views:
            self.said.clear()
            self.open(view)
            wrong[view] = self.wrong(f"{store} {view}")
        return {view: faults for view, faults in wrong.items() if faults}


OpenTab = Callable[[str], AbstractContextManager[Tab]]


@contextmanager
def browsing() -> Iterator[Any]:
    """The browser."""
    with importlib.import_module("playwright.sync_api").sync_playwright() as playwright:
        # Root, as in a container, may not use the sandbox.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def tabs(browser: Any, runtime: Runtime, key: str) -> Iterator[OpenTab]:
    """What opens a tab in one of the looks, logged in. No tab may ask another server than ours."""
    with serving(runtime) as port:

        @contextmanager
        def open_tab(look: str) -> Iterator[Tab]:
            context = browser.new_context(**LOOKS[look])
            tab = Tab(context.new_page(), f"http://127.0.0.1:{port}/ui", look)
            tab.page.on("console", lambda message: tab.said.append(message.text))
            tab.page.on("pageerror", lambda error: tab.said.append(str(error)))
            tab.page.on("request", lambda request: tab.hosts.add(urlsplit(request.url).netloc))
            tab.open("/login")
            assert tab.wrong("login") == []
            tab.page.fill("#key", key)
            tab.page.keyboard.press("Enter")
            tab.page.wait_for_url("**/ui/overview")
            yield tab
            context.close()
            assert tab.hosts == {f"127.0.0.1:{port}"}

        yield open_tab
