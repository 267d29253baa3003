"""Places for calls are fair between tenants."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack

import pytest
from counts import count

from memory_app.errors import RateLimited, Transient
from memory_app.web.places import InFlight, Places

GREEDY, MODEST, THIRD = 1, 2, 3


def test_the_reserved_places_stay_free_for_another_tenant() -> None:
    async def main() -> None:
        places = Places(8, patience_seconds=0)
        async with AsyncExitStack() as held:
            for _ in range(6):
                await held.enter_async_context(places.held(GREEDY))
            with pytest.raises(Transient):
                await held.enter_async_context(places.held(GREEDY))
            await held.enter_async_context(places.held(MODEST))
            with pytest.raises(Transient):
                await held.enter_async_context(places.held(MODEST))
            await held.enter_async_context(places.held(THIRD))
        async with places.held(GREEDY):
            pass

    asyncio.run(main())


def test_a_wait_is_timed_and_one_in_vain_is_counted() -> None:
    async def main() -> None:
        places = Places(1, patience_seconds=0)
        async with places.held(GREEDY):
            with pytest.raises(Transient):
                async with places.held(MODEST):
                    pass

    waits, refusals = count("memory_place_seconds_count"), count("memory_limited_total", limit="places")

    asyncio.run(main())

    assert count("memory_place_seconds_count") == waits + 2
    assert count("memory_limited_total", limit="places") == refusals + 1


def test_who_waits_is_served_in_turn_by_tenant() -> None:
    async def main() -> list[int]:
        places = Places(1, patience_seconds=60)
        served: list[int] = []

        async def call(tenant: int) -> None:
            async with places.held(tenant):
                served.append(tenant)
                await asyncio.sleep(0)

        async with places.held(THIRD):
            calls = [asyncio.ensure_future(call(tenant)) for tenant in (GREEDY, GREEDY, GREEDY, MODEST)]
            await asyncio.sleep(0)
        await asyncio.gather(*calls)
        return served

    assert asyncio.run(main()) == [GREEDY, MODEST, GREEDY, GREEDY]


def test_who_gives_up_waiting_takes_no_place_with_him() -> None:
    async def main() -> None:
        places = Places(1, patience_seconds=60)
        async with places.held(GREEDY):
            waiting = [asyncio.ensure_future(places.held(MODEST).__aenter__()) for _ in range(3)]
            await asyncio.sleep(0)
            for call in waiting:
                call.cancel()
            await asyncio.wait(waiting)
        async with asyncio.timeout(10), places.held(THIRD):
            pass

    asyncio.run(main())


def test_a_place_granted_to_a_cancelled_call_goes_to_the_next() -> None:
    async def main() -> None:
        places = Places(1, patience_seconds=60)
        async with places.held(GREEDY):
            first = asyncio.ensure_future(places.held(MODEST).__aenter__())
            await asyncio.sleep(0)
        first.cancel()  # Granted, and not yet awake.
        await asyncio.wait([first])
        async with asyncio.timeout(10), places.held(THIRD):
            pass

    asyncio.run(main())


def test_a_tenant_above_its_request_limit_is_refused_and_others_are_not() -> None:
    in_flight = InFlight(2)
    with ExitStack() as counted:
        counted.enter_context(in_flight.counted(GREEDY))
        counted.enter_context(in_flight.counted(GREEDY))
        with pytest.raises(RateLimited, match="2 requests"):
            counted.enter_context(in_flight.counted(GREEDY))
        counted.enter_context(in_flight.counted(MODEST))
    with in_flight.counted(GREEDY):
        pass
