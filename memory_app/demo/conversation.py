"""The conversation of the demo: Mira talks to Ada twice, three weeks apart, and some of what she says changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

AGENT, USER = "Ada", "Mira"
QUESTION = "What could Bruno and I do near home this weekend?"

TURN_PACE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Meeting:
    """One session: how many days ago it began, and (role, words) in order."""

    name: str
    days_ago: int
    turns: tuple[tuple[str, str], ...]


MEETINGS = (
    Meeting(
        "first-chat",
        22,
        (
            ("user", "Hi Ada! My name is Mira. I live in Porto and I work as a nurse."),
            ("assistant", "Nice to meet you, Mira. What do you do after a long shift?"),
            ("user", "I usually walk along the river. I have a dog called Bruno, he is a beagle."),
            ("assistant", "A beagle by the river sounds lively. Does he behave?"),
            ("user", "Not at all! Yesterday I took Bruno to a dog school for the first time."),
            ("assistant", "How did the two of you do?"),
            (
                "user",
                "Better than I feared. I love bouldering. I am allergic to peanuts, so no trail mix.",
            ),
            ("assistant", "No peanuts, understood. How often do you climb?"),
            ("user", "Every Tuesday evening. My sister Lena comes along, she works at a bakery."),
            ("assistant", "Climbing and fresh bread, that is a good evening."),
            ("user", "I am planning to run a half marathon next year."),
            ("assistant", "That gives you time to build up slowly. Shall I remind you to rest?"),
            ("user", "Thanks!"),
        ),
    ),
    Meeting(
        "second-chat",
        1,
        (
            ("user", "Big news, Ada: I moved to Lisbon last week!"),
            ("assistant", "Congratulations! How does Bruno like it?"),
            ("user", "He loves it. Yesterday I went to a dog park in Lisbon with Bruno."),
            ("assistant", "Lucky Bruno. And the hospital, do you miss it?"),
            ("user", "A bit. I work as a physiotherapist at Clinica do Mar now."),
            ("assistant", "A new city and a new job. What about the half marathon?"),
            ("user", "I hurt my knee, so I am planning to swim twice a week instead."),
            ("assistant", "Swimming is kind to knees. Does Lena visit you?"),
            ("user", "Yes, she is coming next month. My favourite food is sourdough bread."),
            ("assistant", "Then Lisbon will smell of bread soon."),
            ("user", "I prefer short answers in the morning, by the way."),
            ("assistant", "Noted. Short it is."),
        ),
    ),
)
