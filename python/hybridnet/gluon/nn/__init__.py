"""Layers."""

from .._hybrid_block import HybridBlock
from .._symbol_block import SymbolBlock
from ..block import Block
from ._norm_layers import *
from ._pool_layers import *
from .activations import *
from .basic_layers import *
from .conv_layers import *
