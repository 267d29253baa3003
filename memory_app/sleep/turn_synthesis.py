"""Synthesise the latest turns of a session once more, because somebody asked for it.

Workers read turns as they come in; this reads the last of them together, whatever was read before. What they find
again is reinforced, not doubled.
"""

from __future__ import annotations

from memory_app.db.db import transaction
from memory_app.errors import NotFound
from memory_app.extraction import model_calls
from memory_app.extraction.llm import Talk, synthesize_turns
from memory_app.jobs import jobs
from memory_app.jobs.rows.runs import RunClaim
from memory_app.language.zones import zone_of
from memory_app.memories import capacity, remember
from memory_app.memories.people import display_names
from memory_app.records.reports import ExtractionReport
from memory_app.runtime import Runtime
from memory_app.sleep.model_scope import need_model
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows import names
from memory_app.turns.batch import EARLIER_TURNS, known_entities
from memory_app.turns.rows import sessions, turns
from memory_app.turns.sources import sourced


def synthesize_latest_turns(runtime: Runtime, claimed: RunClaim) -> None:
    """Do the run of a session: facts, anchors, artifacts, identity and expression of its latest turns."""
    assert claimed.session_id is not None
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        row = need_model(connection, claimed)
        session = sessions.read(connection, claimed.scope_id, claimed.session_id)
        if session is None:
            raise NotFound("the session was forgotten")
        first_seq = max(1, session.next_seq - runtime.settings.synthesis.latest_turns)
        read = turns.between(
            connection,
            claimed.scope_id,
            claimed.session_id,
            low=first_seq - EARLIER_TURNS,
            high=session.next_seq - 1,
        )
        known = known_entities(connection, claimed.scope_id)
    policy = parse_policy(row.policy)
    latest = tuple(turn for turn in read if turn.seq >= first_seq)
    talk = Talk(
        latest,
        row.user or "user",
        row.agent,
        time_zone=zone_of(row.time_zone),
        earlier=tuple(turn for turn in read if turn.seq < first_seq),
        labels=tuple(entity.label for entity in known),
    )
    # The transaction is over before the model is asked, and the lock is taken only for the effects.
    extracted = synthesize_turns(model_calls.small(runtime, claimed.tenant_id, policy), talk)
    model_calls.count_dropped(runtime, extracted.provenance.dropped)
    statements = extracted.extraction.statements if policy.fact_curation else ()
    names_of_user = (
        {} if policy.group else display_names(latest, talk.user_label, label=row.label, aliases=row.aliases)
    )
    of_speakers = [
        sourced(item, latest, user=talk.user_label, names=names_of_user.values()) for item in statements
    ]
    prepared = remember.prepare(runtime, of_speakers, policy=policy)
    with transaction(runtime.engine, claimed.tenant_id) as connection:
        if not names.lock_scope(connection, claimed.tenant_id, claimed.scope_id):
            raise NotFound("the person was erased while this ran; nothing was stored")
        place = remember.Place(
            claimed.tenant_id, claimed.scope_id, run_id=claimed.run_id, turn_scopes=(claimed.scope_id,)
        )
        written = remember.write_all(connection, runtime, place, prepared=prepared)
        ids = tuple(result.id for result in written)
        if ids:
            capacity.keep_ceiling(
                connection, runtime, claimed.tenant_id, scope_id=row.id, policy=policy, written=ids
            )
        report = ExtractionReport(turns=len(latest), memories=ids, made=extracted.provenance.as_dict())
        jobs.complete(connection, claimed, report)
    remember.drop_context(runtime, row.id)
