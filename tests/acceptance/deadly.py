"""A worker that dies of what a turn says, in the middle of a question to the model.

Start it with ``celery -A deadly``. Nothing in the product knows of it.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from memory_app.turns import extractor
from workers.app import app as app

POISON = "deadly"
PAUSE_SECONDS = 0.5
"""So long that others have begun to ask meanwhile."""

_ask = extractor.synthesize_turns


def ask(asking: Any, talk: Any, **more: Any) -> Any:
    """As ever, unless a turn says the word."""
    if any(POISON in turn.text for turn in talk.turns):
        time.sleep(PAUSE_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)
    return _ask(asking, talk, **more)


extractor.synthesize_turns = ask
