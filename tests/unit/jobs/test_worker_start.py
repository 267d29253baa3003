"""What a worker does before it makes its children."""

from __future__ import annotations

import pytest
from celery.signals import celeryd_init

from memory_app.language import detection
from memory_app.queue import INGEST, MAINTENANCE, MODEL
from workers import signals


@pytest.mark.parametrize(
    ("queues", "loads"), [([INGEST], 1), ([MODEL, INGEST], 1), (None, 1), ([MODEL], 0), ([MAINTENANCE], 0)]
)
def test_the_model_of_languages_is_loaded_before_the_fork(
    monkeypatch: pytest.MonkeyPatch, queues: list[str] | None, loads: int
) -> None:
    loaded: list[None] = []
    monkeypatch.setattr(detection, "load", lambda: loaded.append(None))
    assert signals._load_shared_data in celeryd_init._live_receivers(None), "Celery calls it before the pool"
    signals._load_shared_data(options={"queues": queues})
    assert len(loaded) == loads
