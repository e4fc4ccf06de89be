"""Recurrent cells (one step, unrolled in Python) and layers (a whole sequence as one operator)."""

from ..._lazy_names import refusing
from ..._public_names import dir_of
from ._cell_containers import *
from ._modifier_cells import *
from .rnn_cell import *
from .rnn_layer import *

__getattr__, __dir__ = refusing(__name__), dir_of(__name__)
