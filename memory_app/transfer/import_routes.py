"""Route of imports: a file that another program exported."""

from __future__ import annotations

from typing import Annotated, BinaryIO, Literal, cast

from fastapi import APIRouter, Query

from memory_app.errors import InvalidInput
from memory_app.jobs.answers import RunStateAnswer
from memory_app.records.audit import Action
from memory_app.transfer import imports
from memory_app.transfer.import_order import Order
from memory_app.web.call import IN_SCOPE, OfUser, Writer, errors
from memory_app.web.fields import NAME_SCHEMA
from memory_app.web.strict import FILE_BODY, StrictRoute, Upload, audited, takes_file
from memory_app.web.strict_json import DECODER

router = APIRouter(route_class=StrictRoute, tags=["transfer"])

Speakers = Annotated[
    str | None,
    Query(
        description="Roles, `user` or `assistant`, by the name of the speaker: a JSON object.",
        examples=['{"Anna": "user"}'],
    ),
]


@router.post(IN_SCOPE + "/imports", status_code=202, responses=errors(409, 413), openapi_extra=FILE_BODY)
@takes_file
@audited(Action.IMPORT)
def import_file(
    call: Writer,
    scope: OfUser,
    upload: Upload,
    format: Annotated[str | None, Query(description="The format of the file; else its shape tells.")] = None,
    dry_run: Annotated[
        bool, Query(description="Report what would come in, and store nothing of it.")
    ] = False,
    session: Annotated[
        str | None,
        Query(
            description="Names the session of a file with one conversation.", json_schema_extra=NAME_SCHEMA
        ),
    ] = None,
    time_zone: Annotated[
        str | None, Query(description="Of dates in the file that have none; else the user's.")
    ] = None,
    date_order: Annotated[
        Literal["dmy", "mdy"] | None,
        Query(description="How a date such as 03/04/2025 is read, where the file does not tell."),
    ] = None,
    speakers: Speakers = None,
    owner: Annotated[
        str | None,
        Query(
            description="Whose part comes in, by the id in the file, where it holds that of several people."
        ),
    ] = None,
) -> RunStateAnswer:
    """Import the chats or memories that another program exported: the body is its file, or its zip.

    Formats: chatgpt, claude, sillytavern, whatsapp, openai (messages), langchain, openwebui, mem0, letta. A worker
    reads the file to its end, then stores it; the run's report says what it holds by conversation, what is left out and
    why, and how far it is. Importing it again stores nothing twice.
    """
    order = Order(
        format=format,
        dry_run=dry_run,
        session=session,
        time_zone=time_zone,
        date_order=date_order,
        speakers=_roles(speakers),
        owner=owner,
    )
    file = cast(BinaryIO, upload)
    run = imports.ask(call.runtime, call.tenant_id, scope, order=order, file=file)
    return RunStateAnswer.model_validate(run)


def _roles(text: str | None) -> dict[str, str]:
    """The roles of speakers in a parameter. Raises `InvalidInput`."""
    if text is None:
        return {}
    try:
        roles = DECODER.decode(text)
    except (ValueError, RecursionError):
        roles = None
    if not isinstance(roles, dict):
        raise InvalidInput(
            'speakers: a JSON object of roles by name, such as {"Anna": "user"}', field="speakers"
        )
    return roles
