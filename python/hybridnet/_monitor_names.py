"""Names of operator inputs for monitors and hooks, by MXNet's rule.

Operators that list the names of their inputs use these: ``fc_weight``. The inputs of others are numbered:
``relu_input0``. All operators with several inputs list their names, and so do the following with one input.
"""

from __future__ import annotations

from . import _core

__all__ = ["names_of_inputs"]

_WORDS = """
Dropout GridGenerator L2Normalization LRN MakeLoss Pad Pooling SliceChannel SwapAxis _contrib_MultiBoxPrior
_contrib_index_array _contrib_quadratic _contrib_quantize_v2 _histogram _image_normalize _image_to_tensor _np_all
_np_any _np_diag _np_diagflat _np_diagonal _np_roll _np_trace _npi_diag_indices_from _npi_dsplit _npi_equal_scalar
_npi_greater_equal_scalar _npi_greater_scalar _npi_hsplit _npi_less_equal_scalar _npi_less_scalar _npi_nan_to_num
_npi_not_equal_scalar _npi_pad _npi_rot90 _npi_tril _npi_unique _ravel_multi_index _split_v2 _unravel_index
all_finite col2im depth_to_space diag im2col log_softmax moments repeat reverse space_to_depth squeeze tile
softmax _npi_flip _contrib_fft _contrib_ifft
"""
_LISTED = frozenset(_WORDS.split())


def names_of_inputs(op: str, count: int) -> list[str]:
    """Returns the input names of a use of op with this number of inputs, without the node's name as prefix."""
    described = _core.describe_op(op)
    if described["variadic"]:
        return [f"arg{i}" for i in range(count)]
    names = [info["name"] for info in described["inputs"]]
    if len(names) < count or (len(names) == 1 and op not in _LISTED):
        return [f"input{i}" for i in range(count)]
    return names
