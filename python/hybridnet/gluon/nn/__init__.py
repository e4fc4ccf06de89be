"""Layers."""

from ..block import Block
from ..hybrid_block import HybridBlock
from ..symbol_block import SymbolBlock
from .activations import *
from .basic_layers import *
from .conv_layers import *
from .norm_layers import *
from .pool_layers import *
