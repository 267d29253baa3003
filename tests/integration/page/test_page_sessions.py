"""Who gets into the page, for how long, and what a browser is told about its answers."""

from __future__ import annotations

import re
import zlib
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from fastapi import FastAPI
from page_visitor import Visitor
from pydantic import SecretStr
from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from memory_app.main.http import create_app
from memory_app.runtime import Runtime, build
from memory_app.settings import Erasure, Http, Page, Settings
from memory_app.tenancy import access
from memory_app.tenancy.keys import limit_key, revoke_key
from memory_app.tenancy.rows import keys

VIEWS = ("", "/overview", "/overview/now", "/overview/days", "/logout", "/agents/ada/users/mira", "/nowhere")

UNKNOWN = f"mem_{'a' * 43}_{zlib.crc32(b'a' * 43):08x}"
"""Well formed, and nobody's."""


@pytest.fixture
def app(runtime: Runtime) -> FastAPI:
    return create_app(runtime)


@pytest.fixture
def visitor(app: FastAPI) -> Visitor:
    return Visitor(app)


def make_key(owner: Engine, **more: object) -> tuple[int, str]:
    with owner.begin() as connection:
        return keys.create(connection, "acme", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("view", VIEWS)
def test_a_stranger_is_led_to_the_login_from_everywhere(visitor: Visitor, view: str) -> None:
    visitor.client.follow_redirects = False

    answer = visitor.get(view)

    assert (answer.status_code, answer.headers["Location"]) == (303, "/ui/login")
    assert visitor.client.post(f"/ui{view}").status_code in (303, 405)
    part = visitor.get(view, **{"HX-Request": "true"})
    assert (part.status_code, part.headers["HX-Redirect"], part.text) == (401, "/ui/login", "")


def test_a_key_of_the_api_is_no_session(app: FastAPI, api_key: str) -> None:
    client = TestClient(app, headers={"Authorization": f"Bearer {api_key}"}, follow_redirects=False)

    assert client.get("/ui/overview").status_code == 303


def test_a_key_opens_the_overview_and_stands_in_no_cookie(visitor: Visitor, api_key: str) -> None:
    answer = visitor.log_in(api_key)

    assert answer.url.path == "/ui/overview"
    assert "Overview" in visitor.text and "acme" in visitor.text
    (cookie,) = [c for c in visitor.client.cookies.jar if c.name == "memory_page"]
    assert cookie.path == "/ui" and cookie.value is not None
    assert api_key not in cookie.value and api_key.split("_")[1][:8] not in cookie.value
    assert api_key not in visitor.html


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("", "a key is required"),
        ("   ", "a key is required"),
        ("mem_abc_00000000", "unknown, revoked or expired"),
        ("<script>alert(1)</script>", "unknown, revoked or expired"),
        ("ключ", "unknown, revoked or expired"),
        ("x" * 100_000, "unknown, revoked or expired"),
        (UNKNOWN, "unknown, revoked or expired"),
    ],
    ids=["none", "space", "mistyped", "markup", "not ascii", "long", "unknown"],
)
def test_a_wrong_key_is_refused_and_not_shown_again(visitor: Visitor, key: str, says: str) -> None:
    answer = visitor.log_in(key)

    assert answer.status_code == 401
    assert says in visitor.text
    assert "memory_page" not in visitor.client.cookies
    assert "<script>alert" not in visitor.html and "xxxx" not in visitor.html


def test_a_login_form_of_another_browser_is_refused(app: FastAPI, visitor: Visitor, api_key: str) -> None:
    other = Visitor(app)
    other.get("/login")
    visitor.get("/login")
    visitor.html = other.html

    answer = visitor.send("/login", key=api_key)

    assert answer.status_code == 403
    assert "memory_page" not in visitor.client.cookies


def test_the_session_cookie_is_kept_from_scripts_and_other_sites(app: FastAPI, api_key: str) -> None:
    def cookie(**headers: str) -> str:
        visitor = Visitor(app)
        visitor.client = TestClient(app, follow_redirects=False, headers=headers)
        # The test client sends no secure cookie over http.
        nonce = visitor.get("/login").headers["Set-Cookie"].split(";")[0]
        visitor.client.headers["Cookie"] = nonce
        (token,) = re.findall(r'name="token" value="([^"]*)"', visitor.html)
        answer = visitor.client.post("/ui/login", data={"token": token, "key": api_key})
        return answer.headers["Set-Cookie"].lower()

    plain, behind_tls = cookie(), cookie(**{"X-Forwarded-Proto": "https"})

    for header in (plain, behind_tls):
        assert "httponly" in header and "samesite=strict" in header and "path=/ui" in header
    assert "secure" not in plain and "secure" in behind_tls


