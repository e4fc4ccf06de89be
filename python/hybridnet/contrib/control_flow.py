"""Loops and branches over arrays: foreach, while_loop, cond.

Also reached as ``nd.contrib.foreach``, ``sym.contrib.foreach``, ``F.contrib.foreach``, and so on.
"""

from .._control_flow.calls import BodyNode
from .._control_flow.functions import cond, foreach, while_loop

__all__ = ["BodyNode", "cond", "foreach", "while_loop"]
