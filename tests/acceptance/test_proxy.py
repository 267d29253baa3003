"""The API behind nginx with TLS and below a prefix, by the file in ``deploy``: docs, description and calls work."""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import pytest
from free_ports import free_port
from own_servers import HOST, open_folder, wait_until
from parts import started
from redis_servers import make_authority

pytestmark = pytest.mark.system

NGINX = "/usr/sbin/nginx"
CONFIGURATION = Path(__file__).parents[2] / "deploy/nginx/memory.conf"
AROUND = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
user root;
events {{}}
http {{
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/memory.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class Site:
    """What the world sees: an origin and a prefix."""

    origin: str
    trust: ssl.SSLContext
    key: str

    def request(
        self, path: str, *, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        request = urllib.request.Request(
            urljoin(self.origin, path),
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **(headers or {})},
        )
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.trust) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def json(self, path: str, body: object = None) -> Any:
        status, text = self.request(path, body=body)
        assert status < 300, text
        return json.loads(text)


@contextmanager
def nginx(folder: Path, *, api_port: int, port: int) -> Iterator[ssl.SSLContext]:
    """Debian's nginx with the file of ``deploy``, in which only addresses and places are replaced."""
    authority = make_authority(folder / "ca")
    certificate, key = authority.certify("proxy")
    text = CONFIGURATION.read_text()
    for old, new in {
        "http://api:8321": f"http://{HOST}:{api_port}",
        "listen 8443 ssl": f"listen {HOST}:{port} ssl",
        "/etc/memory-tls/certificate.pem": str(certificate),
        "/etc/memory-tls/key.pem": str(key),
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    (folder / "memory.conf").write_text(text)
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder))
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(
            [NGINX, "-c", str(folder / "nginx.conf")], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield ssl.create_default_context(cafile=str(authority.file))
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def site(environment: Mapping[str, str], api_key: str, tmp_path: Path) -> Iterator[Site]:
    api_port, port = free_port(), free_port()
    settings = {**environment, "MEMORY_HTTP__PORT": str(api_port), "MEMORY_HTTP__ROOT_PATH": "/memory"}
    with (
        open_folder("memory-proxy-") as folder,
        started("api", "serve", environment=settings, folder=tmp_path) as api,
        nginx(folder, api_port=api_port, port=port) as trust,
    ):
        site = Site(f"https://localhost:{port}", trust, api_key)

        def answers() -> bool:
            assert api.is_alive(), api.output()
            try:
                return site.request("/memory/health/live")[0] == 200
            except OSError:
                return False

        wait_until(answers, "the API answers through the proxy")
        yield site


def test_docs_description_and_calls_work_below_the_prefix(site: Site) -> None:
    page = site.request("/memory/docs")[1]
    for name in ("swagger-ui-bundle.js", "swagger-ui.css", "docs.js"):
        assert f'"docs/assets/{name}"' in page
        assert site.request(f"/memory/docs/assets/{name}")[0] == 200
    description = site.json("/memory/openapi.json")
    (server,) = description["servers"]
    path = next(path for path in description["paths"] if path.endswith("/turns") and "sessions" in path)
    names = {"agent": "ada/or bob", "user": "mira", "session": "a chat"}

    # As a client made from the description calls: server and path, with names put in.
    address = server["url"] + path.format(**{name: quote(value, safe="") for name, value in names.items()})
    accepted = site.json(address, {"role": "user", "content": "I moved to Lisbon."})

    ticket = site.json(f"/memory/v1/turns/{accepted['tickets'][0]['id']}")
    assert ticket["session"] == "a chat"
    sessions = site.json(f"/memory/v1/agents/{quote('ada/or bob', safe='')}/users/mira/sessions")
    assert [session["session"] for session in sessions["sessions"]] == ["a chat"]


def test_the_root_leads_to_the_docs_and_keys_are_asked_for(site: Site) -> None:
    assert "swagger-ui" in site.request("/memory", headers={"Accept": "text/html"})[1]
    assert site.json("/memory/")["docs"] == "/memory/docs"
    assert site.request("/memory/v1/failed", headers={"Authorization": "Bearer wrong"})[0] == 401


def test_what_needs_no_key_and_tells_of_the_inside_stays_inside(site: Site) -> None:
    for path in ("/memory/metrics", "/memory/health/ready", "/v1/failed", "/docs"):
        assert site.request(path)[0] == 404, path
