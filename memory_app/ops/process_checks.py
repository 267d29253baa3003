"""What `memory doctor` says of the parts, by the signs of life of their processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memory_app import queue
from memory_app.errors import MemoryAppError
from memory_app.hot.life import Sign
from memory_app.jobs import life
from memory_app.jobs.life import Heard
from memory_app.ops.check import Check, State, fail, ok, warn
from memory_app.ops.redis_checks import open_hot
from memory_app.settings import Settings


def signs(settings: Settings) -> Mapping[str, Heard] | None:
    """The signs of life of all parts, by kind; None while Redis is away, which has a check of its own."""
    hot = open_hot(settings)
    try:
        return life.listen(hot)
    except MemoryAppError:
        return None
    finally:
        hot.close()


def look(settings: Settings) -> Iterator[Check]:
    """A check of each kind of part."""
    heard = signs(settings)
    if heard is None:
        yield fail("workers", "Redis cannot be asked for their signs of life", to_do="mend Redis first")
        return
    for name in queue.QUEUES:
        to_do = f"start one: `memory worker --queue {name}`, or everything with `memory up`"
        yield _process(f"queue {name}", heard[life.worker_of(name)], to_do=to_do)
    # The finder and Beat find the same work: while one of them lives, the other may be absent.
    is_work_found = bool(heard[life.FINDER].living or heard[life.BEAT].living)
    for kind in (life.FINDER, life.BEAT):
        to_do = f"start one: `memory {kind}`; the finder and Beat find the same work, and one is required"
        yield _process(
            kind,
            heard[kind],
            to_do=to_do,
            if_absent=State.OK if is_work_found else State.FAIL,
            if_silent=State.WARN if is_work_found else State.FAIL,
        )
    # An application that records through the Python facade runs no API.
    if not heard[life.API].is_absent:
        yield _process("api", heard[life.API], to_do="start it: `memory serve`")


def _process(
    name: str,
    heard: Heard,
    *,
    to_do: str,
    if_absent: State = State.FAIL,
    if_silent: State = State.FAIL,
) -> Check:
    if heard.is_absent:
        return Check(name, if_absent, "none is heard", to_do="" if if_absent is State.OK else to_do)
    silence = ""
    if heard.silent:
        instances = ", ".join(sign.instance for sign in heard.silent)
        silence = f"{instances} silent for {heard.silent[0].age_seconds:.0f} s"
    if heard.is_silent:
        to_do = "see whether it hangs or was killed, and start it again"
        return Check(name, if_silent, silence, to_do=to_do)
    count = _count(heard.living, "worker" if name.startswith("queue") else name)
    if silence:
        to_do = "see whether it hangs; one that was killed is forgotten after ten minutes"
        return warn(name, f"{count}; {silence}", to_do=to_do)
    return ok(name, count)


def _count(signs: Sequence[Sign], noun: str) -> str:
    count = f"{len(signs)} {noun}" if len(signs) == 1 else f"{len(signs)} {noun}s"
    tasks = sum(sign.tasks for sign in signs)
    return f"{count}, {tasks} tasks in hand" if tasks else count
