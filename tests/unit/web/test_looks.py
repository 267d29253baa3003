"""Looks at the system are shared by all who ask meanwhile."""

from __future__ import annotations

import asyncio
from threading import Event

from memory_app.ops.public_checks import Looks


def test_who_asks_while_a_look_is_under_way_shares_it_and_who_asks_later_has_a_new_one() -> None:
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