@pytest.mark.parametrize("how", ["revoked", "expired", "erased with its tenant"])
def test_a_session_ends_with_its_key_at_once(
    runtime: Runtime, owner: Engine, tenant: int, visitor: Visitor, how: str
) -> None:
    number, key = make_key(owner)
    visitor.log_in(key)
    assert visitor.get("/overview").url.path == "/ui/overview"

    if how == "revoked":
        revoke_key(runtime, tenant, number)
    with owner.begin() as connection:
        if how == "expired":
            connection.execute(
                text("UPDATE api_keys SET expires_at = now() WHERE id = :key"), {"key": number}
            )
        if how == "erased with its tenant":
            connection.execute(text("DELETE FROM api_keys WHERE id = :key"), {"key": number})

    assert visitor.get("/overview").url.path == "/ui/login"


def test_a_session_ends_when_nothing_is_done(visitor: Visitor, api_key: str) -> None:
    start = datetime.now(UTC)
    visitor.log_in(api_key)
    with time_machine.travel(start + timedelta(minutes=40), tick=False):
        assert visitor.get("/overview").url.path == "/ui/overview"
    with time_machine.travel(start + timedelta(minutes=80), tick=False):
        # What the page fetches by itself does not keep a session.
        assert visitor.get("/overview/now", **{"HX-Request": "true"}).status_code == 200
    with time_machine.travel(start + timedelta(minutes=101), tick=False):
        assert visitor.get("/overview").url.path == "/ui/login"


def test_an_altered_cookie_is_no_session(visitor: Visitor, api_key: str) -> None:
    visitor.log_in(api_key)
    (cookie,) = [c for c in visitor.client.cookies.jar if c.name == "memory_page"]
    assert cookie.value is not None
    visitor.client.cookies.clear()
    tenant, *rest = cookie.value.split(".")
    visitor.client.cookies.set("memory_page", ".".join([str(int(tenant) + 1), *rest]), path="/ui")

    assert visitor.get("/overview").url.path == "/ui/login"


def test_several_apis_know_sessions_by_their_shared_secret(
    settings: Settings, runtime: Runtime, api_key: str
) -> None:
    def cookie_of(app: FastAPI) -> Visitor:
        visitor = Visitor(app)
        visitor.log_in(api_key)
        return visitor

    def with_secret(secret: str) -> Settings:
        return settings.model_copy(update={"erasure": Erasure(secret=SecretStr(secret))})

    shared = [build(with_secret("s" * 32)) for _ in range(2)]
    other = build(with_secret("t" * 32))
    try:
        visitor = cookie_of(create_app(shared[0]))
        for runtime_, path in ((shared[1], "/ui/overview"), (other, "/ui/login")):
            elsewhere = Visitor(create_app(runtime_))
            elsewhere.client.cookies = visitor.client.cookies
            assert elsewhere.get("/overview").url.path == path
    finally:
        for runtime_ in (*shared, other):
            runtime_.close()


def test_a_form_without_the_token_of_its_session_does_nothing(visitor: Visitor, api_key: str) -> None:
    visitor.log_in(api_key)
    page = visitor.html

    for token in ("", "x", "ü"):
        visitor.html = f'name="token" value="{token}"'
        assert visitor.send("/logout").status_code == 403
        assert visitor.send("/failed/0197aaaa-0000-7000-8000-000000000001/replay").status_code == 403
    visitor.html = page
    assert visitor.send("/logout").url.path == "/ui/login"
    assert visitor.get("/overview").url.path == "/ui/login"


def test_a_form_of_another_session_of_the_same_key_is_refused(
    app: FastAPI, visitor: Visitor, api_key: str
) -> None:
    other = Visitor(app)
    other.log_in(api_key)
    visitor.log_in(api_key)
    visitor.html = other.html

    assert visitor.send("/logout").status_code == 403


