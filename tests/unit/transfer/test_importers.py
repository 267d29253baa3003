"""Files of other programs: told by their shape, read with dates, speakers and order, and what is left out named."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from zoneinfo import ZoneInfo

import pytest
from exports import (
    CHATGPT,
    CLAUDE,
    EXPORTS,
    MEM0,
    OPENAI,
    SILLYTAVERN,
    WHATSAPP_TEXT,
    Export,
    Said,
    at,
    chatgpt_conversation,
    zipped,
)

from memory_app.errors import InvalidInput
from memory_app.records.records import Origin, Role
from memory_app.transfer.import_source import Content
from memory_app.transfer.importers.detection import FORMATS
from memory_app.transfer.importers.plan import Planned, SessionTurn, planned
from memory_app.transfer.importers.records import DateOrder, Memory, Omission, Options
from memory_app.transfer.importers.survey import check, survey


def options_of(export: Export) -> Options:
    return Options(speakers={name: Role(role) for name, role in (export.speakers or {}).items()})


def read(content: bytes, options: Options | None = None, *, format: str | None = None) -> list[Planned]:
    return list(planned(Content(content), options or Options(), format=format)[1])


def turns_of(items: list[Planned]) -> list[SessionTurn]:
    return [item for item in items if isinstance(item, SessionTurn)]


def said(item: SessionTurn) -> Said:
    return Said(item.turn.role.value, item.turn.text, item.turn.at, item.turn.speaker)


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS.keys())
def test_what_comes_in_is_what_the_file_holds(export: Export) -> None:
    format, items = planned(Content(export.content), options_of(export))
    sessions: dict[str, list[Said]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    statements = []
    for item in items:
        if isinstance(item, SessionTurn):
            sessions[item.session].append(said(item))
        elif isinstance(item, Memory):
            statements.append(item.statement)
        else:
            left_out[item.reason] += 1
    assert format == export.format
    # A session without an id in the file gets a name of its own.
    named = {name if name in export.sessions else None: tuple(talk) for name, talk in sessions.items()}
    assert named == export.sessions
    assert tuple(statement.text for statement in statements) == export.statements
    assert all(statement.origin is Origin.IMPORTED and statement.source == format for statement in statements)
    assert left_out == Counter(export.left_out)


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS.keys())
def test_the_report_counts_what_comes_in(export: Export) -> None:
    report = survey(Content(export.content), options_of(export))
    talks = {talk.session if talk.session in export.sessions else None: talk for talk in report.conversations}
    assert talks.keys() == export.sessions.keys()
    for name, messages in export.sessions.items():
        dates = [message.at for message in messages if message.at is not None]
        speakers = Counter((message.speaker, message.role) for message in messages)
        assert talks[name].turns == len(messages)
        assert (talks[name].first_at, talks[name].last_at) == (
            min(dates, default=None),
            max(dates, default=None),
        )
        assert {(each.name, each.role): each.turns for each in talks[name].speakers} == speakers
    assert report.memories == len(export.statements)
    assert report.left_out == export.left_out
    assert sum(report.left_out.values()) == len(report.places)
    assert report.missing == ()


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS.keys())
def test_a_second_reading_gives_the_same_keys_and_no_two_alike(export: Export) -> None:
    first, second = (turns_of(read(export.content, options_of(export))) for _ in range(2))
    keys = [item.turn.idempotency_key for item in first]
    assert keys == [item.turn.idempotency_key for item in second]
    assert len(set(keys)) == len(keys)


def test_a_chat_that_has_grown_keeps_the_keys_of_what_was_there() -> None:
    before = turns_of(read(WHATSAPP_TEXT.encode()))
    after = turns_of(read((WHATSAPP_TEXT + "01/01/2025, 09:00 - Ben: Nice!\n").encode()))
    assert [item.turn.idempotency_key for item in after[: len(before)]] == [
        item.turn.idempotency_key for item in before
    ]
    assert after[-1].turn.idempotency_key not in {item.turn.idempotency_key for item in before}
    assert {item.session for item in after} == {item.session for item in before}


def test_roles_and_zones_told_otherwise_do_not_double_a_chat() -> None:
    plain = turns_of(read(WHATSAPP_TEXT.encode()))
    other = turns_of(
        read(
            WHATSAPP_TEXT.encode(),
            Options(speakers={"Ben": Role.USER}, is_group=True, date_order=DateOrder.DAY_FIRST),
        )
    )
    assert [item.turn.idempotency_key for item in other] == [item.turn.idempotency_key for item in plain]


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("12/31/24, 9:41 PM - Anna: hi", "2024-12-31T21:41:00"),
        ("12/31/24, 9:41\u202fPM - Anna: hi", "2024-12-31T21:41:00"),
        ("31/12/2024, 21:41 - Anna: hi", "2024-12-31T21:41:00"),
        ("31.12.24, 21:41 - Anna: hi", "2024-12-31T21:41:00"),
        ("31/12/2024 à 21:41 - Anna: hi", "2024-12-31T21:41:00"),
        ("31/12/24 21:41 - Anna: hi", "2024-12-31T21:41:00"),
        ("31/12/24, 9:41 p. m. - Anna: hi", "2024-12-31T21:41:00"),
        ("31/12/24, 12:05 a.m. - Anna: hi", "2024-12-31T00:05:00"),
        ("2024-12-31, 21:41 - Anna: hi", "2024-12-31T21:41:00"),
        ("2024/12/31, 21:41 - Anna: hi", "2024-12-31T21:41:00"),
        ("[31/12/2024, 21:41:05] Anna: hi", "2024-12-31T21:41:05"),
        ("\u200e[31.12.24, 21:41:05] \u202aAnna\u202c: hi", "2024-12-31T21:41:05"),
        ("[12/31/24, 9:41:05\u202fPM] Anna: hi", "2024-12-31T21:41:05"),
        ("[31.12.2024 klo 21.41.05] Anna: hi", "2024-12-31T21:41:05"),
    ],
)
def test_chat_lines_of_many_phones_are_read(line: str, time: str) -> None:
    (item,) = turns_of(read(line.encode()))
    assert said(item) == Said("assistant", "hi", at(time), "Anna")


def test_lines_of_the_program_in_a_chat_of_an_iphone_are_left_out() -> None:
    text = (
        "[31/12/2024, 21:40:00] Cooks: \u200eMessages and calls are end-to-end encrypted.\n"
        "\u200e[31/12/2024, 21:41:00] Anna: \u200eimage omitted\n"
        "\u200e[31/12/2024, 21:42:00] Anna: \u200e<attached: 0001-PHOTO.jpg>\n"
        "[31/12/2024, 21:43:00] Anna: soup \u200e<This message was edited>\n"
        "[31/12/2024, 21:44:00] Ben: I like <b>bread</b>\n"
        '31/12/2024, 21:45 - Anna changed the subject from "A: b" to "C"\n'
    )
    items = read(text.encode())
    assert [item.turn.text for item in turns_of(items)] == ["soup", "I like <b>bread</b>"]
    assert [item.reason for item in items if isinstance(item, Omission)] == [
        "written by the program",
        "media without text",
        "media without text",
        "written by the program",
    ]


def test_the_order_of_day_and_month_is_told_by_later_dates() -> None:
    # Either order fits each date, and with the day first the second line would come before the first.
    items = turns_of(read(b"03/04/2025, 10:00 - A: one\n04/03/2025, 10:00 - A: two\n"))
    assert [item.turn.at for item in items] == [at("2025-03-04T10:00:00"), at("2025-04-03T10:00:00")]


def test_dates_that_can_be_read_either_way_are_asked_for() -> None:
    text = b"03/04/2025, 10:00 - Anna: hi\n"
    with pytest.raises(InvalidInput, match="either way") as raised:
        read(text)
    assert raised.value.field == "date_order"
    (item,) = turns_of(read(text, Options(date_order=DateOrder.MONTH_FIRST)))
    assert item.turn.at == at("2025-03-04T10:00:00")


def test_dates_without_a_zone_are_read_in_the_one_that_is_given() -> None:
    (item,) = turns_of(read(b"31/12/2024, 21:41 - Anna: hi", Options(time_zone=ZoneInfo("Asia/Tokyo"))))
    assert item.turn.at is not None
    assert item.turn.at.isoformat() == "2024-12-31T21:41:00+09:00"


def test_people_in_a_chat_are_users_of_their_own_in_a_room_only() -> None:
    room = turns_of(read(WHATSAPP_TEXT.encode(), Options(is_group=True)))
    assert {(item.turn.speaker, item.turn.role) for item in room} == {("Anna", Role.USER), ("Ben", Role.USER)}
    report = survey(Content(WHATSAPP_TEXT.encode()), Options())
    assert [problem.partition(":")[0] for problem in report.missing] == ["speakers"]
    with pytest.raises(InvalidInput, match="who of those who speak is the user") as raised:
        check(report)
    assert raised.value.field == "speakers"


def test_a_name_that_speaks_nowhere_is_a_mistake() -> None:
    report = survey(
        Content(WHATSAPP_TEXT.encode()), Options(speakers={"Anna": Role.USER, "Bn": Role.ASSISTANT})
    )
    with pytest.raises(InvalidInput, match="1 of the names speak nowhere"):
        check(report)


def test_what_several_people_own_comes_in_for_one_of_them() -> None:
    memories = [{"memory": f"Fact {user}", "user_id": user, "id": user} for user in ("a", "b")]
    content = json.dumps(memories).encode()
    with pytest.raises(InvalidInput, match="several people") as raised:
        check(survey(Content(content), Options()))
    assert raised.value.field == "owner"
    report = survey(Content(content), Options(owner="b"))
    check(report)
    assert (report.memories, report.left_out) == (1, {"of another person": 1})


@pytest.mark.parametrize("cut", [60, 600, 3_000])
def test_an_export_that_was_cut_says_where(cut: int) -> None:
    with pytest.raises(
        InvalidInput, match=r"\[[01]\]: ends in the middle.*the file was cut; nothing was imported"
    ):
        read(CHATGPT.content[:cut])


def test_lines_that_were_cut_say_where() -> None:
    with pytest.raises(InvalidInput, match=r"line 5: ends in the middle; the file was cut"):
        read(SILLYTAVERN.content[:-20])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"Dear diary,\nnothing happened.\n", "text without lines of a chat"),
        (b'[{"colour": "red", "size": 3}]', "a list of objects with colour, size"),
        (b'{"colour": "red"}', "an object with colour"),
        (b"[1, 2", "which is a list"),
        (b'[{"mapping": ', "ends in the middle"),
        (b'[{"mapping": 1], "title": "none"}]', r"\[0\]: is not JSON, around character 1"),
        (b"[" * 200_000, "is not JSON that can be read"),
    ],
)
def test_files_of_no_known_form_are_told_by_what_is_wrong(content: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read(content)


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_of_another_format_says_what_is_missing(format: str) -> None:
    other = MEM0 if format not in ("mem0", "letta") else CLAUDE
    with pytest.raises(
        InvalidInput, match=f"of the format {format}, which has|begins with no date|line 1: is not JSON"
    ) as raised:
        read(other.content, format=format)
    assert raised.value.field in ("file", "format")


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="format: one of chatgpt, claude") as raised:
        read(b"[]", format="icq")
    assert raised.value.field == "format"


def test_conversations_of_one_file_do_not_share_a_session() -> None:
    with pytest.raises(InvalidInput, match="several conversations") as raised:
        read(CHATGPT.content, Options(session="one"))
    assert raised.value.field == "session"
    assert {item.session for item in turns_of(read(OPENAI.content, Options(session="one")))} == {"one"}


def test_lines_of_openai_messages_and_of_conversations_are_read() -> None:
    messages = [{"role": "user", "content": "I sail."}, {"role": "assistant", "content": "Where?"}]
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
    assert [item.turn.text for item in turns_of(read(lines))] == ["I sail.", "Where?"]
    talks = b"".join(json.dumps({"messages": messages[:count]}).encode() + b"\n" for count in (1, 2))
    assert [item.turn.text for item in turns_of(read(talks))] == ["I sail.", "I sail.", "Where?"]
    whole = json.dumps({"messages": messages, "model": "small"}).encode()
    assert [item.turn.text for item in turns_of(read(whole))] == ["I sail.", "Where?"]


def test_an_archive_is_read_as_the_files_in_it() -> None:
    halves = [json.dumps([chatgpt_conversation(id)]).encode() for id in ("c-1", "c-2")]
    packed = zipped(
        {"user.json": b"{}", "conversations-001.json": halves[1], "conversations-000.json": halves[0]}
    )
    assert [item.session for item in turns_of(read(packed))] == ["chatgpt-c-1"] * 2 + ["chatgpt-c-2"] * 2
    chat = zipped({"WhatsApp Chat with Ben/_chat.txt": WHATSAPP_TEXT.encode(), "IMG-1.jpg": b"x"})
    assert len(turns_of(read(chat))) == 4


def test_archives_that_are_damaged_or_hold_no_chats_are_refused() -> None:
    with pytest.raises(InvalidInput, match="without conversations"):
        read(zipped({"notes.txt": b"x"}))
    packed = zipped({"conversations.json": CHATGPT.content})
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(packed[:-30])
    damaged = packed.replace(b"Cirkewwa", b"Cirkewwo")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(damaged)


def test_a_tree_that_leads_in_a_circle_comes_to_an_end() -> None:
    talk = chatgpt_conversation()
    talk["mapping"]["sys"]["parent"] = "a2"
    assert len(turns_of(read(json.dumps([talk]).encode()))) == 2


def test_without_a_shown_branch_the_newest_answer_is_taken() -> None:
    talk = chatgpt_conversation()
    del talk["current_node"]
    assert [item.turn.text for item in turns_of(read(json.dumps([talk]).encode()))][1].startswith(
        "Every hour"
    )
