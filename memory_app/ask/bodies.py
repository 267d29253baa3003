"""What callers send to ask a question."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from memory_app.web.fields import Body, CleanWords, Name


class AskBody(Body):
    """The question."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"question": "Where does Mira live now?"}]})

    question: CleanWords = Field(description="In plain words.")
    session: Name | None = Field(
        None, description="The conversation going on; what was said in it counts more."
    )
