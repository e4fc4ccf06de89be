"""Usual causes of a NaN or an infinity, by operator: the "Fix" of an AnomalyError."""

from __future__ import annotations

import re

__all__ = ["fix_of"]

# (operators, cause in the forward pass, cause in the gradient); the first row that matches is used. Names are compared
# without prefixes such as "_npi_" and "broadcast_" and without the endings "_scalar".
_CAUSES = [
    (
        r"log(2|10)?|log1p",
        "log(0) is -infinity and the log of a negative number is NaN: add a small number or clip before it, as in "
        "(x + 1e-12).log(), or use log_softmax for log(softmax(x))",
        "the gradient of log is 1 / x, which is infinite at 0: add a small number before it, as in (x + 1e-12).log()",
    ),
    (
        r"r?(div|true_divide|rdiv|rtrue_divide|divide|reciprocal|elemwise_div|mod|floor_divide)",
        "a division by 0 (0 / 0 is NaN): add a small number to the divisor, or select its zeros out by where() before "
        "the division",
        "the gradient of a / b contains 1 / b and a / b**2, which overflow for a small b: keep the divisor away from "
        "0. A where() after the division does not help: its gradient still multiplies 0 by infinity",
    ),
    (
        r"(r|rc|c)?(sqrt|brt)",
        "the root of a negative number is NaN, and 1 / sqrt(0) is infinite: clip to 0, or add a small number before it",
        "the gradient of a root is infinite at 0: add a small number before it, as in (x + 1e-12).sqrt()",
    ),
    (
        r"norm|std",
        "the squares overflow: scale the input down",
        "the gradient of a norm is 0 / 0 at 0: add a small number inside of the root, as in "
        "((x * x).sum() + 1e-12).sqrt()",
    ),
    (
        r"exp|exp2|expm1|sinh|cosh|softplus|gamma|gammaln",
        "exp overflows above 88 in float32, 11 in float16: subtract the largest value before it, or use softmax, "
        "log_softmax or logsumexp",
        "exp overflows above 88 in float32, 11 in float16: clip its input, or use softmax or log_softmax",
    ),
    (
        r"r?power",
        "a negative number to the power of a fraction is NaN, 0 to a negative power is infinite, and large powers "
        "overflow: clip the base",
        "the gradient of x ** p is p * x ** (p - 1), infinite at 0 for p < 1, and that of p contains log(x): keep the "
        "base above 0",
    ),
    (
        r"arccos|arcsin|arccosh|arctanh|erfinv",
        "the input lies outside of the function's range: clip it, as in x.clip(-1 + 1e-6, 1 - 1e-6)",
        "the gradient is infinite at the ends of the function's range: clip the input, as in "
        "x.clip(-1 + 1e-6, 1 - 1e-6)",
    ),
    (
        r"Cast|cast|amp_cast",
        "the value is larger than the new dtype can hold (65504 in float16): scale it before the cast, or use bfloat16",
        "the gradient overflows in the narrower dtype: use a loss scale that adapts (mx.contrib.amp) or bfloat16",
    ),
    (
        r"(BatchNorm|LayerNorm|GroupNorm|InstanceNorm|batch_norm|layer_norm)",
        "a variance of 0 with eps=0, or inputs whose squares overflow: raise epsilon, lower the learning rate",
        "a variance near 0: raise epsilon",
    ),
    (
        r"(FullyConnected|Convolution|Deconvolution|dot|batch_dot|matmul|RNN|fully_connected|convolution|linalg_gemm2?)",
        "the products overflow, mostly because weights have grown: lower the learning rate, clip gradients "
        "(gluon.utils.clip_global_norm), check the scale of the inputs",
        "the products overflow: scale the loss down, clip gradients earlier, check the scale of the inputs",
    ),
    (
        r"(softmax|log_softmax|SoftmaxOutput)",
        "all values of a row are -infinity (a mask that hides everything), or a value is +infinity: keep one place of "
        "each row unmasked, mask by a large negative number such as -1e9",
        "a row is masked completely: keep one place of each row unmasked",
    ),
    (
        r"(sgd|adam|nag|rmsprop|ftrl|ftml|lamb|sign).*update.*",
        "the update is too large: lower the learning rate, clip gradients, check them by detect_anomaly around "
        "backward()",
        "",
    ),
    (
        r"r?(add|sub|subtract|plus|minus|rminus|elemwise_add|elemwise_sub|mul|multiply|elemwise_mul|sum|mean|var|cumsum)",
        "the result is larger than the dtype can hold, or infinity - infinity and 0 * infinity, which are NaN: scale "
        "the values down, find the operator that made the infinity (inf=True)",
        "the sum of gradients is larger than the dtype can hold: scale the loss down",
    ),
]  # fmt: skip

_PREFIX = re.compile(r"^_?(npi_|npx_|np_|broadcast_|contrib_|linalg_|random_|mp_|multi_)*")
_OTHER = "check the range of the operator's inputs, the learning rate and the dtype"
_FLOAT16 = "; float16 overflows above 65504: use bfloat16 or float32 there, or a loss scale (mx.contrib.amp)"


def fix_of(op: str, dtype: str, in_gradient: bool) -> str:
    """Returns the usual causes and their fix for an operator whose result, or gradient, is not finite."""
    name = _PREFIX.sub("", op)
    name = name.removesuffix("_scalar") or op
    fix = ""
    for pattern, forward, gradient in _CAUSES:
        if re.fullmatch(pattern, name) or re.fullmatch(pattern, op):
            fix = gradient if in_gradient else forward
            break
    fix = fix or _OTHER
    return fix + _FLOAT16 if dtype == "float16" and "float16" not in fix else fix
