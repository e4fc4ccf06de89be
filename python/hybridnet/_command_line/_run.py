"""Runs a model on arrays from NumPy files and writes, or prints, the results."""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

from .. import ndarray
from ..errors import ParamError
from ..ndarray._foreign_files import FOREIGN_ENDINGS
from ._models import add_model_arguments, open_model, values_of
from ._output import answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the model, inputs and output."""
    add_model_arguments(parser, has_device=True)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help=".npy, or .npz that holds all inputs by name; the name may be left out for the only input",
    )
    parser.add_argument(
        "--output", metavar="FILE", help=".npy (one output), .npz, .safetensors or .params; default: printed"
    )


_ENDINGS = (*FOREIGN_ENDINGS, ".params")


def _check_ending(path: str | None) -> None:
    """Raises ParamError for a file of an unknown format, before the model runs."""
    if path is None or path.endswith(_ENDINGS):
        return
    stem, ending = os.path.splitext(path)
    raise ParamError(
        f"--output {path!r}",
        expected=f"a file that ends in {', '.join(_ENDINGS)}",
        given=repr(ending) if ending else "none of these endings",
        fix=f"give --output {stem}.npz",
    )


def run(options: argparse.Namespace) -> int:
    """Runs one call."""
    _check_ending(options.output)
    model = open_model(options)
    block = model.block()
    block.hybridize(static_alloc=True)
    inputs = values_of(model, options.input)
    result = block(*(inputs[name].as_in_context(model.ctx) for name in model.inputs))
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    names = model.symbol.list_outputs()
    facts: dict[str, Any] = {
        name: {"shape": list(output.shape), "dtype": np.dtype(output.dtype).name}
        for name, output in zip(names, outputs, strict=True)
    }
    if options.output is not None:
        data = (
            outputs[0]
            if options.output.endswith(".npy") and len(outputs) == 1
            else dict(zip(names, outputs, strict=True))
        )
        ndarray.save(options.output, data)
        text = "\n".join(f"{name}: {fact['dtype']} {tuple(fact['shape'])}" for name, fact in facts.items())
    else:
        for name, output in zip(names, outputs, strict=True):
            facts[name]["values"] = output.asnumpy().tolist()
        text = "\n".join(f"{name}:\n{output.asnumpy()}" for name, output in zip(names, outputs, strict=True))
    answer(options, facts, text)
    return 0
