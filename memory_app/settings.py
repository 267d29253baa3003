"""Every setting, once: name, unit, default and one sentence.

Read from the environment (``MEMORY_DATABASE__URL`` sets ``database.url``) or a ``.env`` file. Only `runtime` and the
command line read this module; everything below gets plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from memory_app import redis_url
from memory_app.records.run import RunName
from memory_app.records.server_names import HOME_SERVER, SERVER_NAME
from memory_app.redis_url import Address

EMPTY_IS_NONE = BeforeValidator(lambda value: None if value == "" else value)
"""A variable that a compose file hands on without a value."""


SECRET_LENGTH = 32
"""Least characters of a secret: 128 random bits in hexadecimal digits."""

PREFIX = "MEMORY_"
"""Of every variable that is a setting."""

ENV_FILE = ".env"
"""Read in the current folder, below the environment."""


class _Section(BaseModel):
    # A name that is not known is a mistake in a setting, which would go on with its default otherwise.
    model_config = ConfigDict(frozen=True, extra="forbid")


class Server(_Section):
    url: SecretStr = Field(description="The server as the role memory_app.")
    owner_url: Annotated[SecretStr | None, EMPTY_IS_NONE] = Field(
        None, description="The same server as the owner of its tables."
    )


class Database(_Section):
    url: SecretStr = Field(
        SecretStr("postgresql+psycopg://memory_app@localhost/memory"),
        description="PostgreSQL 16 or newer, as the role that owns nothing.",
    )
    owner_url: SecretStr | None = Field(
        None,
        description="The same database as its owner; used by migrate, keys, doctor and the worker of maintenance.",
    )
    pool_size: int = Field(8, ge=1, description="Connections kept per process.")
    pool_overflow: int = Field(8, ge=0, description="Further connections a process may open under load.")
    pool_timeout_seconds: float = Field(
        5, gt=0, description="Wait for a free connection before answering 503."
    )
    connect_timeout_seconds: int = Field(5, ge=1, description="Wait for a new connection.")
    statement_timeout_ms: int = Field(
        20_000,
        ge=0,
        description="A statement longer than this is cancelled. `memory migrate` sets this and the next two; keep each "
        "below every lease.",
    )
    lock_timeout_ms: int = Field(5_000, ge=0, description="A wait for a lock longer than this is given up.")
    idle_transaction_timeout_ms: int = Field(
        30_000, ge=0, description="A transaction idle for longer is ended by the server."
    )
    prepared_statements: Literal["auto", "on", "off"] = Field(
        "auto",
        description="Whether the server keeps statements prepared; auto: not behind a pooler such as PgBouncer.",
    )
    servers: dict[str, Server] = Field(
        {},
        description="Further servers that hold shards, by name: SERVERS__EAST__URL as the role memory_app, and "
        "SERVERS__EAST__OWNER_URL for those parts that have owner_url.",
    )

    @field_validator("servers")
    @classmethod
    def _check_names(cls, servers: dict[str, Server]) -> dict[str, Server]:
        for name in servers:
            if not SERVER_NAME.fullmatch(name) or name == HOME_SERVER:
                raise ValueError(
                    f"{name[:40]!r} is no name of a further server; take small letters, digits and _, at most 32, and "
                    f"not {HOME_SERVER!r}"
                )
        return servers


class Redis(_Section):
    url: SecretStr = Field(
        SecretStr("redis://localhost:6379/0"),
        description="Redis 7 or Valkey, noeviction; rediss:// for TLS, or sentinel://host,host/0?primary=NAME.",
    )
    ca_file: Annotated[Path | None, EMPTY_IS_NONE] = Field(
        None,
        description="Authority that signed the certificates of Redis and of the broker, where an address names "
        "none (ssl_ca_certs); None takes those of the system.",
    )
    verify_tls: bool = Field(
        True, description="False trusts any server that an address with TLS leads to; doctor warns."
    )
    prefix: str = Field("memory:", min_length=1, description="Put before every key and queue name.")
    timeout_seconds: float = Field(1.0, gt=0, description="A hot call slower than this is given up.")


class Broker(_Section):
    url: Annotated[SecretStr | None, EMPTY_IS_NONE] = Field(
        None, description="Redis of the queues, written like redis.url; None takes that of hot memory."
    )


class Http(_Section):
    host: str = Field("127.0.0.1", description="Address the API listens on.")
    port: int = Field(8321, ge=0, le=65535, description="Port of the API; 0 takes a free one.")
    root_path: str = Field(
        "",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="Prefix below which a proxy serves the API, such as /memory; empty for none.",
    )
    body_limit_bytes: int = Field(
        2_000_000, ge=1_000, description="A larger request body is refused with 413."
    )
    import_limit_bytes: int = Field(
        256_000_000,
        ge=1_000,
        description="The same for a snapshot to import; one memory takes 3 to 4 kB. A process takes one that is "
        "above body_limit_bytes at a time, in about four times its size of memory.",
    )
    spool_limit_bytes: int = Field(
        4_000_000_000,
        ge=0,
        description="Most bytes of arriving and waiting large snapshots, in the folder for temporary files (TMPDIR).",
    )
    import_wait_seconds: float = Field(
        60, ge=0, description="A large snapshot that has not had its turn after this gets 503."
    )
    connections: int = Field(
        800,
        ge=1,
        description="Open connections of a process; at the limit one that keeps us waiting makes room, else 503.",
    )
    connections_per_address: int = Field(
        0,
        ge=0,
        description="The same for one client address; 0: no limit, as callers behind a proxy share one.",
    )
    header_seconds: float = Field(
        10, gt=0, description="Headers that are not whole after this get 408 and the connection is closed."
    )
    body_seconds: float = Field(
        20,
        gt=0,
        description="A body must be whole within this or go on at body_rate_bytes, else 408; so for reading answers.",
    )
    body_rate_bytes: int = Field(
        20_000,
        ge=1,
        description="Least bytes a second of a body or answer that takes longer than body_seconds.",
    )
    tenant_requests: int = Field(
        256, ge=1, description="Requests of a tenant under way in a process above which new ones get 429."
    )
    wait_seconds: float = Field(
        20, ge=0, description="A request that has not got a thread and a connection after this gets 503."
    )
    allow_anonymous_tenant: str | None = Field(
        None, description="Tenant used when no key is sent; only accepted on a loopback address."
    )

    @field_validator("root_path")
    @classmethod
    def _is_no_address_of_ours(cls, prefix: str) -> str:
        """Whether a proxy took the prefix off could not be told from the address."""
        # By its first part, as those are the first parts of our addresses.
        if prefix.split("/")[1:2] in (["v1"], ["docs"], ["ui"], ["health"], ["metrics"]):
            raise ValueError(
                f"{prefix} is an address of the API itself; take another prefix, such as /memory"
            )
        return prefix


class Page(_Section):
    enabled: bool = Field(True, description="Serve the web page at /ui.")
    session_minutes: float = Field(
        60, gt=0, le=1440, description="Somebody who did nothing on the page for as long logs in again."
    )


class Record(_Section):
    text_limit_chars: int = Field(
        100_000, ge=1, description="Longest text of one turn; longer is refused, 413."
    )
    batch_limit: int = Field(500, ge=1, description="Most turns in one call.")
    metadata_limit_bytes: int = Field(8_192, ge=0, description="Largest metadata of one turn, as JSON.")
    backlog_limit: int = Field(
        100_000,
        ge=1,
        description="Accepted and not yet indexed turns of a tenant above which new ones get 429.",
    )


class Index(_Section):
    batch: int = Field(64, ge=1, le=1000, description="Turns claimed and embedded in one go.")
    lease_seconds: int = Field(
        45, ge=1, description="How long a claim holds before another worker may take it."
    )
    starts_limit: int = Field(3, ge=1, description="Unexplained deaths after which a turn is quarantined.")
    daily_log_days: int = Field(
        30,
        ge=1,
        description="Days after which a turn whose session a model has curated is no longer searched, and loses its "
        "embedding and keywords; what no model curated stays searchable.",
    )


class Extract(_Section):
    batch: int = Field(32, ge=1, le=500, description="Most turns of a session in one extraction.")
    lease_seconds: int = Field(45, ge=1, description="How long a claim on a session holds.")
    model_lease_seconds: int = Field(
        150,
        ge=1,
        description="The same where a language model is asked: longer than a question with its repair.",
    )
    starts_limit: int = Field(3, ge=1, description="Unexplained deaths after which a turn is quarantined.")
    after_turns: int = Field(8, ge=1, description="Turns that make a session due at once (policy llm).")
    idle_seconds: float = Field(20, ge=0, description="Silence that makes a session due (policy llm).")
    max_age_seconds: float = Field(
        120, ge=0, description="No turn waits longer than this to be due (policy llm)."
    )
    retry_base_seconds: float = Field(
        2, gt=0, description="First back-off after a handled error; doubles, with jitter."
    )
    retry_max_seconds: float = Field(600, gt=0, description="Longest back-off.")
    retry_age_hours: float = Field(24, gt=0, description="A transient error older than this parks the turn.")
    permanent_limit: int = Field(
        3,
        ge=1,
        description="Permanent errors after which a turn is parked; a useless answer of a model parks it at once.",
    )


class Worker(_Section):
    model_threads: int = Field(
        32, ge=1, le=500, description="Calls of a language model at the same time, per worker of queue model."
    )
    maintenance_niceness: int = Field(
        10,
        ge=0,
        le=19,
        description="How far a worker of only the queue maintenance gives way to other processes; 0: not at all.",
    )
    maintenance_rest: float = Field(
        1,
        ge=0,
        description="How long such a worker pauses between statements, in times of what it worked; 0: not at all. "
        "A transaction is prolonged by 1 s at most.",
    )


class Finder(_Section):
    every_seconds: float = Field(2, gt=0, description="Pause between two looks for due work.")
    batch: int = Field(200, ge=1, description="Most hints sent in one look.")
    drain_after_seconds: float = Field(
        10, gt=0, description="If Redis stays away for longer, the finder process does the work itself."
    )


class Embedding(_Section):
    provider: Literal[
        "wordllama", "hash", "minilm", "multilingual", "onnx", "openai", "ollama", "compatible"
    ] = Field(
        "wordllama",
        description="Which embedder; wordllama and hash work offline, minilm and multilingual with their extras, "
        "onnx from a folder.",
    )
    dimensions: int | None = Field(
        None, ge=8, le=4000, description="Length of a vector; None takes the provider's own (wordllama: 256)."
    )
    model: str | None = Field(None, description="Model asked of a provider; None takes its usual one.")
    base_url: str | None = Field(
        None, description="Address of a provider behind HTTP; required for compatible."
    )
    key: SecretStr | None = Field(None, description="Key of the provider.")
    folder: Path | None = Field(None, description="Folder with model.onnx and tokenizer.json, for onnx.")
    query_prefix: str | None = Field(None, description="Put before questions; None takes the model's own.")
    passage_prefix: str | None = Field(
        None, description="Put before what is stored; None takes the model's own."
    )
    batch: int = Field(64, ge=1, le=2048, description="Most texts in one call of a provider.")
    ask_dimensions: bool = Field(False, description="Send the dimensions wanted, for models that can be cut.")
    pooling: Literal["mean", "cls"] = Field("mean", description="How onnx makes one vector of many tokens.")
    tokens_limit: int = Field(256, ge=8, le=8192, description="Tokens of a text that onnx reads.")
    connect_seconds: float = Field(5, gt=0, description="Wait for a connection to the provider.")
    total_seconds: float = Field(
        30, gt=0, description="A call of the provider that takes longer is given up."
    )
    requests_per_minute: float = Field(0, ge=0, description="Our own limit over all processes; 0 means none.")
    tokens_per_minute: float = Field(0, ge=0, description="Our own limit over all processes; 0 means none.")


class Rerank(_Section):
    provider: Literal["onnx", "tei", "vllm", "llamacpp", "cohere", "jina"] | None = Field(
        None, description="Model that reorders the first rows of recall; None keeps our own order."
    )
    model: str | None = Field(None, description="Model asked of a provider; None takes its usual one.")
    base_url: str | None = Field(
        None, description="Address before /rerank; required for tei and vllm, the usual one for others."
    )
    key: SecretStr | None = Field(None, description="Key of the provider.")
    folder: Path | None = Field(None, description="Folder with model.onnx and tokenizer.json, for onnx.")
    tokens_limit: int = Field(512, ge=16, le=8192, description="Tokens of query and text that onnx reads.")
    rows: int = Field(50, ge=2, le=200, description="Rows of our own order that are given to the model.")
    text_chars: int = Field(1_000, ge=100, description="Characters of a row that the model reads.")
    connect_seconds: float = Field(1, gt=0, description="Wait for a connection to the provider.")
    total_seconds: float = Field(2, gt=0, description="After this our own order is taken.")
    requests_per_minute: float = Field(0, ge=0, description="Our own limit over all processes; 0 means none.")
    rest_seconds: float = Field(
        60, ge=1, description="Rest of all processes after five failures in a row; then one call tries."
    )


class ModelPrice(_Section):
    tokens_in: Decimal = Field(ge=0, description="US dollars per million tokens sent.")
    tokens_out: Decimal = Field(ge=0, description="US dollars per million tokens answered.")


class Chat(_Section):
    base_url: str | None = Field(
        None, description="Any server that speaks the OpenAI API; None means no model."
    )
    key: SecretStr | None = Field(None, description="Key of that server.")
    model: str | None = Field(None, description="Small model, asked about turns.")
    large_model: str | None = Field(
        None, description="Model for sessions and deep synthesis; None takes the small one."
    )
    temperature: float = Field(
        0, ge=0, le=2, description="0 answers the same to the same, as far as the server can."
    )
    output_limit_tokens: int = Field(4_000, ge=100, description="Longest answer asked for.")
    connect_seconds: float = Field(5, gt=0, description="Wait for a connection.")
    total_seconds: float = Field(
        30, gt=0, description="A call that takes longer is given up and tried later."
    )
    question_seconds: float = Field(
        40, gt=0, description="A question with its repair is given up after this."
    )
    slow_after_seconds: float = Field(
        0,
        ge=0,
        description="While the mean call takes longer, optional questions are not asked; 0 asks always.",
    )
    response_limit_bytes: int = Field(8_000_000, ge=10_000, description="A larger answer is refused.")
    connections: int = Field(64, ge=1, description="Calls at the same time per process.")
    requests_per_minute: float = Field(0, ge=0, description="Our own limit over all processes; 0 means none.")
    tokens_per_minute: float = Field(0, ge=0, description="Our own limit over all processes; 0 means none.")
    patience_seconds: float = Field(
        5, ge=0, description="Wait for a turn within the limit before postponing."
    )
    rest_seconds: float = Field(
        60, ge=1, description="Rest of all processes after five failures in a row; then one call tries."
    )
    prices: dict[str, ModelPrice] = Field({}, description="Price by beginning of the model's name.")
    tokens_per_day: int | None = Field(None, ge=1, description="Most tokens of a tenant in a day (UTC).")
    dollars_per_day: Decimal | None = Field(None, gt=0, description="Most money of a tenant in a day (UTC).")


class Completions(_Section):
    base_url: str | None = Field(
        None,
        description="Server that answers chats sent to /openai/v1; None takes that of `chat`, with its key.",
    )
    key: SecretStr | None = Field(None, description="Key of that server.")
    model: str | None = Field(
        None, description="Model where the request names none; None takes the small one of `chat`."
    )
    budget_tokens: int = Field(2_000, ge=1, description="Budget of the context window that is added.")
    memory_seconds: float = Field(
        3, gt=0, description="A chat goes on without what memory has not done after this."
    )
    connect_seconds: float = Field(5, gt=0, description="Wait for a connection.")
    silence_seconds: float = Field(
        120, gt=0, description="Longest silence of the server before and within its answer."
    )
    response_limit_bytes: int = Field(8_000_000, ge=10_000, description="A larger answer is broken off.")


class Synthesis(_Section):
    idle_minutes: float = Field(
        30, gt=0, description="Silence after which a session is synthesised (policy llm)."
    )
    anchors: int = Field(10, ge=0, le=50, description="Strongest anchors shown with a session.")
    turns: int = Field(200, ge=1, le=2000, description="Most turns of a session read in one synthesis.")
    latest_turns: int = Field(
        10, ge=1, le=64, description="Turns read by a turn synthesis that is asked for."
    )
    deep_memories: int = Field(50, ge=2, le=200, description="Most memories read by deep synthesis.")
    deep_days: int = Field(7, ge=1, description="Days that deep synthesis looks back.")


class Ask(_Section):
    looks: int = Field(3, ge=1, le=10, description="Most calls of the model for one question over memory.")
    rows: int = Field(20, ge=1, le=100, description="Rows of memory that each look adds.")
    seconds: float = Field(30, gt=0, description="No further look begins after this.")
    tokens: int = Field(20_000, ge=1_000, description="No further look begins when this is spent.")


class Remember(_Section):
    merge_similarity: float | None = Field(
        None, gt=0, le=1, description="Cosine at which two statements merge; None takes the embedder's own."
    )
    link_similarity: float = Field(0.75, gt=0, le=1, description="Cosine at which two memories are linked.")
    neighbours: int = Field(20, ge=1, le=200, description="Neighbours fetched before deciding.")
    links_each: int = Field(
        20, ge=1, le=200, description="Most links of one memory, the strongest; its sources come on top."
    )


class Recall(_Section):
    preset: str = Field("balanced", description="Scoring preset used when the caller names none.")
    limit_max: int = Field(100, ge=1, description="Most memories one recall may ask for.")
    scan_rows: int = Field(
        # A scan that computes both scores takes about 11 ms at 10,000 rows.
        15_000,
        ge=100,
        description="Rows up to which a scope is scanned; a bigger one gets search indexes of its own.",
    )
    big_scopes_max: int = Field(
        50,
        ge=0,
        description="Most scopes with search indexes of their own, since every statement on turns and memories locks "
        "all of them; further big ones are scanned. A server with few locks gets fewer.",
    )
    candidates: int = Field(200, ge=10, description="Candidates each arm hands to the scoring.")
    query_limit_chars: int = Field(8_000, ge=1, description="Longest query.")


class Context(_Section):
    budget_tokens: int = Field(2_000, ge=1, description="Budget when the caller names none.")
    turns: int = Field(20, ge=0, description="Latest turns shown when the caller names none.")
    memories: int = Field(8, ge=1, description="Most rows under relevant memories.")
    cache_seconds: int = Field(300, ge=1, description="Life of the cached narrative context.")
    narrative: bool = Field(
        True,
        description="Have the model tell what bears on a query, once in 300 seconds for each user (policy llm).",
    )


class Hot(_Section):
    stream_turns: int = Field(50, ge=1, description="Turns kept in the hot stream of a scope.")
    stream_days: int = Field(7, ge=1, description="Life of the hot stream.")


class Queries(_Section):
    half_life_minutes: float = Field(
        10_080, gt=0, description="Time in which a question that is not asked again loses half its strength."
    )
    session_bias: float = Field(
        0.05, ge=0, le=1, description="Added to the score of a similar question of the session going on."
    )


class Decay(_Section):
    faded_strength: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="A memory that is no stronger than this has faded and is retired as expired.",
    )
    recoverable_days: float = Field(
        30,
        ge=0,
        description="Days in which what expired or was evicted can be revived; then it goes for good.",
    )
    merged_days: float = Field(
        180, ge=0, description="Days after which rows that were merged into others go for good."
    )
    max_memories: int = Field(
        20_000,
        ge=1,
        description="Most current memories of a scope, where its agent's policy says nothing else.",
    )
    max_links: int = Field(100_000, ge=0, description="Most links of a scope, in the same way.")
    hub_degree: int = Field(
        10,
        ge=1,
        description="A memory with as many links is a hub and is not evicted (at most a tenth of all are).",
    )


class Sleep(_Section):
    max_clusters: int = Field(1_000, ge=1, le=10_000, description="Most clusters merged in one cycle.")
    max_inspected: int = Field(
        5_000, ge=2, le=20_000, description="Most memories looked at, the weakest first."
    )
    min_cluster_size: int = Field(2, ge=2, le=5, description="Fewer similar memories are left as they are.")
    min_strength: float = Field(
        0.9, ge=0, le=1, description="Memories at least this strong are firm and left as they are."
    )
    summary_chars: int = Field(600, ge=80, le=8_000, description="Longest summary of a cluster.")
    cool_down_seconds: float = Field(
        3_600, ge=0, description="Pause between two cycles of a scope that nobody asked for by hand."
    )
    max_rewrites: int = Field(
        5, ge=1, description="Merges behind a memory after which no cycle rewrites it any more."
    )
    recall_floor: float = Field(
        0.99,
        ge=0,
        le=1,
        description="A cycle after which the scope's own questions find less than this share is not applied.",
    )
    probes: int = Field(
        20, ge=0, le=200, description="Recent questions of the scope that a cycle is checked with."
    )
    pattern_weeks: int = Field(
        2, ge=2, description="Weeks in which something comes up before it is called a pattern."
    )
    pattern_memories: int = Field(4, ge=2, description="Memories in which it comes up.")


class Ending(_Section):
    idle_hours: float = Field(24, gt=0, description="A session without a turn for as long is ended.")
    promote_most: int = Field(20, ge=0, description="Most memories of an ended session that its scope keeps.")
    promote_strength: float = Field(0.3, ge=0, le=1, description="The weaker ones are not promoted.")
    promote_degree: int = Field(0, ge=0, description="Links that one needs to be promoted.")
    checkpoint_most: int = Field(100, ge=1, description="Strongest memories kept in a session's checkpoint.")


_RUNS_BY_FIELD = {"deep_hours": RunName.SYNTHESIZE_DEEP}
"""Fields of `Schedule` whose runs go by another name than the field."""


class Schedule(_Section):
    sleep_hours: float = Field(24, gt=0, description="A scope in which something happened sleeps this often.")
    decay_hours: float = Field(24, gt=0, description="What has faded is retired this often.")
    deep_hours: float = Field(24, gt=0, description="Deep synthesis of a scope in which something happened.")
    batch: int = Field(500, ge=1, description="Most periodic jobs asked for in one look.")
    keep_runs_days: float = Field(
        30,
        gt=0,
        description="Days for which a run that ended is kept; one that can be undone is kept longer.",
    )

    @property
    def intervals(self) -> Mapping[str, float]:
        """The hours between two runs of each periodic job, by the name of its runs: ``sleep`` for `sleep_hours`."""
        intervals: dict[str, float] = {}
        for field in type(self).model_fields:
            if field.endswith("_hours"):
                name = _RUNS_BY_FIELD.get(field, field.removesuffix("_hours"))
                intervals[name] = getattr(self, field)
        return intervals


class Events(_Section):
    look_seconds: float = Field(1, gt=0, le=60, description="Pause between two looks for a stream of events.")
    heartbeat_seconds: float = Field(
        15, gt=0, description="A stream that has nothing to say for this long sends an empty line."
    )
    stream_seconds: float = Field(
        3_600, gt=0, description="A stream is ended after this; its client connects anew and goes on."
    )
    key_streams: int = Field(
        8, ge=1, description="Streams of a key in a process above which new ones get 429."
    )
    streams: int = Field(200, ge=1, description="The same for all keys together.")


class Webhooks(_Section):
    allow_private: bool = Field(
        False,
        description="Webhooks may lead to private and loopback addresses: for development, and inside a cluster. "
        "Link-local ones, which hold a cloud's secrets, stay refused.",
    )
    allow_http: bool = Field(False, description="Webhooks may do without TLS.")
    ports: frozenset[Annotated[int, Field(ge=1, le=65535)]] = Field(
        frozenset({80, 443, 8080, 8443}),
        description="Ports that webhooks may lead to, as a JSON list; [] for any.",
    )
    ca_file: Annotated[Path | None, EMPTY_IS_NONE] = Field(
        None,
        description="Authority that receivers' certificates may be signed by, beside those of the system.",
    )
    tenant_webhooks: int = Field(20, ge=1, le=100, description="Most webhooks of a tenant.")
    batch: int = Field(100, ge=1, le=500, description="Most events in one message.")
    connect_seconds: float = Field(5, gt=0, le=30, description="Wait for a connection and for its TLS.")
    total_seconds: float = Field(15, gt=0, le=30, description="A delivery that takes longer is cut.")
    deliveries: int = Field(
        8,
        ge=1,
        le=64,
        description="Deliveries at the same time, over all tenants; a tenant has half of them.",
    )
    retry_base_seconds: float = Field(
        5, gt=0, description="First back-off after a failure; doubles, with jitter."
    )
    retry_max_seconds: float = Field(3_600, gt=0, description="Longest back-off.")
    give_up_days: float = Field(
        5, gt=0, description="A webhook whose every delivery failed for this long is paused."
    )
    log_rows: int = Field(100, ge=1, le=1_000, description="Latest deliveries of a webhook that are kept.")


class Erasure(_Section):
    secret: SecretStr | None = Field(
        None,
        description="Keys the digests that stand for erased names, so that nobody can guess them, and signs sessions "
        "of the page at /ui. Secrets of webhooks are made of it. At least 32 characters, the same for all processes. "
        "To change it, put the new one before the old one, with a comma between.",
    )
    keep_days: float = Field(
        30,
        gt=0,
        description="Days for which a turn that was erased is refused when it is sent again under its idempotency "
        "key, and a refused message is listed.",
    )

    @field_validator("secret")
    @classmethod
    def _is_long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        # An empty variable, as a compose file hands it on.
        if value is None or not value.get_secret_value():
            return None
        if any(len(part) < SECRET_LENGTH for part in _secret_parts(value)):
            raise ValueError(f"each secret needs at least {SECRET_LENGTH} characters")
        return value

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The secrets, the newest first; none where no secret is set."""
        return () if self.secret is None else tuple(part.encode() for part in _secret_parts(self.secret))


