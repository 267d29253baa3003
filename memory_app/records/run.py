"""Names and states of runs, as the table of runs stores them."""

from __future__ import annotations

from enum import StrEnum


class RunName(StrEnum):
    """What a run does. The values are stored, shown over HTTP and known to older workers: never rename one.

    A periodic job needs no line here unless code names its runs: their name is that of its field in `Schedule`.
    """

    EXTRACT = "extract"
    SYNTHESIZE_TURNS = "synthesize_turns"
    SYNTHESIZE_SESSION = "synthesize_session"
    SYNTHESIZE_DEEP = "synthesize_deep"
    CONSOLIDATE = "consolidate"
    DECAY = "decay"
    SLEEP = "sleep"
    END_SESSION = "end_session"
    MERGE_ENTITIES = "merge_entities"
    FORGET = "forget"
    IMPORT_FILE = "import_file"
    APPLY_RETENTION = "apply_retention"


class RunState(StrEnum):
    """How far a run has come. It stays ``done`` or ``failed``."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Change(StrEnum):
    """What a run did to a row first, as its images say."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


OPEN = (RunState.QUEUED, RunState.RUNNING)
"""States of a run that still has work to do."""


class Trigger(StrEnum):
    """Why a cycle runs."""

    SESSION_END = "session-end"
    EVICTION = "eviction"
    INTERVAL = "interval"
    MANUAL = "manual"
