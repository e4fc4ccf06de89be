"""Recurrent cells that make graphs for mx.mod.Module. New programs use gluon.rnn."""

from . import io, rnn, rnn_cell
from .base_cell import *
from .cells import *
from .checkpoint import *
from .containers import *
from .conv_cells import *
from .fused_cell import *
from .io import *
from .modifiers import *
