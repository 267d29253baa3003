"""Calls of background work, and of forgetting, which is work too."""

from __future__ import annotations

from uuid import UUID

from memory_app.client.call import Call, answer_of, body_of, in_agent, in_session, in_user, path, query_of
from memory_app.forget.answers import ErasureAnswer
from memory_app.jobs.answers import RunStateAnswer
from memory_app.records.ids import checked_id
from memory_app.records.scope import Scope, check_name


def sleep(
    scope: Scope,
    *,
    max_clusters: int | None = None,
    max_inspected: int | None = None,
    min_cluster_size: int | None = None,
    similarity: float | None = None,
    min_strength: float | None = None,
    summary_chars: int | None = None,
    cool_down_seconds: float | None = None,
    force: bool = False,
    trigger: str | None = None,
    dry_run: bool = False,
) -> Call[RunStateAnswer]:
    """Ask for a sleep cycle: similar memories become one, patterns are named, likenesses linked. Follow it with `run`.

    What is not given takes the default of the settings; ``dry_run`` reports and changes nothing.
    """
    body = body_of(
        max_clusters=max_clusters,
        max_inspected=max_inspected,
        min_cluster_size=min_cluster_size,
        similarity=similarity,
        min_strength=min_strength,
        summary_chars=summary_chars,
        cool_down_seconds=cool_down_seconds,
        force=force,
        trigger=trigger,
        dry_run=dry_run,
    )
    return _asked(in_user(scope, "sleep"), body)


def consolidate(scope: Scope, *, kind: str | None = None, dry_run: bool = False) -> Call[RunStateAnswer]:
    """Ask a worker to unite what says the same; follow it with `run`."""
    return _asked(in_user(scope, "consolidate"), body_of(kind=kind, dry_run=dry_run))


def decay(scope: Scope) -> Call[RunStateAnswer]:
    """Ask a worker to retire what has faded or is too much now; follow it with `run`."""
    return _asked(in_user(scope, "decay"), None)


def synthesize(
    scope: Scope,
    type: str,
    *,
    max_memories: int | None = None,
    days: int | None = None,
    dry_run: bool = False,
) -> Call[RunStateAnswer]:
    """Have a language model say what the latest turns mean (``turn``), what remains of a session (``session``), or what
    some days show together (``deep``). The first two need a scope with a session. Follow it with `run`."""
    body = body_of(type=type, session=scope.session, max_memories=max_memories, days=days, dry_run=dry_run)
    return _asked(in_user(scope, "synthesis"), body)


def end_session(
    scope: Scope, *, promote: bool = True, checkpoint: bool = True, carry: bool = True
) -> Call[RunStateAnswer]:
    """End the scope's session: promote what proved itself, keep a checkpoint, let the rest of its graph go.

    Ending it again gives the same run.
    """
    body = body_of(promote=promote, checkpoint=checkpoint, carry=carry)
    return Call("POST", in_session(scope, "end"), answer_of(RunStateAnswer), body=body)


def run(run_id: UUID | str, *, wait_seconds: float = 0) -> Call[RunStateAnswer]:
    """A background job and its report; waits until it is done or failed, for ``wait_seconds`` (at most 30)."""
    return Call(
        "GET",
        path("v1", "runs", checked_id(run_id, field="run_id")),
        answer_of(RunStateAnswer),
        query=query_of(wait_seconds=wait_seconds),
        further_seconds=wait_seconds,
    )


def undo(run_id: UUID | str) -> Call[RunStateAnswer]:
    """Take back everything a run did, or nothing: `Conflict` says what stands on it."""
    return _asked(path("v1", "runs", checked_id(run_id, field="run_id"), "undo"), None)


def forget(user: str, *, dry_run: bool = False) -> Call[RunStateAnswer]:
    """Forget a person for good, with all agents; the report counts rows by table and names the receipt.

    Where others work on the person's rows, the run is queued: a worker does it in turn. Follow it with `run`.
    """
    address = path("v1", "users", check_name(user, field="user"))
    return Call("DELETE", address, answer_of(RunStateAnswer), query=query_of(dry_run=dry_run))


def forget_agent(agent: str, *, dry_run: bool = False) -> Call[RunStateAnswer]:
    """Forget an agent with all that it knows of everybody; a worker does it. Follow it with `run`.

    The people stay, with what other agents know of them.
    """
    return Call("DELETE", in_agent(agent), answer_of(RunStateAnswer), query=query_of(dry_run=dry_run))


def forget_session(scope: Scope, *, dry_run: bool = False) -> Call[RunStateAnswer]:
    """Forget the scope's session, its turns and what came only from it."""
    return Call("DELETE", in_session(scope), answer_of(RunStateAnswer), query=query_of(dry_run=dry_run))


def forget_turn(turn_id: UUID | str) -> Call[RunStateAnswer]:
    """Forget one turn and what came only from it."""
    address = path("v1", "turns", checked_id(turn_id, field="turn_id"))
    return Call("DELETE", address, answer_of(RunStateAnswer))


def erasure(erasure_id: UUID | str) -> Call[ErasureAnswer]:
    """The receipt of something that was forgotten: how much went, never what."""
    address = path("v1", "erasures", checked_id(erasure_id, field="erasure_id"))
    return Call("GET", address, answer_of(ErasureAnswer))


def _asked(address: str, body: bytes | None) -> Call[RunStateAnswer]:
    # Asked for twice, it might run twice, or be refused as under way.
    return Call("POST", address, answer_of(RunStateAnswer), body=body, is_repeatable=False)
