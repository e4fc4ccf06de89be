"""Checkpoints with unpacked weights of cells, so that fused and unfused cells can read each other's files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import model
from ..symbol import Symbol
from ._base_cell import BaseRNNCell

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "save_rnn_checkpoint"]


def _list(cells: BaseRNNCell | Sequence[BaseRNNCell]) -> Sequence[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else cells


def save_rnn_checkpoint(
    cells: BaseRNNCell | Sequence[BaseRNNCell],
    prefix: str,
    epoch: int,
    symbol: Symbol,
    arg_params: dict[str, Any],
    aux_params: dict[str, Any],
) -> None:
    """Runs model.save_checkpoint with unpacked weights of cells."""
    for cell in _list(cells):
        arg_params = cell.unpack_weights(arg_params)
    model.save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(
    cells: BaseRNNCell | Sequence[BaseRNNCell], prefix: str, epoch: int
) -> tuple[Symbol, dict[str, Any], dict[str, Any]]:
    """Returns (symbol, arguments, auxiliary states) of save_rnn_checkpoint, with weights packed for cells."""
    symbol, arg_params, aux_params = model.load_checkpoint(prefix, epoch)
    for cell in _list(cells):
        arg_params = cell.pack_weights(arg_params)
    return symbol, arg_params, aux_params


def do_rnn_checkpoint(cells: BaseRNNCell | Sequence[BaseRNNCell], prefix: str, period: int = 1) -> Callable[..., None]:
    """Returns a callback for Module.fit that writes a checkpoint every period epochs."""
    period = int(max(1, period))

    def callback(epoch: int, symbol: Any = None, arg_params: Any = None, aux_params: Any = None) -> None:
        if (epoch + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, epoch + 1, symbol, arg_params, aux_params)

    return callback
