"""Recurrent cells, under MXNet's module name."""

from .._public_names import dir_of
from ._base_cell import BaseRNNCell, RNNParams
from ._cells import DropoutCell, GRUCell, LSTMCell, RNNCell
from ._containers import BidirectionalCell, SequentialRNNCell
from ._conv_cells import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from ._fused_cell import FusedRNNCell
from ._modifiers import ModifierCell, ResidualCell, ZoneoutCell

__all__ = [
    "BaseConvRNNCell",
    "BaseRNNCell",
    "BidirectionalCell",
    "ConvGRUCell",
    "ConvLSTMCell",
    "ConvRNNCell",
    "DropoutCell",
    "FusedRNNCell",
    "GRUCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RNNParams",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
]

__dir__ = dir_of(__name__)