@pytest.mark.parametrize("body", [b"\xff\xfe", "token=ü".encode(), b"&".join([b"a=1"] * 501), b"%ff=%fe"])
def test_a_body_that_is_no_form_is_refused(visitor: Visitor, api_key: str, body: bytes) -> None:
    visitor.log_in(api_key)

    answer = visitor.client.post("/ui/failed/0197aaaa-0000-7000-8000-000000000001/replay", content=body)

    assert answer.status_code == 422
    assert "is no form" in answer.text


def test_every_answer_lets_the_browser_run_own_files_alone(visitor: Visitor, api_key: str) -> None:
    answers = [
        visitor.get("/login"),
        visitor.log_in(api_key),
        visitor.get("/overview/days"),
        visitor.get("/nowhere"),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 404]
    for answer in answers:
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none';") and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cache-Control"] == "no-store"
        assert (
            re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=|https?://(?!testserver)", answer.text)
            is None
        )


def test_only_the_files_of_the_page_are_served(visitor: Visitor) -> None:
    for name in ("page.css", "htmx.min.js", "icon.svg"):
        assert visitor.get(f"/assets/{name}").status_code == 200, name
    for name in ("README.md", "htmx.LICENSE.txt", "..%2f__init__.py", "%2e%2e"):
        assert visitor.get(f"/assets/{name}").status_code == 404, name
    # What is below a file is no file, and led to the login like everything else.
    for name in ("", "%2e%2e/route.py", "page.css/x"):
        assert visitor.get(f"/assets/{name}").url.path == "/ui/login", name


def test_everything_works_below_a_prefix(settings: Settings, tenant: int, api_key: str) -> None:
    http = Http(root_path="/tools/memory")
    runtime = build(settings.model_copy(update={"http": http}))
    try:
        visitor = Visitor(create_app(runtime), prefix="/tools/memory")
        assert visitor.log_in(api_key).url.path == "/tools/memory/ui/overview"
        own = re.findall(r'(?:href|src|action|hx-get)="(/[^"]*)"', visitor.html)
        assert len(own) > 5
        assert [address for address in own if not address.startswith("/tools/memory/ui")] == []
        assert {c.path for c in visitor.client.cookies.jar} == {"/tools/memory/ui"}
    finally:
        runtime.close()


def test_a_setting_turns_the_page_off(settings: Settings) -> None:
    runtime = build(settings.model_copy(update={"page": Page(enabled=False)}))
    try:
        client = TestClient(create_app(runtime))
        assert client.get("/ui/login").status_code == 404
        assert client.get("/ui").status_code == 404
        assert "page" not in client.get("/").json()
    finally:
        runtime.close()


def test_nobody_needs_a_key_where_the_operator_said_so(settings: Settings, runtime: Runtime) -> None:
    anonymous = access.anonymous_caller(settings, "acme")
    visitor = Visitor(create_app(runtime, anonymous=anonymous))
    visitor.client = TestClient(visitor.app, base_url="http://localhost")
    visitor.get("/login")

    assert "no key is needed" in visitor.text
    assert visitor.send("/login").url.path == "/ui/overview"
    # A name of somebody else that leads to this machine is another site's.
    visitor.client.follow_redirects = False
    assert visitor.get("/overview", Host="evil.example").headers["Location"] == "/ui/login"
    visitor.client.follow_redirects = True
    closed = Visitor(create_app(runtime))
    closed.client.cookies = visitor.client.cookies
    assert closed.get("/overview").url.path == "/ui/login"


def test_a_key_without_the_right_to_read_sees_nothing(owner: Engine, tenant: int, visitor: Visitor) -> None:
    visitor.log_in(make_key(owner, rights=("record",))[1])

    assert visitor.get("/overview").status_code == 403
    assert "lacks the right" in visitor.text


def test_the_limits_of_a_key_hold_for_the_page(
    runtime: Runtime, owner: Engine, tenant: int, visitor: Visitor
) -> None:
    number, key = make_key(owner)
    limit_key(runtime, tenant, number, limits={"requests_per_minute": 2})
    visitor.log_in(key)

    answers = [visitor.get("/overview") for _ in range(3)]

    assert answers[-1].status_code == 429
    assert answers[-1].headers["Retry-After"]
    assert "<h1>" in answers[-1].text
