"""Routes of links between memories: draw one by hand, list those of a memory, remove one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field

from memory_app.memories import links
from memory_app.memories.answers import LinkAnswer, LinksAnswer
from memory_app.records.records import LinkType
from memory_app.web.call import IN_SCOPE, OfUser, Reader, Writer, errors
from memory_app.web.fields import Body, CleanWords, Id, Number
from memory_app.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["memories"])

_TYPES = ", ".join(kind for kind in LinkType if kind is not LinkType.DERIVED_FROM)


class LinkBody(Body):
    """A link from one memory to another."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "source": "01a22a74-aa46-7000-82ad-2432c81850b4",
                    "target": "01a22a74-ab46-7000-82ad-2432c81850b4",
                    "type": "causes",
                }
            ]
        }
    )

    source: Id = Field(description="Id of the memory where it begins.")
    target: Id = Field(description="Id of the memory where it ends.")
    type: CleanWords = Field("related_to", description=f"One of {_TYPES}.")
    weight: Number = Field(1.0, description="Above 0, at most 1.")


@router.post(IN_SCOPE + "/links", status_code=201, responses=errors(400, 404, 409))
def add_link(call: Writer, scope: OfUser, body: LinkBody) -> LinkAnswer:
    """Link two current memories by hand; drawn again it takes the new weight."""
    link = links.add_link(
        call.runtime,
        call.tenant_id,
        scope,
        source=body.source,
        target=body.target,
        type=body.type,
        weight=body.weight,
    )
    return LinkAnswer.model_validate(link)


@router.get(IN_SCOPE + "/links", responses=errors(404))
def list_links(
    call: Reader,
    scope: OfUser,
    memory: Annotated[Id, Query(description="Id of the memory whose links are listed.")],
    limit: Annotated[int, Query(ge=1, le=links.LIMIT_MOST, description="Most links.")] = 50,
) -> LinksAnswer:
    """Links that begin or end at a memory, strongest first."""
    listed = links.list_links(call.runtime, call.tenant_id, scope, memory=memory, limit=limit)
    return LinksAnswer(links=list(map(LinkAnswer.model_validate, listed)))


@router.delete(IN_SCOPE + "/links/{id}", status_code=204, responses=errors(404, 409))
def remove_link(
    call: Writer, scope: OfUser, id: Annotated[str, Path(description="Id of the link.", max_length=200)]
) -> None:
    """Remove a link; both memories stay."""
    links.remove_link(call.runtime, call.tenant_id, scope, id)
