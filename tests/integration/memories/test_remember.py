"""The one write path against the real store: every outcome, what is written beside it, and many writers at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import all_shards
import pytest
from embedders import ScriptedEmbedder, at_angles, failing
from hot_reads import cached_context
from queries import rows
from sqlalchemy import Engine, text

from memory_app.agents.rows import agents
from memory_app.errors import InvalidInput, NotFound, ProviderUnavailable, TooLarge
from memory_app.hot import cache
from memory_app.hot.cache import CachedContext
from memory_app.memories.remember import Remembered, remember
from memory_app.records.records import EmotionalState, Mention, NewTurn, Origin, Outcome, Role, Statement
from memory_app.records.scope import Scope
from memory_app.runtime import Runtime
from memory_app.turns.record import record

SCOPE = Scope("ada", "bob")
SESSION = Scope("ada", "bob", "s1")
WRITERS = 8
MEMORIES = "SELECT * FROM memories ORDER BY id"
SAME, MERGE, LINK, FAR = 5.0, 25.0, 40.0, 75.0
"""Angles in degrees whose cosines are 0.996, 0.906, 0.766 and 0.259."""


def fact(words: str, **fields: Any) -> Statement:
    return Statement(**{"kind": "fact", "text": words} | fields)


def home(city: str, **fields: Any) -> Statement:
    return fact(f"Bob lives in {city}.", subject="Bob", relation="lives_in", object=city, **fields)


def year(n: int) -> datetime:
    return datetime(n, 1, 1, tzinfo=UTC)


def current(owner: Engine) -> list[Any]:
    return rows(owner, "SELECT * FROM memories WHERE retired_at IS NULL AND valid_until IS NULL ORDER BY id")


def row(owner: Engine, memory_id: UUID) -> Any:
    (found,) = rows(owner, "SELECT * FROM memories WHERE id = :id", id=memory_id)
    return found


def links(owner: Engine, source: UUID, type: str) -> dict[UUID, float]:
    found = rows(
        owner,
        "SELECT target_id, weight FROM links WHERE source_id = :id AND type = :type",
        id=source,
        type=type,
    )
    return {one.target_id: one.weight for one in found}


def all_at_once(work: Callable[[int], Remembered]) -> list[Remembered]:
    together = Barrier(WRITERS)

    def run(n: int) -> Remembered:
        together.wait()
        return work(n)

    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(run, range(WRITERS)))


def assert_terms_equal_a_recount(owner: Engine) -> None:
    wanted: Counter[tuple[int, int]] = Counter()
    for scope_id, keywords in rows(owner, "SELECT scope_id, keywords::text FROM memories"):
        inside = keywords[1:].split("}")[0]
        wanted.update((scope_id, int(pair.split(":")[0])) for pair in inside.split(","))
        wanted[scope_id, 0] += 1
    counted = rows(owner, "SELECT scope_id, term, row_count FROM terms")
    assert {(one.scope_id, one.term): one.row_count for one in counted} == wanted


# --- the outcomes ---------------------------------------------------------------------------------------------


def test_something_new_is_inserted_with_the_defaults_of_its_kind(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    remembered = remember(
        runtime, tenant, SCOPE, statement=Statement("anchor", "They share a love of trains.")
    )
    assert (remembered.outcome, remembered.merged_count, remembered.notes) == (Outcome.INSERTED, 0, ())
    stored = row(owner, remembered.id)
    assert (stored.kind, stored.importance, stored.origin, stored.repeat_count) == (
        "anchor",
        6,
        "declared",
        1,
    )
    assert stored.confidence == pytest.approx(0.8)
    assert stored.embedding_model == runtime.embedder.model
    assert (stored.valid_until, stored.retired_at) == (None, None)


def test_everything_said_about_a_statement_is_stored(runtime: Runtime, tenant: int, owner: Engine) -> None:
    statement = fact(
        "Bob is afraid of flying.",
        subtype="friction",
        importance=8,
        tags=("travel", "fear"),
        pinned=True,
        emotional_state=EmotionalState("concern", 0.7),
        source="user:bob",
        mentions=(Mention("person", "Bob"), Mention("concept", "Flying")),
    )
    stored = row(owner, remember(runtime, tenant, SCOPE, statement=statement).id)
    assert (stored.subtype, stored.importance, stored.tags, stored.pinned) == (
        "friction",
        8,
        ["travel", "fear"],
        True,
    )
    assert stored.emotional_state["valence"] == "concern"
    assert stored.sources == ["user:bob"]
    mentioned = rows(owner, "SELECT e.key FROM mentions m JOIN entities e ON e.id = m.entity_id ORDER BY 1")
    assert [one.key for one in mentioned] == ["concept:flying", "person:bob"]


def test_the_same_statement_again_reinforces(runtime: Runtime, tenant: int, owner: Engine) -> None:
    first = remember(runtime, tenant, SCOPE, statement=fact("Bob likes tea."))
    again = remember(runtime, tenant, SCOPE, statement=fact("  bob LIKES tea!"))
    assert (again.outcome, again.id) == (Outcome.REINFORCED, first.id)
    assert row(owner, first.id).repeat_count == 2
    assert row(owner, first.id).text == "Bob likes tea."


def test_the_same_meaning_reinforces_but_other_numbers_stay_apart(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    angles = {"Bob owes Eve 5 euros.": 0, "Bob is owing Eve 5 euros.": SAME, "Bob owes Eve 7 euros.": 1.0}
    placed = replace(runtime, embedder=at_angles(angles))
    first = remember(placed, tenant, SCOPE, statement=fact("Bob owes Eve 5 euros."))
    assert remember(placed, tenant, SCOPE, statement=fact("Bob owes Eve 7 euros.")).outcome is Outcome.LINKED
    assert len(current(owner)) == 2
    again = remember(placed, tenant, SCOPE, statement=fact("Bob is owing Eve 5 euros."))
    assert again.outcome in (Outcome.REINFORCED, Outcome.MERGED)
    assert len(current(owner)) == 2
    assert row(owner, first.id).repeat_count >= 1


SHORT, LONG = "Bob enjoys walking.", "Bob really enjoys walking a lot."


def test_similar_statements_merge_into_a_new_row_with_the_old_as_parent(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    placed = replace(runtime, embedder=at_angles({SHORT: 0, LONG: MERGE}))
    (turn,) = record(placed, tenant, SESSION, [NewTurn(Role.USER, SHORT)])
    old = remember(
        placed,
        tenant,
        SCOPE,
        statement=fact(SHORT, tags=("a",), evidence=(turn.id,), mentions=(Mention("person", "Bob"),)),
    )
    merged = remember(placed, tenant, SCOPE, statement=fact(LONG, tags=("b",)))
    assert (merged.outcome, merged.merged_count) == (Outcome.MERGED, 1)
    (new,) = current(owner)
    assert (new.id, new.text, new.repeat_count) == (merged.id, LONG, 2)
    assert set(new.tags) == {"a", "b"}
    before = row(owner, old.id)
    assert (before.retired_reason, before.successor, before.text) == ("merged", merged.id, SHORT)
    (added,) = [one for one in rows(owner, MEMORIES) if one.successor == merged.id and one.id != old.id]
    assert (added.retired_reason, added.text, added.tags) == ("merged", LONG, ["b"])
    assert links(owner, merged.id, "derived_from") == {old.id: 1.0, added.id: 1.0}
    inherited = "SELECT turn_id FROM evidence WHERE memory_id = :id"
    assert [one.turn_id for one in rows(owner, inherited, id=merged.id)] == [turn.id]
    assert rows(owner, "SELECT FROM mentions WHERE memory_id = :id", id=merged.id)
    assert_terms_equal_a_recount(owner)


def test_a_merge_keeps_the_longest_text_with_its_own_vector(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    held: list[int] = []
    count = lambda _: held.append(runtime.engine.pool.checkedout())  # type: ignore[attr-defined]  # noqa: E731
    placed = replace(runtime, embedder=at_angles({SHORT: 0, LONG: MERGE}, before=count))
    old = remember(placed, tenant, SCOPE, statement=fact(LONG))
    merged = remember(placed, tenant, SCOPE, statement=fact(SHORT))
    assert merged.outcome is Outcome.MERGED
    (new,) = current(owner)
    assert new.text == LONG
    assert str(new.embedding) == str(row(owner, old.id).embedding)
    assert set(held) == {0}, "no connection is held while the embedder is called"


def test_a_merge_remembers_when_its_parents_were_last_confirmed(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    placed = replace(runtime, embedder=at_angles({SHORT: 0, LONG: MERGE}))
    remember(placed, tenant, SCOPE, statement=fact(SHORT, valid_from=year(2020)))
    remember(placed, tenant, SCOPE, statement=fact(SHORT, valid_from=year(2024)))
    remember(placed, tenant, SCOPE, statement=fact(LONG, valid_from=year(2022)))
    (new,) = current(owner)
    assert (new.valid_from, new.confirmed_at) == (year(2020), year(2024))


def test_related_statements_are_linked_with_their_cosine(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    placed = replace(runtime, embedder=at_angles({"Bob cooks Thai food.": 0, "Eve sings at weddings.": LINK}))
    first = remember(placed, tenant, SCOPE, statement=fact("Bob cooks Thai food."))
    second = remember(placed, tenant, SCOPE, statement=fact("Eve sings at weddings."))
    assert second.outcome is Outcome.LINKED
    assert links(owner, second.id, "similar_to") == {first.id: pytest.approx(0.766, abs=0.01)}


def test_a_chain_of_likenesses_never_becomes_one_row(runtime: Runtime, tenant: int, owner: Engine) -> None:
    # Sports is like cooking and cooking like pets, but sports and pets are not alike.
    texts = ["Bob plays padel.", "Bob bakes bread.", "Bob walks dogs.", "Bob sleeps late."]
    placed = replace(runtime, embedder=at_angles({said: MERGE * n for n, said in enumerate(texts)}))
    for said in (texts[0], texts[2], texts[1], texts[3], *texts):
        remember(placed, tenant, SCOPE, statement=fact(said))
    behind = rows(
        owner,
        """WITH RECURSIVE b AS (
            SELECT id AS top, id, text FROM memories WHERE retired_at IS NULL
            UNION ALL SELECT b.top, m.id, m.text FROM b JOIN memories m ON m.successor = b.id)
        SELECT array_agg(DISTINCT text) AS texts FROM b GROUP BY top""",
    )
    places = [sorted(texts.index(said) for said in one.texts) for one in behind]
    assert all(place[-1] - place[0] <= 1 for place in places)
    assert len(places) >= 2


# --- facts in time --------------------------------------------------------------------------------------------


def test_another_object_of_a_single_valued_relation_supersedes(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    paris = remember(runtime, tenant, SCOPE, statement=home("Paris", valid_from=year(2020)))
    london = remember(runtime, tenant, SCOPE, statement=home("London", valid_from=year(2024)))
    assert london.outcome is Outcome.SUPERSEDED
    old = row(owner, paris.id)
    assert (old.valid_until, old.retired_reason, old.successor) == (year(2024), "superseded", london.id)
    assert [one.object for one in current(owner)] == ["London"]


def test_an_older_fact_that_arrives_late_is_history_and_displaces_nothing(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    london = remember(runtime, tenant, SCOPE, statement=home("London", valid_from=year(2024)))
    paris = remember(runtime, tenant, SCOPE, statement=home("Paris", valid_from=year(2020)))
    late = row(owner, paris.id)
    assert (late.valid_from, late.valid_until) == (year(2020), year(2024))
    assert [one.id for one in current(owner)] == [london.id]


def test_a_fact_that_becomes_true_again_is_current_again(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    for city, since in (("Paris", 2018), ("London", 2020), ("Paris", 2022)):
        remember(runtime, tenant, SCOPE, statement=home(city, valid_from=year(since)))
    history = [(one.object, one.valid_from.year, one.valid_until) for one in rows(owner, MEMORIES)]
    assert sorted(history) == [
        ("London", 2020, year(2022)),
        ("Paris", 2018, year(2020)),
        ("Paris", 2022, None),
    ]


def test_an_interrupted_fact_resumes_with_its_evidence(runtime: Runtime, tenant: int, owner: Engine) -> None:
    (turn,) = record(runtime, tenant, SESSION, [NewTurn(Role.USER, "I live in Paris these days.")])
    remember(runtime, tenant, SCOPE, statement=home("Paris", valid_from=year(2018), evidence=(turn.id,)))
    remember(runtime, tenant, SCOPE, statement=home("London", valid_from=year(2020), valid_until=year(2021)))
    (now,) = current(owner)
    assert now.object == "Paris"
    assert len(rows(owner, "SELECT FROM evidence WHERE memory_id = :id", id=now.id)) == 1
    periods = [(one.object, one.valid_from.year) for one in rows(owner, MEMORIES)]
    assert ("London", 2020) in periods
    assert_terms_equal_a_recount(owner)


def test_the_order_of_arrival_does_not_change_what_holds(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    told = [("Paris", 2018), ("London", 2020), ("Rome", 2022), ("Oslo", 2024)]
    for n, order in enumerate(([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2])):
        for place in order:
            city, since = told[place]
            remember(runtime, tenant, Scope("ada", f"user {n}"), statement=home(city, valid_from=year(since)))
    timelines = rows(
        owner,
        """SELECT array_agg(object || valid_from::date || coalesce(valid_until::date::text, '')
                               ORDER BY valid_from) AS line FROM memories GROUP BY scope_id""",
    )
    assert len(timelines) == 3
    assert len({tuple(one.line) for one in timelines}) == 1


def test_what_the_assistant_concluded_does_not_end_what_the_user_said(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    remember(runtime, tenant, SCOPE, statement=home("Paris", valid_from=year(2020), source="user:bob"))
    guess = home("London", valid_from=year(2024), source="assistant:ada", origin=Origin.SYNTHESIZED)
    assert remember(runtime, tenant, SCOPE, statement=guess).outcome is Outcome.LINKED
    held = [one.object for one in current(owner) if one.single_valued]
    assert held == ["Paris"]


# --- what is written beside it --------------------------------------------------------------------------------


def test_evidence_is_only_what_was_said_in_this_scope(runtime: Runtime, tenant: int, owner: Engine) -> None:
    (mine,) = record(runtime, tenant, SESSION, [NewTurn(Role.USER, "I like tea a lot.")])
    (theirs,) = record(runtime, tenant, Scope("ada", "eve", "s1"), [NewTurn(Role.USER, "I like tea too.")])
    statement = fact("Bob likes tea.", evidence=(mine.id, theirs.id, uuid4()))
    remembered = remember(runtime, tenant, SCOPE, statement=statement)
    named = rows(owner, "SELECT memory_id, turn_id FROM evidence")
    assert [(one.memory_id, one.turn_id) for one in named] == [(remembered.id, mine.id)]


def test_only_repetition_by_another_source_raises_confidence(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    first = remember(runtime, tenant, SCOPE, statement=fact("Bob likes tea.", source="user:bob"))
    for _ in range(5):
        remember(runtime, tenant, SCOPE, statement=fact("Bob likes tea.", source="user:bob"))
    assert row(owner, first.id).confidence == pytest.approx(0.8)
    remember(runtime, tenant, SCOPE, statement=fact("Bob likes tea.", source="user:eve"))
    assert row(owner, first.id).confidence > 0.8
    assert row(owner, first.id).sources == ["user:bob", "user:eve"]


def test_the_answer_says_what_was_changed_before_storing(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    statement = fact("Bob\x00 likes tea.", importance=0, confidence=7.0)
    remembered = remember(runtime, tenant, SCOPE, statement=statement)
    assert remembered.notes == (
        "text: characters that cannot be stored were removed",
        "confidence 7 stored as 1",
        "importance 0 stored as 1",
    )
    stored = row(owner, remembered.id)
    assert (stored.text, stored.importance, stored.confidence) == ("Bob likes tea.", 1, 1.0)


def test_a_change_drops_the_cached_context_of_its_scope(runtime: Runtime, tenant: int, owner: Engine) -> None:
    remembered = remember(runtime, tenant, SCOPE, statement=fact("Bob likes tea."))
    scope_id = row(owner, remembered.id).scope_id
    kept = CachedContext("asked", {"memories": (remembered.id,)})
    cache.put(runtime.hot, [scope_id], kept, token=cached_context(runtime.hot, [scope_id]).token)
    assert cached_context(runtime.hot, [scope_id]).context == kept
    remember(runtime, tenant, SCOPE, statement=fact("Bob owns a boat."))
    assert cached_context(runtime.hot, [scope_id]).context is None


def test_without_deduplication_only_the_same_text_is_one_memory(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    placed = replace(runtime, embedder=at_angles({SHORT: 0, LONG: SAME}))
    first = remember(placed, tenant, SCOPE, statement=fact(SHORT), deduplicate=False)
    second = remember(placed, tenant, SCOPE, statement=fact(LONG), deduplicate=False)
    assert second.outcome is Outcome.LINKED
    assert len(current(owner)) == 2
    assert remember(placed, tenant, SCOPE, statement=fact(SHORT), deduplicate=False).id == first.id


# --- many at once ---------------------------------------------------------------------------------------------


def test_one_statement_from_many_writers_at_once_is_one_memory(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    done = all_at_once(lambda _: remember(runtime, tenant, SCOPE, statement=fact("Bob likes tea.")))
    assert Counter(one.outcome for one in done) == {Outcome.INSERTED: 1, Outcome.REINFORCED: WRITERS - 1}
    (only,) = rows(owner, MEMORIES)
    assert only.repeat_count == WRITERS
    assert_terms_equal_a_recount(owner)


def test_paraphrases_from_many_writers_at_once_are_one_current_memory(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    wordings = [f"Bob{' really' * n} likes tea." for n in range(WRITERS)]
    placed = replace(runtime, embedder=at_angles({said: n * 0.5 for n, said in enumerate(wordings)}))
    all_at_once(lambda n: remember(placed, tenant, SCOPE, statement=fact(wordings[n])))
    (only,) = current(owner)
    assert only.repeat_count == WRITERS
    assert_terms_equal_a_recount(owner)


def test_one_move_told_by_many_writers_at_once_leaves_one_home(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    cities = ("Paris", "London", "Rome", "Oslo")
    all_at_once(
        lambda n: remember(
            runtime, tenant, SCOPE, statement=home(cities[n % 4], valid_from=year(2010 + n % 4))
        )
    )
    assert [one.object for one in current(owner)] == ["Oslo"]
    assert len(rows(owner, MEMORIES)) == len(cities)


def test_default_memories_of_a_new_user_are_stored_once_for_many_writers(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    defaults = [
        {"kind": "core", "text": "Be kind.", "tags": []},
        {"kind": "core", "text": "Never lie.", "tags": []},
    ]
    with owner.begin() as connection:
        agents.change(
            connection,
            tenant,
            "ada",
            parts={"default_memories": defaults},
            copies=all_shards.copies(connection),
        )
    all_at_once(lambda n: remember(runtime, tenant, SCOPE, statement=fact(f"Bob owns {n} boats.")))
    core = [one for one in rows(owner, MEMORIES) if one.kind == "core"]
    assert [(one.text, one.repeat_count) for one in core] == [("Be kind.", 1), ("Never lie.", 1)]


# --- whose it is ----------------------------------------------------------------------------------------------


def test_a_statement_of_a_session_stays_apart_from_that_of_the_user(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    record(runtime, tenant, SESSION, [NewTurn(Role.USER, "Hello there, how are you?")])
    for scope in (SESSION, SCOPE, SESSION):
        remember(runtime, tenant, scope, statement=fact("Bob likes tea."))
    assert sorted((one.session_id is None, one.repeat_count) for one in rows(owner, MEMORIES)) == [
        (False, 2),
        (True, 1),
    ]


def test_a_session_must_exist_before_something_is_remembered_in_it(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    with pytest.raises(NotFound, match="session"):
        remember(runtime, tenant, SESSION, statement=fact("Bob likes tea."))
    assert rows(owner, MEMORIES) == []


def test_the_same_statement_in_another_scope_is_another_memory(
    runtime: Runtime, tenant: int, other_tenant: int, owner: Engine
) -> None:
    for tenant_id, scope in (
        (tenant, SCOPE),
        (tenant, Scope("ada", "eve")),
        (tenant, Scope("ada")),
        (tenant, Scope("max", "bob")),
        (other_tenant, SCOPE),
    ):
        remembered = remember(runtime, tenant_id, scope, statement=fact("Tea is nice."), shared=True)
        assert remembered.outcome is Outcome.INSERTED
    assert len({(one.tenant_id, one.scope_id) for one in rows(owner, MEMORIES)}) == 5


# --- what is refused ------------------------------------------------------------------------------------------


def test_a_refused_statement_names_its_field_and_stores_nothing(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    wrong = (
        (Statement("mood", "Bob likes tea."), "kind"),
        (fact("  "), "text"),
        (fact("x" * 8_001), "text"),
        (fact("Bob likes tea.", subject="Bob"), "relation"),
        (fact("Bob likes tea.", subject="Bob", relation="?!", object="tea"), "relation"),
        (fact("Bob likes tea.", subject="?!", relation="likes", object="tea"), "subject"),
        (fact("Bob likes tea.", valid_from=year(2024), valid_until=year(2023)), "valid_until"),
        (fact("Bob likes tea.", subtype="mood"), "subtype"),
        (fact("Bob likes tea.", tags=("",)), "tags"),
    )
    for statement, named in wrong:
        with pytest.raises((InvalidInput, TooLarge)) as refused:
            remember(runtime, tenant, SCOPE, statement=statement)
        assert refused.value.field == named
    assert rows(owner, MEMORIES) == []


def test_with_the_embedder_away_nothing_is_stored_and_the_caller_is_told(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    with pytest.raises(ProviderUnavailable):
        remember(
            replace(runtime, embedder=failing(ProviderUnavailable("nobody answers"))),
            tenant,
            SCOPE,
            statement=fact("Bob likes tea."),
        )
    assert rows(owner, MEMORIES) == []


def test_nothing_is_stored_for_somebody_who_is_forgotten_meanwhile(
    runtime: Runtime, tenant: int, owner: Engine
) -> None:
    def forget(_: Sequence[str]) -> None:
        with owner.begin() as connection:
            connection.execute(text("DELETE FROM scopes"))

    with pytest.raises(NotFound, match="erased while this ran; nothing was stored"):
        remember(
            replace(runtime, embedder=ScriptedEmbedder(before=forget)),
            tenant,
            SCOPE,
            statement=fact("Bob likes tea."),
        )
    assert rows(owner, MEMORIES) == []
