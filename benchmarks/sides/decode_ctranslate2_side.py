"""CTranslate2's decoder: its own specification of GPT-2, filled with our weights, and its greedy search."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec
from decode_net import BEAM_CASES, CASES, HEADS, LAYERS, TOKENS, WORDS, keep_words, parts, prompt, weights
from serve import Step, serve


def saved(folder: str) -> None:
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        LAYERS, HEADS, pre_norm=True, activation=common_spec.Activation.GELUTanh
    )
    given = weights()
    decoder = spec.decoder
    decoder.scale_embeddings = False

    def linear(to: Any, name: str) -> None:
        to.weight, to.bias = given[name], given[f"{name}.bias"]

    def norm(to: Any, name: str) -> None:
        to.gamma, to.beta = given[f"{name}.scale"], given[f"{name}.shift"]

    decoder.embeddings.weight = given["words"]
    decoder.position_encodings.encodings = given["positions"]
    decoder.projection.weight = given["words"]
    norm(decoder.layer_norm, "last")
    for i, layer in enumerate(decoder.layer):
        norm(layer.self_attention.layer_norm, f"{i}.before")
        linear(layer.self_attention.linear[0], f"{i}.qkv")
        linear(layer.self_attention.linear[1], f"{i}.projection")
        norm(layer.ffn.layer_norm, f"{i}.between")
        linear(layer.ffn.linear_0, f"{i}.inner")
        linear(layer.ffn.linear_1, f"{i}.outer")
    spec.register_vocabulary([f"w{i}" for i in range(WORDS)])
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = "w0"
    spec.validate()
    spec.save(folder)


def case(name: str) -> Step:
    dtype, batch, _ = parts(name)
    beams = batch if name in BEAM_CASES else 1
    with tempfile.TemporaryDirectory() as folder:
        saved(folder)
        generator = ctranslate2.Generator(
            folder,
            compute_type=dtype if dtype in ("float32", "bfloat16") else "int8",
            inter_threads=1,
            intra_threads=len(os.sched_getaffinity(0)),
        )
    start = [[f"w{i}" for i in row] for row in prompt(batch // beams)]

    def step(repeat: int) -> None:
        for _ in range(repeat):
            results = generator.generate_batch(
                start,
                max_length=TOKENS,
                min_length=TOKENS,
                sampling_topk=1,
                beam_size=beams,
                include_prompt_in_result=False,
                end_token=[],
                max_batch_size=batch,
            )
        keep_words("ctranslate2", name, np.array([result.sequences_ids[0][:TOKENS] for result in results]))

    return step


if __name__ == "__main__":
    serve(ctranslate2.__version__, {name: lambda name=name: case(name) for name in CASES})
