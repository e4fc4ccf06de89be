"""Further recurrent cells."""

from .rnn_cell import *