def _secret_parts(value: SecretStr) -> list[str]:
    return [part.strip() for part in value.get_secret_value().split(",")]


class Log(_Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least severe level written."
    )
    form: Literal["json", "console"] = Field(
        "console", description="One JSON object per line, or for people."
    )


class Tracing(_Section):
    endpoint: Annotated[str | None, EMPTY_IS_NONE] = Field(
        None,
        description="Receiver of traces by OTLP over HTTP, such as http://collector:4318; None: no traces. Needs "
        "memory-app[otel].",
    )
    ratio: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Share of the traces that begin here; what a caller began goes on as it says.",
    )


class Settings(BaseSettings):
    """All sections; `Settings()` reads the environment. Raises pydantic's ValidationError naming the field."""

    # A .env file also holds variables of other programs, such as those of a compose file.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", env_file=ENV_FILE, extra="ignore", frozen=True
    )

    data_folder: Path = Field(Path(".memory"), description="Where the embedded servers keep their data.")
    erasures_file: Path | None = Field(
        None,
        description="File to which every receipt of an erasure is appended; keep it apart from the database.",
    )
    life_folder: Path | None = Field(
        None,
        description="Where processes leave the signs of life that `memory health` reads; None: memory-life-UID in the "
        "folder for temporary files.",
    )
    schedule_file: Path | None = Field(None, description="Periodic jobs, as in celerybeat-schedule.example.")
    database: Database = Database()
    redis: Redis = Redis()
    broker: Broker = Broker()
    http: Http = Http()
    page: Page = Page()
    record: Record = Record()
    index: Index = Index()
    extract: Extract = Extract()
    worker: Worker = Worker()
    finder: Finder = Finder()
    embedding: Embedding = Embedding()
    rerank: Rerank = Rerank()
    chat: Chat = Chat()
    completions: Completions = Completions()
    synthesis: Synthesis = Synthesis()
    remember: Remember = Remember()
    recall: Recall = Recall()
    ask: Ask = Ask()
    context: Context = Context()
    hot: Hot = Hot()
    queries: Queries = Queries()
    decay: Decay = Decay()
    sleep: Sleep = Sleep()
    ending: Ending = Ending()
    schedule: Schedule = Schedule()
    events: Events = Events()
    webhooks: Webhooks = Webhooks()
    erasure: Erasure = Erasure()
    log: Log = Log()
    tracing: Tracing = Tracing()

    @property
    def redis_address(self) -> Address:
        """Where hot memory is. Raises `Misconfigured`."""
        return self._address(self.redis.url, "redis.url")

    @property
    def broker_address(self) -> Address:
        """Where the queues are: at the same Redis unless the settings name another. Raises `Misconfigured`."""
        if self.broker.url is None:
            return self.redis_address
        return self._address(self.broker.url, "broker.url")

    def _address(self, url: SecretStr, setting: str) -> Address:
        redis = self.redis
        return redis_url.read(
            url.get_secret_value(),
            setting=setting,
            ca_file=None if redis.ca_file is None else str(redis.ca_file),
            is_verified=redis.verify_tls,
        )


def wrong_setting(error: ValidationError) -> str:
    """Which setting is wrong, by the name of its environment variable, and how; never its value."""
    # Without its input, which may be a password.
    first = error.errors()[0]
    name = PREFIX + "__".join(str(part) for part in first["loc"]).upper()
    return f"setting {name}: {first['msg']}"
