"""Write what the ladder decided, and judge nothing.

Everything happens in the caller's transaction, under the lock on the scope's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import Connection

from memory_app.language.framing import unframed
from memory_app.language.keywords import keyword_weights
from memory_app.language.text import terms
from memory_app.memories import ladder, merging
from memory_app.memories.entity_names import KnownEntity
from memory_app.memories.intervals import Cut, Interval
from memory_app.memories.ladder import Candidate, Decision, Neighbour
from memory_app.memories.mentions import Ties, named_text, ties_of
from memory_app.memories.repetition import repeated
from memory_app.memories.rows import entities, links, memories, scope_models
from memory_app.memories.rows import terms as term_store
from memory_app.memories.rows.memory_rows import NewMemory
from memory_app.memories.succession import claimed_by
from memory_app.records.records import LinkType, MemoryRow, Retirement, Statement
from memory_app.runtime import Runtime

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement with keys and vectors, ready to be judged inside a transaction."""

    statement: Statement
    importance: int
    key: str
    subject_key: str | None
    relation: str | None
    object_key: str | None
    single_valued: bool
    opposes: tuple[str, ...]
    ends: tuple[str, ...]
    vector: Vector
    keywords: dict[int, float]
    notes: tuple[str, ...]
    corrected_key: str | None = None
    """Slug of the object that the statement corrects."""
    ties_entities: bool = True
    """False where the agent keeps no entities."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where statements are written: the scope, perhaps a session of it, the run behind them, and whose turns count
    as evidence."""

    tenant_id: int
    scope_id: int
    session_id: int | None = None
    session: str | None = None
    run_id: UUID | None = None
    turn_scopes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Writer:
    """Carries out what the ladder decided; it decides nothing itself."""

    connection: Connection
    runtime: Runtime
    place: Place
    prepared: Prepared
    candidate: Candidate
    neighbours: Sequence[Neighbour]
    knows_model: bool
    """Is it noted already that the scope holds vectors of the embedder's model?"""
    known: Sequence[KnownEntity]
    """Entities of the scope that the statement may name."""

    def apply(self, decision: Decision) -> tuple[UUID, int]:
        """The id of the row that now holds the statement, and how many rows it replaced by merging."""
        # Every decision has a branch, which mypy checks: a new one cannot fall through.
        match decision:
            case ladder.Reinforce():
                return self._reinforce(decision), 0
            case ladder.Merge():
                return self._merge(decision), len(decision.targets)
            case ladder.Supersede() | ladder.InsertClosed():
                return self._place_in_time(decision.holds, decision.cuts), 0
            case ladder.InsertLinked():
                # A contested claim is not the single value, or a unique index would refuse it beside the other.
                memory_id = self._insert(claimed_by(self.candidate), single_valued=not decision.contested)
                alike = [(memory_id, target, weight) for target, weight in decision.links]
                self._link(alike, type=LinkType.SIMILAR_TO, limit=self.runtime.settings.remember.links_each)
                return memory_id, 0
            case ladder.Insert():
                return self._place_in_time(decision.holds or (claimed_by(self.candidate),), ()), 0

    def _reinforce(self, decision: ladder.Reinforce) -> UUID:
        # First the rows that an earlier start ends, for the reason in `_place_in_time`.
        self._cut(decision.cuts)
        target = next(n for n in self.neighbours if n.memory.id == decision.target)
        row = repeated(target, self.candidate, decision)
        memories.reinforce(self.connection, self.place.scope_id, row=row)
        self._rest_on_parents(decision.target)
        self._connect(decision.target)
        self._resume(decision.cuts)
        memories.succeed(
            self.connection, self.place.scope_id, {cut.target: decision.target for cut in decision.cuts}
        )
        return decision.target

    def _place_in_time(self, holds: Sequence[Interval], cuts: Sequence[Cut]) -> UUID:
        # First the cuts: two open rows of one single-valued relation cannot be there at once.
        self._cut(cuts)
        ids = [self._insert(interval) for interval in holds]
        # Then what resumes, which may be open again where the new row is not.
        self._resume(cuts)
        # The last interval is the newest: its row answers for the statement, earlier ones are copies.
        memories.succeed(self.connection, self.place.scope_id, {cut.target: ids[-1] for cut in cuts})
        return ids[-1]

    def _cut(self, cuts: Sequence[Cut]) -> None:
        for cut in cuts:
            memories.cut(self.connection, self.place.scope_id, cut.target, at=cut.at)

    def _resume(self, cuts: Sequence[Cut]) -> None:
        for cut in cuts:
            for interval in cut.resumes:
                copy = memories.resume(
                    self.connection,
                    self.place.scope_id,
                    cut.target,
                    start=interval.start,
                    until=interval.until,
                )
                self._count_terms(copy)

    def _merge(self, decision: ladder.Merge) -> UUID:
        """The new statement is stored as a part like the others, so that nothing that was said is lost by merging."""
        place = self.place
        # The targets leave first: the statement may have the very text of one of them.
        memories.retire(self.connection, place.scope_id, decision.targets, reason=Retirement.MERGED)
        part = self._insert(claimed_by(self.candidate), single_valued=decision.merged.single_valued)
        vector, keywords = self._vectors_of(decision.merged.memory.text, decision.targets)
        united = self._new(decision.merged, vector=vector, keywords=keywords)
        (merged_id,) = merging.unite_all(
            self.connection,
            place.tenant_id,
            place.scope_id,
            unions=[(united, [*decision.targets, part])],
        )
        return merged_id

    def _vectors_of(self, text: str, parents: Sequence[UUID]) -> tuple[Vector, dict[int, float]]:
        """Vector and keywords of the text that a merge keeps: the new one or a parent's, so that no provider is called
        inside the transaction (but for a parent that is not embedded again yet)."""
        if text == self.prepared.statement.text:
            return self.prepared.vector, self.prepared.keywords
        # The ladder takes the longest of the texts, so one of the parents has it.
        rows = [n.memory for n in self.neighbours if n.memory.id in parents]
        parent = next(memory for memory in rows if memory.text == text)
        if parent.embedding_model == self.runtime.embedder.model:
            vector: Vector = memories.vectors(self.connection, self.place.scope_id, [parent.id])[parent.id]
        else:
            vector = self.runtime.embedder.embed([unframed(text)])[0].tolist()
        return vector, keyword_weights(terms(text))

    def _count_terms(self, memory_id: UUID) -> None:
        # A copy is written inside the database, so its terms are not at hand here.
        terms_of_rows = memories.keyword_terms(self.connection, self.place.scope_id, [memory_id])
        term_store.add(
            self.connection,
            self.place.tenant_id,
            [(self.place.scope_id, row_terms) for row_terms in terms_of_rows],
        )

    def _insert(self, interval: Interval, *, single_valued: bool = True) -> UUID:
        row = ladder.row_of(self.candidate)
        memory = replace(row.memory, valid_from=interval.start, valid_until=interval.until)
        row = replace(row, memory=memory, single_valued=row.single_valued and single_valued)
        return self._store(self._new(row, vector=self.prepared.vector, keywords=self.prepared.keywords))

    def _new(self, row: MemoryRow, *, vector: Vector, keywords: dict[int, float]) -> NewMemory:
        return NewMemory(
            row,
            embedding=vector,
            embedding_model=self.runtime.embedder.model,
            keywords=keywords,
            session_id=self.place.session_id,
            run_id=self.place.run_id,
        )

    def _store(self, new: NewMemory) -> UUID:
        place = self.place
        if not self.knows_model:
            # Before the first vector, so that no vector is ever there whose model is not listed.
            scope_models.add(self.connection, [place.scope_id], new.embedding_model)
        memory_id = memories.insert(self.connection, place.tenant_id, place.scope_id, new=new)
        term_store.add(self.connection, place.tenant_id, [(place.scope_id, new.keywords)])
        self._connect(memory_id)
        self._rest_on_parents(memory_id)
        return memory_id

    def _rest_on_parents(self, memory_id: UUID) -> None:
        parents = self.prepared.statement.parents
        self._link([(memory_id, parent, 1.0) for parent in parents], type=LinkType.DERIVED_FROM)

    def _connect(self, memory_id: UUID) -> None:
        """Evidence and mentions: why the memory is there, and what it is about."""
        place, statement = self.place, self.prepared.statement
        ties: Ties = {}
        counted: Ties = {}
        if self.prepared.ties_entities:
            # Seen when it was said, not when it is written: an import tells of years ago.
            said_at = self.candidate.said_at or self.candidate.valid_from
            ties = ties_of(named_text(statement), statement.mentions, self.known, said_at)
            # What a job concludes names an entity, but nobody mentioned it once more.
            is_said = bool(statement.evidence) or place.run_id is None
            counted = ties if is_said else ties_of("", statement.mentions, self.known, said_at)
        entities.tie(
            self.connection,
            place.tenant_id,
            place.scope_id,
            memory_id=memory_id,
            turn_ids=statement.evidence,
            turn_scopes=place.turn_scopes,
            mentions=counted,
            uncounted=ties.keys() - counted.keys(),
        )

    def _link(self, edges: Sequence[links.Edge], *, type: LinkType, limit: int | None = None) -> None:
        links.add(
            self.connection, self.place.tenant_id, self.place.scope_id, edges=edges, type=type, limit=limit
        )
