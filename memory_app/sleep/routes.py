"""Routes of sleep: ask for a cycle or for decay."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from memory_app.jobs.answers import RunStateAnswer
from memory_app.sleep import cycle, decay, session_end
from memory_app.web.call import IN_SCOPE, IN_SESSION, OfSession, OfUser, Writer, errors
from memory_app.web.fields import Body, Number, Words
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["runs"])


class SleepBody(Body):
    """What a cycle may do; everything has a default."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dry_run": True}]})

    max_clusters: int | None = Field(None, description="Most clusters merged.")
    max_inspected: int | None = Field(None, description="Most memories looked at, the weakest first.")
    min_cluster_size: int | None = Field(None, description="Fewer similar memories are left as they are.")
    similarity: Number | None = Field(
        None, description="Cosine of memories that may become one; else the embedder's."
    )
    min_strength: Number | None = Field(
        None, description="Memories at least this strong are left as they are."
    )
    summary_chars: int | None = Field(None, description="Longest summary of a cluster.")
    cool_down_seconds: Number | None = Field(
        None, description="Do nothing if the last cycle is less than this ago."
    )
    force: bool = Field(False, description="Without any cool-down.")
    trigger: Words | None = Field(None, description="`manual`, `interval`, `eviction`, `session-end`.")
    dry_run: bool = Field(False, description="The very same report, and nothing is changed.")


class EndBody(Body):
    """What the end of a session does."""

    promote: bool = Field(
        True, description="Let the agent and user keep the strongest memories of the session."
    )
    checkpoint: bool = Field(True, description="Keep the session's memories as a document first.")
    carry: bool = Field(True, description="Promoted memories keep how often they were said and recalled.")


DEFAULTS, NOTHING_GIVEN = SleepBody(), EndBody()
"""What a request without a body means."""


@router.post(IN_SCOPE + "/sleep", status_code=202, responses=errors(400, 404, 409))
def sleep(call: Writer, scope: OfUser, body: SleepBody = DEFAULTS) -> RunStateAnswer:
    """Ask for a sleep cycle: similar memories become one, patterns are named, likenesses linked.

    A cycle after which the scope's own questions would find less is not applied. 409 while one is under way.
    """
    run = cycle.ask(call.runtime, call.tenant_id, scope, options=body.model_dump(exclude_none=True))
    return RunStateAnswer.model_validate(run)


@router.post(IN_SESSION + "/end", tags=["sessions"], status_code=202, responses=errors(400, 404))
def end_session(call: Writer, scope: OfSession, body: EndBody = NOTHING_GIVEN) -> RunStateAnswer:
    """End a session: what proved itself in it is promoted, the best kept in a checkpoint, the rest of its graph goes.

    Ending it again gives the same run; another turn opens it again.
    """
    run = session_end.ask(call.runtime, call.tenant_id, scope, **body.model_dump())
    return RunStateAnswer.model_validate(run)


@router.post(IN_SCOPE + "/decay", operation_id="decay", status_code=202, responses=errors(404))
def ask_for_decay(call: Writer, scope: OfUser) -> RunStateAnswer:
    """Retire what has faded or is too much now, and delete what was retired long ago."""
    return RunStateAnswer.model_validate(decay.ask(call.runtime, call.tenant_id, scope))
