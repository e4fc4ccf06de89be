"""Further recurrent cells."""

from ...._public_names import dir_of
from .conv_rnn_cell import *
from .rnn_cell import *

__dir__ = dir_of(__name__)
