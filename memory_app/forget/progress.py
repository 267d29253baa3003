"""How far an erasure is that takes many transactions, as its run says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from sqlalchemy import Connection

from memory_app.db.shards import at_home
from memory_app.forget.settlement import added
from memory_app.jobs.rows import runs
from memory_app.jobs.rows.runs import Run, RunLease
from memory_app.records.reports import ForgetProgress, ForgetStage


class Progress:
    """Rows by table that went so far. ``earlier`` went before what is being erased now, and count in the run alone."""

    def __init__(
        self, claimed: RunLease, total: Mapping[str, int], *, earlier: Mapping[str, int] | None = None
    ) -> None:
        self.claimed = claimed
        self.total = Counter(total)
        self.earlier = dict(earlier or {})

    @classmethod
    def of_run(cls, claimed: RunLease, run: Run) -> Progress:
        """That of a run which another worker may have begun."""
        return cls(claimed, (run.report or {}).get("counts", {}))

    def add(self, connection: Connection, counts: Mapping[str, int]) -> None:
        """Write rows down in the transaction that deletes them; after its commit they are added to `total`."""
        report = ForgetProgress(
            stage=ForgetStage.ERASING, counts=added(added(self.earlier, self.total), counts)
        )
        with at_home(connection, writes=True) as home:
            runs.note_progress(home, self.claimed, report)
