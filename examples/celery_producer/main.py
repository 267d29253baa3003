"""A program that reaches only the broker records a turn, by a task of its own Celery application.

    pip install -r requirements.txt
    export BROKER_URL=redis://… MEMORY_API_KEY="$(cat ../../.memory/api-key)"
    python main.py monday "I have a dog called Bruno."
    memory recall "What is my dog called?" --agent ada --user noa --session friday

The broker is the Redis that the workers use.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from uuid import uuid4

from celery import Celery

producer = Celery("producer", broker=os.environ["BROKER_URL"])
# The prefix of the workers; with another one nobody reads the queue.
producer.conf.broker_transport_options = {
    "global_keyprefix": os.environ.get("MEMORY_REDIS__PREFIX", "memory:")
}


def record(session: str, text: str, *, message_id: str) -> None:
    """Send one turn. ``message_id`` is your own id of the message: sent twice, it is recorded once."""
    producer.send_task(
        "memory.record_turn",
        kwargs={
            "api_key": os.environ["MEMORY_API_KEY"],
            "agent": "ada",
            "user": "noa",
            "session": session,
            "role": "user",
            "content": text,
            "idempotency_key": message_id,
            "sent_at": datetime.now(UTC).isoformat(),
        },
        queue="ingest",
        # Celery would write text and key into the headers of the message, which Flower and logs show.
        argsrepr="()",
        kwargsrepr="{…}",
        ignore_result=True,
    )


def main(session: str, text: str) -> None:
    message_id = uuid4().hex
    record(session, text, message_id=message_id)
    print(f"sent {message_id}")


if __name__ == "__main__":
    main(*sys.argv[1:])
