"""What an unchanged OpenAI client of Node sees while the language model, or memory, is away.

A real API behind its own address, and the client of the locked package: only its base URL and its key are ours. Needs
Node and the npm registry.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from example_stage import is_served
from free_ports import free_port
from node_programs import require_node, run, with_packages
from own_servers import wait_until
from provider_stage import TEMPLATE, ProviderStage, staged
from psycopg import sql
from tcp_proxy import Proxy, postgres_address, postgres_through, proxied

from memory_app.client import MemoryClient, Scope
from memory_app.local.embedded import Servers, postgres
from memory_app.local.stack import commands
from memory_app.tenancy.rows import keys
from memory_app.testing import Mode, Rule

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]

Json = dict[str, Any]

REPLY = "That sounds lovely."
UNKNOWN_STORE = ("store_unavailable", "store_refused")
"""What a caller is told whose key nobody can look up."""

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@dataclass(frozen=True, slots=True)
class Chats:
    """The API at ``address``; ``proxy`` stands between it and its database. ``folder`` has the client's packages."""

    stage: ProviderStage
    servers: Servers
    proxy: Proxy
    address: str
    folder: Path
    key: str = field(repr=False)

    def complete(
        self, session: str, messages: Sequence[Json], *, stream: bool, key: str | None = None
    ) -> Json:
        """What the client makes of the answer; see chat.mjs."""
        environment = {
            name: value for name, value in self.stage.environment.items() if not name.startswith("MEMORY_")
        } | {"OPENAI_BASE_URL": f"{self.address}/openai/v1", "OPENAI_API_KEY": key or self.key}
        request = {
            "model": "small",
            "user": "noa",
            "metadata": {"session": session},
            "messages": list(messages),
            "stream": stream,
        }
        printed = run(("node", "chat.mjs"), self.folder, environment, text=json.dumps(request))
        return dict(json.loads(printed))

    def recorded(self, session: str) -> list[Json]:
        with MemoryClient(self.address, self.key) as memory:
            turns = memory.turns(Scope("assistant", "noa", session), limit=50).turns
        return [{"role": turn.role, "content": turn.content} for turn in turns]

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Nobody listens where the database was."""
        self.proxy.refuses = True
        self.proxy.cut()
        try:
            yield
        finally:
            self.proxy.refuses = False

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """The server lets nobody into the database."""
        name = str(self.stage.owner.url.database)
        self.stage.owner.dispose()
        self._let_in(name, is_open=False)
        try:
            yield
        finally:
            self._let_in(name, is_open=True)

    def _let_in(self, name: str, *, is_open: bool) -> None:
        change = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        with postgres.connect(self.servers.folder) as connection:
            connection.execute(change.format(sql.Identifier(name), sql.SQL(str(is_open).lower())))
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )


@pytest.fixture(scope="module")
def chats(servers: Servers, template: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chats]:
    require_node()
    folder = with_packages("node_openai", tmp_path_factory.mktemp("node"))
    shutil.copy(Path(__file__).with_name("chat.mjs"), folder)
    # Waits for a slow machine are no outage of memory.
    settings = {"MEMORY_COMPLETIONS__BASE_URL": "STUB", "MEMORY_COMPLETIONS__MEMORY_SECONDS": "60"}
    with ExitStack() as ending:
        stage = ending.enter_context(staged(servers, TEMPLATE, tmp_path_factory.mktemp("chats"), **settings))
        url = stage.environment["MEMORY_DATABASE__URL"]
        proxy = ending.enter_context(proxied(postgres_address(url)))
        port = free_port()
        through = {"MEMORY_HTTP__PORT": str(port), "MEMORY_DATABASE__URL": postgres_through(url, proxy)}
        stage.start(commands.serve(), **through)
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: is_served(f"{address}/health/live"), "the API answers")
        with stage.owner.begin() as connection:
            _, key = keys.create(connection, "acme", rights=keys.RIGHTS)
        yield Chats(stage, servers, proxy, address, folder, key)


@pytest.fixture(autouse=True)
def _well(chats: Chats) -> None:
    chats.stage.stub.start()
    chats.stage.stub.reset()
    chats.stage.stub.follow(Rule(answer=REPLY))


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


@STREAMS
def test_node_is_told_that_the_model_is_away_and_memory_keeps_all(chats: Chats, stream: bool) -> None:
    session = f"away-{stream}"
    said = [user("I moved to Lisbon.")]
    chats.stage.stub.stop()
    answer = chats.complete(session, said, stream=stream)
    assert (answer["error"], answer["status"]) == ("InternalServerError", 503)
    assert answer["type"] == "provider_unavailable"
    assert chats.recorded(session) == said
    # The next try is one message with its reply, not two.
    chats.stage.stub.start()
    chats.stage.stub.follow(Rule(answer=REPLY))
    assert chats.complete(session, said, stream=stream) == {"text": REPLY, "degraded": None}
    assert chats.recorded(session) == [*said, assistant(REPLY)]


@pytest.mark.parametrize(
    ("rule", "error", "status", "type"),
    [
        (Rule(Mode.UNAUTHORIZED), "InternalServerError", 503, "provider_unavailable"),
        (Rule(Mode.RATE_LIMITED, retry_after="1"), "RateLimitError", 429, "rate_limited"),
        # Its own words, and its own type.
        (Rule(Mode.BAD_REQUEST), "BadRequestError", 400, "stub"),
    ],
    ids=["key", "rate", "request"],
)
def test_node_raises_what_the_model_s_server_refuses(
    chats: Chats, rule: Rule, error: str, status: int, type: str
) -> None:
    chats.stage.stub.follow(rule)
    answer = chats.complete(f"refused-{status}", [user("Hello.")], stream=False)
    assert (answer["error"], answer["status"], answer["type"]) == (error, status, type)


def test_node_raises_on_a_stream_that_the_model_breaks_off(chats: Chats) -> None:
    chats.stage.stub.follow(Rule(Mode.CUT, answer=REPLY))
    answer = chats.complete("cut", [user("Hello.")], stream=True)
    # What was heard of the reply came through before.
    assert answer["error"] == "APIError" and REPLY.startswith(answer["text"])
    assert answer["type"] == "provider_unavailable"


@STREAMS
@pytest.mark.parametrize("outage", [Chats.unreachable, Chats.refusing], ids=["unreachable", "refusing"])
def test_node_goes_on_chatting_while_memory_is_away(
    chats: Chats, outage: Callable[[Chats], Any], stream: bool
) -> None:
    session = f"{outage.__name__}-{stream}"
    history = [user("Hello.")]
    first = chats.complete(session, history, stream=stream)
    assert first == {"text": REPLY, "degraded": None}
    history += [assistant(REPLY), user("Are you there?")]
    with outage(chats):
        meanwhile = chats.complete(session, history, stream=stream)
        # Nobody knows whether another key is one.
        stranger = chats.complete(session, history, stream=stream, key=keys.new_key())
    # Without memory, and it says so.
    assert meanwhile == {"text": REPLY, "degraded": "memory"}
    assert chats.stage.stub.requests()[-1]["body"]["messages"] == history
    assert (stranger["error"], stranger["status"]) == ("InternalServerError", 503)
    assert stranger["type"] in UNKNOWN_STORE
    # What memory missed comes with the next call.
    history += [assistant(REPLY), user("Good.")]
    assert chats.complete(session, history, stream=stream) == {"text": REPLY, "degraded": None}
    assert chats.recorded(session) == [*history, assistant(REPLY)]
