"""Lists of the operators that run in 16 bits, in 32 bits, and in the widest type of their inputs."""

from __future__ import annotations

__all__ = ["CONDITIONAL", "FLOAT32", "LOSSES", "TARGET", "WIDEST"]

# Matrix products: fast in 16 bits, with accumulation in 32.
TARGET = ("Convolution", "Deconvolution", "FullyConnected", "RNN")

# Operators that overflow or lose too much accuracy in 16 bits: exponents, powers, long sums, normalization, losses.
FLOAT32 = (
    *("arccos", "arcsin", "arctanh", "cosh", "erfinv", "sinh", "tan", "exp", "expm1", "log", "log10", "log1p", "log2"),
    *("broadcast_power", "broadcast_hypot", "square", "reciprocal", "rsqrt", "rcbrt", "gamma", "gammaln"),
    *("_rdiv_scalar", "_power_scalar", "_rpower_scalar", "_hypot_scalar", "_square_sum"),
    *("sum", "nansum", "prod", "nanprod", "mean", "norm", "moments", "argsort", "topk", "khatri_rao"),
    *("softmax", "softmin", "log_softmax", "SoftmaxActivation", "SoftmaxOutput", "softmax_cross_entropy"),
    *("InstanceNorm", "LayerNorm", "GroupNorm", "L2Normalization", "LRN", "_contrib_SyncBatchNorm"),
    "_contrib_rms_norm",
    *("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput", "smooth_l1"),
    *("MakeLoss", "make_loss", "CTCLoss", "Custom", "_contrib_count_sketch", "_contrib_fft", "_contrib_hawkesll"),
    *("_linalg_det", "_linalg_extractdiag", "_linalg_extracttrian", "_linalg_gelqf", "_linalg_gemm", "_linalg_gemm2"),
    *("_linalg_inverse", "_linalg_makediag", "_linalg_maketrian", "_linalg_potrf", "_linalg_potri", "_linalg_slogdet"),
    *("_linalg_sumlogdiag", "_linalg_syevd", "_linalg_syrk", "_linalg_trmm", "_linalg_trsm"),
    *("_contrib_MultiBoxDetection", "_contrib_MultiBoxPrior", "_contrib_MultiBoxTarget"),
    *("_contrib_DeformableConvolution", "_contrib_DeformablePSROIPooling", "IdentityAttachKLSparseReg"),
)

# Run in 32 bits only for some values of a parameter.
CONDITIONAL = (("Activation", "act_type", ("softrelu",)), ("LeakyReLU", "act_type", ("elu", "selu")))

# Have several inputs that must have the same type.
WIDEST = (
    *("Concat", "stack", "add_n", "where", "dot", "batch_dot", "Correlation"),
    *("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div"),
    *("broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_div", "broadcast_mod"),
    *("broadcast_maximum", "broadcast_minimum", "broadcast_equal", "broadcast_not_equal", "broadcast_greater"),
    *("broadcast_greater_equal", "broadcast_lesser", "broadcast_lesser_equal"),
    *("broadcast_logical_and", "broadcast_logical_or", "broadcast_logical_xor"),
    *("_contrib_box_iou", "_contrib_box_nms", "_contrib_ROIAlign", "_contrib_PSROIPooling", "_contrib_Proposal"),
    *("_contrib_interleaved_matmul_encdec_qk", "_contrib_interleaved_matmul_encdec_valatt"),
    *("_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_selfatt_valatt"),
)

# Have outputs that are predictions; their backward pass starts a new gradient.
LOSSES = ("SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput")
