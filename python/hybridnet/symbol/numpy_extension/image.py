"""``mx.sym.npx.image``: the functions of ``mx.npx.image`` for Symbols; calls without inputs create nodes too."""

from ..._public_names import dir_of
from .._mirror import mirror

__all__: list[str] = []

__getattr__, __dir__ = mirror(__name__, "hybridnet.numpy_extension.image")
__dir__ = dir_of(__name__, __dir__)
