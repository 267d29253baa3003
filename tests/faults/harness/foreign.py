"""A stranger's Celery application on the same Redis: other tasks, a tiny time-out; the prefix is taken from outside."""

from __future__ import annotations

import os

from celery import Celery

app = Celery("foreign")
app.conf.update(
    broker_url=os.environ["MEMORY_REDIS__URL"],
    broker_transport_options={
        "visibility_timeout": 1,
        "global_keyprefix": os.environ.get("FOREIGN_PREFIX", ""),
    },
    task_acks_late=True,
    task_create_missing_queues=True,
    broker_connection_retry_on_startup=True,
)
