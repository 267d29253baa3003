"""Looks at the system are shared by all who ask meanwhile."""

from __future__ import annotations

import asyncio
from threading import Event

from memory_app.ops.public_checks import Looks


def test_callers_during_a_look_share_it_and_later_callers_start_another() -> None:
    looks = Looks()
    count = 0
    begun, end = Event(), Event()

    def look() -> int:
        nonlocal count
        count += 1
        begun.set()
        assert end.wait(60)
        return count

    async def main() -> None:
        asked = [asyncio.ensure_future(looks.see("a", look)) for _ in range(100)]
        while not begun.is_set():
            await asyncio.sleep(0)
        asked[0].cancel()
        asked.append(asyncio.ensure_future(looks.see("a", look)))
        other = asyncio.ensure_future(looks.see("b", lambda: 7))
        assert await other == 7
        end.set()
        assert {await one for one in asked[1:]} == {1}
        assert await looks.see("a", look) == 2

    asyncio.run(main())
    assert asyncio.run(looks.see("a", look)) == 3
