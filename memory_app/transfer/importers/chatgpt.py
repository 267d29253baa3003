"""The export of ChatGPT: ``conversations.json``, a list of conversations, each a tree of messages.

A message that was edited, or an answer that was generated again, makes a branch. The branch that is shown comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memory_app.language.marks import MarkKind, mark
from memory_app.records.records import Role
from memory_app.transfer.importers.json_items import elements
from memory_app.transfer.importers.records import (
    Conversation,
    Form,
    Format,
    Item,
    Message,
    Omission,
    Options,
    Reason,
    Shape,
    Source,
)
from memory_app.transfer.importers.values import (
    branch,
    id_of,
    instant_of,
    list_of,
    mapping_of,
    message,
    text_of,
)

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "system": Role.SYSTEM}

_SAID = frozenset({"text", "multimodal_text"})
"""Types of content that somebody said; code, its output, citations and thoughts are the program's."""

_MARKS = {
    "image_asset_pointer": MarkKind.IMAGE,
    "audio_asset_pointer": MarkKind.AUDIO,
    "video_container_asset_pointer": MarkKind.VIDEO,
    "real_time_user_audio_video_asset_pointer": MarkKind.AUDIO,
}


def _recognises(shape: Shape) -> bool:
    if shape.form is Form.LIST:
        return "mapping" in shape.element()
    return shape.form is Form.OBJECT and "mapping" in shape.entries


def _read(source: Source, options: Options) -> Iterator[Item]:
    for element in elements(source):
        conversation = mapping_of(element.value)
        tree = conversation.get("mapping")
        if not isinstance(tree, Mapping):
            yield Omission(element.place, Reason.UNREADABLE, "mapping is missing")
            continue
        id = id_of(conversation.get("conversation_id")) or id_of(conversation.get("id"))
        yield Conversation(element.place, id=id)
        leaf = id_of(conversation.get("current_node"))
        yield from _messages(element.place, tree, leaf=leaf, options=options)


def _messages(
    place: str, tree: Mapping[str, object], *, leaf: str | None, options: Options
) -> Iterator[Item]:
    parents = {key: id_of(mapping_of(node).get("parent")) for key, node in tree.items()}
    shown = branch(parents, _leaf(tree) if leaf not in parents or leaf is None else leaf)
    for key in tree.keys() - set(shown):
        written = mapping_of(mapping_of(tree[key]).get("message"))
        if isinstance(_message(place, key, written, options), Message):
            yield Omission(f"{place}.mapping.{key}", Reason.BRANCH)
    for key in shown:
        # The root has no message.
        written = mapping_of(mapping_of(tree[key]).get("message"))
        if written:
            yield _message(place, key, written, options)


def _leaf(tree: Mapping[str, object]) -> str:
    """The newest message that nothing answers, where the export does not say what is shown."""

    def age(key: str) -> float:
        written = mapping_of(mapping_of(tree[key]).get("message"))
        at = written.get("create_time")
        return float(at) if isinstance(at, int | float) else 0.0

    leaves = [key for key, node in tree.items() if not list_of(mapping_of(node).get("children"))]
    return max(leaves, key=age, default="")


def _message(place: str, key: str, written: Mapping[str, object], options: Options) -> Item:
    place = f"{place}.mapping.{key[:64]}"
    role = _ROLES.get(text_of(mapping_of(written.get("author")).get("role")))
    if role is None:
        return Omission(place, Reason.UNREADABLE, "author.role is missing")
    content = mapping_of(written.get("content"))
    is_hidden = mapping_of(written.get("metadata")).get("is_visually_hidden_from_conversation") is True
    if is_hidden or role is Role.SYSTEM:
        return Omission(place, Reason.HIDDEN)
    # A call of a tool is addressed to it; what the tool answers is of no type that somebody says.
    is_call = text_of(written.get("recipient")) not in ("", "all")
    if is_call or content.get("content_type") not in _SAID:
        return Omission(place, Reason.INTERNAL)
    return message(
        place,
        role=role,
        text="\n".join(_texts(content)),
        at=instant_of(written.get("create_time"), options.time_zone),
        id=id_of(written.get("id")) or key,
    )


def _texts(content: Mapping[str, object]) -> Iterator[str]:
    for part in list_of(content.get("parts")):
        if isinstance(part, str):
            if part.strip():
                yield part
            continue
        fields = mapping_of(part)
        kind = text_of(fields.get("content_type"))
        # What was said aloud stands there in words.
        words = text_of(fields.get("text"))
        if words.strip():
            yield words
        elif kind:
            yield mark(_MARKS.get(kind, MarkKind.PART))


CHATGPT = Format("chatgpt", _recognises, _read, needs="conversations with a `mapping`")
