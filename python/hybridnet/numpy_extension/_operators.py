"""Public names of ``mx.npx`` that are operators without a Python wrapper, with the operator of each."""

from __future__ import annotations

__all__ = ["OPERATORS"]

_SAME_NAME = (
    "activation arange_like batch_dot batch_flatten batch_norm cast constraint_check convolution deconvolution "
    "dropout embedding erf erfinv fully_connected gamma gammaln gather_nd layer_norm leaky_relu log_softmax "
    "multibox_detection multibox_prior multibox_target nonzero one_hot pick pooling relu reshape reshape_like rnn "
    "roi_pooling sequence_mask shape_array sigmoid slice smooth_l1 softmax topk"
)
OPERATORS = {name: f"_npx_{name}" for name in _SAME_NAME.split()}
