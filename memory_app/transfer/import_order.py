"""How a file of another program is to be imported: what the caller says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_app.errors import InvalidInput
from memory_app.language.zones import find_zone, zone_of
from memory_app.records.records import Role
from memory_app.records.scope import check_name
from memory_app.tenancy.policy import parse_policy
from memory_app.tenancy.rows.names import ScopeRow
from memory_app.transfer.importers.detection import FORMATS
from memory_app.transfer.importers.records import DateOrder, Options

SPEAKERS_LIMIT = 1_000
ROLES = (Role.USER, Role.ASSISTANT)
"""What a speaker can be told to be."""


@dataclass(frozen=True, slots=True)
class Order:
    """Raises `InvalidInput` naming the field."""

    format: str | None = None
    dry_run: bool = False
    session: str | None = None
    time_zone: str | None = None
    date_order: str | None = None
    speakers: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise InvalidInput(f"format: one of {', '.join(FORMATS)}", field="format")
        if self.session is not None:
            check_name(self.session, field="session")
        if self.time_zone is not None and find_zone(self.time_zone) is None:
            raise InvalidInput(
                "time_zone: not a time zone, such as Europe/Lisbon or +09:00", field="time_zone"
            )
        if self.date_order is not None and self.date_order not in set(DateOrder):
            raise InvalidInput(f"date_order: one of {', '.join(DateOrder)}", field="date_order")
        if len(self.speakers) > SPEAKERS_LIMIT:
            raise InvalidInput(f"speakers: at most {SPEAKERS_LIMIT}", field="speakers")
        for name, role in self.speakers.items():
            check_name(name, field="speakers")
            if role not in ROLES:
                raise InvalidInput(f"speakers: each is one of {', '.join(ROLES)}", field="speakers")

    def stored(self) -> dict[str, Any]:
        """The order as the run keeps it. What names people goes with ``target``, which a run has until it ends."""
        target = {"session": self.session, "speakers": dict(self.speakers), "owner": self.owner}
        return {
            "format": self.format,
            "dry_run": self.dry_run,
            "time_zone": self.time_zone,
            "date_order": self.date_order,
            "target": target,
        }

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Order:
        """The order that a run keeps."""
        own = {name: options[name] for name in ("format", "dry_run", "time_zone", "date_order")}
        return cls(**own, **options["target"])

    def options_in(self, row: ScopeRow) -> Options:
        """What the reader of the file is told, in this scope."""
        return Options(
            session=self.session,
            time_zone=zone_of(self.time_zone or row.time_zone),
            date_order=None if self.date_order is None else DateOrder(self.date_order),
            speakers={name: Role(role) for name, role in self.speakers.items()},
            owner=self.owner,
            is_group=parse_policy(row.policy).group,
        )
