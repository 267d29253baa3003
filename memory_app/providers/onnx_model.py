"""Open a folder with ``model.onnx`` and ``tokenizer.json``, for embedders and rerankers that run on this machine.

Needs the extra ``memory-app[onnx]``. One thread, no pools: workers share few cores, and pools do not survive a fork.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tokenizers import Tokenizer

from memory_app.errors import Misconfigured

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"


def open_session(path: Path) -> Any:
    """The model, on one thread and without a pool. Raises `Misconfigured` where it cannot be used."""
    runtime = _runtime()
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    # Errors alone: it warns about details of a model's graph in every process.
    settings.log_severity_level = 3
    _check_file(path)
    try:
        session = runtime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    except model_errors() as error:
        raise Misconfigured(f"{path.name} could not be loaded as an ONNX model", field="folder") from error
    unknown = {entry.name for entry in session.get_inputs()} - {
        "input_ids",
        "attention_mask",
        "token_type_ids",
    }
    if unknown:
        raise Misconfigured(
            f"{path.name} wants {', '.join(sorted(unknown))}; only models of sentences or pairs can be used",
            field="folder",
        )
    return session


def _runtime() -> ModuleType:
    try:
        return import_module("onnxruntime")
    except ImportError as error:
        raise Misconfigured("onnxruntime is missing; install memory-app[onnx]", field="provider") from error


def model_errors() -> tuple[type[Exception], ...]:
    """Onnxruntime has no common error; these are of a file that is no model, or of one that cannot be run."""
    raised = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    names = (
        "Fail",
        "InvalidArgument",
        "InvalidGraph",
        "InvalidProtobuf",
        "NotImplemented",
        "RuntimeException",
    )
    return (RuntimeError, *(getattr(raised, name) for name in names))


def open_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer, which neither cuts nor pads. Raises `Misconfigured` when the file is missing."""
    _check_file(path)
    tokenizer = Tokenizer.from_file(str(path))
    # Its file may ask for both; texts run alone, and their readers decide what is read of a long one.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise Misconfigured(f"the folder lacks {path.name}", field="folder")
