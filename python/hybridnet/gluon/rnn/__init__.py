"""Recurrent cells (one step, unrolled in Python) and layers (a whole sequence as one operator)."""

from ._cell_containers import *
from ._modifier_cells import *
from .rnn_cell import *
from .rnn_layer import *
