"""What callers send to recall, or to get a context window."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from memory_app.web.fields import Body, CleanWords, Instant, KindName, Name, SubtypeName, Words


class ContextBody(Body):
    """What the context window is for."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Any plans for the weekend?", "session": "chat-1"}]}
    )

    query: CleanWords | None = Field(
        None, description="What the user just said; decides which memories are shown."
    )
    session: Name | None = Field(None, description="The conversation going on.")
    budget_tokens: int | None = Field(
        None, ge=1, le=200_000, description="Never exceeded; 2000 if not given."
    )
    turns: int | None = Field(None, ge=0, le=200, description="Latest turns shown; 20 if not given.")
    topic_limit: int | None = Field(
        None, ge=1, le=100, description="Rows looked for that bear on the query; 10 if not given."
    )
    anchor_limit: int | None = Field(None, ge=0, le=50, description="Relational anchors; 5 if not given.")
    anchor_importance: int | None = Field(
        None, ge=1, le=10, description="Least importance of a relational anchor; 6 if not given."
    )
    expand_graph: bool = Field(True, description="Add memories linked to those that bear on the query.")
    depth: int = Field(1, ge=1, le=3, description="With `expand_graph`: how many links away.")
    preset: Words | None = Field(None, description="Scoring preset; `balanced` if not given.")
    format: Literal["text", "json", "messages"] = Field("text", description="`messages` adds chat messages.")


class RecallBody(Body):
    """What is looked for, and where."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Where does Mira live?", "limit": 5, "tiers": ["facts"]}]}
    )

    query: CleanWords | None = Field(None, description="In plain words; without it the strongest come.")
    limit: int = Field(10, ge=1, le=500, description="Most rows in the answer.")
    kinds: list[KindName] | None = Field(None, min_length=1, description="Only memories of these kinds.")
    tiers: list[Literal["facts", "entities", "daily-logs"]] | None = Field(
        None, min_length=1, description="Only these tiers; all if not given."
    )
    tags: list[CleanWords] | None = Field(
        None, min_length=1, description="Only memories with one of these tags."
    )
    subtypes: list[SubtypeName] | None = Field(
        None, min_length=1, description="Only memories of these subtypes."
    )
    session: Name | None = Field(
        None, description="Only rows of this session, and memories that belong to none."
    )
    current_session: Name | None = Field(
        None, description="The conversation going on; its rows are preferred a little."
    )
    min_importance: int | None = Field(
        None, ge=1, le=10, description="Only memories at least this important."
    )
    after: Instant | None = Field(None, description="Only what was said, or holds from, this time or later.")
    before: Instant | None = Field(None, description="Only what was said, or holds from, before this time.")
    as_of: Instant | None = Field(None, description="What was true at this time, instead of now.")
    preset: Words | None = Field(
        None, description="`balanced`, `entity_first`, `hybrid`, `keyword` or `vector`."
    )
    weights: dict[str, float | None] | None = Field(
        None, description="Weights of signals for this query, by name; the preset's for all others."
    )
    min_score: float | None = Field(None, ge=0, le=1, description="Only rows with at least this score.")
    threshold: float | None = Field(
        None, ge=0, le=1, description="Only rows whose embedding has at least this cosine with the query's."
    )
    expand_graph: bool = Field(
        False, description="Add memories linked to those found, at most as many again."
    )
    depth: int = Field(1, ge=1, le=3, description="With `expand_graph`: how many links away.")
    explain: bool = Field(False, description="Every signal of every candidate.")
