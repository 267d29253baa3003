from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.language.budget import allocate, count_tokens
from memory_app.records.layout import LAYOUT

# What cl100k and Qwen make of each text, whichever is more.
KNOWN_COUNTS = {
    "hello world this is a test": 6,
    "2025-03-01 10:00": 16,
    '<memory tier="facts" id="1a2b3c4d">Ana likes tea</memory>': 21,
    "[RELEVANT MEMORIES]": 7,
    "Привет, как дела?": 8,
    "日本語のテキスト": 8,
    "สวัสดีครับ": 9,
    "नमस्ते दुनिया": 13,
    "昨天晚上我们和朋友在一家新餐厅见面，聊了很久关于搬到上海的事情。我女儿对花生过敏，请记住。": 59,
    "어제 저녁에 새로운 식당에서 친구들을 만나서 부산으로 이사하는 것에 대해 오랫동안 이야기했습니다.": 47,
    "Wczoraj wieczorem spotkaliśmy się z Zbigniewem w Szczecinie i rozmawialiśmy.": 31,
    "PLEASE REMEMBER THAT I AM ALLERGIC TO PEANUTS AND SHELLFISH": 20,
    "😀👍": 5,
}


@pytest.mark.parametrize(("text", "known"), KNOWN_COUNTS.items())
def test_the_estimate_is_not_below_what_tokenisers_count(text, known):
    assert known <= count_tokens(text) <= 2 * known + 8


def test_no_text_costs_nothing():
    assert count_tokens("") == 0


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n"), min_size=1), min_size=1))
def test_a_text_costs_what_its_lines_cost(lines):
    assert count_tokens("\n".join(lines)) == sum(count_tokens(line) for line in lines)


@given(st.text())
def test_any_text_can_be_counted(text):
    assert 0 <= count_tokens(text) <= 2 + 5 * len(text)


# --- sharing out --------------------------------------------------------------------------------------------


@st.composite
def wishes(draw):
    count = draw(st.integers(0, 8))
    weights = draw(st.lists(st.integers(0, 50), min_size=count, max_size=count))
    total = max(sum(weights), 1)
    demands = draw(st.lists(st.integers(0, 500), min_size=count, max_size=count))
    floors = [draw(st.integers(0, demand)) for demand in demands]
    return [weight / total for weight in weights], demands, floors


@given(wishes(), st.integers(0, 2_000))
def test_no_place_gets_more_than_its_demand_nor_all_more_than_the_budget(wish, budget):
    shares, demands, floors = wish
    granted = allocate(shares, demands, budget, floors=floors)
    assert all(0 <= grant <= demand for grant, demand in zip(granted, demands, strict=True))
    assert sum(granted) <= budget


@given(wishes(), st.integers(0, 2_000))
def test_nothing_is_left_over_while_somebody_is_in_want(wish, budget):
    shares, demands, floors = wish
    assert sum(allocate(shares, demands, budget, floors=floors)) == min(sum(demands), budget)


@given(wishes(), st.integers(0, 2_000))
def test_floors_that_fit_together_are_all_granted(wish, budget):
    shares, demands, floors = wish
    granted = allocate(shares, demands, budget, floors=floors)
    if sum(floors) <= budget:
        assert all(grant >= floor for grant, floor in zip(granted, floors, strict=True))


def test_each_gets_its_share_when_all_want_more():
    assert allocate([0.5, 0.3, 0.2], [900, 900, 900], 100) == [50, 30, 20]


def test_what_one_leaves_unused_flows_on_to_the_next():
    assert allocate([0.5, 0.3, 0.2], [10, 900, 900], 100) == [10, 70, 20]


def test_what_the_last_leaves_unused_goes_back_to_the_first_in_want():
    assert allocate([0.5, 0.3, 0.2], [900, 900, 0], 100) == [70, 30, 0]


def test_a_floor_comes_out_of_the_others_share():
    assert allocate([0.1, 0.9], [80, 900], 100, floors=[80, 0]) == [80, 20]


def test_a_floor_that_does_not_fit_is_not_granted():
    assert allocate([0.1, 0.9], [200, 900], 100, floors=[200, 0]) == [10, 90]


def test_the_shares_of_the_sections_add_up_to_one():
    assert sum(place.share for place in LAYOUT) == pytest.approx(1)
