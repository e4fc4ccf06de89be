"""Checkpoints: a symbol and its parameters in two files."""

from __future__ import annotations

import logging
from collections import namedtuple
from typing import Any

from . import ndarray as nd
from . import symbol as sym
from ._lazy_names import names_from
from ._public_names import dir_of
from .context import cpu
from .errors import FormatError

__all__ = ["BatchEndParam", "load_checkpoint", "load_params", "save_checkpoint"]


__getattr__, __dir__ = names_from(
    __name__,
    {"_feed_forward": "FeedForward"},
    {"io": ".io", "kvs": ".kvstore", "metric": ".metric", "opt": ".optimizer"},
)  # mx.mod, which it imports, imports this module

# The argument of batch-end callbacks.
BatchEndParam = namedtuple("BatchEndParams", ["epoch", "nbatch", "eval_metric", "locals"])  # type: ignore[name-match]  # as in MXNet


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Any,
    arg_params: dict[str, Any],
    aux_params: dict[str, Any],
    remove_amp_cast: bool = True,
) -> None:
    """Writes prefix-symbol.json (unless symbol is None) and prefix-0001.params for epoch 1."""
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
    arrays = {f"arg:{name}": array.as_in_context(cpu()) for name, array in arg_params.items()}
    arrays.update({f"aux:{name}": array.as_in_context(cpu()) for name, array in aux_params.items()})
    file = f"{prefix}-{epoch:04d}.params"
    nd.save(file, arrays)
    logging.info('Saved checkpoint to "%s"', file)


def load_params(prefix: str, epoch: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Loads (arguments, auxiliary states) from prefix-0001.params. Raises FileError, FormatError."""
    file = f"{prefix}-{epoch:04d}.params"
    arrays = nd.load(file)
    if not arrays:
        logging.warning("Params file '%s' is empty", file)
        return {}, {}
    if not isinstance(arrays, dict):
        raise FormatError(f"'{file}' holds a list of arrays without names, so it is no checkpoint")
    found: dict[str, dict[str, Any]] = {"arg": {}, "aux": {}}
    for key, array in arrays.items():
        kind, colon, name = key.partition(":")
        if not colon or kind not in found:
            raise FormatError(f"'{file}': expected names that start with 'arg:' or 'aux:'", given=f"'{key}'")
        found[kind][name] = array
    return found["arg"], found["aux"]


def load_checkpoint(prefix: str, epoch: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Loads (symbol, arguments, auxiliary states) of save_checkpoint. Raises FileError, FormatError."""
    symbol = sym.load(f"{prefix}-symbol.json")
    arg_params, aux_params = load_params(prefix, epoch)
    return symbol, arg_params, aux_params


__dir__ = dir_of(__name__, __dir__)
