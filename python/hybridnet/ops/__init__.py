"""Operators: every registered operator is one callable object, shared by ``nd``, ``sym`` and ``F``.

``_generated.pyi`` declares them as typed functions for editors and reviews; ``tools/gen_frontend.py`` writes it.
"""

from .._public_names import dir_of

__dir__ = dir_of(__name__)
