"""A tiny cross-encoder in a folder: a real ONNX model with a real tokenizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx import helper as graph
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

TOKENS = 128


def write_cross_encoder(
    folder: Path, *, outputs: int = 1, inputs: tuple[str, ...] = ("input_ids", "token_type_ids")
) -> Path:
    """A model whose logit is the inner product of the letters of the query with those of the text.

    Letters of the query have type 0 and those of the text type 1, so that a pair is told from its parts.
    """
    folder.mkdir()
    table = np.eye(TOKENS, dtype=np.float32)
    # Marks and blanks say nothing.
    table[[0, 2, 3, ord(" ")]] = 0
    nodes = [
        graph.make_node("Gather", ["table", "input_ids"], ["letters"]),
        graph.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        graph.make_node("Unsqueeze", ["types", "last"], ["of_text"]),
        graph.make_node("Sub", ["one", "of_text"], ["of_query"]),
        graph.make_node("Mul", ["letters", "of_text"], ["text_letters"]),
        graph.make_node("Mul", ["letters", "of_query"], ["query_letters"]),
        graph.make_node("ReduceMean", ["text_letters", "middle"], ["text_mean"], keepdims=0),
        graph.make_node("ReduceMean", ["query_letters", "middle"], ["query_mean"], keepdims=0),
        graph.make_node("Mul", ["text_mean", "query_mean"], ["product"]),
        graph.make_node("ReduceSum", ["product", "middle"], ["logit"], keepdims=1),
        graph.make_node("Concat", ["logit"] * outputs, ["logits"], axis=1),
    ]
    made = graph.make_graph(
        nodes,
        "pairs",
        [graph.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in inputs],
        [graph.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", outputs])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([-1]), "last"),
            numpy_helper.from_array(np.array([1]), "middle"),
            numpy_helper.from_array(np.array(1, dtype=np.float32), "one"),
        ],
    )
    model = graph.make_model(made, opset_imports=[graph.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, folder / "model.onnx")
    letters = {chr(code): code for code in range(4, TOKENS)}
    tokenizer = Tokenizer(
        models.WordLevel({**letters, "[UNK]": 0, "[CLS]": 2, "[SEP]": 3}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
