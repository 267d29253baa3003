"""The docs in a browser: everything from this address, also below a prefix, and nothing from the Internet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from memory_app.main.http import create_app
from memory_app.runtime import Runtime, build
from memory_app.settings import Http, Settings

ORIGIN = "http://testserver"


class References(HTMLParser):
    """What a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if name in ("src", "href") and value]


def references(html: str) -> list[str]:
    reader = References()
    reader.feed(html)
    return reader.addresses


@pytest.fixture
def client_below(settings: Settings) -> Iterator[Callable[[str], TestClient]]:
    """Makes a client of an API that is served below a prefix."""
    runtimes: list[Runtime] = []

    def make(prefix: str) -> TestClient:
        http = settings.http.model_copy(update={"root_path": prefix})
        runtimes.append(build(settings.model_copy(update={"http": http})))
        return TestClient(create_app(runtimes[-1]))

    yield make
    for runtime in runtimes:
        runtime.close()


@pytest.mark.parametrize("prefix", ["", "/memory", "/tools/memory"])
@pytest.mark.parametrize("is_taken_off", [True, False], ids=["taken off", "left on"])
def test_the_docs_refer_to_own_addresses_alone_and_each_answers(
    client_below: Callable[[str], TestClient], prefix: str, is_taken_off: bool
) -> None:
    client = client_below(prefix)

    def get(public: str) -> str:
        """As a browser asks, through a proxy that takes the prefix off, or does not."""
        path = urlsplit(public).path
        assert path.startswith(prefix + "/"), path
        answer = client.get(path.removeprefix(prefix) if is_taken_off else path)
        assert answer.status_code == 200, path
        return answer.text

    page_address = f"{ORIGIN}{prefix}/docs"
    page = get(page_address)
    addresses = [urljoin(page_address, reference) for reference in references(page)]
    assert len(addresses) == 5
    assert {urlsplit(address).netloc for address in addresses} == {"testserver"}
    texts = {address.rsplit("/", 1)[1]: get(address) for address in addresses}

    assert "SwaggerUIBundle" in texts["swagger-ui-bundle.js"]
    assert re.search(r"https?:|//cdn", page + texts["docs.js"].split("\n", 1)[1]) is None
    assert set(re.findall(r"url\(['\"]?(.{5})", texts["swagger-ui.css"])) == {"data:"}
    assert "validatorUrl: null" in texts["docs.js"], "the validator is a service in the Internet"
    description = client.get("/openapi.json").json()
    assert description.get("servers", [{"url": ""}])[0]["url"] == prefix


def test_the_page_lets_the_browser_fetch_nothing_from_elsewhere(
    client_below: Callable[[str], TestClient],
) -> None:
    policy = client_below("").get("/docs").headers["Content-Security-Policy"]

    assert policy.startswith("default-src 'self';")
    assert "http" not in policy
    assert "'unsafe-eval'" not in policy


def test_the_root_leads_browsers_to_the_docs_and_lists_paths_to_programs(
    client_below: Callable[[str], TestClient],
) -> None:
    client = client_below("/memory")

    for_browser = client.get("/", headers={"Accept": "text/html,*/*;q=0.8"}, follow_redirects=False)
    for_program = client.get("/memory").json()

    assert (for_browser.status_code, for_browser.headers["Location"]) == (307, "/memory/docs")
    assert for_program["name"] == "memory"
    assert re.fullmatch(r"\d+\.\d+.*", for_program["version"])
    for name in ("docs", "description", "live"):
        assert client.get(for_program[name]).status_code == 200, name


def test_no_other_file_is_served(client_below: Callable[[str], TestClient]) -> None:
    client = client_below("")

    for name in ("README.md", "..%2f__init__.py", "%2e%2e/settings.py", "docs.html", ""):
        answer = client.get(f"/docs/assets/{name}")
        assert answer.status_code == 404, name
        assert answer.json()["error"]["type"] == "not_found"
    assert client.get("/redoc").status_code == 404


def test_keys_are_asked_for_below_a_prefix_too(client_below: Callable[[str], TestClient]) -> None:
    client = client_below("/memory")

    for path in ("/v1/failed", "/memory/v1/failed"):
        assert client.get(path).status_code == 401, path


@pytest.mark.parametrize("prefix", ["memory", "/memory/", "/v1", "/docs/memory", "/a b", "//x", "/"])
def test_a_prefix_that_cannot_work_is_refused(prefix: str) -> None:
    with pytest.raises(ValidationError, match="root_path"):
        Http(root_path=prefix)
