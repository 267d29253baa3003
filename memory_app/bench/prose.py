"""Made-up chat messages and statements: many, different, and the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES = _words("Ada Bruno Chen Dalia Emre Freya Goran Hana Igor Jana Kofi Lena Marek Nadia Omar Petra")
PLACES = _words(
    "Lisbon Porto Graz Ghent Tartu Cork Lyon Turin Malmö Brno Riga Bergen Split Cádiz Utrecht Basel"
)
THINGS = _words(
    "bicycle camera kayak guitar telescope drone tent keyboard microscope skateboard accordion oven loom"
)
SUBJECTS = _words(
    "gardening pottery chess astronomy baking cycling climbing jazz sailing drawing history swimming"
)
TEMPLATES = (
    "I moved to {place} and I work at {name} and Sons now.",
    "My sister {name} lives in {place}.",
    "I bought a {thing} for {n} euros in {place} yesterday.",
    "I started {subject} last month, {n} minutes a day.",
    "I really like {subject} but I don't like {subject2}.",
    "My dog is called {name}, he is {n} months old.",
    "Next week I travel to {place} with {name} for {n} days.",
    "Could you tell me how long it takes from {place} to {place2}?",
    "We talked about {subject} and {name} showed me a {thing}.",
    "The {thing} broke after {n} days, I have to take it back.",
    "Thanks, that helps a lot, {name} said the same about {subject}.",
    "It has been raining in {place} for {n} days, so I stayed in and read about {subject}.",
)


def messages(count: int, *, seed: int) -> Iterator[str]:
    """``count`` messages of 30 to 100 characters."""
    # An instance of its own: the module's is shared with whoever else draws from it.
    chance = random.Random(seed)
    for _ in range(count):
        place, place2 = chance.sample(PLACES, 2)
        subject, subject2 = chance.sample(SUBJECTS, 2)
        yield chance.choice(TEMPLATES).format(
            name=chance.choice(NAMES),
            place=place,
            place2=place2,
            subject=subject,
            subject2=subject2,
            thing=chance.choice(THINGS),
            n=chance.randint(2, 900),
        )


def statements(count: int, *, seed: int) -> Iterator[str]:
    """``count`` statements, no two alike."""
    # The number tells apart messages that chance made the same.
    for place, message in enumerate(messages(count, seed=seed)):
        yield f"On day {place}: {message}"
