# Written by tools/gen_frontend.py from the operator registry; `tools/dev gen` writes it again. ruff: noqa
"""Every operator once. nd.X and sym.X are these functions: given arrays they run, given Symbols they make nodes.

Names with an underscore stand under nd._internal, nd.random (_random_), nd.linalg (_linalg_), nd.contrib (_contrib_) and
nd.image (_image_).
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from ..ndarray.ndarray import NDArray
from ..symbol.symbol import Symbol

TensorT = TypeVar("TensorT", NDArray, Symbol)
DType = Any

def BlockGrad(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Copies the input; no gradient passes through.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of data
    """

_sparse_stop_gradient = BlockGrad
stop_gradient = BlockGrad

def Cast(data: TensorT, dtype: DType, *, out: Any = None, name: str | None = None) -> TensorT:
    """Converts to another dtype. Floating to integer rounds toward zero; values that do not fit become the nearest
    limit and NaN becomes 0. To bool: anything but 0 is true.

    Parameters
    ----------
    data : tensor
        array of any shape and dtype
    dtype : dtype
        Dtype of the output.

    Returns: out: shape of data, dtype as asked for
    """

_npi_cast = Cast
_npx_cast = Cast
cast = Cast

def Concat(*data: TensorT, num_args: int = ..., dim: int = 1, out: Any = None, name: str | None = None) -> TensorT:
    """Joins tensors along an existing axis.

    Parameters
    ----------
    data : tensor
        equal shapes but for the joined axis, one dtype
    num_args : int, at least 1
        Number of inputs.
    dim : int
        The axis along which inputs are joined.

    Returns: output: sizes of the inputs; their sum in the joined axis
    """

_sparse_concat = Concat
concat = Concat

