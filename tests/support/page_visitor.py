"""Somebody who uses the page without a browser: logs in, reads views, sends their forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from fastapi import FastAPI
from httpx import Response
from starlette.testclient import TestClient


class Words(HTMLParser):
    """The text of a page as a reader sees it, and its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.text += " "

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Words:
    words = Words()
    words.feed(html)
    return words


@dataclass(slots=True)
class Visitor:
    """A browser's cookies and the page that it shows."""

    app: FastAPI
    prefix: str = ""
    client: TestClient = field(init=False)
    html: str = ""

    def __post_init__(self) -> None:
        self.client = TestClient(self.app)

    @property
    def text(self) -> str:
        """What the page says, with single spaces."""
        return " ".join(read(self.html).text.split())

    def get(self, path: str, **headers: str) -> Response:
        answer = self.client.get(f"{self.prefix}/ui{path}", headers=headers)
        self.html = answer.text
        return answer

    def log_in(self, key: str) -> Response:
        self.get("/login")
        return self.send("/login", key=key)

    def send(self, path: str, **fields: str | list[str]) -> Response:
        """Send a form of the page that is shown, with its token."""
        answer = self.client.post(f"{self.prefix}/ui{path}", data={"token": self._token(), **fields})
        self.html = answer.text
        return answer

    def send_file(self, path: str, content: bytes, **fields: str) -> Response:
        """Send a form with a file in the field ``file``, as a browser does."""
        file = {"file": ("chat.txt", content)}
        answer = self.client.post(
            f"{self.prefix}/ui{path}", data={"token": self._token(), **fields}, files=file
        )
        self.html = answer.text
        return answer

    def _token(self) -> str:
        tokens = re.findall(r'name="token" value="([^"]*)"', self.html)
        return tokens[0] if tokens else ""
