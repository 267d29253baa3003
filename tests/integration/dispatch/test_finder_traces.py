"""What a finder does itself while Redis is away is traced, one trace for each piece of work."""

from __future__ import annotations

from trace_receiver import receiving

from memory_app import tracing
from memory_app.dispatch import finder
from memory_app.records.records import NewTurn, Role
from memory_app.records.scope import Scope
from memory_app.runtime import build
from memory_app.settings import Settings
from memory_app.turns.record import record


def test_each_piece_of_work_of_a_finder_is_a_trace(settings: Settings, tenant: int) -> None:
    with receiving() as receiver:
        tracing.start("finder", endpoint=receiver.address, ratio=1.0)
        runtime = build(settings)
        try:
            record(runtime, tenant, Scope("ada", "mira", "chat"), [NewTurn(Role.USER, "I live in Lisbon.")])
            finder.drain(runtime)
        finally:
            runtime.close()
            # It sends what is left before it ends.
            tracing.stop()
        spans = receiver.spans()

    roots = [span for span in spans if span.parent_id == ""]
    work = {span.name: span for span in roots if span.name.startswith("work/")}
    assert "work/index_turns" in work
    statements = [span for span in spans if span.trace_id == work["work/index_turns"].trace_id]
    assert any("UPDATE turns" in span.attributes.get("db.query.text", "") for span in statements)
    # Looking for work is none, nor is what recorded the turn outside of any request.
    assert {span.name.partition("/")[0] for span in roots} <= {"work", "send"}
