"""What processes share when they are forked from one that has it already, in place of each having its own."""

from __future__ import annotations

import ctypes
import gc
import sys

from memory_app.extraction.rules.packs.pack import pack_of
from memory_app.language import detection
from memory_app.providers.embedders import word_llama
from memory_app.settings import Settings


def load_weights() -> None:
    """Read the weights of the embedder that comes with the product, if it is the one in use: 20 MB."""
    # Others ask a server or start threads, which a fork would break.
    if Settings().embedding.provider == "wordllama":
        word_llama.load()


def load_languages() -> None:
    """Read what tells languages apart, and the language pack of most chats: 100 MB and a second."""
    detection.load()
    pack_of("en")


def settle() -> None:
    """Make the memory of this process small and unlikely to be written to. To be called before it is forked."""
    gc.collect()
    # A collection in a forked process passes over what is frozen, and does not write into its pages.
    gc.freeze()
    # What was free between the things that stay would be shared as well.
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
