"""Shapes and dtypes of a model's inputs: from --shape, from the file, or inferred from the graph."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping

import numpy as np

from ..errors import HybridNetError, ParamError, ShapeError
from ..gluon._input_specs import InputSpec
from ..ndarray._dtypes import numpy_dtype
from ._models import Model, named_input

__all__ = ["Specs", "add_shape_argument", "described", "form", "shapes_of"]

Specs = dict[str, tuple[tuple[int, ...], np.dtype]]


def add_shape_argument(parser: argparse.ArgumentParser) -> None:
    """Adds --shape, repeatable for several inputs."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="[NAME=]SIZES[:DTYPE]",
        help="shape of an input: data=1,3,224,224 or ids=1,128:int32; the only input needs no name; default: that of "
        "the file, in which a free size of the first axis is 1 and other free sizes are those of the export",
    )


def form(shape: tuple[int, ...], dtype: np.dtype) -> str:
    """Returns text such as float32(1, 3)."""
    return f"{dtype.name}{shape}"


def described(model: Model, specs: Specs) -> dict[str, str]:
    """Returns text for each input: with the names of free sizes if the file has them."""
    return {name: str(model.specs.get(name) or form(*specs[name])) for name in model.inputs}


def shapes_of(model: Model, texts: list[str], says_choice: bool = True) -> Specs:
    """Returns shape and dtype of every input: from --shape, else from the file. A note says which free sizes it chose.

    says_choice: whether to print the note.
    Raises ParamError for a wrong --shape, ShapeError if a shape is not known.
    """
    given = _parsed(model, texts)
    sizes = _sizes_of_given(model.specs, given)
    recorded = {name: spec for name, spec in model.specs.items() if name in model.inputs and name not in given}
    found = {**given, **_filled(model, recorded, sizes, given)}
    if says_choice:
        for name, spec in recorded.items():
            _say_choice(name, spec, found[name], sizes)
    missing = [name for name in model.inputs if name not in found]
    if missing:
        found.update(_inferred(model, missing, found))
    return found


def _parsed(model: Model, texts: list[str]) -> Specs:
    found: Specs = {}
    for text in texts:
        name, rest = named_input(text, model, "--shape")
        sizes, _, dtype = rest.partition(":")
        if not re.fullmatch(r"\(?\s*(\d+\s*(,\s*\d+\s*)*,?)?\s*\)?", sizes):
            raise ParamError(f"--shape {text!r}", expected="sizes with commas between them, such as 1,3,224,224")
        spec = model.specs.get(name)
        default = spec.dtype if spec else "float32"
        found[name] = tuple(int(size) for size in re.findall(r"\d+", sizes)), numpy_dtype(dtype or default)
    return found


def _sizes_of_given(specs: Mapping[str, InputSpec], given: Specs) -> dict[str, int]:
    """Returns the sizes that --shape gives to free sizes, which other inputs share."""
    sizes: dict[str, int] = {}
    for name, (shape, _) in given.items():
        spec = specs.get(name)
        if spec and len(spec.shape) == len(shape):
            sizes.update((free, size) for free, size in zip(spec.shape, shape, strict=True) if isinstance(free, str))
    return sizes


def _filled(model: Model, recorded: Mapping[str, InputSpec], sizes: dict[str, int], given: Specs) -> Specs:
    """Returns the shapes of the file, with 1 for free sizes of first axes and sizes of the export for others."""
    exported = {
        free: size
        for spec in recorded.values()
        for free, size in zip(spec.shape, spec.example, strict=True)
        if isinstance(free, str)
    }
    ones = {spec.shape[0]: 1 for spec in recorded.values() if spec.shape and isinstance(spec.shape[0], str)}
    for defaults in ({**exported, **ones}, exported):
        chosen = {**defaults, **sizes}
        found = {
            name: (tuple(chosen[s] if isinstance(s, str) else s for s in spec.shape), numpy_dtype(spec.dtype))
            for name, spec in recorded.items()
        }
        if _fits(model, {**given, **found}):
            break
    return found


def _fits(model: Model, specs: Specs) -> bool:
    shapes = {name: array.shape for name, array in model.parameters.items()}
    shapes.update({name: shape for name, (shape, _) in specs.items()})
    try:
        model.symbol.infer_shape_partial(**shapes)
    except HybridNetError:
        return False
    return True


def _say_choice(name: str, spec: InputSpec, found: tuple[tuple[int, ...], np.dtype], sizes: dict[str, int]) -> None:
    chosen = [
        f"{free} = {size}"
        for free, size in zip(spec.shape, found[0], strict=True)
        if isinstance(free, str) and free not in sizes
    ]
    if chosen:
        example = ",".join(map(str, spec.example))
        print(
            f"note: input {name} is {spec}; free sizes: {', '.join(chosen)} (others: --shape {name}={example})",
            file=sys.stderr,
        )


def _inferred(model: Model, missing: list[str], given: Specs) -> Specs:
    """Returns shapes and dtypes that the graph implies; sizes that it leaves unknown are 1."""
    known = {name: array.shape for name, array in model.parameters.items()}
    known.update({name: shape for name, (shape, _) in given.items()})
    arguments, _, _ = model.symbol.infer_shape_partial(**known)
    shapes = dict(zip(model.symbol.list_arguments(), arguments, strict=True))
    types = dict(zip(model.symbol.list_arguments(), model.symbol.infer_type_partial()[0], strict=True))
    forms = {name: tuple(shapes.get(name) or ()) for name in missing}
    found = {
        name: (tuple(max(size, 1) for size in shape), np.dtype(types.get(name) or np.float32))
        for name, shape in forms.items()
    }
    fits = _fits(model, {**given, **found})
    for name, shape in forms.items():
        unknown = f"({', '.join(str(size) if size > 0 else '?' for size in shape)})"
        if not shape or (not fits and min(shape) <= 0):
            raise ShapeError(
                f"'{model.path}' does not contain the shape of its input {name!r}"
                + (f" (known of it: {unknown})" if shape else ""),
                because=None if model.parameter_path else "no parameter file was found, so parameters count as inputs",
                fix=f"give --shape {name}=SIZES, such as --shape {name}=1,3,224,224"
                + ("" if model.parameter_path else ", or the parameter file"),
            )
        if min(shape) <= 0:
            print(
                f"note: input {name} has the shape {unknown} in the file; unknown sizes are 1 "
                f"(others: --shape {name}=SIZES)",
                file=sys.stderr,
            )
    return found
