"""Layers."""

from ..._lazy_names import refusing
from ..._public_names import dir_of
from .._hybrid_block import HybridBlock as HybridBlock
from .._symbol_block import SymbolBlock as SymbolBlock
from ..block import Block as Block
from ._norm_layers import *
from ._pool_layers import *
from .activations import *
from .basic_layers import *
from .conv_layers import *

__getattr__, __dir__ = refusing(__name__), dir_of(__name__)
