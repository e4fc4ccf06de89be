"""Damaged ONNX files: each is imported and runs, or is refused with an error of the library, in bounded memory."""

from __future__ import annotations

import functools
import pathlib
import random
import tempfile
import time
import traceback
import warnings
from typing import Any

import hybridnet as mx
import numpy as np
import onnx
from google.protobuf.message import EncodeError
from hostile.damage import damaged

from onnx_prove import damage, models, workers

MOST_MEMORY = 700 << 20  # bytes that the import of a file of a few kB may add
MOST_SECONDS = 10.0
_MOST_ELEMENTS = 1 << 20  # bytes of inputs and values of a run: larger files are imported only
SECRET = b"\x07secret!" * 64


@functools.cache
def _warmed() -> None:
    """Imports and runs every valid model once: their failure would hide all others."""
    with tempfile.TemporaryDirectory() as folder:
        for name, make in models.MODELS.items():
            outcome, text = _attempt(_written(pathlib.Path(folder) / name, make().SerializeToString()))
            assert outcome == "ran", (name, outcome, text)


def _written(folder: pathlib.Path, content: bytes) -> pathlib.Path:
    inner = folder / "model"
    inner.mkdir(parents=True)
    models.write(inner)
    (folder / "secret.bin").write_bytes(SECRET)
    (inner / "link.bin").symlink_to(folder / "secret.bin")
    (inner / "m.onnx").write_bytes(content)
    return inner / "m.onnx"


def _content(number: int, seed: int) -> tuple[str, bytes]:
    draw = random.Random(f"{seed} {number}")
    name = sorted(models.MODELS)[number % len(models.MODELS)]
    model = models.MODELS[name]()
    if draw.random() < 0.3:
        return f"{name}: bytes", damaged(draw, model.SerializeToString())
    kinds = damage.damage(draw, model)
    try:
        return f"{name}: {kinds}", model.SerializeToString()
    except (EncodeError, ValueError):
        return f"{name}: not written", b""


def case(number: int, seed: int) -> tuple[str, str]:
    """The outcome of a damaged file, and the text of a finding: empty if it is right."""
    warnings.simplefilter("ignore")
    _warmed()
    words, content = _content(number, seed)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome, text = _attempt(_written(pathlib.Path(folder), content))
    seconds = time.monotonic() - begin
    if not text and seconds > MOST_SECONDS and outcome != "long":
        outcome, text = "slow", f"{seconds:.1f} s"
    return outcome, f"{words}\n{text}" if text else ""


def _attempt(path: pathlib.Path) -> tuple[str, str]:
    workers.forget_high_water()
    before = workers.high_water()
    try:
        try:
            net, inputs = _imported(path)
        finally:
            grown = workers.high_water() - before
        if grown > MOST_MEMORY:
            return "memory", f"the import took {grown >> 20} MB"
        if any(SECRET[:8] in value.data().asnumpy().tobytes() for value in net.collect_params().values()):
            return "leak", "the parameters hold bytes of a file outside of the model's folder"
        arrays = _arrays(inputs)
        if arrays is None or _is_long(onnx.load(path, load_external_data=False)):
            return "imported", ""
        results = net(*arrays)
        for result in results if isinstance(results, (list, tuple)) else [results]:
            result.asnumpy()
        return "ran", ""
    except mx.errors.HybridNetError as error:
        if grown > MOST_MEMORY:
            return "memory", f"the refusal took {grown >> 20} MB: {error}"
        return "refused", ""
    except Exception:
        return "foreign", traceback.format_exc()[-1500:]


def _imported(path: pathlib.Path) -> tuple[Any, Any]:
    from hybridnet.onnx import _api

    made = _api._imported(path, None)
    return _api.block_of(made, mx.cpu()), made.inputs


def _arrays(inputs: Any) -> list[Any] | None:
    """Inputs of the declared shapes; None: they are too large for a test."""
    made = []
    for _, shape, dtype in inputs:
        sizes = [size if isinstance(size, int) else 2 for size in shape]
        if np.prod([float(size) for size in sizes]) > _MOST_ELEMENTS:
            return None
        made.append(mx.nd.array(np.ones(sizes, np.float32), dtype=dtype))
    return made


def _is_long(model: Any) -> bool:
    """Whether the model asks for much work when it runs: a valid model may (docs/security.md)."""
    numbers = [
        *(size for tensor in model.graph.initializer if tensor.data_type in (6, 7) for size in _numbers(tensor)),
        *(number for node in model.graph.node for one in node.attribute for number in (one.i, *one.ints)),
    ]
    return any(abs(number) > 10_000 for number in numbers)


def _numbers(tensor: Any) -> list[int]:
    try:
        return [int(number) for number in onnx.numpy_helper.to_array(tensor).reshape(-1)[:64]]
    except Exception:
        return []
