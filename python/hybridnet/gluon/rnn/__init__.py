"""Recurrent cells (one step, unrolled in Python) and layers (a whole sequence as one operator)."""

from .rnn_cell import *
from .rnn_layer import *
