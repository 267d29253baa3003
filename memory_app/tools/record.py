"""``record_turns``: for agents whose app does not record turns itself."""

from __future__ import annotations

from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.tools.answers import ToolAnswer
from memory_app.tools.arguments import RecordTurns
from memory_app.turns.bodies import new_turn
from memory_app.turns.record import record


def record_turns(runtime: Runtime, tenant_id: int, scope: Scope, arguments: RecordTurns) -> ToolAnswer:
    """Accept the messages as turns of the scope's session, all or none."""
    tickets = record(runtime, tenant_id, scope, new=list(map(new_turn, arguments.messages)))
    return ToolAnswer(
        {
            "tickets": [
                {"id": str(ticket.id), "seq": ticket.seq, "stage": ticket.stage.value} for ticket in tickets
            ],
            "display_text": f"Recorded {len(tickets)} turns.",
        }
    )
