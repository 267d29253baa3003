"""Read the fields of a form as they came from a browser, and check that it came from our own page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, ValidationError

from memory_app.errors import Forbidden, InvalidInput
from memory_app.page.session import Signer
from memory_app.web.validation import invalid_input

M = TypeVar("M", bound=BaseModel)

FIELDS_LIMIT = 500

TOKEN: Final = "token"
"""The field of every form that another site cannot fill in."""


@dataclass(slots=True)
class Form:
    """The fields of a form by name; a field that stands there several times has all its values."""

    fields: dict[str, list[str]]

    @classmethod
    def parse(cls, body: bytes) -> Form:
        """Raises `InvalidInput` for what no browser sends."""
        try:
            pairs = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_LIMIT
            )
        except ValueError:
            raise InvalidInput("body: is no form", field="body") from None
        fields: dict[str, list[str]] = {}
        for name, value in pairs:
            # Browsers end the lines of a text in this way, and nobody typed it.
            fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
        return cls(fields)

    def check(self, signer: Signer, of: str) -> None:
        """Take the token out. Raises `Forbidden` unless it is that of a session, or of a form for logging in."""
        (token, *_) = self.fields.pop(TOKEN, [""])
        if not signer.is_token(token, of):
            raise Forbidden("this form is too old, or of another session; load the page again and repeat it")

    def text(self, name: str) -> str:
        """The value of a field without the space around it. `InvalidInput` where it is empty."""
        value = self.optional(name)
        if value is None:
            raise InvalidInput(f"{name}: is required", field=name)
        return value

    def optional(self, name: str) -> str | None:
        """The value of a field without the space around it; None where it is empty."""
        value = self.fields.get(name, [""])[0].strip()
        return value or None

    def all(self, name: str) -> list[str]:
        """All values of a field that stands there several times, such as boxes of one name."""
        return self.fields.get(name, [])

    def whole(self, name: str) -> int | None:
        """The whole number of a field; None where it is empty. Raises `InvalidInput`."""
        value = self.optional(name)
        if value is None:
            return None
        # int() also reads other digits, underscores and as many digits as one likes.
        if not re.fullmatch(r"[0-9]{1,18}", value):
            raise InvalidInput(f"{name}: a whole number", field=name)
        return int(value)

    def first(self) -> dict[str, str]:
        """The first value of each field, to show what was typed again."""
        return {name: values[0] for name, values in self.fields.items()}

    def is_ticked(self, name: str) -> bool:
        return name in self.fields

    def read(self, model: type[M], *, more: Mapping[str, str] | None = None) -> M:
        """The fields as the body that the API's route takes, checked by the same rules; empty ones are absent.

        Raises `InvalidInput` with the field.
        """
        filled = {name: value for name, value in self.first().items() if value.strip()}
        try:
            return model.model_validate_strings({**filled, **(more or {})})
        except ValidationError as error:
            raise invalid_input(error) from error


async def receive(request: Request, *, of: str) -> Form:
    """The form of an address that needs no right; ``of`` is what its token belongs to.

    Raises `TooLarge`, `RequestTooSlow`, `InvalidInput`, `Forbidden`, or `ClientDisconnect` when the caller hung up.
    """
    arrivals = request.app.state.arrivals
    async with arrivals.body(request.scope, request.receive, tenant_id=NOBODY, is_import=False) as arrived:
        form = Form.parse(arrived.content)
    form.check(request.app.state.page_signer, of)
    return form


NOBODY = 0
"""Stands for the tenant of a body before anybody knows whose it is; tenants are numbered from 1."""
