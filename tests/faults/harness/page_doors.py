"""Somebody who opens every view of the page and sends every form of it, with given words in every field."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

import httpx

from memory_app.page.route import PageRoute
from memory_app.page.views import VIEWS
from memory_app.web.strict import query_names

SESSION_ENDS = ("/ui/login", "/ui/logout")
FILE = "file"


@dataclass(slots=True)
class PageVisitor:
    """Goes through the page of the API on a port of this machine. ``names`` are those in addresses, ``ids`` by a part
    of the address, such as ``/memories/``."""

    port: int
    key: str
    words: str
    names: Mapping[str, str]
    ids: Mapping[str, str]
    statuses: Counter[int] = field(default_factory=Counter)
    fields: set[str] = field(default_factory=set)
    """Of all forms that were seen."""

    def go_through(self) -> None:
        """Every view with good and bad parameters first, which shows the forms; then every act."""
        with httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", timeout=60, follow_redirects=False
        ) as client:
            token = self._token(self._get(client, "/ui/login"))
            client.post("/ui/login", data={"token": token, "key": self.key})
            html = self._get(client, "/ui/people")
            for route in routes():
                if "GET" in route.methods:
                    self._view(client, route)
            for route in routes():
                if "POST" in route.methods:
                    self._act(client, route, self._token(html))

    def _view(self, client: httpx.Client, route: PageRoute) -> None:
        path = self._path(route.path)
        self._get(client, path)
        parameters = sorted(query_names(route.dependant))
        for names in (*([name] for name in parameters), parameters, ["surprise"]):
            self._get(client, f"{path}?{urlencode(dict.fromkeys(names, self.words))}")

    def _act(self, client: httpx.Client, route: PageRoute, token: str) -> None:
        path = self._path(route.path)
        # Names are what an operator may be shown, and are no words of anybody.
        fields = {name: self.names.get(name, self.words) for name in sorted(self.fields - {FILE})}
        # Each with words alone, then with what is needed to go further, then as no form of ours.
        for given in (fields, {**fields, **CHOICES}, {**fields, **CHOICES, "dry_run": ""}):
            data = {**given, "token": token}
            content = {"file": ("chat.txt", self.words.encode())} if route.takes_file else None
            self._count(client.post(path, data=data, files=content))
        self._count(client.post(path, content=self.words.encode()))
        self._count(client.post(path, data=fields))

    def _get(self, client: httpx.Client, path: str) -> str:
        answer = client.get(path)
        self._count(answer)
        self.fields.update(re.findall(r'name="([a-z_A-Z.]+)"', answer.text))
        return answer.text

    def _count(self, answer: httpx.Response) -> None:
        self.statuses[answer.status_code] += 1

    def _path(self, template: str) -> str:
        id = next((id for part, id in self.ids.items() if part + "{" in template), self.names["id"])
        names = {
            **self.names,
            "id": id,
            "key": self.ids["/keys/"] if "/keys/" in template else self.names["key"],
        }
        return re.sub(r"\{(\w+)(:path)?\}", lambda part: quote(names[part[1]], safe=""), template)

    def _token(self, html: str) -> str:
        return re.findall(r'name="token" value="([^"]*)"', html)[0]


CHOICES = {
    "job": "sleep",
    "label": "up",
    "preset": "",
    "other": "",
    "format": "",
    "date_order": "",
    "time_zone": "",
    "speakers": "",
    "session": "",
    "budget_tokens": "500",
    "overlap_hours": "1",
    "requests_per_minute": "",
    "bytes_per_minute": "",
    "days": "",
    "rights": "read",
}
"""Fields that words do not fit into."""


def routes() -> Iterator[PageRoute]:
    """The routes of all views, those that end a session left out."""
    for view in VIEWS:
        for route in view.router.routes:
            if isinstance(route, PageRoute) and route.path not in SESSION_ENDS:
                yield route
