"""The Celery application and its settings. Tasks are thin; a message only says "look", so losing one is harmless.

Run ``celery -A workers.app worker -Q ingest --without-gossip --without-mingle``, or ``memory worker``.
"""

from __future__ import annotations

from billiard import pool
from celery import Celery

from memory_app.queue import broker_settings
from memory_app.settings import Settings
from workers.schedule import beat_schedule
from workers.start import one_sentence

# A child that ends waits until its results were read, which nobody does when the main process has fallen over an
# unreadable message: 30 s in tenths of a second, before a supervisor may start another worker. We have no results.
pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = 10

with one_sentence():
    settings = Settings()
    broker = broker_settings(settings.broker_address, settings.redis.prefix)
    schedule = beat_schedule(settings.schedule_file)

app = Celery(
    "memory",
    include=[
        "workers.ingest",
        "workers.model",
        "workers.maintenance",
        "workers.job",
        "workers.signals",
        "workers.life",
        "workers.control",
    ],
)
app.conf.update(broker)
app.conf.update(
    result_backend=None,
    worker_consumer="workers.consumer:TolerantConsumer",
    broker_connection_retry_on_startup=True,
    # For ever: work waits in rows, and is done when the broker is back.
    broker_connection_max_retries=None,
    broker_channel_error_retry=True,
    task_publish_retry_policy={"max_retries": 1, "interval_start": 0, "interval_step": 0.2},
    # A message only says "look": lost with its worker it is made up for, delivered twice it finds nothing to do.
    task_acks_late=False,
    task_reject_on_worker_lost=False,
    task_soft_time_limit=60,
    task_time_limit=90,
    task_send_sent_event=False,
    worker_send_task_events=True,
    # A message that waits behind a long task here could be done by a free worker elsewhere.
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=True,
    # A task works in the database, and needs no broker to come to its end.
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_soft_shutdown_timeout=25,
    worker_enable_soft_shutdown_on_idle=True,
    worker_max_tasks_per_child=10_000,
    # Seconds. A child loads the embedder before it is up, which on a busy machine takes longer than Celery's 4 s: then
    # it would be ended and started again for ever.
    worker_proc_alive_timeout=60,
    # In kB. The child ends after the task that went above it.
    worker_max_memory_per_child=1_000_000,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=True,
    beat_schedule=schedule,
    beat_scheduler="workers.beat:LivingScheduler",
    # As often as Beat gives a sign of life.
    beat_max_loop_interval=5,
)
