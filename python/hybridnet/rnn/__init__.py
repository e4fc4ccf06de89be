"""Recurrent cells that create graphs for mx.mod.Module. New programs use gluon.rnn."""

from .._public_names import dir_of
from . import io, rnn, rnn_cell
from ._base_cell import *
from ._cells import *
from ._checkpoint import *
from ._containers import *
from ._conv_cells import *
from ._fused_cell import *
from ._modifiers import *
from .io import *

__dir__ = dir_of(__name__)