def Convolution(
    data: TensorT,
    weight: TensorT,
    bias: TensorT | None = None,
    kernel: int | Sequence[int] = ...,
    stride: int | Sequence[int] = (),
    dilate: int | Sequence[int] = (),
    pad: int | Sequence[int] = (),
    num_filter: int = ...,
    num_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"] | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Slides num_filter kernels over data and sums products: out[n, o, p] = bias[o] + sum over channels i and taps q
    of data[n, i, p * stride + q * dilate - pad] * weight[o, i, q].

    Parameters
    ----------
    data : tensor
        (batch, channels, spatial...), 1 to 3 spatial axes; with layout N...C the channels come last
    weight : tensor
        (num_filter, channels / num_group, kernel...), or (num_filter, kernel..., channels / num_group)
    bias : tensor, optional
        (num_filter,)
    kernel : tuple of int
        Window: (w,), (h, w) or (d, h, w).
    stride : tuple of int
        Steps of the window; empty: 1 everywhere.
    dilate : tuple of int
        Distance between taps; empty: 1 everywhere.
    pad : tuple of int
        Zeros added on both sides; empty: none.
    num_filter : int, at least 1
        Number of output channels.
    num_group : int, at least 1
        Channels are split into this many groups that do not see each other.
    no_bias : bool
        Whether the bias input is absent.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'} or None
        Order of the axes of data, weight and output; None: channels second.

    Returns: output: (batch, num_filter, out...) with out = floor((size + 2 pad - dilate (kernel - 1) - 1) / stride)
    + 1
    """

_npx_convolution = Convolution

def Crop(
    *data: TensorT,
    num_args: int = ...,
    offset: int | Sequence[int] = (0, 0),
    h_w: int | Sequence[int] = (0, 0),
    center_crop: bool = False,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Cuts images to h_w, or to the height and width of a second tensor.

    Parameters
    ----------
    data : tensor
        shape (N, C, H, W); the second gives height and width only
    num_args : int, range [1, 2]
        1: cut to h_w; 2: cut to the size of the second input.
    offset : tuple of int
        First row and column kept.
    h_w : tuple of int
        Height and width kept, with one input.
    center_crop : bool
        Cut from the centre instead of at offset.

    Returns: output: shape (N, C, height, width)
    """

def Dropout(
    data: TensorT,
    p: float = 0.5,
    mode: Literal["training", "always"] = "training",
    axes: int | Sequence[int] = (),
    cudnn_off: bool | None = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """In training, sets elements to 0 with probability p and divides the others by 1 - p; the identity otherwise.
    Srivastava et al.: Dropout: a simple way to prevent neural networks from overfitting, JMLR 15 (2014).

    Parameters
    ----------
    data : tensor
        floating array of any shape
    p : float, range [0, 1]
        Probability that an element becomes 0.
    mode : {'training', 'always'}
        training: the identity outside of training; always: drops in both.
    axes : tuple of int
        Axes along which all elements share one decision.

    Returns: output: shape and dtype of data; mask: uint8, 1 where elements were kept; shape of data with size 1
    along axes
    """

_npx_dropout = Dropout

def Embedding(
    data: TensorT,
    weight: TensorT,
    input_dim: int,
    output_dim: int,
    dtype: DType = "float32",
    sparse_grad: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Rows of weight, named by data; indices out of range take the nearest row.

    Parameters
    ----------
    data : tensor
        any shape; whole numbers of any dtype
    weight : tensor
        shape (input_dim, output_dim)
    input_dim : int, at least 1
        Number of rows of weight.
    output_dim : int, at least 1
        Length of a row of weight.
    dtype : dtype
        Dtype of weight where nothing else says it.
    sparse_grad : bool
        Accepted; the gradient is dense.

    Returns: output: shape of data with output_dim appended; dtype of weight
    """

_npx_embedding = Embedding
_sparse_Embedding = Embedding

def Flatten(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Merges all dimensions but the first into one.

    Parameters
    ----------
    data : tensor
        shape (N, ...), any dtype

    Returns: output: shape (N, product of the rest)
    """

_npx_batch_flatten = Flatten
flatten = Flatten

def FullyConnected(
    data: TensorT,
    weight: TensorT,
    bias: TensorT | None = None,
    num_hidden: int = ...,
    no_bias: bool = False,
    flatten: bool = True,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Affine map of each row: data weight^T + bias.

    Parameters
    ----------
    data : tensor
        (batch, ...), or (..., features) with flatten=False
    weight : tensor
        (num_hidden, features)
    bias : tensor, optional
        (num_hidden,)
    num_hidden : int, at least 1
        Number of outputs per row.
    no_bias : bool
        Whether the bias input is absent.
    flatten : bool
        Take all axes of data but the first as one; otherwise apply to the last axis.

    Returns: output: (batch, num_hidden), or (..., num_hidden) with flatten=False
    """

_npx_fully_connected = FullyConnected
_sparse_FullyConnected = FullyConnected

def GroupNorm(
    data: TensorT,
    gamma: TensorT,
    beta: TensorT,
    num_groups: int = 1,
    eps: float = 1e-05,
    output_mean_var: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Normalizes groups of channels of each example to mean 0 and variance 1, then scales and shifts each group.

    Parameters
    ----------
    data : tensor
        (batch, channels, ...)
    gamma : tensor
        (num_groups,): scale
    beta : tensor
        (num_groups,): shift
    num_groups : int, at least 1
        Number of groups of channels.
    eps : float, at least 0
        Added to the variance.
    output_mean_var : bool
        Return mean and std too.

    Returns: output: shape and dtype of data; mean: (batch, num_groups); std: (batch, num_groups): sqrt(variance +
    eps)
    """

def InstanceNorm(
    data: TensorT, gamma: TensorT, beta: TensorT, eps: float = 0.001, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Normalizes each channel of each example to mean 0 and variance 1, then scales and shifts each channel.

    Parameters
    ----------
    data : tensor
        (batch, channels, ...)
    gamma : tensor
        (channels,): scale
    beta : tensor
        (channels,): shift
    eps : float, at least 0
        Added to the variance.

    Returns: output: shape and dtype of data; mean: (batch, channels); var: (batch, channels)
    """

def L2Normalization(
    data: TensorT,
    eps: float = 1e-10,
    mode: Literal["instance", "channel", "spatial"] = "instance",
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Divides by the Euclidean norm over the axes that mode names: data / sqrt(sum(data^2) + eps).

    Parameters
    ----------
    data : tensor
        (batch, ...); (batch, channels, ...) for modes channel and spatial
    eps : float, at least 0
        Added to the sum of squares.
    mode : {'instance', 'channel', 'spatial'}
        Axes of the norm. instance: all but the first; channel: the second; spatial: the third to the last.

    Returns: output: shape and dtype of data; norm: the norms: (batch,), (batch, 1, ...) or (batch, channels)
    """

def LRN(
    data: TensorT,
    alpha: float = 0.0001,
    beta: float = 0.75,
    knorm: float = 2.0,
    nsize: int = ...,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Divides by (knorm + alpha / nsize * sum of squares over nsize neighbouring channels) ^ beta.

    Parameters
    ----------
    data : tensor
        (batch, channels, ...)
    alpha : float
        Factor of the mean square.
    beta : float
        Exponent.
    knorm : float
        Added to the scaled mean square.
    nsize : int, at least 1
        Channels in the window around each channel; odd.

    Returns: output: shape and dtype of data; tmp_norm: what was raised to the power beta; shape of data
    """

def Pad(
    data: TensorT,
    mode: Literal["constant", "edge", "reflect"],
    pad_width: int | Sequence[int],
    constant_value: float = 0.0,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Data in a frame of constants, of its repeated borders, or of itself mirrored.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    mode : {'constant', 'edge', 'reflect'}
        What the frame holds: constant_value, the nearest element, or the data mirrored at its border.
    pad_width : tuple of int
        Widths before and after each axis in turn: two numbers per axis.
    constant_value : float
        Value of the frame in mode constant.

    Returns: output: sizes of data plus the widths before and after
    """

pad = Pad

def Reshape(
    data: TensorT,
    shape: int | Sequence[int] = (),
    reverse: bool = False,
    target_shape: int | Sequence[int] = (),
    keep_highest: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """The same elements, in the same order, under another shape.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    shape : tuple of int
        Target shape; 0 copies a size, -1 is inferred, -2 copies all the rest, -3 merges two sizes, -4 splits
        one.
    reverse : bool
        Read shape and data's shape from the right.
    target_shape : tuple of int
        Deprecated form of shape; one 0 is inferred.
    keep_highest : bool
        With target_shape: the first size stays that of data.

    Returns: output: dtype of data; shape as the parameters say
    """

reshape = Reshape

def SliceChannel(
    data: TensorT,
    num_outputs: int,
    axis: int = 1,
    squeeze_axis: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Cuts data into num_outputs equal parts along an axis.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    num_outputs : int, at least 1
        Number of equal parts.
    axis : int
        The axis that is cut.
    squeeze_axis : bool
        Drop the axis; its size must be num_outputs.

    Returns: output: one per part, dtype of data
    """

split = SliceChannel

def SwapAxis(data: TensorT, dim1: int = 0, dim2: int = 0, *, out: Any = None, name: str | None = None) -> TensorT:
    """Exchanges two axes.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    dim1 : int
        One axis.
    dim2 : int
        The other axis.

    Returns: output: shape of data with two sizes exchanged
    """

_npi_swapaxes = SwapAxis
swapaxes = SwapAxis

def abs(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Magnitude; its gradient at 0 is 0.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_abs = abs
_npi_absolute = abs
_sparse_abs = abs

def adam_update(
    weight: TensorT,
    grad: TensorT,
    mean: TensorT,
    var: TensorT,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-08,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """g = clip(rescale_grad * grad + wd * weight); mean and var follow g and g * g; weight -= lr * mean / (sqrt(var) +
    epsilon)

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mean : tensor
        like weight; replaced
    var : tensor
        like weight; replaced
    lr : float
        Learning rate.
    beta1 : float
        Decay rate of the mean of gradients.
    beta2 : float
        Decay rate of the mean of squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.

    Returns: weight_out: updated weight; mean_out: replaces mean; var_out: replaces var
    Not differentiable.
    """

_sparse_adam_update = adam_update

def add_n(*args: TensorT, num_args: int = ..., out: Any = None, name: str | None = None) -> TensorT:
    """Sum of several arrays of equal shape and dtype, in one pass over memory.

    Parameters
    ----------
    args : tensor
        arrays of equal shape and dtype
    num_args : int, at least 1
        Number of arrays.

    Returns: out: shape and dtype of the inputs
    """

ElementWiseSum = add_n
_sparse_ElementWiseSum = add_n
_sparse_add_n = add_n

def amp_cast(data: TensorT, dtype: DType, *, out: Any = None, name: str | None = None) -> TensorT:
    """Converts to a floating dtype for mixed precision; integer inputs stay as they are.

    Parameters
    ----------
    data : tensor
        array of any shape and dtype
    dtype : dtype
        Dtype of the output.

    Returns: out: shape of data
    """

def batch_dot(
    lhs: TensorT,
    rhs: TensorT,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: str | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Matrix products of two stacks of matrices: out[b...] = lhs[b...] rhs[b...].

    Parameters
    ----------
    lhs : tensor
        (batch..., m, k), or (batch..., k, m) when transpose_a
    rhs : tensor
        (batch..., k, n), or (batch..., n, k) when transpose_b
    transpose_a : bool
        Transpose the matrices of lhs first.
    transpose_b : bool
        Transpose the matrices of rhs first.

    Returns: output: (batch..., m, n)
    """

_npx_batch_dot = batch_dot

def batch_take(a: TensorT, indices: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Element indices[i] of each row i.

    Parameters
    ----------
    a : tensor
        shape (N, K), any dtype
    indices : tensor
        shape (N,); whole numbers of any dtype, clipped to [0, K-1]

    Returns: output: shape (N,)
    """

def broadcast_add(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs + rhs with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """

_sparse_broadcast_add = broadcast_add
_sparse_broadcast_plus = broadcast_add
broadcast_plus = broadcast_add

def broadcast_div(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs / rhs with broadcasting. Integers: rounded toward zero, 0 where rhs is 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """

_sparse_broadcast_div = broadcast_div

def broadcast_mul(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs * rhs with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """

_sparse_broadcast_mul = broadcast_mul

def broadcast_sub(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs - rhs with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """

_sparse_broadcast_minus = broadcast_sub
_sparse_broadcast_sub = broadcast_sub
broadcast_minus = broadcast_sub

def broadcast_to(
    data: TensorT, shape: int | Sequence[int] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """Repeats the input along its axes of size 1 until it has the given shape.

    Parameters
    ----------
    data : tensor
        array whose sizes are 1 or those of shape
    shape : tuple of int
        Shape of the output; 0 (or -1 under NumPy shapes) copies the input's size.

    Returns: out: dtype of data, shape as given
    """

_npi_broadcast_to = broadcast_to

def depth_to_space(data: TensorT, block_size: int, *, out: Any = None, name: str | None = None) -> TensorT:
    """Channels spread out as blocks of pixels: element (n, (r, s, c), h, w) becomes (n, c, h * b + r, w * b + s).

    Parameters
    ----------
    data : tensor
        shape (N, C * b * b, H, W), any dtype
    block_size : int, at least 1
        Edge of a block of pixels.

    Returns: output: shape (N, C, H * b, W * b)
    """

def diag(
    data: TensorT, k: int = 0, axis1: int = 0, axis2: int = 1, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The diagonals of a tensor, or a matrix with a vector on its diagonal.

    Parameters
    ----------
    data : tensor
        at least 1 dimension, any dtype
    k : int
        Which diagonal: 0 the main one, positive above, negative below.
    axis1 : int
        The axis of rows. Not for vectors.
    axis2 : int
        The axis of columns. Not for vectors.

    Returns: output: data without the two axes, the diagonal last; for a vector (n + |k|, n + |k|)
    """

def dot(
    lhs: TensorT,
    rhs: TensorT,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: str | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Product of two arrays: out[i..., j...] = sum over x of lhs[i..., x] * rhs[x, j...]. For matrices the matrix
    product, for vectors the inner product (shape (1,), under NumPy shapes ()).

    Parameters
    ----------
    lhs : tensor
        one axis or more
    rhs : tensor
        one axis or more
    transpose_a : bool
        Contract the first axis of lhs instead of its last.
    transpose_b : bool
        Contract the last axis of rhs instead of its first.

    Returns: output: the remaining axes of lhs, then those of rhs
    """

_sparse_dot = dot

def elemwise_add(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs + rhs; equal shapes.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Plus = elemwise_add
_add = elemwise_add
_plus = elemwise_add
_sparse_elemwise_add = elemwise_add

def elemwise_div(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs / rhs; equal shapes. Integers: rounded toward zero, 0 where rhs is 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Div = elemwise_div
_div = elemwise_div
_sparse_elemwise_div = elemwise_div

def elemwise_mul(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs * rhs; equal shapes.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Mul = elemwise_mul
_mul = elemwise_mul
_sparse_elemwise_mul = elemwise_mul

def elemwise_sub(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs - rhs; equal shapes.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Minus = elemwise_sub
_minus = elemwise_sub
_sparse_elemwise_sub = elemwise_sub
_sub = elemwise_sub

def exp(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """e to the power of x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_exp = exp
_sparse_exp = exp

def expand_dims(data: TensorT, axis: int, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inserts an axis of size 1.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : int
        Where the new axis stands in the output, in [-ndim-1, ndim].

    Returns: output: one dimension more than data
    """

_npi_expand_dims = expand_dims

def expm1(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """e to the power of x, minus 1, exact for small x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_expm1 = expm1
_sparse_expm1 = expm1

def log(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Natural logarithm.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_log = log
_sparse_log = log

def log10(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Logarithm to base 10.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_log10 = log10
_sparse_log10 = log10

def log1p(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """log(1 + x), exact for small x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_log1p = log1p
_sparse_log1p = log1p

def log2(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Logarithm to base 2.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_log2 = log2
_sparse_log2 = log2

def max(
    data: TensorT,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Largest element over axes; NaN wins.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

max_axis = max

def mean(
    data: TensorT,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Mean over axes.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

_sparse_mean = mean

def min(
    data: TensorT,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Smallest element over axes; NaN wins.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

min_axis = min

def mp_nag_mom_update(
    weight: TensorT,
    grad: TensorT,
    mom: TensorT,
    weight32: TensorT,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """nag_mom_update on a float32 copy of the weight; the weight is that copy, rounded.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mom : tensor
        shape of weight, float32; replaced
    weight32 : tensor
        float32 copy of weight; replaced
    lr : float
        Learning rate.
    momentum : float
        Factor of the previous step.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.

    Returns: weight_out: updated weight; mom_out: replaces mom; weight32_out: replaces weight32
    Not differentiable.
    """

def mp_sgd_mom_update(
    weight: TensorT,
    grad: TensorT,
    mom: TensorT,
    weight32: TensorT,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """sgd_mom_update on a float32 copy of the weight; the weight is that copy, rounded.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mom : tensor
        shape of weight, float32; replaced
    weight32 : tensor
        float32 copy of weight; replaced
    lr : float
        Learning rate.
    momentum : float
        Factor of the previous step.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.

    Returns: weight_out: updated weight; mom_out: replaces mom; weight32_out: replaces weight32
    Not differentiable.
    """

def mp_sgd_update(
    weight: TensorT,
    grad: TensorT,
    weight32: TensorT,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """sgd_update on a float32 copy of the weight; the weight is that copy, rounded.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    weight32 : tensor
        float32 copy of weight; replaced
    lr : float
        Learning rate.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.

    Returns: weight_out: updated weight; weight32_out: replaces weight32
    Not differentiable.
    """

def multi_mp_sgd_mom_update(
    *data: TensorT,
    lrs: Sequence[float] = ...,
    wds: Sequence[float] = ...,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """mp_sgd_mom_update of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor in turn; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    wds : tuple of float
        Weight decays, one per tensor.
    momentum : float
        Factor of the previous step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.
    num_weights : int, at least 1
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """

def multi_mp_sgd_update(
    *data: TensorT,
    lrs: Sequence[float] = ...,
    wds: Sequence[float] = ...,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """mp_sgd_update of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor in turn; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    wds : tuple of float
        Weight decays, one per tensor.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.
    num_weights : int, at least 1
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """

def multi_sgd_mom_update(
    *data: TensorT,
    lrs: Sequence[float] = ...,
    wds: Sequence[float] = ...,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """sgd_mom_update of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor in turn; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    wds : tuple of float
        Weight decays, one per tensor.
    momentum : float
        Factor of the previous step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.
    num_weights : int, at least 1
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """

def multi_sgd_update(
    *data: TensorT,
    lrs: Sequence[float] = ...,
    wds: Sequence[float] = ...,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """sgd_update of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor in turn; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    wds : tuple of float
        Weight decays, one per tensor.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.
    num_weights : int, at least 1
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """

def nag_mom_update(
    weight: TensorT,
    grad: TensorT,
    mom: TensorT,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """mom = momentum * mom - lr * (clip(rescale_grad * grad) + wd * weight); weight moves by mom and once more by
    momentum times its change.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mom : tensor
        like weight; replaced
    lr : float
        Learning rate.
    momentum : float
        Factor of the previous step.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.

    Returns: weight_out: updated weight; mom_out: replaces mom
    Not differentiable.
    """

def nanprod(
    data: TensorT,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Product over axes; NaN counts as 1.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

def nansum(
    data: TensorT,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Sum over axes; NaN counts as 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

def negative(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """-x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_negative = negative
_sparse_negative = negative

def norm(
    data: TensorT,
    ord: int = 2,
    axis: int | Sequence[int] | None = None,
    out_dtype: DType | None = None,
    keepdims: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """L1 or L2 norm over axes.

    Parameters
    ----------
    data : tensor
        array of any shape
    ord : int, range [1, 2]
        1: sum of magnitudes; 2: root of the sum of squares.
    axis : tuple of int or None
        Axis or axes of the norm; None or () takes all.
    out_dtype : dtype or None
        Dtype of the output; None: that of data.
    keepdims : bool
        Keep reduced axes with size 1.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

_sparse_norm = norm

def one_hot(
    indices: TensorT,
    depth: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: DType = "float32",
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Rows of off_value with on_value where the index points; none for an index out of range.

    Parameters
    ----------
    indices : tensor
        any shape; whole numbers of any dtype
    depth : int, at least 0
        Length of a row.
    on_value : float
        Value where the index points.
    off_value : float
        Value elsewhere.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape of indices with depth appended
    Not differentiable.
    """

_npx_one_hot = one_hot

def ones_like(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Ones of the input's shape and dtype.

    Parameters
    ----------
    data : tensor
        array of any shape; its values are not read

    Returns: out: shape and dtype of data
    """

def pick(
    data: TensorT,
    index: TensorT,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """One element per position of the other axes, named by index.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    index : tensor
        shape of data without the axis, or with size 1 there; whole numbers of any dtype
    axis : int or None
        The axis to pick from; None: data is flattened.
    keepdims : bool
        Keep the axis with size 1.
    mode : {'clip', 'wrap'}
        Index out of range: clip to the ends or wrap around.

    Returns: output: shape of data without the axis, or with size 1 there
    """

_npx_pick = pick
choose_element_0index = pick

def preloaded_multi_mp_sgd_mom_update(
    *data: TensorT,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """multi_mp_sgd_mom_update with learning rates and weight decays from tensors.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor in turn, then lrs and wds, each (num_weights,) float32
    momentum : float
        Factor of the previous step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.
    num_weights : int, at least 1
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """

def preloaded_multi_mp_sgd_update(
    *data: TensorT,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """multi_mp_sgd_update with learning rates and weight decays from tensors.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor in turn, then lrs and wds, each (num_weights,) float32
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.
    num_weights : int, at least 1
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """

def preloaded_multi_sgd_mom_update(
    *data: TensorT,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """multi_sgd_mom_update with learning rates and weight decays from tensors.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor in turn, then lrs and wds, each (num_weights,) float32
    momentum : float
        Factor of the previous step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.
    num_weights : int, at least 1
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """

def preloaded_multi_sgd_update(
    *data: TensorT,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """multi_sgd_update with learning rates and weight decays from tensors.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor in turn, then lrs and wds, each (num_weights,) float32
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.
    num_weights : int, at least 1
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """

def prod(
    data: TensorT,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Product over axes.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

def reciprocal(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 / x; integers: rounded toward zero, 0 for 0.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_reciprocal = reciprocal

def relu(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """max(x, 0).

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npx_relu = relu
_sparse_relu = relu

def repeat(
    data: TensorT, repeats: int, axis: int | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Every element, or slice along an axis, several times in a row.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    repeats : int, at least 0
        How often each element stands in a row.
    axis : int or None
        Axis along which to repeat; None: data is flattened.

    Returns: output: shape of data with the axis repeats times as long; flat without axis
    """

_np_repeat = repeat

def reshape_like(
    lhs: TensorT,
    rhs: TensorT,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """lhs under the shape of rhs, or with some of its axes replaced by axes of rhs.

    Parameters
    ----------
    lhs : tensor
        any shape, any dtype
    rhs : tensor
        gives sizes only; any dtype
    lhs_begin : int or None
        First axis of lhs that is replaced; None: 0.
    lhs_end : int or None
        End of the axes of lhs that are replaced; None: all.
    rhs_begin : int or None
        First axis of rhs whose size is taken; None: 0.
    rhs_end : int or None
        End of the axes of rhs whose sizes are taken; None: all.

    Returns: output: dtype of lhs
    """

_npx_reshape_like = reshape_like

def reverse(data: TensorT, axis: int | Sequence[int], *, out: Any = None, name: str | None = None) -> TensorT:
    """Turns the order of elements around along the given axes.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : tuple of int
        The axes to turn around.

    Returns: output: shape and dtype of data
    """

flip = reverse

def rsqrt(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 / sqrt(x).

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_rsqrt = rsqrt

def sgd_mom_update(
    weight: TensorT,
    grad: TensorT,
    mom: TensorT,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """mom = momentum * mom - lr * (wd * weight + clip(rescale_grad * grad)); weight = weight + mom

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mom : tensor
        like weight; replaced
    lr : float
        Learning rate.
    momentum : float
        Factor of the previous step.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.

    Returns: weight_out: updated weight; mom_out: replaces mom
    Not differentiable.
    """

_sparse_sgd_mom_update = sgd_mom_update

def sgd_update(
    weight: TensorT,
    grad: TensorT,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """weight = (1 - lr * wd) * weight - lr * clip(rescale_grad * grad)

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    lr : float
        Learning rate.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are cut to [-clip_gradient, clip_gradient]; negative: not at all.

    Returns: weight_out: updated weight
    Not differentiable.
    """

_sparse_sgd_update = sgd_update

def sigmoid(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 / (1 + e^-x).

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npx_sigmoid = sigmoid
_sparse_sigmoid = sigmoid

def sign(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """-1, 0 or 1; its gradient is 0.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_sign = sign
_sparse_sign = sign

def slice(
    data: TensorT,
    begin: int | Sequence[int | None],
    end: int | Sequence[int | None],
    step: int | Sequence[int | None] = (),
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Copies the elements that begin, end and step select, axis by axis.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    begin : tuple of int or None items
        First index per axis; negative counts from the end; None: the start.
    end : tuple of int or None items
        End per axis, exclusive; None: to the end.
    step : tuple of int or None items
        Step per axis, negative to walk backwards; None: 1.

    Returns: output: one size per axis: the number of selected indices
    """

_npi_slice = slice
_npx_slice = slice
_sparse_slice = slice
crop = slice

def slice_axis(
    data: TensorT, axis: int, begin: int, end: int | None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Copies a range of indices of one axis.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : int
        The axis to cut; negative counts from the end.
    begin : int
        First index; negative counts from the end.
    end : int or None
        End, exclusive; None: to the end.

    Returns: output: shape of data; size end - begin in the axis
    """

def slice_like(
    data: TensorT, shape_like: TensorT, axes: int | Sequence[int] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """The leading part of data that is as large as shape_like, in all or some axes.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    shape_like : tensor
        gives sizes only; any dtype
    axes : tuple of int
        Axes cut to the sizes of shape_like; empty: all.

    Returns: output: dtype of data
    """

def space_to_depth(data: TensorT, block_size: int, *, out: Any = None, name: str | None = None) -> TensorT:
    """Blocks of pixels gathered as channels: the inverse of depth_to_space.

    Parameters
    ----------
    data : tensor
        shape (N, C, H * b, W * b), any dtype
    block_size : int, at least 1
        Edge of a block of pixels.

    Returns: output: shape (N, C * b * b, H, W)
    """

def sqrt(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Square root; NaN for negative x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_sqrt = sqrt
_sparse_sqrt = sqrt

def square(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """x * x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_square = square
_sparse_square = square

def squeeze(
    data: TensorT, axis: int | Sequence[int] | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Drops axes of size 1.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : tuple of int or None
        Axes of size 1 to drop; None: all of them.

    Returns: output: data without the dropped axes
    """

def stack(*data: TensorT, axis: int = 0, num_args: int = ..., out: Any = None, name: str | None = None) -> TensorT:
    """Joins tensors of one shape along a new axis.

    Parameters
    ----------
    data : tensor
        one shape, one dtype
    axis : int
        Where the new axis stands in the output.
    num_args : int, at least 1
        Number of inputs.

    Returns: output: shape of the inputs with the number of inputs inserted at axis
    """

def sum(
    data: TensorT,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Sum over axes. float32 is summed in float64, integers in int64.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

_sparse_sum = sum
sum_axis = sum

def take(
    a: TensorT,
    indices: TensorT,
    axis: int = 0,
    mode: Literal["clip", "raise", "wrap"] = "clip",
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Slices of a along an axis, in the order of indices.

    Parameters
    ----------
    a : tensor
        any shape of at least 1 dimension, any dtype
    indices : tensor
        any shape; whole numbers of any dtype
    axis : int
        The axis that indices name.
    mode : {'clip', 'raise', 'wrap'}
        Index out of range: clip to the ends, wrap around, or raise an IndexError.

    Returns: output: shape of a with the axis replaced by the shape of indices; dtype of a
    """

_npi_take = take

def tanh(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Hyperbolic tangent.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_npi_tanh = tanh
_sparse_tanh = tanh

def tile(data: TensorT, reps: int | Sequence[int], *, out: Any = None, name: str | None = None) -> TensorT:
    """data repeated as a whole along its axes.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    reps : tuple of int
        How often data is repeated along each axis, aligned at the last one.

    Returns: output: sizes of data times reps; as many axes as the longer of the two
    """

_npi_tile = tile

def transpose(data: TensorT, axes: int | Sequence[int] = (), *, out: Any = None, name: str | None = None) -> TensorT:
    """Permutes the axes.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axes : tuple of int
        Axis i of the output is axis axes[i] of data; empty: reversed order.

    Returns: output: shape of data with its sizes permuted
    """

def where(condition: TensorT, x: TensorT, y: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Elements of x where the condition is not 0, of y elsewhere. No gradient passes to the condition.

    Parameters
    ----------
    condition : tensor
        shape of x, or (x.shape[0],) to choose whole slices; any dtype
    x : tensor
        array of any shape
    y : tensor
        shape and dtype of x

    Returns: out: shape and dtype of x
    """

_sparse_where = where

def zeros_like(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Zeros of the input's shape and dtype.

    Parameters
    ----------
    data : tensor
        array of any shape; its values are not read

    Returns: out: shape and dtype of data
    """

_sparse_zeros_like = zeros_like

def _arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    ctx: str = "",
    dtype: DType = "float32",
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Evenly spaced values from start, inclusive, to stop, exclusive.

    Parameters
    ----------
    start : float
        First value; the end instead, with 0 as start, if stop is None.
    stop : float or None
        End, exclusive.
    step : float
        Distance of neighbours; not 0.
    repeat : int, at least 1
        How often each value stands in a row.
    infer_range : bool
        Take the number of values from where the output is used.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape (ceil((stop - start) / step) * repeat,)
    Not differentiable.
    """

def _contrib_SparseEmbedding(
    data: TensorT,
    weight: TensorT,
    input_dim: int,
    output_dim: int,
    dtype: DType = "float32",
    sparse_grad: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Rows of weight, named by data; indices out of range take the nearest row.

    Parameters
    ----------
    data : tensor
        any shape; whole numbers of any dtype
    weight : tensor
        shape (input_dim, output_dim)
    input_dim : int, at least 1
        Number of rows of weight.
    output_dim : int, at least 1
        Length of a row of weight.
    dtype : dtype
        Dtype of weight where nothing else says it.
    sparse_grad : bool
        Accepted; the gradient is dense.

    Returns: output: shape of data with output_dim appended; dtype of weight
    """

def _contrib_arange_like(
    data: TensorT,
    start: float = 0.0,
    step: float = 1.0,
    repeat: int = 1,
    ctx: str = "",
    axis: int | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Evenly spaced values, as many as data has elements, or as an axis of it is long.

    Parameters
    ----------
    data : tensor
        gives sizes and dtype only
    start : float
        First value.
    step : float
        Distance of neighbours.
    repeat : int, at least 1
        How often each value stands in a row.
    axis : int or None
        Axis of data to count along; None: all elements.

    Returns: output: shape of data, or one axis of it; dtype of data
    Not differentiable.
    """

_npx_arange_like = _contrib_arange_like

def _copy(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Copies the input.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of data
    """

identity = _copy

def _div_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data / scalar. Integers: rounded toward zero.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_DivScalar = _div_scalar

def _equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs == rhs, else 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Equal = _equal

def _equal_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """1 where data == scalar, else 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_EqualScalar = _equal_scalar

def _eye(
    N: int, M: int = 0, k: int = 0, ctx: str = "", dtype: DType = "float32", *, out: Any = None, name: str | None = None
) -> Any:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    N : int, at least 0
        Number of rows.
    M : int, at least 0
        Number of columns; 0: as many as rows.
    k : int
        Which diagonal: 0 the main one, positive above, negative below.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape (N, M)
    Not differentiable.
    """

def _full(
    shape: int | Sequence[int],
    ctx: str = "",
    dtype: DType = "float32",
    value: float = ...,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """A tensor of one value.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    dtype : dtype
        Dtype of the output.
    value : float
        Value of every element.

    Returns: output: as the parameters say
    Not differentiable.
    """

_npi_full = _full

def _grad_add(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs + rhs, where gradients of several uses meet.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

def _greater(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs > rhs, else 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Greater = _greater

def _greater_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs >= rhs, else 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Greater_Equal = _greater_equal

def _greater_equal_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """1 where data >= scalar, else 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_GreaterEqualScalar = _greater_equal_scalar

def _greater_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """1 where data > scalar, else 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_GreaterScalar = _greater_scalar

def _lesser(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs < rhs, else 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Lesser = _lesser

def _lesser_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs <= rhs, else 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Lesser_Equal = _lesser_equal

def _lesser_equal_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """1 where data <= scalar, else 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_LesserEqualScalar = _lesser_equal_scalar

def _lesser_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """1 where data < scalar, else 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_LesserScalar = _lesser_scalar

def _linalg_gemm(
    A: TensorT,
    B: TensorT,
    C: TensorT,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    axis: int = -2,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Matrix products of two stacks of matrices plus a third stack: alpha * op(A) op(B) + beta * C.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., m, k), or (..., k, m) when transpose_a
    B : tensor
        stack of matrices (..., k, n), or (..., n, k) when transpose_b
    C : tensor
        (..., m, n)
    transpose_a : bool
        Transpose the matrices of A first.
    transpose_b : bool
        Transpose the matrices of B first.
    alpha : float
        Factor of the product.
    beta : float
        Factor of C.
    axis : int
        Axis of the matrix rows; the columns are the last axis.

    Returns: output: (..., m, n)
    """

linalg_gemm = _linalg_gemm

def _linalg_gemm2(
    A: TensorT,
    B: TensorT,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    axis: int = -2,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Matrix products of two stacks of matrices: alpha * op(A) op(B).

    Parameters
    ----------
    A : tensor
        stack of matrices (..., m, k), or (..., k, m) when transpose_a
    B : tensor
        stack of matrices (..., k, n), or (..., n, k) when transpose_b
    transpose_a : bool
        Transpose the matrices of A first.
    transpose_b : bool
        Transpose the matrices of B first.
    alpha : float
        Factor of the product.
    axis : int
        Axis of the matrix rows; the columns are the last axis.

    Returns: output: (..., m, n)
    """

linalg_gemm2 = _linalg_gemm2

def _linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    ctx: str = "",
    dtype: DType = "float32",
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """num evenly spaced values from start to stop.

    Parameters
    ----------
    start : float
        First value.
    stop : float
        Last value; the one after the last without endpoint.
    num : int, at least 0
        Number of values.
    endpoint : bool
        Is stop the last value?
    dtype : dtype
        Dtype of the output.

    Returns: output: shape (num,)
    Not differentiable.
    """

_npi_linspace = _linspace

def _logical_and(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where both are not 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Logical_And = _logical_and

def _logical_and_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """1 where data and scalar are both not 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_LogicalAndScalar = _logical_and_scalar

def _logical_or(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where either is not 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Logical_Or = _logical_or

def _logical_or_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """1 where data or scalar is not 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_LogicalOrScalar = _logical_or_scalar

def _logical_xor(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where exactly one is not 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Logical_Xor = _logical_xor

def _logical_xor_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """1 where exactly one of data and scalar is not 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_LogicalXorScalar = _logical_xor_scalar

def _minus_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data - scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_MinusScalar = _minus_scalar

def _mul_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data * scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_MulScalar = _mul_scalar

def _not_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs != rhs, else 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Not_Equal = _not_equal

def _not_equal_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """1 where data != scalar, else 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_NotEqualScalar = _not_equal_scalar

def _ones(
    shape: int | Sequence[int] = (),
    ctx: str = "",
    dtype: DType = "float32",
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """A tensor of ones.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    dtype : dtype
        Dtype of the output.

    Returns: output: as the parameters say
    Not differentiable.
    """

def _plus_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data + scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_PlusScalar = _plus_scalar

def _random_exponential(
    lam: float = 1.0,
    shape: int | Sequence[int] | None = None,
    ctx: str = "",
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Exponentially distributed numbers.

    Parameters
    ----------
    lam : float
        Rate, positive: one over the mean.
    shape : tuple of int or None
        Shape of the output; None: that of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape as given; floating
    Not differentiable.
    """

random_exponential = _random_exponential

def _random_exponential_like(data: TensorT, lam: float = 1.0, *, out: Any = None, name: str | None = None) -> TensorT:
    """Exponentially distributed numbers. As many as data has elements.

    Parameters
    ----------
    data : tensor
        gives shape and dtype only; floating
    lam : float
        Rate, positive: one over the mean.

    Returns: output: shape and dtype of data
    Not differentiable.
    """

def _random_gamma(
    alpha: float = 1.0,
    beta: float = 1.0,
    shape: int | Sequence[int] | None = None,
    ctx: str = "",
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Gamma distributed numbers.

    Parameters
    ----------
    alpha : float
        Shape, positive.
    beta : float
        Scale, positive.
    shape : tuple of int or None
        Shape of the output; None: that of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape as given; floating
    Not differentiable.
    """

random_gamma = _random_gamma

def _random_gamma_like(
    data: TensorT, alpha: float = 1.0, beta: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Gamma distributed numbers. As many as data has elements.

    Parameters
    ----------
    data : tensor
        gives shape and dtype only; floating
    alpha : float
        Shape, positive.
    beta : float
        Scale, positive.

    Returns: output: shape and dtype of data
    Not differentiable.
    """

def _random_generalized_negative_binomial(
    mu: float = 1.0,
    alpha: float = 1.0,
    shape: int | Sequence[int] | None = None,
    ctx: str = "",
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Negative binomial whole numbers by mean and dispersion, as floating values.

    Parameters
    ----------
    mu : float
        Mean, not negative.
    alpha : float
        Dispersion, not negative; 0 gives Poisson.
    shape : tuple of int or None
        Shape of the output; None: that of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape as given; floating
    Not differentiable.
    """

random_generalized_negative_binomial = _random_generalized_negative_binomial

def _random_generalized_negative_binomial_like(
    data: TensorT, mu: float = 1.0, alpha: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Negative binomial whole numbers by mean and dispersion, as floating values. As many as data has elements.

    Parameters
    ----------
    data : tensor
        gives shape and dtype only; floating
    mu : float
        Mean, not negative.
    alpha : float
        Dispersion, not negative; 0 gives Poisson.

    Returns: output: shape and dtype of data
    Not differentiable.
    """

def _random_negative_binomial(
    k: float = 1.0,
    p: float = 1.0,
    shape: int | Sequence[int] | None = None,
    ctx: str = "",
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Number of failures before k successes of probability p, as floating values.

    Parameters
    ----------
    k : float
        Number of successes, not negative.
    p : float
        Probability of a success, in (0, 1].
    shape : tuple of int or None
        Shape of the output; None: that of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape as given; floating
    Not differentiable.
    """

random_negative_binomial = _random_negative_binomial

def _random_negative_binomial_like(
    data: TensorT, k: float = 1.0, p: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Number of failures before k successes of probability p, as floating values. As many as data has elements.

    Parameters
    ----------
    data : tensor
        gives shape and dtype only; floating
    k : float
        Number of successes, not negative.
    p : float
        Probability of a success, in (0, 1].

    Returns: output: shape and dtype of data
    Not differentiable.
    """

def _random_normal(
    loc: float = 0.0,
    scale: float = 1.0,
    shape: int | Sequence[int] | None = None,
    ctx: str = "",
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Normally distributed numbers.

    Parameters
    ----------
    loc : float
        Mean.
    scale : float
        Standard deviation, not negative.
    shape : tuple of int or None
        Shape of the output; None: that of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape as given; floating
    Not differentiable.
    """

normal = _random_normal
random_normal = _random_normal

def _random_normal_like(
    data: TensorT, loc: float = 0.0, scale: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Normally distributed numbers. As many as data has elements.

    Parameters
    ----------
    data : tensor
        gives shape and dtype only; floating
    loc : float
        Mean.
    scale : float
        Standard deviation, not negative.

    Returns: output: shape and dtype of data
    Not differentiable.
    """

def _random_poisson(
    lam: float = 1.0,
    shape: int | Sequence[int] | None = None,
    ctx: str = "",
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Poisson distributed whole numbers, as floating values.

    Parameters
    ----------
    lam : float
        Mean, not negative.
    shape : tuple of int or None
        Shape of the output; None: that of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape as given; floating
    Not differentiable.
    """

random_poisson = _random_poisson

def _random_poisson_like(data: TensorT, lam: float = 1.0, *, out: Any = None, name: str | None = None) -> TensorT:
    """Poisson distributed whole numbers, as floating values. As many as data has elements.

    Parameters
    ----------
    data : tensor
        gives shape and dtype only; floating
    lam : float
        Mean, not negative.

    Returns: output: shape and dtype of data
    Not differentiable.
    """

def _random_uniform(
    low: float = 0.0,
    high: float = 1.0,
    shape: int | Sequence[int] | None = None,
    ctx: str = "",
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Uniformly distributed numbers in [low, high).

    Parameters
    ----------
    low : float
        Lower bound, inclusive.
    high : float
        Upper bound, exclusive.
    shape : tuple of int or None
        Shape of the output; None: that of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape as given; floating
    Not differentiable.
    """

random_uniform = _random_uniform
uniform = _random_uniform

def _random_uniform_like(
    data: TensorT, low: float = 0.0, high: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Uniformly distributed numbers in [low, high). As many as data has elements.

    Parameters
    ----------
    data : tensor
        gives shape and dtype only; floating
    low : float
        Lower bound, inclusive.
    high : float
        Upper bound, exclusive.

    Returns: output: shape and dtype of data
    Not differentiable.
    """

def _rdiv_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """scalar / data. Integers: rounded toward zero, 0 where data is 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_RDivScalar = _rdiv_scalar

def _rminus_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """scalar - data.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array gives float64 instead of keeping its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_RMinusScalar = _rminus_scalar

def _rnn_param_concat(
    *data: TensorT, num_args: int = ..., dim: int = 1, out: Any = None, name: str | None = None
) -> TensorT:
    """Joins flattened parameters of a recurrent layer; an unknown size follows from the output's.

    Parameters
    ----------
    data : tensor
        equal shapes but for the joined axis, one dtype
    num_args : int, at least 1
        Number of inputs.
    dim : int
        The axis along which inputs are joined.

    Returns: output: sizes of the inputs; their sum in the joined axis
    """

_npi_rnn_param_concat = _rnn_param_concat

def _sample_exponential(
    lam: TensorT,
    shape: int | Sequence[int] = (),
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Exponentially distributed numbers. One or more per element of the parameters.

    Parameters
    ----------
    lam : tensor
        Rate, positive: one over the mean.
    shape : tuple of int
        Shape drawn for every element of the parameters.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape of the parameters followed by shape; floating
    Not differentiable.
    """

sample_exponential = _sample_exponential

def _sample_gamma(
    alpha: TensorT,
    beta: TensorT,
    shape: int | Sequence[int] = (),
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Gamma distributed numbers. One or more per element of the parameters.

    Parameters
    ----------
    alpha : tensor
        Shape, positive.
    beta : tensor
        Scale, positive.
    shape : tuple of int
        Shape drawn for every element of the parameters.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape of the parameters followed by shape; floating
    Not differentiable.
    """

sample_gamma = _sample_gamma

def _sample_generalized_negative_binomial(
    mu: TensorT,
    alpha: TensorT,
    shape: int | Sequence[int] = (),
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Negative binomial whole numbers by mean and dispersion, as floating values. One or more per element of the
    parameters.

    Parameters
    ----------
    mu : tensor
        Mean, not negative.
    alpha : tensor
        Dispersion, not negative; 0 gives Poisson.
    shape : tuple of int
        Shape drawn for every element of the parameters.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape of the parameters followed by shape; floating
    Not differentiable.
    """

sample_generalized_negative_binomial = _sample_generalized_negative_binomial

def _sample_negative_binomial(
    k: TensorT,
    p: TensorT,
    shape: int | Sequence[int] = (),
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Number of failures before k successes of probability p, as floating values. One or more per element of the
    parameters.

    Parameters
    ----------
    k : tensor
        Number of successes, not negative.
    p : tensor
        Probability of a success, in (0, 1].
    shape : tuple of int
        Shape drawn for every element of the parameters.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape of the parameters followed by shape; floating
    Not differentiable.
    """

sample_negative_binomial = _sample_negative_binomial

def _sample_normal(
    mu: TensorT,
    sigma: TensorT,
    shape: int | Sequence[int] = (),
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Normally distributed numbers. One or more per element of the parameters.

    Parameters
    ----------
    mu : tensor
        Mean.
    sigma : tensor
        Standard deviation, not negative.
    shape : tuple of int
        Shape drawn for every element of the parameters.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape of the parameters followed by shape; floating
    Not differentiable.
    """

sample_normal = _sample_normal

def _sample_poisson(
    lam: TensorT,
    shape: int | Sequence[int] = (),
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Poisson distributed whole numbers, as floating values. One or more per element of the parameters.

    Parameters
    ----------
    lam : tensor
        Mean, not negative.
    shape : tuple of int
        Shape drawn for every element of the parameters.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape of the parameters followed by shape; floating
    Not differentiable.
    """

sample_poisson = _sample_poisson

def _sample_uniform(
    low: TensorT,
    high: TensorT,
    shape: int | Sequence[int] = (),
    dtype: DType | None = None,
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """Uniformly distributed numbers in [low, high). One or more per element of the parameters.

    Parameters
    ----------
    low : tensor
        Lower bound, inclusive.
    high : tensor
        Upper bound, exclusive.
    shape : tuple of int
        Shape drawn for every element of the parameters.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape of the parameters followed by shape; floating
    Not differentiable.
    """

sample_uniform = _sample_uniform

def _slice_assign(
    lhs: TensorT,
    rhs: TensorT,
    begin: int | Sequence[int | None],
    end: int | Sequence[int | None],
    step: int | Sequence[int | None] = (),
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """lhs with the slice that begin, end and step select replaced by rhs.

    Parameters
    ----------
    lhs : tensor
        any shape, any dtype
    rhs : tensor
        shape of the slice, dtype of lhs
    begin : tuple of int or None items
        First index per axis; negative counts from the end; None: the start.
    end : tuple of int or None items
        End per axis, exclusive; None: to the end.
    step : tuple of int or None items
        Step per axis; None: 1.

    Returns: output: shape and dtype of lhs
    """

_crop_assign = _slice_assign
_npi_slice_assign = _slice_assign

def _slice_assign_scalar(
    data: TensorT,
    scalar: float = 0.0,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = (),
    *,
    out: Any = None,
    name: str | None = None,
) -> TensorT:
    """data with the slice that begin, end and step select set to a scalar.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    scalar : float
        The value written.
    begin : tuple of int or None items
        First index per axis; negative counts from the end; None: the start.
    end : tuple of int or None items
        End per axis, exclusive; None: to the end.
    step : tuple of int or None items
        Step per axis; None: 1.

    Returns: output: shape and dtype of data
    """

_crop_assign_scalar = _slice_assign_scalar
_npi_slice_assign_scalar = _slice_assign_scalar

def _split_v2(
    data: TensorT,
    indices: int | Sequence[int],
    axis: int = 1,
    squeeze_axis: bool = False,
    sections: int = 0,
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """Cuts data along an axis where indices say, or into sections.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    indices : tuple of int
        Where the parts begin, the first at 0. Ignored with sections.
    axis : int
        The axis that is cut.
    squeeze_axis : bool
        Drop the axis of parts of size 1.
    sections : int, at least 0
        Number of parts; earlier ones are one larger where the size does not divide.

    Returns: output: one per part, dtype of data
    """

_npi_split = _split_v2

def _zeros(
    shape: int | Sequence[int] = (),
    ctx: str = "",
    dtype: DType = "float32",
    *,
    out: Any = None,
    name: str | None = None,
) -> Any:
    """A tensor of zeros.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    dtype : dtype
        Dtype of the output.

    Returns: output: as the parameters say
    Not differentiable.
    """

def _zeros_without_dtype(
    shape: int | Sequence[int], ctx: str = "", dtype: int = -1, *, out: Any = None, name: str | None = None
) -> Any:
    """A tensor of zeros whose dtype may come from where it is used.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    dtype : int
        Code of the dtype; -1: that of where the output is used, else float32.

    Returns: output: as the parameters say
    Not differentiable.
    """
