"""``mx.sym.npx``: the functions of ``mx.npx`` for Symbols."""

from ..._public_names import dir_of
from .._mirror import mirror

__all__: list[str] = []

__getattr__, __dir__ = mirror(__name__, "hybridnet.numpy_extension", modules="image random")
__dir__ = dir_of(__name__, __dir__)
