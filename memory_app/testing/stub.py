"""``python -m memory_app.testing.stub --port 0``: the stub provider as a process of its own.

Prints its address on the first line and serves until it is ended. ``--mode`` and ``--seconds`` set its first rule.
"""

from __future__ import annotations

import argparse
import signal
import sys
from threading import Event

from memory_app.testing.script import Mode, Rule
from memory_app.testing.server import StubProvider


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted provider of language models and embeddings.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--share-port", action="store_true", help="bind a port that another process keeps")
    parser.add_argument("--mode", type=Mode, default=Mode.GOOD, help=f"one of {', '.join(Mode)}")
    parser.add_argument("--seconds", type=float, default=0.0, help="waited before each answer")
    options = parser.parse_args()
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    rule = Rule(options.mode, seconds=options.seconds)
    with StubProvider(rule, port=options.port, share_port=options.share_port) as stub:
        sys.stdout.write(f"{stub.address}\n")
        # Whoever started it waits for this line, in a pipe that would keep it otherwise.
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
