"""Case files of extraction: what a file must look like, and when a memory counts as what a case asks for."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from documentation import ROOT, blocks

from memory_app.bench import cases
from memory_app.bench.cases import Fact
from memory_app.bench.extraction import faults_of
from memory_app.bench.judgement import Kept, judge, says
from memory_app.errors import InvalidInput
from memory_app.records.records import Role

USER = "mira"
FOLDER = ROOT / "benchmarks" / "extraction"
LEAST_TURNS, LEAST_SILENT = 120, 40
LEAST_CHAT_TURNS, LEAST_SILENT_CHAT = 40, 12
"""A file of the second list is shorter where fewer people speak the language."""

FILES = [(path, LEAST_TURNS, LEAST_SILENT) for path in sorted(FOLDER.glob("*.toml"))]
CHAT_FILES = [
    (path, LEAST_CHAT_TURNS, LEAST_SILENT_CHAT) for path in sorted((FOLDER / "chat").glob("*.toml"))
]


def write(folder: Path, content: str) -> Path:
    path = folder / "en.toml"
    path.write_text(content, encoding="utf-8")
    return path


def load(folder: Path, chats: str) -> cases.CaseFile:
    (file,) = cases.load(write(folder, f'language = "en"\n{chats}'))
    return file


def turn(fields: str) -> str:
    """A chat of one turn with these fields besides its text."""
    return f'[[chat]]\ngroup = "x"\nturns = [{{ text = "a", {fields} }}]'


def memory(
    object: str | None,
    relation: str | None = "works_at",
    *,
    text: str = "",
    subject: str | None = USER,
    is_current: bool = True,
    turns: tuple[int, ...] = (0,),
    valid_from: datetime | None = None,
) -> Kept:
    return Kept(
        text or f"{subject} {relation} {object}.", subject, relation, object, is_current, turns, valid_from
    )


CORRECTION = """
[[chat]]
group = "correction"
at = 2026-01-08T23:30:00-05:00
turns = [
  { text = "I work at Acme.", keep = [{ relation = "works_at", object = "Acme", from = "2026-01-08" }] },
  { text = "Ah.", role = "assistant" },
  { text = "no wait, Apex", keep = [{ relation = "works_at", object = ["Apex", "Apex Ltd"] }] },
]
now = [{ relation = "works_at", object = "Apex" }]
not_now = [{ relation = "works_at", object = "Acme" }]
"""
JOKE = """
[[chat]]
group = "joke"
turns = [{ text = "Sure, I work for the queen", nothing = "joke", may = [{ relation = "likes", object = "tea" }] }]
"""


def test_the_example_of_the_documentation_is_a_case_file(tmp_path: Path) -> None:
    (example,) = [b.code for b in blocks(ROOT / "docs/extraction-cases.md") if b.language == "toml"]

    (file,) = cases.load(write(tmp_path, example))

    assert [chat.group for chat in file.chats] == ["correction", "joke"]


@pytest.mark.parametrize(
    ("path", "least", "least_silent"),
    [pytest.param(*file, id=str(file[0].relative_to(FOLDER))) for file in FILES + CHAT_FILES],
)
def test_the_case_files_of_the_project_are_whole(path: Path, least: int, least_silent: int) -> None:
    (file,) = cases.load(path)

    turns = [turn for chat in file.chats for turn in chat.turns if turn.role is Role.USER]
    assert file.language == path.stem
    assert len(turns) >= least
    assert sum(turn.nothing is not None for turn in turns) >= least_silent
    assert len({turn.text for turn in turns}) == len(turns)


def test_turns_follow_a_minute_apart_by_the_clock_of_the_speaker(tmp_path: Path) -> None:
    (chat,) = load(tmp_path, CORRECTION).chats

    first, reply, last = chat.turns
    assert (reply.role, reply.keep, reply.nothing) == (Role.ASSISTANT, (), None)
    assert last.at - first.at == 2 * cases.PACE
    assert first.at.isoformat() == "2026-01-08T23:30:00-05:00"
    assert last.keep[0].objects == ("Apex", "Apex Ltd")


@pytest.mark.parametrize(
    ("chats", "field", "message"),
    [
        ("", "chat", "Field required"),
        ('[[chat]]\ngroup = "x"\nturns = []', "chat[1].turns", "at least 1 item"),
        ('[[chat]]\nturns = [{ text = "a", nothing = "b" }]', "chat[1].group", "Field required"),
        (
            '[[chat]]\ngroup = "x"\nturns = [{ text = " ", nothing = "b" }]',
            "chat[1].turns[1].text",
            "pattern",
        ),
        (
            '[[chat]]\ngroup = "x"\nturns = [{ text = "a" }]',
            "chat[1].turns[1]",
            "either keep or nothing is required",
        ),
        (turn('nothing = "b", mood = 1'), "chat[1].turns[1].mood", "Extra inputs are not permitted"),
        (turn('nothing = "b", role = "tool"'), "chat[1].turns[1].role", "assistant"),
        (
            turn('keep = [{ relation = "eats_at", object = "b" }]'),
            "chat[1].turns[1].keep[1]",
            "'eats_at' is unknown",
        ),
        (
            turn('keep = [{ relation = "likes" }]'),
            "chat[1].turns[1].keep[1]",
            "an object is required beside a relation",
        ),
        (
            turn('keep = [{ words = ["b"], relation = "likes" }]'),
            "chat[1].turns[1].keep[1]",
            "either relation or words",
        ),
        (turn('keep = [{ words = ["b"], from = "March" }]'), "chat[1].turns[1].keep[1].from", "pattern"),
        (
            '[[chat]]\ngroup = "x"\nat = 2026-01-08T09:00:00\nturns = [{ text = "a", nothing = "b" }]',
            "chat[1].at",
            "timezone",
        ),
    ],
)
def test_a_fault_of_a_case_file_is_named(tmp_path: Path, chats: str, field: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        load(tmp_path, chats)

    assert error.value.field == field


def test_a_path_without_case_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no case files \(\*\.toml\)"):
        cases.load(tmp_path)
    with pytest.raises(InvalidInput, match=r"none\.toml: cannot be read"):
        cases.load(tmp_path / "none.toml")
    with pytest.raises(InvalidInput, match="is not TOML"):
        cases.load(write(tmp_path, "language = "))


@pytest.mark.parametrize(
    ("kept", "fact", "is_said"),
    [
        (memory("Acme"), Fact(relation="works_at", objects=("Acme",)), True),
        (memory("the Acme"), Fact(relation="works_at", objects=("Acme",)), True),
        (memory("acme with their boyfriend"), Fact(relation="works_at", objects=("Acme",)), False),
        (memory("Apex"), Fact(relation="works_at", objects=("Acme", "Apex")), True),
        (memory("Acme", "lives_in"), Fact(relation="works_at", objects=("Acme",)), False),
        (memory("nurse", "job_title"), Fact(relation="works_as", objects=("nurse",)), True),
        (memory("Acme", subject="Velma"), Fact(relation="works_at", objects=("Acme",)), False),
        (
            memory("Acme", subject="mira's wife Velma"),
            Fact(relation="works_at", objects=("Acme",), about="Velma"),
            True,
        ),
        (memory("Acme"), Fact(relation="works_at", objects=("Acme",), about="Velma"), False),
        (
            memory("alcohol", "does_not_drink"),
            Fact(relation="drinks", objects=("alcohol",), is_negated=True),
            True,
        ),
        (memory("alcohol", "drinks"), Fact(relation="drinks", objects=("alcohol",), is_negated=True), False),
        (memory("dog Rex", "no_longer_has"), Fact(relation="pet", objects=("Rex",), has_ended=True), True),
        (
            memory("blue", "favourite:colour"),
            Fact(relation="favourite", objects=("blue",), what=("colour",)),
            True,
        ),
        (
            memory("blue", "favourite:car"),
            Fact(relation="favourite", objects=("blue",), what=("colour",)),
            False,
        ),
        (
            memory("fly to Rome with Ines", "plans_to"),
            Fact(relation="plans_to", objects=("fly to Rome",)),
            True,
        ),
        (memory("stay at home", "plans_to"), Fact(relation="plans_to", objects=("fly to Rome",)), False),
        (
            memory("Kent to Rye", "cycled_from"),
            Fact(relation="did", objects=("cycle from Kent to Rye",)),
            True,
        ),
        (
            memory("fly to Rome", "no_longer_plans_to"),
            Fact(relation="plans_to", objects=("fly to Rome",)),
            False,
        ),
        (
            memory(None, None, text="The wifi password is on the fridge."),
            Fact(words=("wifi", "fridg")),
            True,
        ),
        (memory(None, None, text="The wifi is down."), Fact(words=("wifi", "fridg")), False),
        (memory("花生", "allergic_to"), Fact(relation="allergic_to", objects=("花生",)), True),
    ],
)
def test_a_memory_counts_where_it_says_the_fact_of_the_right_person(
    kept: Kept, fact: Fact, is_said: bool
) -> None:
    assert says(kept, fact, frozenset({USER})) is is_said


def test_of_several_speakers_each_is_told_by_the_name() -> None:
    fact = Fact(relation="works_at", objects=("Acme",), about="Bob")

    alone, several = frozenset({USER, "bob"}), frozenset({USER, "bob", "carla"})
    assert says(memory("Acme"), fact, alone)
    assert says(memory("Acme", subject="Bob"), fact, several)
    assert not says(memory("Acme"), fact, several)
    assert not says(memory("Acme", subject="Carla"), fact, several)


def test_a_chat_is_judged_by_facts_memories_and_states(tmp_path: Path) -> None:
    (chat,) = load(tmp_path, CORRECTION).chats
    said_at = chat.turns[0].at
    acme = memory("Acme", is_current=False, valid_from=said_at.astimezone(UTC))
    apex = memory("Apex", turns=(2,))

    right = judge(chat, [acme, apex], user=USER)
    assert [(e.is_kept, e.has_right_date) for e in right.expected] == [(True, True), (True, None)]
    assert all(judged.is_right for judged in right.judged)
    assert list(faults_of(right)) == []

    (empty,) = judge(chat, [], user=USER).states
    assert (empty.must_hold, empty.is_right) == (True, False)

    uncorrected = judge(chat, [memory("Acme", valid_from=datetime(2026, 2, 1, tzinfo=UTC))], user=USER)
    assert [fault["fault"] for fault in faults_of(uncorrected)] == [
        "date",
        "missing",
        "not held",
        "still held",
    ]


def test_a_memory_of_a_turn_that_gives_nothing_is_an_invention(tmp_path: Path) -> None:
    (chat,) = load(tmp_path, JOKE).chats

    (wrong, allowed) = judge(chat, [memory("queen"), memory("tea", "likes")], user=USER).judged
    assert (wrong.is_right, wrong.is_invention) == (False, True)
    assert allowed.is_right


def test_an_ending_is_kept_where_what_it_ends_was_closed(tmp_path: Path) -> None:
    chats = """
[[chat]]
group = "ending"
turns = [
  { text = "My dog is Rex.", keep = [{ relation = "pet", object = "Rex" }] },
  { text = "Rex died.", keep = [{ relation = "pet", object = "Rex", ended = true }] },
]
"""
    (chat,) = load(tmp_path, chats).chats

    def is_kept(*memories: Kept) -> bool:
        return judge(chat, memories, user=USER).expected[1].is_kept

    assert is_kept(memory("Rex", "has_pet", is_current=False))
    assert not is_kept(memory("Rex", "has_pet"))
    assert not is_kept()
