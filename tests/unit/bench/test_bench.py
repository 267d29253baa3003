"""Measurements: labelled conversations are read as their formats mean them, and figures are what they are called."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_app.bench import beam, locomo, longmemeval, textbook
from memory_app.bench.context import is_shown
from memory_app.bench.figures import mean_figures, rank_figures, time_figures
from memory_app.bench.prose import messages, statements
from memory_app.errors import InvalidInput
from memory_app.records.records import Role


def write_locomo(folder: Path, *questions: dict[str, Any]) -> Path:
    """One conversation of two sessions, the second dated but empty."""
    said = [
        {"speaker": "Ines", "dia_id": "D1:1", "text": "I painted the shed."},
        {"speaker": "Tom", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a photo of a red shed"},
    ]
    conversation = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": said,
        "session_2_date_time": "9:00 am on 9 May, 2023",
    }
    path = folder / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "one", "conversation": conversation, "qa": list(questions)}]))
    return path


def ask(evidence: list[str], category: int = 4) -> dict[str, Any]:
    return {"question": "What colour is the shed?", "category": category, "evidence": evidence}


def test_a_picture_belongs_to_what_was_said_and_both_speakers_are_users(tmp_path: Path) -> None:
    (conversation,) = locomo.load(write_locomo(tmp_path))

    (session,) = conversation.sessions
    first, second = session.turns
    assert (first.role, first.speaker, second.role, second.speaker) == (Role.USER, "Ines", Role.USER, "Tom")
    assert second.text == "Look! … [picture: a photo of a red shed]"
    assert first.at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert second.at > first.at


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["D8:6; D9:17"], {"D8:6", "D9:17"}),
        (["D:11:26"], {"D11:26"}),
        (["D08:6"], {"D8:6"}),
        (["D"], set()),
        (["D99:1"], set()),
    ],
)
def test_evidence_is_split_and_mended_where_clear_and_left_out_where_not(
    given: list[str], found: set[str]
) -> None:
    known = frozenset({"D8:6", "D9:17", "D11:26"})

    assert locomo.evidence_ids(given, known) == found


def test_questions_without_evidence_are_skipped_and_adversarial_apart(tmp_path: Path) -> None:
    (conversation,) = locomo.load(write_locomo(tmp_path, ask([]), ask(["D1:2"]), ask(["D1:2"], category=5)))

    assert [(q.category, q.apart) for q in conversation.questions] == [
        ("single-hop", False),
        ("adversarial", True),
    ]


def test_a_batch_is_a_session_and_source_ids_are_found_however_deep(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "How do I bake? ->-> 1,1"},
        {"role": "assistant", "id": 1, "content": "With flour."},
    ]
    batch = {"batch_number": 1, "time_anchor": "March-15-2024", "turns": [messages]}
    questions = {
        "update": [{"question": "What with?", "source_chat_ids": {"old": [1], "new": [[0]]}}],
        "abstention": [{"question": "And salt?"}],
    }
    (tmp_path / "3-chat.json").write_text(json.dumps([batch]))
    (tmp_path / "3-probing_questions.json").write_text(json.dumps(questions))

    (conversation,) = beam.load(tmp_path)

    assert [turn.text for turn in conversation.sessions[0].turns] == ["How do I bake?", "With flour."]
    assert [(q.category, q.evidence) for q in conversation.questions] == [("update", {"0", "1"})]


@pytest.mark.parametrize("content", ["{", "{}", '[{"qa": []}]'])
def test_a_file_that_is_something_else_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)

    with pytest.raises(InvalidInput, match=r"other\.json"):
        locomo.load(path)


def test_a_folder_without_chats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no N-chat\.json"):
        beam.load(tmp_path)


def write_longmemeval(folder: Path, *samples: dict[str, Any]) -> Path:
    sample = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which degree do I have?",
        "answer": "biology",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["s1", "s2", "s1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00", "2023/05/22 (Mon) 11:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I have a degree in biology.", "has_answer": True},
                {"role": "assistant", "content": "Nice."},
            ],
            [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": " "}],
            [],
        ],
        "answer_session_ids": ["s1"],
    }
    path = folder / "longmemeval.json"
    path.write_text(json.dumps([{**sample, **changes} for changes in samples]))
    return path


def test_each_question_of_longmemeval_has_a_history_of_its_own(tmp_path: Path) -> None:
    unmarked = [[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], [], []]
    marked, whole, never = longmemeval.load(
        write_longmemeval(
            tmp_path,
            {},
            {"question_id": "q2", "haystack_sessions": unmarked},
            {"question_id": "q3_abs"},
            {"question_id": "q4", "answer_session_ids": []},
        )
    )

    first, second = marked.sessions
    assert [turn.role for turn in first.turns] == [Role.USER, Role.ASSISTANT]
    assert first.turns[0].at == datetime(2023, 5, 20, 2, 21, tzinfo=UTC)
    assert [turn.text for turn in second.turns] == ["Hello."]
    assert marked.questions[0].evidence == {first.turns[0].id}
    assert whole.questions[0].evidence == {turn.id for turn in whole.sessions[0].turns}
    assert [c.questions[0].apart for c in (marked, whole, never)] == [False, False, True]


@pytest.mark.parametrize("changes", [{"haystack_dates": ["yesterday"] * 3}, {"haystack_sessions": [[]]}])
def test_what_is_not_longmemeval_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"longmemeval\.json: not LongMemEval"):
        longmemeval.load(write_longmemeval(tmp_path, changes))


LONG_TURN = (
    "We met at the station. " * 10
    + "The key is under the blue pot beside the door, as it always was in those years."
)


@pytest.mark.parametrize(
    ("turn", "line", "shown"),
    [
        ("I painted the shed.", "[2023-05-08 13:56] Ines: I painted the shed.", True),
        ("I painted\nthe  shed", "Ines: I painted the shed.", True),
        ("I painted the shed.", "[2023-05-08 13:56] Ines: I painted …", False),
        (LONG_TURN, "- [2023-05-08 13:56] Ines: … " + LONG_TURN[-80:], True),
        (LONG_TURN, f"Ines: {LONG_TURN[:70]}…", True),
        (LONG_TURN, f"Ines: {LONG_TURN[:30]}…", False),
        (LONG_TURN, f"Ines: {LONG_TURN[:70]}", False),
    ],
)
def test_a_turn_is_shown_whole_or_by_a_passage(turn: str, line: str, shown: bool) -> None:
    assert is_shown(turn, ["[SESSION]", line]) is shown


def test_figures_of_a_ranking_with_one_of_two_hits_in_third_place() -> None:
    figures = rank_figures(["a", "b", "x", "c"], {"x", "y"})

    assert (figures.recall_at_5, figures.mrr) == (0.5, pytest.approx(1 / 3))
    assert figures.ndcg_at_10 == pytest.approx(0.5 / (1 + 0.63093), abs=1e-4)


def test_a_perfect_ranking_scores_one_and_a_miss_nothing() -> None:
    perfect, miss = rank_figures(["x"], {"x"}), rank_figures(["a"], {"x"})

    assert (perfect.recall_at_5, perfect.ndcg_at_10, perfect.mrr) == (1, 1, 1)
    assert (miss.recall_at_20, miss.ndcg_at_10, miss.mrr) == (0, 0, 0)
    assert mean_figures([perfect, miss]).recall_at_10 == 0.5
    assert mean_figures([]).questions == 0


def test_a_turn_of_the_right_session_counts_for_the_session() -> None:
    sessions = {"a": "monday", "b": "monday", "x": "monday", "c": "sunday"}

    near = rank_figures(["a", "x"], {"x"}, sessions=sessions)
    assert (near.hit_at_1, near.session_hit_at_5) == (0, 1)
    far = rank_figures(["c", "c", "c", "x"], {"x"}, sessions={**sessions, "x": "sunday"})
    assert (far.hit_at_1, far.session_hit_at_5) == (0, 1)
    assert rank_figures(["c"], {"x"}, sessions=sessions).session_hit_at_5 == 0
    assert rank_figures(["x", "c"], {"x"}).hit_at_1 == 1


def test_recall_counts_only_up_to_its_cut() -> None:
    figures = rank_figures([*"abcdefghijk", "x"], {"x"})

    assert (figures.recall_at_5, figures.recall_at_10, figures.recall_at_20) == (0, 0, 1)


def test_percentiles_are_times_that_occurred() -> None:
    figures = time_figures([place / 1000 for place in range(1, 101)])

    assert (figures.p50_ms, figures.p95_ms, figures.p99_ms, figures.most_ms) == (50, 95, 99, 100)


def test_synthetic_texts_are_equal_for_a_seed_and_repeat_no_statement() -> None:
    assert list(messages(20, seed=1)) == list(messages(20, seed=1)) != list(messages(20, seed=2))
    assert len(set(statements(500, seed=1))) == 500


def test_the_textbook_prefers_rare_words_and_short_texts() -> None:
    texts = [
        ("a", "the dog sleeps"),
        ("b", "the cat and the bird"),
        ("c", "the dog and the very old cat"),
        ("d", ""),
    ]
    collection = textbook.collected(texts)

    assert textbook.best(collection, "bird", limit=2) == ["b", "a"]
    assert textbook.best(collection, "a DOG?", limit=2) == ["a", "c"]
    assert textbook.best(collection, "", limit=9) == ["a", "b", "c", "d"]
    # by hand: idf = ln(1 + (4 - 1 + 0.5) / (1 + 0.5)), of 5 words where 3.75 are usual
    assert textbook._score(collection.counts[1], {"bird": math.log1p(3.5 / 1.5)}, 3.75) == pytest.approx(
        math.log1p(3.5 / 1.5) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 5 / 3.75))
    )
