"""Loops and branches over arrays: foreach, while_loop, cond, and scan with its simpler forms.

Also available as ``nd.contrib.foreach``, ``sym.contrib.foreach``, ``F.contrib.foreach``, and so on.
"""

from .._control_flow.calls import BodyNode
from .._control_flow.functions import cond, foreach, while_loop
from .._control_flow.scan import foldl, foldr, scan, until
from .._control_flow.scan import map as map
from .._control_flow.scan import reduce as reduce
from .._public_names import dir_of

# Without map and reduce, so that "import *" does not replace Python's.
__all__ = ["BodyNode", "cond", "foldl", "foldr", "foreach", "scan", "until", "while_loop"]

__dir__ = dir_of(__name__)
