"""Language models behind any server that speaks the OpenAI API: questions in, answers of a given shape out."""

from memory_app.providers.chat.chat import Answer, Chat, LanguageModel
from memory_app.providers.chat.dialect import Dialect, Form, Message, schema_in_words
from memory_app.providers.chat.items import Items, is_nothing, unwrapped
from memory_app.providers.chat.reply import estimated_tokens
from memory_app.providers.chat.shape import Shape, shape_of
from memory_app.providers.chat.usage import Cap, OnUsage, Price, Usage, dollars, price_of, wait_for_cap

__all__ = [
    "Answer",
    "Cap",
    "Chat",
    "Dialect",
    "Form",
    "Items",
    "LanguageModel",
    "Message",
    "OnUsage",
    "Price",
    "Shape",
    "Usage",
    "dollars",
    "estimated_tokens",
    "is_nothing",
    "price_of",
    "schema_in_words",
    "shape_of",
    "unwrapped",
    "wait_for_cap",
]
