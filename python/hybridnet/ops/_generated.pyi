# Written by tools/gen_frontend.py from the operator registry; `tools/dev gen` writes it again. ruff: noqa
"""Every operator once. nd.X and sym.X are these functions: given arrays they run, given Symbols they make nodes.

Names with an underscore stand under nd._internal, nd.random (_random_), nd.linalg (_linalg_), nd.contrib (_contrib_)
and nd.image (_image_).
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from ..ndarray.ndarray import NDArray
from ..symbol.symbol import Symbol

TensorT = TypeVar("TensorT", NDArray, Symbol)
DType = Any

def Activation(
    data: TensorT, act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'], *, out: Any = None, name: str
    | None = None
) -> TensorT:
    """Applies relu, sigmoid, softrelu (log(1 + e^x)), softsign (x / (1 + |x|)) or tanh.

    Parameters
    ----------
    data : tensor
        array of any shape
    act_type : {'relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'}
        The activation function.

    Returns: out: shape and dtype of data
    """


def BatchNorm(
    data: TensorT, gamma: TensorT, beta: TensorT, moving_mean: TensorT, moving_var: TensorT, eps: float =
    0.0010000000474974513, momentum: float = 0.8999999761581421, fix_gamma: bool = True, use_global_stats: bool =
    False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False, min_calib_range: float | None = None,
    max_calib_range: float | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Normalizes each channel to mean 0 and variance 1 (biased), then scales by gamma and shifts by beta. In training
    the statistics are those of the batch, and moving = momentum * moving + (1 - momentum) * batch.

    Parameters
    ----------
    data : tensor
        any shape with a channel axis
    gamma : tensor
        (channels,): factor after normalization
    beta : tensor
        (channels,): summand after normalization
    moving_mean : tensor
        (channels,): running mean, used at inference
    moving_var : tensor
        (channels,): running variance, used at inference
    eps : float, at least 0
        Added to the variance.
    momentum : float
        Factor of the old moving statistics.
    fix_gamma : bool
        Whether gamma is treated as 1 and has no gradient.
    use_global_stats : bool
        Whether the moving statistics are used in training, too.
    output_mean_var : bool
        Whether mean and var are outputs, too.
    axis : int
        Axis of the channels.

    Returns: output: shape of data; mean: (channels,): the mean that normalized data; var: (channels,): 1 /
    sqrt(variance + eps); new_moving_mean: (channels,); new_moving_var: (channels,)
    """

BatchNorm_v1 = BatchNorm


def BilinearSampler(
    data: TensorT, grid: TensorT, cudnn_off: bool | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Images read at points by bilinear interpolation. Along each axis -1 is the center of the first pixel and 1 the
    center of the last; values outside the image are zero.

    Parameters
    ----------
    data : tensor
        (batch, channels, height, width)
    grid : tensor
        points (batch, 2, out height, out width): x in the first plane, y in the second

    Returns: output: (batch, channels, out height, out width)
    """


def BlockGrad(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Copies the input; stops the gradient.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of data
    """

_sparse_stop_gradient = BlockGrad
stop_gradient = BlockGrad


def CTCLoss(
    data: TensorT, label: TensorT, data_lengths: TensorT | None = None, label_lengths: TensorT | None = None,
    use_data_lengths: bool = False, use_label_lengths: bool = False, blank_label: Literal['first', 'last'] = 'first',
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """-log of the probability of a label under all alignments with a sequence: connectionist temporal classification.
    The softmax of data is included. A label that needs more steps than data has gets loss 0.

    Parameters
    ----------
    data : tensor
        activations (steps, batch, symbols)
    label : tensor
        symbols (batch, longest label), any dtype, padded at the end; no gradient
    data_lengths : tensor, optional
        if use_data_lengths: number of steps of each example (batch,)
    label_lengths : tensor, optional
        if use_label_lengths: number of symbols of each label (batch,)
    use_data_lengths : bool
        Whether the input data_lengths is present; otherwise every example has all steps.
    use_label_lengths : bool
        Whether the input label_lengths is present; otherwise labels end before their first padding: 0 with
        blank_label first, -1 with blank_label last.
    blank_label : {'first', 'last'}
        Index of the blank symbol: the first or the last.

    Returns: out: losses (batch,); grad: gradient of each loss, shape of data
    """

_contrib_CTCLoss = CTCLoss
_contrib_ctc_loss = CTCLoss
ctc_loss = CTCLoss


def Cast(data: TensorT, dtype: DType, *, out: Any = None, name: str | None = None) -> TensorT:
    """Converts to another dtype. Floating to integer rounds toward zero; values that do not fit wrap around. Values
    beyond int64 are clamped to its limits first, and NaN becomes 0. To bool: anything but 0 is true.

    Parameters
    ----------
    data : tensor
        array of any shape and dtype
    dtype : dtype
        Dtype of the output.

    Returns: out: shape of data, dtype given by the parameter
    """

cast = Cast


def Concat(*data: TensorT, num_args: int = ..., dim: int = 1, out: Any = None, name: str | None = None) -> TensorT:
    """Joins tensors along an existing axis.

    Parameters
    ----------
    data : tensor
        equal shapes except for the joined axis, one dtype
    num_args : int, range [1, 1.67772e+07]
        Number of inputs.
    dim : int
        The axis along which inputs are joined.

    Returns: output: sizes of the inputs; their sum in the joined axis
    """

_sparse_concat = Concat
concat = Concat


def Convolution(
    data: TensorT, weight: TensorT, bias: TensorT | None = None, kernel: int | Sequence[int] = ..., stride: int |
    Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), num_filter: int = ...,
    num_group: int = 1, workspace: int = 1024, no_bias: bool = False, cudnn_tune: str | None = None, cudnn_off: bool =
    False, layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = None, *, out: Any = None, name: str
    | None = None
) -> TensorT:
    """Slides num_filter kernels over data and sums products: out[n, o, p] = bias[o] + sum over channels i and taps q
    of data[n, i, p * stride + q * dilate - pad] * weight[o, i, q].

    Parameters
    ----------
    data : tensor
        (batch, channels, spatial...), 1 to 3 spatial axes; with layout N...C the channels are last
    weight : tensor
        (num_filter, channels / num_group, kernel...), or (num_filter, kernel..., channels / num_group)
    bias : tensor, optional
        (num_filter,)
    kernel : tuple of int
        Window: (w,), (h, w) or (d, h, w).
    stride : tuple of int
        Strides of the window; empty: 1 everywhere.
    dilate : tuple of int
        Distance between taps; empty: 1 everywhere.
    pad : tuple of int
        Zeros added on both sides; empty: none.
    num_filter : int, at least 1
        Number of output channels.
    num_group : int, at least 1
        Number of groups into which channels are split; each group is convolved separately.
    no_bias : bool
        Whether the bias input is absent.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'} or None
        Order of the axes of data, weight and output; None: channels second.

    Returns: output: (batch, num_filter, out...) with out = floor((size + 2 pad - dilate (kernel - 1) - 1) / stride)
    + 1
    """

Convolution_v1 = Convolution


def Correlation(
    data1: TensorT, data2: TensorT, kernel_size: int = 1, max_displacement: int = 1, stride1: int = 1, stride2: int =
    1, pad_size: int = 0, is_multiply: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Mean products, or mean absolute differences, of patches of data1 and displaced patches of data2.

    Parameters
    ----------
    data1 : tensor
        (batch, channels, height, width)
    data2 : tensor
        shape of data1
    kernel_size : int, at least 1
        Side of a patch; odd.
    max_displacement : int, at least 0
        Maximum displacement of compared patches.
    stride1 : int, at least 1
        Stride of patches of data1.
    stride2 : int, at least 1
        Stride of displacements.
    pad_size : int, at least 0
        Width of the zero padding around both images.
    is_multiply : bool
        Whether to compute mean products; else mean absolute differences.

    Returns: output: (batch, displacements, out height, out width)
    """


def Crop(
    *data: TensorT, num_args: int = ..., offset: int | Sequence[int] = (0, 0), h_w: int | Sequence[int] = (0, 0),
    center_crop: bool = False, out: Any = None, name: str | None = None
) -> TensorT:
    """Crops images to h_w, or to the height and width of a second tensor.

    Parameters
    ----------
    data : tensor
        shape (N, C, H, W); the second defines height and width only
    num_args : int, range [1, 2]
        1: crop to h_w; 2: crop to the size of the second input.
    offset : tuple of int
        First row and column that are kept.
    h_w : tuple of int
        Height and width that are kept, if there is one input.
    center_crop : bool
        Whether to crop at the center instead of at offset.

    Returns: output: shape (N, C, height, width)
    """


def Custom(
    *data: TensorT, op_type: str = ..., open_attributes: str = '{}', num_args: int = 0, out: Any = None, name: str |
    None = None
) -> Any:
    """An operator written in Python: a subclass of mx.operator.CustomOp, registered under the name op_type.

    Parameters
    ----------
    data : tensor
        the inputs that the operator's list_arguments() names, then its auxiliary states
    op_type : str
        Registered name of the operator.
    open_attributes : str
        Arguments of the operator: a JSON object of strings.

    Returns: output: shape and dtype by the operator's infer_shape() and infer_type()
    """


def Deconvolution(
    data: TensorT, weight: TensorT, bias: TensorT | None = None, kernel: int | Sequence[int] = ..., stride: int |
    Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), num_filter: int = ...,
    num_group: int = 1, workspace: int = 512, no_bias: bool = True, cudnn_tune: str | None = None, cudnn_off: bool =
    False, layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = None, adj: int | Sequence[int] =
    (), target_shape: int | Sequence[int] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """Transposed convolution: each element of data adds its multiple of the kernels to the output, stride apart:
    out[n, o, p * stride + q * dilate - pad] += data[n, i, p] * weight[i, o, q], plus bias[o].

    Parameters
    ----------
    data : tensor
        (batch, channels, spatial...), 1 to 3 spatial axes; with layout N...C the channels are last
    weight : tensor
        (channels, num_filter / num_group, kernel...), or (channels, kernel..., num_filter / num_group)
    bias : tensor, optional
        (num_filter,)
    kernel : tuple of int
        Window: (w,), (h, w) or (d, h, w).
    stride : tuple of int
        Strides of the window; empty: 1 everywhere.
    dilate : tuple of int
        Distance between taps; empty: 1 everywhere.
    pad : tuple of int
        Zeros added on both sides; empty: none.
    num_filter : int, at least 1
        Number of output channels.
    num_group : int, at least 1
        Number of groups into which channels are split; each group is convolved separately.
    no_bias : bool
        Whether the bias input is absent.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'} or None
        Order of the axes of data, weight and output; None: channels second.
    adj : tuple of int
        Elements added at the end of the output, less than stride; empty: none.
    target_shape : tuple of int
        Spatial sizes of the output, instead of pad and adj; empty: sizes follow from pad and adj.

    Returns: output: (batch, num_filter, out...) with out = stride (size - 1) + dilate (kernel - 1) + 1 - 2 pad +
    adj
    """


def Dropout(
    data: TensorT, p: float = 0.5, mode: Literal['training', 'always'] = 'training', axes: int | Sequence[int] = (),
    cudnn_off: bool | None = False, *, out: Any = None, name: str | None = None
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
        training: the identity outside of training; always: drops elements in both.
    axes : tuple of int
        Axes along which all elements share one decision.

    Returns: output: shape and dtype of data; mask: uint8, 1 where elements were kept; shape of data with size 1
    along axes
    """


def Embedding(
    data: TensorT, weight: TensorT, input_dim: int, output_dim: int, dtype: DType = 'float32', sparse_grad: bool =
    False, deterministic: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Rows of weight, selected by data; indices out of range select the nearest row.

    Parameters
    ----------
    data : tensor
        any shape; integers of any dtype
    weight : tensor
        shape (input_dim, output_dim)
    input_dim : int, at least 1
        Number of rows of weight.
    output_dim : int, at least 1
        Length of a row of weight.
    dtype : dtype
        Dtype of weight if nothing else determines it.
    sparse_grad : bool
        Requests a row_sparse gradient of weight; the storage of its buffer decides.

    Returns: output: shape of data with output_dim appended; dtype of weight
    """

_sparse_Embedding = Embedding


def Flatten(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Merges all dimensions except the first into one.

    Parameters
    ----------
    data : tensor
        shape (N, ...), any dtype

    Returns: output: shape (N, product of the rest)
    """

flatten = Flatten


def FullyConnected(
    data: TensorT, weight: TensorT, bias: TensorT | None = None, num_hidden: int = ..., no_bias: bool = False, flatten:
    bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Affine map of each row: data weight^T + bias.

    Parameters
    ----------
    data : tensor
        (batch, ...), or (..., features) with flatten=False
    weight : tensor
        (num_hidden, features)
    bias : tensor, optional
        (num_hidden,) or (num_hidden, 1)
    num_hidden : int, at least 1
        Number of outputs per row.
    no_bias : bool
        Whether the bias input is absent.
    flatten : bool
        Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.

    Returns: output: (batch, num_hidden), or (..., num_hidden) with flatten=False
    """

_sparse_FullyConnected = FullyConnected


def GridGenerator(
    data: TensorT, transform_type: Literal['affine', 'warp'], target_shape: int | Sequence[int] = (0, 0), *, out: Any =
    None, name: str | None = None
) -> TensorT:
    """Sampling points for BilinearSampler. affine: matrix * (x, y, 1) for every point of a regular grid from -1 to 1;
    warp: every pixel, displaced.

    Parameters
    ----------
    data : tensor
        affine: (batch, 6), rows of 2 x 3 matrices; warp: (batch, 2, height, width), x and y in pixels
    transform_type : {'affine', 'warp'}
        affine: data holds 2 x 3 matrices; warp: data holds displacements in pixels.
    target_shape : tuple of int
        affine: (height, width) of the grid.

    Returns: output: (batch, 2, height, width); grid_dst: the grid before the transformation: affine (3, height *
    width), warp (2, height, width)
    """


def GroupNorm(
    data: TensorT, gamma: TensorT, beta: TensorT, num_groups: int = 1, eps: float = 1e-05, output_mean_var: bool =
    False, *, out: Any = None, name: str | None = None
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
        Whether mean and std are outputs, too.

    Returns: output: shape and dtype of data; mean: (batch, num_groups); std: (batch, num_groups): sqrt(variance +
    eps)
    """


def IdentityAttachKLSparseReg(
    data: TensorT, moving_avg: TensorT, sparseness_target: float = 0.1, penalty: float = 0.001, momentum: float = 0.9,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """Copies the input and adds the gradient of a penalty to its gradient: the divergence between a target and the
    moving mean of each unit. For outputs of sigmoid only: the moving mean must lie inside (0, 1).

    Parameters
    ----------
    data : tensor
        (batch, units), values in (0, 1)
    moving_avg : tensor
        (units,): moving mean of the activations, updated in training
    sparseness_target : float, range [0, 1]
        Target of the mean activation.
    penalty : float
        Weight of the penalty.
    momentum : float, range [0, 1]
        Momentum of the moving mean.

    Returns: out: shape and dtype of data; new_moving_avg: (units,)
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
    data: TensorT, eps: float = 1e-10, mode: Literal['instance', 'channel', 'spatial'] = 'instance', *, out: Any =
    None, name: str | None = None
) -> TensorT:
    """Divides by the Euclidean norm over the axes of mode: data / sqrt(sum(data^2) + eps).

    Parameters
    ----------
    data : tensor
        (batch, ...); (batch, channels, ...) for modes channel and spatial
    eps : float, at least 0
        Added to the sum of squares.
    mode : {'instance', 'channel', 'spatial'}
        Axes of the norm. instance: all except the first; channel: the second; spatial: the third to the last.

    Returns: output: shape and dtype of data; norm: the norms: (batch,), (batch, 1, ...) or (batch, channels)
    """


def LRN(
    data: TensorT, alpha: float = 0.0001, beta: float = 0.75, knorm: float = 2.0, nsize: int = ..., *, out: Any = None,
    name: str | None = None
) -> TensorT:
    """Divides by (knorm + alpha / nsize * sum of squares over nsize neighboring channels) ^ beta.

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

    Returns: output: shape and dtype of data; tmp_norm: the base of the power beta; shape of data
    """


def LayerNorm(
    data: TensorT, gamma: TensorT, beta: TensorT, axis: int = -1, eps: float = 1e-05, output_mean_var: bool = False, *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """Normalizes each row along an axis to mean 0 and variance 1, then scales by gamma and shifts by beta.

    Parameters
    ----------
    data : tensor
        at least one axis
    gamma : tensor
        (size of the axis,): factor after normalization
    beta : tensor
        (size of the axis,): summand after normalization
    axis : int
        Axis to normalize along.
    eps : float, at least 0
        Added to the variance.
    output_mean_var : bool
        Whether mean and std are outputs, too.

    Returns: output: shape of data; mean: shape of data with 1 for the axis; std: shape of mean: sqrt(variance +
    eps)
    """


def LeakyReLU(
    data: TensorT, gamma: TensorT | None = None, act_type: Literal['elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'] =
    'leaky', slope: float = 0.25, lower_bound: float = 0.125, upper_bound: float = 0.334, *, out: Any = None, name: str
    | None = None
) -> Any:
    """Activations with values below 0. For x <= 0: leaky: slope * x; prelu: gamma * x, gamma learned; rrelu: a random
    slope between lower_bound and upper_bound per element in training, their mean otherwise; elu: slope * (e^x - 1);
    selu: scaled elu with fixed constants. For x > 0 these give x (selu: 1.0507 x). gelu: x times the normal
    distribution function of x, for all x.

    Parameters
    ----------
    data : tensor
        floating array of any shape, channels at axis 1
    gamma : tensor, optional
        slopes, for prelu: (1,), (channels,) or (batch, channels)
    act_type : {'elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'}
        The activation function.
    slope : float
        Slope below 0 (leaky), limit -slope at -inf (elu).
    lower_bound : float
        Smallest random slope (rrelu).
    upper_bound : float
        Largest random slope (rrelu).

    Returns: output: shape and dtype of data; mask: for rrelu: the drawn slopes
    """


def LinearRegressionOutput(
    data: TensorT, label: TensorT, grad_scale: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The data itself. Its gradient is that of half the squared distance to the label, divided by the number of
    outputs per example, independent of the output gradient.

    Parameters
    ----------
    data : tensor
        floating tensor (batch, ...)
    label : tensor
        as many elements as data, same batch; no gradient
    grad_scale : float
        Factor of the gradient.

    Returns: output: shape and dtype of data
    """

_sparse_LinearRegressionOutput = LinearRegressionOutput


def LogisticRegressionOutput(
    data: TensorT, label: TensorT, grad_scale: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """sigmoid(data). Its gradient is that of the cross entropy with the label, divided by the number of outputs per
    example, independent of the output gradient.

    Parameters
    ----------
    data : tensor
        floating tensor (batch, ...)
    label : tensor
        as many elements as data, same batch; no gradient
    grad_scale : float
        Factor of the gradient.

    Returns: output: shape and dtype of data
    """

_sparse_LogisticRegressionOutput = LogisticRegressionOutput


def MAERegressionOutput(
    data: TensorT, label: TensorT, grad_scale: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The data itself. Its gradient is that of the absolute distance to the label, divided by the number of outputs
    per example, independent of the output gradient.

    Parameters
    ----------
    data : tensor
        floating tensor (batch, ...)
    label : tensor
        as many elements as data, same batch; no gradient
    grad_scale : float
        Factor of the gradient.

    Returns: output: shape and dtype of data
    """

_sparse_MAERegressionOutput = MAERegressionOutput


def MakeLoss(
    data: TensorT, grad_scale: float = 1.0, valid_thresh: float = 0.0, normalization: Literal['batch', 'null', 'valid']
    = 'null', *, out: Any = None, name: str | None = None
) -> TensorT:
    """Copies the input and starts a backward pass with a constant gradient.

    Parameters
    ----------
    data : tensor
        array of any shape
    grad_scale : float
        The gradient of every element.
    valid_thresh : float
        Elements greater than this are valid (normalization='valid').
    normalization : {'batch', 'null', 'valid'}
        batch: the gradient is divided by the size of the first axis; valid: by the number of valid elements.

    Returns: out: shape and dtype of data
    """


def Pad(
    data: TensorT, mode: Literal['constant', 'edge', 'reflect'], pad_width: int | Sequence[int], constant_value: float
    = 0.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Pads data with constants, with its edge values, or with its mirror image.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    mode : {'constant', 'edge', 'reflect'}
        The padding values: constant_value, the nearest element, or the data mirrored at its edge.
    pad_width : tuple of int
        Widths before and after each axis: two numbers per axis.
    constant_value : float
        Value of the padding in mode constant.

    Returns: output: sizes of data plus the widths before and after
    """

pad = Pad


def Pooling(
    data: TensorT, kernel: int | Sequence[int] = (), pool_type: Literal['max', 'avg', 'sum', 'lp'] = 'max',
    global_pool: bool = False, cudnn_off: bool = False, pooling_convention: Literal['full', 'valid', 'same'] = 'valid',
    stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), p_value: int | None = None, count_include_pad:
    bool | None = None, layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = None, *, out: Any =
    None, name: str | None = None
) -> TensorT:
    """Reduces windows of an image to their maximum, average, sum, or (sum of x^p)^(1/p).

    Parameters
    ----------
    data : tensor
        (batch, channels, spatial...), 1 to 3 spatial axes; with layout N...C the channels are last
    kernel : tuple of int
        Window: (w,), (h, w) or (d, h, w).
    pool_type : {'max', 'avg', 'sum', 'lp'}
        The reduction of each window.
    global_pool : bool
        Whether the window is the whole image.
    pooling_convention : {'full', 'valid', 'same'}
        valid: windows inside the padded image only; full: also a window over the rest; same: ceil(size /
        stride) outputs.
    stride : tuple of int
        Strides of the window; empty: 1 everywhere.
    pad : tuple of int
        Padding on both sides; empty: none.
    p_value : int or None, range [1, 3]
        Exponent of pool_type lp.
    count_include_pad : bool or None
        Whether an average includes the padding; None: True.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'} or None
        Order of the axes; None: channels second.

    Returns: output: spatial sizes valid: floor((size + 2 pad - kernel) / stride) + 1, full: ceil of it, same:
    ceil(size / stride)
    """

Pooling_v1 = Pooling


def RNN(
    data: TensorT, parameters: TensorT, state: TensorT, state_cell: TensorT | None = None, sequence_length: TensorT |
    None = None, state_size: int = ..., num_layers: int = ..., bidirectional: bool = False, mode: Literal['gru',
    'lstm', 'rnn_relu', 'rnn_tanh'] = ..., p: float = 0.0, state_outputs: bool = False, projection_size: int | None =
    None, lstm_state_clip_min: float | None = None, lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool
    = False, use_sequence_length: bool = False, *, out: Any = None, name: str | None = None
) -> Any:
    """Runs layers of recurrent cells over a sequence. Packed parameters: for each layer and direction the weights of
    the input (gates * state_size, inputs), of the state (gates * state_size, state) and of the projection
    (projection_size, state_size); then, in the same order, the biases of input and state. Gates: LSTM i, f, g, o;
    GRU r, z, n. Differentiable twice.

    Parameters
    ----------
    data : tensor
        (steps, batch, inputs)
    parameters : tensor
        all weights, then all biases, in one vector
    state : tensor
        initial states (layers * directions, batch, state_size or projection_size)
    state_cell : tensor, optional
        for LSTM: initial cells (layers * directions, batch, state_size)
    sequence_length : tensor, optional
        if use_sequence_length: (batch,), number of steps of each example; later steps give 0
    state_size : int, at least 1
        Size of the state of each layer and direction.
    num_layers : int, at least 1
        Number of stacked layers.
    bidirectional : bool
        Whether each layer also reads the sequence backwards.
    mode : {'gru', 'lstm', 'rnn_relu', 'rnn_tanh'}
        The kind of cell.
    p : float, range [0, 1]
        Dropout probability, in training, of the outputs of each layer but the last.
    state_outputs : bool
        Whether the final states are outputs, too.
    projection_size : int or None, at least 1
        LSTM: size to which the state is projected before it is output and fed back.
    lstm_state_clip_min : float or None
        Lower limit of LSTM cells; requires the upper limit.
    lstm_state_clip_max : float or None
        Upper limit of LSTM cells; requires the lower limit.
    lstm_state_clip_nan : bool
        Whether clipping replaces NaN by the lower limit.
    use_sequence_length : bool
        Whether examples have their own lengths, the last input.

    Returns: output: (steps, batch, directions * (state_size or projection_size)); state_output: if state_outputs:
    states after the last step, shape of state; statecell_output: if state_outputs, for LSTM: cells after the last
    step, shape of state_cell; reserve: values of the steps that the gradient needs
    """


def ROIPooling(
    data: TensorT, rois: TensorT, pooled_size: int | Sequence[int], spatial_scale: float, *, out: Any = None, name: str
    | None = None
) -> TensorT:
    """Maxima of pooled_size windows over each region of interest. Corners are scaled and rounded; a region includes
    both of them and at least one pixel. Empty windows, and regions with an invalid image number, give 0.

    Parameters
    ----------
    data : tensor
        (batch, channels, height, width)
    rois : tensor
        (regions, 5): number of the image, then left, top, right and bottom; no gradient
    pooled_size : tuple of int
        (height, width) of the output.
    spatial_scale : float, range [0, 1]
        Ratio of the size of data to the size of the image whose coordinates rois use.

    Returns: output: (regions, channels, pooled_size); maxidx: index in data of each maximum; -1 for an empty window
    """


def Reshape(
    data: TensorT, shape: int | Sequence[int] = (), reverse: bool = False, target_shape: int | Sequence[int] = (),
    keep_highest: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The same elements, in the same order, with another shape.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    shape : tuple of int
        Target shape; 0 copies a size, -1 is inferred, -2 copies all the rest, -3 merges two sizes, -4 splits
        one.
    reverse : bool
        Whether shape and data's shape are read from the right.
    target_shape : tuple of int
        Deprecated form of shape; one 0 is inferred.
    keep_highest : bool
        With target_shape: whether the first size is that of data.

    Returns: output: dtype of data; shape given by the parameter
    """

reshape = Reshape


def SVMOutput(
    data: TensorT, label: TensorT, margin: float = 1.0, regularization_coefficient: float = 1.0, use_linear: bool =
    False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The data itself. Its gradient is that of the hinge loss of every score, or of its square, independent of the
    output gradient.

    Parameters
    ----------
    data : tensor
        scores (..., classes), floating
    label : tensor
        class numbers, shape of data without the last axis; no gradient
    margin : float
        Margin of the loss: the label's score should be above it, the other scores below its negative.
    regularization_coefficient : float
        Factor of the gradient.
    use_linear : bool
        Whether the loss is the hinge loss; otherwise its square.

    Returns: output: shape and dtype of data
    """


def SequenceLast(
    data: TensorT, sequence_length: TensorT | None = None, use_sequence_length: bool = False, axis: int = 0, *, out:
    Any = None, name: str | None = None
) -> TensorT:
    """The last element of each sequence.

    Parameters
    ----------
    data : tensor
        shape (T, N, ...), or (N, T, ...) with axis=1; any dtype
    sequence_length : tensor, optional
        shape (N,); lengths as integers of any dtype
    use_sequence_length : bool
        Whether the second input has the lengths; else every sequence has full length.
    axis : int, range [0, 1]
        The time axis; the other of the first two axes is the batch.

    Returns: output: shape of data without the time axis
    """


def SequenceMask(
    data: TensorT, sequence_length: TensorT | None = None, use_sequence_length: bool = False, value: float = 0.0, axis:
    int = 0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Overwrites the elements after the end of each sequence.

    Parameters
    ----------
    data : tensor
        shape (T, N, ...), or (N, T, ...) with axis=1; any dtype
    sequence_length : tensor, optional
        shape (N,); lengths as integers of any dtype
    use_sequence_length : bool
        Whether the second input has the lengths; else every sequence has full length.
    value : float
        Value written after the end of a sequence.
    axis : int, range [0, 1]
        The time axis; the other of the first two axes is the batch.

    Returns: output: shape and dtype of data
    """


def SequenceReverse(
    data: TensorT, sequence_length: TensorT | None = None, use_sequence_length: bool = False, axis: int = 0, *, out:
    Any = None, name: str | None = None
) -> TensorT:
    """Each sequence reversed; elements after its end are unchanged.

    Parameters
    ----------
    data : tensor
        shape (T, N, ...), or (N, T, ...) with axis=1; any dtype
    sequence_length : tensor, optional
        shape (N,); lengths as integers of any dtype
    use_sequence_length : bool
        Whether the second input has the lengths; else every sequence has full length.
    axis : int, range [0, 0]
        The time axis: 0.

    Returns: output: shape and dtype of data
    """


def SliceChannel(
    data: TensorT, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, *, out: Any = None, name: str | None =
    None
) -> Any:
    """Splits data into num_outputs equal parts along an axis.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    num_outputs : int, range [1, 1.04858e+06]
        Number of equal parts.
    axis : int
        The axis to split.
    squeeze_axis : bool
        Whether to remove the axis; its size must be num_outputs.

    Returns: output: one array per part, dtype of data
    """

split = SliceChannel


def SoftmaxActivation(
    data: TensorT, mode: Literal['instance', 'channel'] = 'instance', *, out: Any = None, name: str | None = None
) -> TensorT:
    """Softmax over the last axis, or, with mode channel, over the second. The operator softmax is equivalent.

    Parameters
    ----------
    data : tensor
        floating tensor; mode channel: at least 3 axes
    mode : {'instance', 'channel'}
        The axis along which the outputs sum to 1. instance: the last axis; channel: the second.

    Returns: output: shape and dtype of data
    """


def SoftmaxOutput(
    data: TensorT, label: TensorT, grad_scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False,
    use_ignore: bool = False, preserve_shape: bool = False, normalization: Literal['batch', 'null', 'valid'] = 'null',
    out_grad: bool = False, smooth_alpha: float = 0.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Softmax for the end of a network. Its gradient is that of the cross entropy with the label, output - label,
    independent of the output gradient (unless out_grad).

    Parameters
    ----------
    data : tensor
        floating tensor (batch, ...)
    label : tensor
        class numbers, shape of data without the last axis (multi_output: without axis 1), or (batch,); or
        probabilities, shape of data
    grad_scale : float
        Factor of the gradient.
    ignore_label : float
        If use_ignore, rows with this label have no gradient.
    multi_output : bool
        Whether softmax is along axis 1, with one label for each position of the other axes.
    use_ignore : bool
        Whether rows with ignore_label are ignored; not for labels that are probabilities.
    preserve_shape : bool
        Whether softmax is along the last axis; otherwise along all axes except the first.
    normalization : {'batch', 'null', 'valid'}
        Divisor of the gradient. null: 1; batch: the number of labels, with multi_output the size of the data
        without channels; valid: the number of labels that are not ignore_label. With multi_output, null divides
        by the positions of one example.
    out_grad : bool
        Whether the gradient is multiplied by the output's gradient, which is ignored otherwise.
    smooth_alpha : float, range [0, 1]
        Share of the label's probability that is distributed over the other classes; not with multi_output.

    Returns: output: shape and dtype of data
    """

Softmax = SoftmaxOutput


def SpatialTransformer(
    data: TensorT, loc: TensorT, target_shape: int | Sequence[int] = (0, 0), transform_type: Literal['affine'] = ...,
    sampler_type: Literal['bilinear'] = ..., cudnn_off: bool | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Images under affine transformations: BilinearSampler at the grid that GridGenerator computes from loc.

    Parameters
    ----------
    data : tensor
        (batch, channels, height, width)
    loc : tensor
        (batch, 6): rows of 2 x 3 matrices that act on (x, y, 1)
    target_shape : tuple of int
        (height, width) of the output.
    transform_type : {'affine'}
        Kind of transformation.
    sampler_type : {'bilinear'}
        Kind of interpolation.

    Returns: output: (batch, channels, target_shape)
    """


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

swapaxes = SwapAxis


def UpSampling(
    *data: TensorT, scale: int = ..., num_filter: int = 0, sample_type: Literal['bilinear', 'nearest'] = ...,
    multi_input_mode: Literal['concat', 'sum'] = 'concat', num_args: int = ..., workspace: int = 512, out: Any = None,
    name: str | None = None
) -> TensorT:
    """Enlarges images by an integer factor.

    Parameters
    ----------
    data : tensor
        nearest: images (batch, channels, height, width), whose sizes divide the output's; bilinear: the image
        and a weight
    weight : tensor, optional
        bilinear: (channels, 1, kernel, kernel) with kernel = 2 scale - scale % 2
    scale : int, at least 1
        Factor of height and width of the first input.
    num_filter : int
        For bilinear: channels of data; optional.
    sample_type : {'bilinear', 'nearest'}
        nearest: repeats elements; bilinear: a transposed convolution of each channel with a weight that is
        learned.
    multi_input_mode : {'concat', 'sum'}
        nearest: whether enlarged inputs are joined along the channels or added.
    num_args : int, at least 1
        Number of inputs; for bilinear: number of images, or of images and weight, as there is always one
        weight.

    Returns: output: (batch, channels, scale * height, scale * width) with the sizes of the first input
    """


def abs(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Absolute value; its gradient at 0 is 0.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_abs = abs


def adam_update(
    weight: TensorT, grad: TensorT, mean: TensorT, var: TensorT, lr: float, beta1: float = 0.9, beta2: float = 0.999,
    epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool
    = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """g = clip(rescale_grad * grad + wd * weight); mean and var are running means of g and g * g; weight -= lr * mean
    / (sqrt(var) + epsilon)

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mean : tensor
        shape and dtype of weight; replaced
    var : tensor
        shape and dtype of weight; replaced
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
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

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


def all_finite(data: TensorT, init_output: bool = True, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 if no element is infinite or NaN, else 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    init_output : bool
        Accepted for compatibility: the result always describes the given arrays, whatever the output held
        before.

    Returns: out: float32 (1,)
    Not differentiable.
    """


def amp_cast(data: TensorT, dtype: DType, *, out: Any = None, name: str | None = None) -> TensorT:
    """Converts float32, float16 and bfloat16 for mixed precision; other inputs are returned unchanged.

    Parameters
    ----------
    data : tensor
        array of any shape and dtype
    dtype : dtype
        Dtype of the output.

    Returns: out: shape of data
    """


def amp_multicast(
    *data: TensorT, num_outputs: int = ..., cast_narrow: bool = False, out: Any = None, name: str | None = None
) -> Any:
    """Converts floating arrays of 32 and 16 bits to the widest dtype among them; other arrays are returned unchanged.

    Parameters
    ----------
    data : tensor
        arrays of any shapes
    num_outputs : int, at least 1
        Number of arrays.
    cast_narrow : bool
        Whether to convert to the narrowest dtype among the inputs instead of the widest.

    Returns: out: the inputs, converted
    """


def arccos(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse cosine, in [0, pi]; NaN outside [-1, 1].

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_arccos = arccos


def arccosh(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse hyperbolic cosine; NaN below 1.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_arccosh = arccosh


def arcsin(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1].

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_arcsin = arcsin


def arcsinh(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse hyperbolic sine.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_arcsinh = arcsinh


def arctan(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse tangent, in [-pi/2, pi/2].

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_arctan = arctan


def arctanh(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse hyperbolic tangent; NaN outside [-1, 1].

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_arctanh = arctanh


def argmax(
    data: TensorT, axis: int | None = None, keepdims: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Position of the largest element along an axis: the first of equal elements, the first NaN if there is one. The
    result has the dtype of data, which follows MXNet, but float32 for dtypes of less than 32 bits, which hold few
    positions. Positions above 2^24 are rounded in float32, with a warning.

    Parameters
    ----------
    data : tensor
        array of any shape with at least one element along the axis
    axis : int or None
        Axis to search; None: all elements in row-major order.
    keepdims : bool
        Keep reduced axes with size 1.

    Returns: out: dtype of data, float32 for float16, bfloat16, int8, uint8 and bool; the shape without the searched
    axis, or with size 1 there (keepdims)
    """


def argmax_channel(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """argmax along axis 1.

    Parameters
    ----------
    data : tensor
        array of rank 2 or more, or of rank 1

    Returns: out: dtype as in argmax, the shape without axis 1
    """


def argmin(
    data: TensorT, axis: int | None = None, keepdims: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Position of the smallest element along an axis: the first of equal elements, the first NaN if there is one. The
    result has the dtype of data, which follows MXNet, but float32 for dtypes of less than 32 bits, which hold few
    positions. Positions above 2^24 are rounded in float32, with a warning.

    Parameters
    ----------
    data : tensor
        array of any shape with at least one element along the axis
    axis : int or None
        Axis to search; None: all elements in row-major order.
    keepdims : bool
        Keep reduced axes with size 1.

    Returns: out: dtype of data, float32 for float16, bfloat16, int8, uint8 and bool; the shape without the searched
    axis, or with size 1 there (keepdims)
    """


def argsort(
    data: TensorT, axis: int | None = -1, is_ascend: bool = True, dtype: DType = 'float32', *, out: Any = None, name:
    str | None = None
) -> TensorT:
    """The indices that sort data along an axis.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : int or None
        The axis to sort along; None: data is flattened.
    is_ascend : bool
        Whether the smallest elements come first.
    dtype : dtype
        Dtype of the indices.

    Returns: output: shape of data; flat without axis
    Not differentiable.
    """


def batch_dot(
    lhs: TensorT, rhs: TensorT, transpose_a: bool = False, transpose_b: bool = False, forward_stype: str | None = None,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """Matrix products of two stacks of matrices: out[b...] = lhs[b...] rhs[b...].

    Parameters
    ----------
    lhs : tensor
        (batch..., m, k), or (batch..., k, m) if transpose_a
    rhs : tensor
        (batch..., k, n), or (batch..., n, k) if transpose_b
    transpose_a : bool
        Whether to transpose the matrices of lhs.
    transpose_b : bool
        Whether to transpose the matrices of rhs.

    Returns: output: (batch..., m, n)
    """


def batch_take(a: TensorT, indices: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Element indices[i] of each row i.

    Parameters
    ----------
    a : tensor
        shape (N, K), any dtype
    indices : tensor
        shape (N,); integers of any dtype, clipped to [0, K-1]

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


def broadcast_axis(
    data: TensorT, axis: int | Sequence[int] = (), size: int | Sequence[int] = (), *, out: Any = None, name: str | None
    = None
) -> TensorT:
    """Repeats the input along axes of size 1.

    Parameters
    ----------
    data : tensor
        array whose size along every axis of axis is 1
    axis : tuple of int
        Axes of size 1 to repeat.
    size : tuple of int
        Number of repetitions along each axis.

    Returns: out: dtype of data; its shape with the given sizes
    """

broadcast_axes = broadcast_axis


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


def broadcast_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs == rhs, else 0, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_greater(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs > rhs, else 0, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_greater_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs >= rhs, else 0, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_hypot(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """sqrt(lhs^2 + rhs^2) without overflow, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_lesser(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs < rhs, else 0, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_lesser_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs <= rhs, else 0, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_like(
    lhs: TensorT, rhs: TensorT, lhs_axes: int | Sequence[int] | None = None, rhs_axes: int | Sequence[int] | None =
    None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Repeats lhs along its axes of size 1 to the shape of rhs, or to the sizes of some axes of rhs.

    Parameters
    ----------
    lhs : tensor
        array whose sizes are 1 or equal to those of rhs
    rhs : tensor
        array that defines the shape; its values are not read
    lhs_axes : tuple of int or None
        Axes of lhs to repeat; None: all axes.
    rhs_axes : tuple of int or None
        Axes of rhs that define the sizes; None: all axes.

    Returns: out: dtype of lhs
    """


def broadcast_logical_and(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where both are not 0, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_logical_or(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where either is not 0, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_logical_xor(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where exactly one is not 0, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_maximum(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The larger element, with broadcasting; NaN if either is NaN.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_minimum(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The smaller element, with broadcasting; NaN if either is NaN.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_mod(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Remainder of lhs / rhs with the sign of rhs, with broadcasting; 0 where rhs is 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


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


def broadcast_not_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where lhs != rhs, else 0, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


def broadcast_power(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs to the power of rhs, with broadcasting. Integers wrap around; 1 / lhs^-rhs below 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, same dtype; sizes are equal, or one of them is 1

    Returns: out: dtype of the inputs, shape by NumPy's broadcasting rule
    """


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


def cast_storage(
    data: TensorT, stype: Literal['default', 'row_sparse', 'csr'], *, out: Any = None, name: str | None = None
) -> TensorT:
    """The same values in another storage type: default, row_sparse or csr.

    Parameters
    ----------
    data : tensor
        array of any shape; a matrix for csr
    stype : {'default', 'row_sparse', 'csr'}
        Storage of the result; in graphs all values are dense.

    Returns: output: shape and dtype of data
    """

_sparse_cast_storage = cast_storage


def cbrt(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Cube root.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_cbrt = cbrt


def ceil(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rounds up to an integer.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_ceil = ceil


def clip(data: TensorT, a_min: float, a_max: float, *, out: Any = None, name: str | None = None) -> TensorT:
    """Limits values to [a_min, a_max]; NaN is kept.

    Parameters
    ----------
    data : tensor
        array of any shape
    a_min : float
        Smallest value of the output.
    a_max : float
        Largest value of the output.

    Returns: out: shape and dtype of the inputs
    """

_sparse_clip = clip


def col2im(
    data: TensorT, output_size: int | Sequence[int], kernel: int | Sequence[int], stride: int | Sequence[int] = (),
    dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """Images from the columns of im2col: values of the same pixel are added.

    Parameters
    ----------
    data : tensor
        (batch, channels * kernel points, positions)
    output_size : tuple of int
        Size of the image.
    kernel : tuple of int
        Size of the kernel along every axis of the image, for 1 to 3 axes.
    stride : tuple of int
        Strides of the kernel; () is 1.
    dilate : tuple of int
        Distances between kernel points; () is 1.
    pad : tuple of int
        Width of the zero padding on each side of the image; () is 0.

    Returns: output: (batch, channels, output_size...)
    """


def cos(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Cosine; x in radians.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_cos = cos


def cosh(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Hyperbolic cosine.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_cosh = cosh


def degrees(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Radians to degrees.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_degrees = degrees


def depth_to_space(data: TensorT, block_size: int, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rearranges channels to blocks of pixels: element (n, (r, s, c), h, w) becomes (n, c, h * b + r, w * b + s).

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
        Index of the diagonal: 0 the main one, positive above, negative below.
    axis1 : int
        The axis of rows. Not for vectors.
    axis2 : int
        The axis of columns. Not for vectors.

    Returns: output: shape of data without the two axes, the diagonal last; for a vector (n + |k|, n + |k|)
    """


def dot(
    lhs: TensorT, rhs: TensorT, transpose_a: bool = False, transpose_b: bool = False, forward_stype: str | None = None,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """Product of two arrays: out[i..., j...] = sum over x of lhs[i..., x] * rhs[x, j...]. It is the matrix product of
    matrices and the inner product of vectors (shape (1,), under NumPy shapes ()).

    Parameters
    ----------
    lhs : tensor
        one axis or more
    rhs : tensor
        one axis or more
    transpose_a : bool
        Whether to contract the first axis of lhs instead of its last.
    transpose_b : bool
        Whether to contract the last axis of rhs instead of its first.

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
_scatter_elemwise_div = elemwise_div
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


def erf(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """


def erfinv(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse of the error function; NaN outside [-1, 1].

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """


def exp(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """e to the power of x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_exp = exp


def expand_dims(data: TensorT, axis: int, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inserts an axis of size 1.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : int
        Position of the new axis in the output, in [-ndim-1, ndim].

    Returns: output: one dimension more than data
    """


def expm1(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """e to the power of x, minus 1, exact for small x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_expm1 = expm1


def fill_element_0index(
    lhs: TensorT, mhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None
) -> TensorT:
    """lhs with lhs[i, rhs[i]] replaced by mhs[i].

    Parameters
    ----------
    lhs : tensor
        (rows, columns), any dtype
    mhs : tensor
        (rows,), dtype of lhs
    rhs : tensor
        (rows,): columns, integers; negative ones count from the end

    Returns: output: shape and dtype of lhs
    Not differentiable.
    """


def fix(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rounds toward zero to an integer.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_fix = fix


def floor(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rounds down to an integer.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_floor = floor


def ftml_update(
    weight: TensorT, grad: TensorT, d: TensorT, v: TensorT, z: TensorT, lr: float, beta1: float = 0.6, beta2: float =
    0.999, epsilon: float = 1e-08, t: int = ..., wd: float = 0.0, rescale_grad: float = 1.0, clip_grad: float = -1.0,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """g = clip(rescale_grad * grad + wd * weight); v is a running mean of g * g; d = (1 - beta1^t) / lr * (sqrt(v / (1
    - beta2^t)) + epsilon); z = beta1 * z + (1 - beta1) * g - (d - beta1 * d before) * weight; weight = -z / d

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    d : tensor
        shape and dtype of weight; replaced
    v : tensor
        shape and dtype of weight; replaced
    z : tensor
        shape and dtype of weight; replaced
    lr : float
        Learning rate.
    beta1 : float, range [0, 1]
        Decay rate of the leader.
    beta2 : float, range [0, 1]
        Decay rate of the squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    t : int, at least 1
        Number of this update, from 1.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_grad : float
        Gradients are clipped to [-clip_grad, clip_grad]; negative: not clipped.

    Returns: weight_out: updated weight; d_out: replaces d; v_out: replaces v; z_out: replaces z
    Not differentiable.
    """


def ftrl_update(
    weight: TensorT, grad: TensorT, z: TensorT, n: TensorT, lr: float, lamda1: float = 0.01, beta: float = 1.0, wd:
    float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """g = clip(rescale_grad * grad); z += g - (sqrt(n + g * g) - sqrt(n)) * weight / lr; n += g * g; weight = (sign(z)
    * lamda1 - z) / ((beta + sqrt(n)) / lr + wd) if |z| > lamda1, else 0

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    z : tensor
        shape and dtype of weight; replaced
    n : tensor
        shape and dtype of weight; replaced
    lr : float
        Learning rate.
    lamda1 : float
        L1 penalty.
    beta : float
        Reduces the learning rate of elements with few gradients.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight; z_out: replaces z; n_out: replaces n
    Not differentiable.
    """

_sparse_ftrl_update = ftrl_update


def gamma(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Gamma function.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_gamma = gamma


def gammaln(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Logarithm of the magnitude of the gamma function.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_gammaln = gammaln


def gather_nd(data: TensorT, indices: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Elements or slices of data selected by tuples: out[y...] = data[indices[0, y...], indices[1, y...], ...].

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    indices : tensor
        shape (M, ...), M at most the dimensions of data; integers, negative ones count from the end

    Returns: output: shape of indices without its first axis, then the axes of data after the first M
    """


def hard_sigmoid(
    data: TensorT, alpha: float = 0.2, beta: float = 0.5, *, out: Any = None, name: str | None = None
) -> TensorT:
    """alpha * x + beta, limited to [0, 1].

    Parameters
    ----------
    data : tensor
        array of any shape
    alpha : float
        Slope.
    beta : float
        Value at 0.

    Returns: out: shape and dtype of the inputs
    """


def im2col(
    data: TensorT, kernel: int | Sequence[int], stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (),
    pad: int | Sequence[int] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """The pixels that every point of a kernel reads, at every position of the kernel.

    Parameters
    ----------
    data : tensor
        (batch, channels, image...), 1 to 3 axes of image
    kernel : tuple of int
        Size of the kernel along every axis of the image, for 1 to 3 axes.
    stride : tuple of int
        Strides of the kernel; () is 1.
    dilate : tuple of int
        Distances between kernel points; () is 1.
    pad : tuple of int
        Width of the zero padding on each side of the image; () is 0.

    Returns: output: (batch, channels * kernel points, positions)
    """


def khatri_rao(*args: TensorT, num_args: int = ..., out: Any = None, name: str | None = None) -> TensorT:
    """The matrix whose columns are the outer products of the matrices' columns.

    Parameters
    ----------
    args : tensor
        matrices with the same number of columns
    num_args : int, at least 1
        Number of matrices.

    Returns: output: (product of the numbers of rows, columns)
    """


def lamb_update_phase1(
    weight: TensorT, grad: TensorT, mean: TensorT, var: TensorT, beta1: float = 0.9, beta2: float = 0.999, epsilon:
    float = 1e-06, t: int = ..., bias_correction: bool = True, wd: float = ..., rescale_grad: float = 1.0,
    clip_gradient: float = -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Adam's step: g = clip(rescale_grad * grad); mean and var are running means of g and g * g; the result is mean /
    (sqrt(var) + epsilon) + wd * weight, with corrected moments if bias_correction.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mean : tensor
        replaced
    var : tensor
        replaced
    beta1 : float
        Decay rate of the mean of gradients.
    beta2 : float
        Decay rate of the mean of squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    t : int, at least 1
        Number of this update, from 1.
    bias_correction : bool
        Whether the moments' bias is corrected.
    wd : float
        Weight decay: wd * weight is added to the step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: g: the step; mean_out: replaces mean; var_out: replaces var
    Not differentiable.
    """


def lamb_update_phase2(
    weight: TensorT, g: TensorT, r1: TensorT, r2: TensorT, lr: float, lower_bound: float = -1.0, upper_bound: float =
    -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """weight -= lr * ratio * g; ratio = r1, clipped to [lower_bound, upper_bound], over r2, or 1 if one of them is 0.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    g : tensor
        the step, from phase 1
    r1 : tensor
        norm of weight, one element
    r2 : tensor
        norm of g, one element
    lr : float
        Learning rate.
    lower_bound : float
        Lower bound of the norm of the weight; negative: no bound.
    upper_bound : float
        Upper bound of the norm of the weight; negative: no bound.

    Returns: weight_out: updated weight
    Not differentiable.
    """


def log(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Natural logarithm.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_log = log


def log10(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Logarithm to base 10.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_log10 = log10


def log1p(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """log(1 + x), exact for small x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_log1p = log1p


def log2(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Logarithm to base 2.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_log2 = log2


def log_softmax(
    data: TensorT, axis: int = -1, temperature: float | None = None, dtype: DType | None = None, use_length: bool |
    None = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Logarithm of softmax along an axis, computed without underflow.

    Parameters
    ----------
    data : tensor
        floating tensor with at least one axis
    axis : int
        Axis along which the outputs sum to 1.
    temperature : float or None
        Divisor of data; None: 1.
    dtype : dtype or None
        Dtype of the output: float16, float32 or float64; None: dtype of data.
    use_length : bool or None
        Whether the length input is present.

    Returns: output: shape of data
    """


def logical_not(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 where x is 0, else 0.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """


def make_loss(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Copies the input and starts a backward pass with a gradient of ones.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of data
    """

_sparse_make_loss = make_loss


def max(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, *, out: Any
    = None, name: str | None = None
) -> TensorT:
    """Largest element over axes. The result is NaN if any element is NaN.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Whether to reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

max_axis = max


def mean(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, *, out: Any
    = None, name: str | None = None
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
        Whether to reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

_sparse_mean = mean


def min(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, *, out: Any
    = None, name: str | None = None
) -> TensorT:
    """Smallest element over axes. The result is NaN if any element is NaN.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Whether to reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

min_axis = min


def moments(
    data: TensorT, axes: int | Sequence[int] | None = None, keepdims: bool = False, *, out: Any = None, name: str |
    None = None
) -> Any:
    """Mean and variance (of the whole population: divided by the number of elements) over axes.

    Parameters
    ----------
    data : tensor
        floating array of any shape
    axes : tuple of int or None
        Axes to reduce; None or (): all.
    keepdims : bool
        Keep reduced axes with size 1.

    Returns: mean: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims); var: shape
    and dtype of mean
    """


def mp_lamb_update_phase1(
    weight: TensorT, grad: TensorT, mean: TensorT, var: TensorT, weight32: TensorT, beta1: float = 0.9, beta2: float =
    0.999, epsilon: float = 1e-06, t: int = ..., bias_correction: bool = True, wd: float = ..., rescale_grad: float =
    1.0, clip_gradient: float = -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """lamb_update_phase1 with float32 moments, step and copy of the weight.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mean : tensor
        replaced
    var : tensor
        replaced
    weight32 : tensor
        float32 copy of weight
    beta1 : float
        Decay rate of the mean of gradients.
    beta2 : float
        Decay rate of the mean of squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    t : int, at least 1
        Number of this update, from 1.
    bias_correction : bool
        Whether the moments' bias is corrected.
    wd : float
        Weight decay: wd * weight is added to the step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: g: the step; mean_out: replaces mean; var_out: replaces var
    Not differentiable.
    """


def mp_lamb_update_phase2(
    weight: TensorT, g: TensorT, r1: TensorT, r2: TensorT, weight32: TensorT, lr: float, lower_bound: float = -1.0,
    upper_bound: float = -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """lamb_update_phase2 on a float32 copy of the weight; the weight is the rounded copy.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    g : tensor
        the step, from phase 1
    r1 : tensor
        norm of weight, one element
    r2 : tensor
        norm of g, one element
    weight32 : tensor
        float32 copy of weight; replaced
    lr : float
        Learning rate.
    lower_bound : float
        Lower bound of the norm of the weight; negative: no bound.
    upper_bound : float
        Upper bound of the norm of the weight; negative: no bound.

    Returns: weight_out: updated weight; weight32_out: replaces weight32
    Not differentiable.
    """


def mp_nag_mom_update(
    weight: TensorT, grad: TensorT, mom: TensorT, weight32: TensorT, lr: float, momentum: float = 0.0, wd: float = 0.0,
    rescale_grad: float = 1.0, clip_gradient: float = -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """nag_mom_update on a float32 copy of the weight; the weight is the rounded copy.

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
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight; mom_out: replaces mom; weight32_out: replaces weight32
    Not differentiable.
    """


def mp_sgd_mom_update(
    weight: TensorT, grad: TensorT, mom: TensorT, weight32: TensorT, lr: float, momentum: float = 0.0, wd: float = 0.0,
    rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """sgd_mom_update on a float32 copy of the weight; the weight is the rounded copy.

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
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight; mom_out: replaces mom; weight32_out: replaces weight32
    Not differentiable.
    """


def mp_sgd_update(
    weight: TensorT, grad: TensorT, weight32: TensorT, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
    clip_gradient: float = -1.0, lazy_update: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """sgd_update on a float32 copy of the weight; the weight is the rounded copy.

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
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight; weight32_out: replaces weight32
    Not differentiable.
    """


def multi_all_finite(
    *data: TensorT, num_arrays: int = 1, init_output: bool = True, out: Any = None, name: str | None = None
) -> TensorT:
    """1 if no element is infinite or NaN, else 0.

    Parameters
    ----------
    data : tensor
        arrays of any shapes and dtypes
    num_arrays : int, at least 1
        Number of arrays.
    init_output : bool
        Accepted for compatibility: the result always describes the given arrays, whatever the output held
        before.

    Returns: out: float32 (1,)
    Not differentiable.
    """


def multi_lars(
    lrs: TensorT, weights_sum_sq: TensorT, grads_sum_sq: TensorT, wds: TensorT, eta: float, eps: float, rescale_grad:
    float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Learning rates of LARS: lr * eta * |weight| / (rescale_grad * |grad| + wd * |weight| + eps), or lr if a norm is
    0.

    Parameters
    ----------
    lrs : tensor
        float32 (n,)
    weights_sum_sq : tensor
        float32 (n,), from multi_sum_sq
    grads_sum_sq : tensor
        float32 (n,), from multi_sum_sq
    wds : tensor
        float32 (n,)
    eta : float
        Trust coefficient.
    eps : float
        Added to the denominator.
    rescale_grad : float
        Factor applied to the gradients.

    Returns: out: float32 (n,)
    Not differentiable.
    """


def multi_mp_sgd_mom_update(
    *data: TensorT, lrs: Sequence[float] = ..., wds: Sequence[float] = ..., momentum: float = 0.0, rescale_grad: float
    = 1.0, clip_gradient: float = -1.0, num_weights: int = 1, out: Any = None, name: str | None = None
) -> Any:
    """mp_sgd_mom_update of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    wds : tuple of float
        Weight decays, one per tensor.
    momentum : float
        Factor of the previous step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def multi_mp_sgd_update(
    *data: TensorT, lrs: Sequence[float] = ..., wds: Sequence[float] = ..., rescale_grad: float = 1.0, clip_gradient:
    float = -1.0, num_weights: int = 1, out: Any = None, name: str | None = None
) -> Any:
    """mp_sgd_update of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    wds : tuple of float
        Weight decays, one per tensor.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def multi_sgd_mom_update(
    *data: TensorT, lrs: Sequence[float] = ..., wds: Sequence[float] = ..., momentum: float = 0.0, rescale_grad: float
    = 1.0, clip_gradient: float = -1.0, num_weights: int = 1, out: Any = None, name: str | None = None
) -> Any:
    """sgd_mom_update of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    wds : tuple of float
        Weight decays, one per tensor.
    momentum : float
        Factor of the previous step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def multi_sgd_update(
    *data: TensorT, lrs: Sequence[float] = ..., wds: Sequence[float] = ..., rescale_grad: float = 1.0, clip_gradient:
    float = -1.0, num_weights: int = 1, out: Any = None, name: str | None = None
) -> Any:
    """sgd_update of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    wds : tuple of float
        Weight decays, one per tensor.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def multi_sum_sq(*data: TensorT, num_arrays: int = ..., out: Any = None, name: str | None = None) -> TensorT:
    """Sum of squares of each array.

    Parameters
    ----------
    data : tensor
        floating tensors
    num_arrays : int, at least 1
        Number of arrays.

    Returns: out: float32 (num_arrays,)
    Not differentiable.
    """


def nag_mom_update(
    weight: TensorT, grad: TensorT, mom: TensorT, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad:
    float = 1.0, clip_gradient: float = -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """mom = momentum * mom - lr * (clip(rescale_grad * grad) + wd * weight); weight changes by mom plus momentum times
    the change of mom.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mom : tensor
        shape and dtype of weight; replaced
    lr : float
        Learning rate.
    momentum : float
        Factor of the previous step.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight; mom_out: replaces mom
    Not differentiable.
    """


def nanprod(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, *, out: Any
    = None, name: str | None = None
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
        Whether to reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def nansum(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, *, out: Any
    = None, name: str | None = None
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
        Whether to reduce the axes that are not listed.

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

_sparse_negative = negative


def norm(
    data: TensorT, ord: int = 2, axis: int | Sequence[int] | None = None, out_dtype: DType | None = None, keepdims:
    bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """L1 or L2 norm over axes.

    Parameters
    ----------
    data : tensor
        array of any shape
    ord : int, range [1, 2]
        1: sum of magnitudes; 2: root of the sum of squares.
    axis : tuple of int or None
        Axis or axes of the norm; None or (): all.
    out_dtype : dtype or None
        Dtype of the output; None: dtype of data.
    keepdims : bool
        Keep reduced axes with size 1.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

_sparse_norm = norm


def one_hot(
    indices: TensorT, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: DType = 'float32', *, out: Any
    = None, name: str | None = None
) -> TensorT:
    """Rows of off_value with on_value at the index; an index out of range gives a row of off_value.

    Parameters
    ----------
    indices : tensor
        any shape; integers of any dtype
    depth : int, at least 0
        Length of a row.
    on_value : float
        Value at the index.
    off_value : float
        Value of all other elements.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape of indices with depth appended
    Not differentiable.
    """


def ones_like(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Ones of the input's shape and dtype.

    Parameters
    ----------
    data : tensor
        array of any shape; its values are not read

    Returns: out: shape and dtype of data
    """


def pick(
    data: TensorT, index: TensorT, axis: int | None = -1, keepdims: bool = False, mode: Literal['clip', 'wrap'] =
    'clip', *, out: Any = None, name: str | None = None
) -> TensorT:
    """One element per position of the other axes, selected by index.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    index : tensor
        shape of data without the axis, or with size 1 there; integers of any dtype
    axis : int or None
        The axis to pick from; None: data is flattened.
    keepdims : bool
        Keep the axis with size 1.
    mode : {'clip', 'wrap'}
        Index out of range: clip to the ends or wrap around.

    Returns: output: shape of data without the axis, or with size 1 there
    """

choose_element_0index = pick


def preloaded_multi_mp_sgd_mom_update(
    *data: TensorT, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int =
    1, out: Any = None, name: str | None = None
) -> Any:
    """multi_mp_sgd_mom_update with learning rates and weight decays from tensors.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor, then lrs and wds, each (num_weights,) float32
    momentum : float
        Factor of the previous step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def preloaded_multi_mp_sgd_update(
    *data: TensorT, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1, out: Any = None,
    name: str | None = None
) -> Any:
    """multi_mp_sgd_update with learning rates and weight decays from tensors.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor, then lrs and wds, each (num_weights,) float32
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def preloaded_multi_sgd_mom_update(
    *data: TensorT, momentum: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int =
    1, out: Any = None, name: str | None = None
) -> Any:
    """multi_sgd_mom_update with learning rates and weight decays from tensors.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor, then lrs and wds, each (num_weights,) float32
    momentum : float
        Factor of the previous step.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def preloaded_multi_sgd_update(
    *data: TensorT, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1, out: Any = None,
    name: str | None = None
) -> Any:
    """multi_sgd_update with learning rates and weight decays from tensors.

    Parameters
    ----------
    data : tensor
        weight, gradient and states of each tensor, then lrs and wds, each (num_weights,) float32
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def prod(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, *, out: Any
    = None, name: str | None = None
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
        Whether to reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def radians(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Degrees to radians.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_radians = radians


def rcbrt(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 / cube root.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """


def reciprocal(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 / x; integers: rounded toward zero, 0 for 0.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """


def relu(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """max(x, 0).

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_relu = relu


def repeat(
    data: TensorT, repeats: int, axis: int | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Repeats every element, or slice along an axis.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    repeats : int, at least 0
        Number of repetitions of each element.
    axis : int or None
        Axis along which to repeat; None: data is flattened.

    Returns: output: shape of data with the size of the axis times repeats; flat if axis is None
    """


def reset_arrays(*data: TensorT, num_arrays: int = ..., out: Any = None, name: str | None = None) -> Any:
    """Sets arrays to zero in place.

    Parameters
    ----------
    data : tensor
        arrays of any shapes and dtypes
    num_arrays : int, at least 1
        Number of arrays.

    Returns: out: the arrays
    Not differentiable.
    """


def reshape_like(
    lhs: TensorT, rhs: TensorT, lhs_begin: int | None = None, lhs_end: int | None = None, rhs_begin: int | None = None,
    rhs_end: int | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """lhs with the shape of rhs, or with some of its axes replaced by axes of rhs.

    Parameters
    ----------
    lhs : tensor
        any shape, any dtype
    rhs : tensor
        defines sizes only; any dtype
    lhs_begin : int or None
        First axis of lhs that is replaced; None: 0.
    lhs_end : int or None
        End of the axes of lhs that are replaced; None: all.
    rhs_begin : int or None
        First axis of rhs whose size is used; None: 0.
    rhs_end : int or None
        End of the axes of rhs whose sizes are used; None: all.

    Returns: output: dtype of lhs
    """


def reverse(data: TensorT, axis: int | Sequence[int], *, out: Any = None, name: str | None = None) -> TensorT:
    """Reverses the order of elements along the given axes.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : tuple of int
        The axes to reverse.

    Returns: output: shape and dtype of data
    """

flip = reverse


def rint(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rounds to the nearest integer; halves to the lower one.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_rint = rint


def rmsprop_update(
    weight: TensorT, grad: TensorT, n: TensorT, lr: float, gamma1: float = 0.95, epsilon: float = 1e-08, wd: float =
    0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, clip_weights: float = -1.0, *, out: Any = None, name:
    str | None = None
) -> TensorT:
    """g = clip(rescale_grad * grad + wd * weight); n is a running mean of g * g; weight -= lr * g / sqrt(n + epsilon),
    then clipped to clip_weights.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    n : tensor
        shape and dtype of weight; replaced
    lr : float
        Learning rate.
    gamma1 : float
        Decay rate of the running means.
    epsilon : float
        Added under the root, against division by zero.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    clip_weights : float
        Weights are clipped to [-clip_weights, clip_weights]; negative: not clipped.

    Returns: weight_out: updated weight; n_out: replaces n
    Not differentiable.
    """


def rmspropalex_update(
    weight: TensorT, grad: TensorT, n: TensorT, g: TensorT, delta: TensorT, lr: float, gamma1: float = 0.95, gamma2:
    float = 0.9, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
    clip_weights: float = -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """rmsprop_update with momentum and the variance n - g * g, where g is a running mean of the gradient: delta =
    gamma2 * delta - lr * gradient / sqrt(n - g * g + epsilon); weight += delta.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    n : tensor
        shape and dtype of weight; replaced
    g : tensor
        shape and dtype of weight; replaced
    delta : tensor
        shape and dtype of weight; replaced
    lr : float
        Learning rate.
    gamma1 : float
        Decay rate of the running means.
    gamma2 : float
        Factor of the previous step.
    epsilon : float
        Added under the root, against division by zero.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    clip_weights : float
        Weights are clipped to [-clip_weights, clip_weights]; negative: not clipped.

    Returns: weight_out: updated weight; n_out: replaces n; g_out: replaces g; delta_out: replaces delta
    Not differentiable.
    """


def round(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rounds to the nearest integer; halves away from zero.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_round = round


def rsqrt(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 / sqrt(x).

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_rsqrt = rsqrt


def scatter_nd(
    data: TensorT, indices: TensorT, shape: int | Sequence[int], *, out: Any = None, name: str | None = None
) -> TensorT:
    """Zeros with slices of data at the positions of tuples; if tuples repeat, the last one is kept.

    Parameters
    ----------
    data : tensor
        shape of indices without its first axis, then the axes of the output after the first M
    indices : tensor
        shape (M, ...); integers, negative ones count from the end
    shape : tuple of int
        Shape of the output.

    Returns: output: shape given by the parameter
    """


def sgd_mom_update(
    weight: TensorT, grad: TensorT, mom: TensorT, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad:
    float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """mom = momentum * mom - lr * (wd * weight + clip(rescale_grad * grad)); weight = weight + mom

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mom : tensor
        shape and dtype of weight; replaced
    lr : float
        Learning rate.
    momentum : float
        Factor of the previous step.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight; mom_out: replaces mom
    Not differentiable.
    """

_sparse_sgd_mom_update = sgd_mom_update


def sgd_update(
    weight: TensorT, grad: TensorT, lr: float, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
    lazy_update: bool = True, *, out: Any = None, name: str | None = None
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
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight
    Not differentiable.
    """

_sparse_sgd_update = sgd_update


def shape_array(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The shape of data as a tensor.

    Parameters
    ----------
    data : tensor
        defines sizes only

    Returns: output: shape (ndim,), int64
    """


def sigmoid(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """1 / (1 + e^-x).

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_sigmoid = sigmoid


def sign(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """-1, 0 or 1; its gradient is 0.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_sign = sign


def signsgd_update(
    weight: TensorT, grad: TensorT, lr: float, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """weight = (1 - lr * wd) * weight - lr * sign(grad)

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
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight
    Not differentiable.
    """


def signum_update(
    weight: TensorT, grad: TensorT, mom: TensorT, lr: float, momentum: float = 0.0, wd: float = 0.0, rescale_grad:
    float = 1.0, clip_gradient: float = -1.0, wd_lh: float = 0.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """mom = momentum * mom - (1 - momentum) * (clip(rescale_grad * grad) + wd * weight); weight = (1 - lr * wd_lh) *
    weight + lr * sign(mom)

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mom : tensor
        shape and dtype of weight; replaced
    lr : float
        Learning rate.
    momentum : float
        Decay rate of the mean of gradients.
    wd : float
        Weight decay: wd * weight is added to the gradient.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    wd_lh : float
        Weight decay applied after the sign.

    Returns: weight_out: updated weight; mom_out: replaces mom
    Not differentiable.
    """


def sin(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Sine; x in radians.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_sin = sin


def sinh(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Hyperbolic sine.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_sinh = sinh


def size_array(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The number of elements of data as a tensor.

    Parameters
    ----------
    data : tensor
        defines sizes only

    Returns: output: shape (1,), int64
    """


def slice(
    data: TensorT, begin: int | Sequence[int | None], end: int | Sequence[int | None], step: int | Sequence[int | None]
    = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """Copies the elements selected by begin, end and step, axis by axis.

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
        The axis to slice; negative counts from the end.
    begin : int
        First index; negative counts from the end.
    end : int or None
        End, exclusive; None: to the end.

    Returns: output: shape of data with size end - begin along the axis
    """


def slice_like(
    data: TensorT, shape_like: TensorT, axes: int | Sequence[int] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """The leading part of data with the sizes of shape_like, along all or some axes.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    shape_like : tensor
        defines sizes only; any dtype
    axes : tuple of int
        Axes that are sliced to the sizes of shape_like; empty: all.

    Returns: output: dtype of data
    """


def smooth_l1(data: TensorT, scalar: float = 1.0, *, out: Any = None, name: str | None = None) -> TensorT:
    """0.5 (sigma x)^2 where |x| < 1 / sigma^2, otherwise |x| - 0.5 / sigma^2.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The function is quadratic for |x| < 1 / sigma^2.

    Returns: out: shape and dtype of the inputs
    """


def softmax(
    data: TensorT, length: TensorT | None = None, axis: int = -1, temperature: float | None = None, dtype: DType | None
    = None, use_length: bool | None = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """exp(data / temperature), divided by its sum along an axis. With use_length only the first length elements of
    each row take part; the others become 0.

    Parameters
    ----------
    data : tensor
        floating tensor with at least one axis
    length : tensor, optional
        int32 or int64, shape of data without the axis
    axis : int
        Axis along which the outputs sum to 1.
    temperature : float or None
        Divisor of data; None: 1.
    dtype : dtype or None
        Dtype of the output: float16, float32 or float64; None: dtype of data.
    use_length : bool or None
        Whether the length input is present.

    Returns: output: shape of data
    """


def softmax_cross_entropy(data: TensorT, label: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Sum over the batch of -log(softmax(data)[label]), with probabilities of at least 1e-8. A label that is no class
    has probability 0.

    Parameters
    ----------
    data : tensor
        (batch, classes)
    label : tensor
        class numbers (batch,), dtype of data; no gradient

    Returns: output: one number: shape (1,), with NumPy shapes ()
    """


def softmin(
    data: TensorT, axis: int = -1, temperature: float | None = None, dtype: DType | None = None, use_length: bool |
    None = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """softmax of -data / temperature along an axis.

    Parameters
    ----------
    data : tensor
        floating tensor with at least one axis
    axis : int
        Axis along which the outputs sum to 1.
    temperature : float or None
        Divisor of data; None: 1.
    dtype : dtype or None
        Dtype of the output: float16, float32 or float64; None: dtype of data.
    use_length : bool or None
        Whether the length input is present.

    Returns: output: shape of data
    """


def softsign(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """x / (1 + |x|).

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """


def sort(
    data: TensorT, axis: int | None = -1, is_ascend: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data sorted along an axis.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : int or None
        The axis to sort along; None: data is flattened.
    is_ascend : bool
        Whether the smallest elements come first.

    Returns: output: shape of data; flat without axis; positions: positions of the elements in data, int64
    """


def space_to_depth(data: TensorT, block_size: int, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rearranges blocks of pixels to channels: the inverse of depth_to_space.

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

_sparse_sqrt = sqrt


def square(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """x * x.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_square = square


def squeeze(
    data: TensorT, axis: int | Sequence[int] | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Removes axes of size 1.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : tuple of int or None
        Axes of size 1 to remove; None: all of them.

    Returns: output: shape of data without the removed axes
    """


def stack(*data: TensorT, axis: int = 0, num_args: int = ..., out: Any = None, name: str | None = None) -> TensorT:
    """Joins tensors of one shape along a new axis.

    Parameters
    ----------
    data : tensor
        one shape, one dtype
    axis : int
        Position of the new axis in the output.
    num_args : int, at least 1
        Number of inputs.

    Returns: output: shape of the inputs with the number of inputs inserted at axis
    """


def sum(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, *, out: Any
    = None, name: str | None = None
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
        Whether to reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """

_sparse_sum = sum
sum_axis = sum


def take(
    a: TensorT, indices: TensorT, axis: int = 0, mode: Literal['clip', 'raise', 'wrap'] = 'clip', *, out: Any = None,
    name: str | None = None
) -> TensorT:
    """Slices of a along an axis, in the order of indices.

    Parameters
    ----------
    a : tensor
        any shape of at least 1 dimension, any dtype
    indices : tensor
        any shape; integers of any dtype
    axis : int
        The indexed axis.
    mode : {'clip', 'raise', 'wrap'}
        Index out of range: clip to the ends, wrap around, or raise an IndexError.

    Returns: output: shape of a with the axis replaced by the shape of indices; dtype of a
    """


def tan(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Tangent; x in radians.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_tan = tan


def tanh(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Hyperbolic tangent.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_tanh = tanh


def tile(data: TensorT, reps: int | Sequence[int], *, out: Any = None, name: str | None = None) -> TensorT:
    """Repeats data as a whole along its axes.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    reps : tuple of int
        Number of repetitions along each axis, aligned at the last one.

    Returns: output: sizes of data times reps; as many axes as the longer of the two
    """


def topk(
    data: TensorT, axis: int | None = -1, k: int = 1, ret_typ: Literal['value', 'indices', 'mask', 'both'] = 'indices',
    is_ascend: bool = False, dtype: DType = 'float32', *, out: Any = None, name: str | None = None
) -> Any:
    """The k largest, or smallest, elements along an axis.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : int or None
        The axis to select along; None: data is flattened.
    k : int
        Number of elements; below 1: all elements.
    ret_typ : {'value', 'indices', 'mask', 'both'}
        The outputs: values, their indices, values and indices, or a mask of ones like data.
    is_ascend : bool
        Whether to select the smallest instead of the largest elements.
    dtype : dtype
        Dtype of the indices.

    Returns: output: shape of data with k in the axis; shape of data for a mask; indices: with ret_typ both: the
    indices, dtype given by the parameter; positions: the indices as int64
    """


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


def trunc(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rounds toward zero to an integer.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse_trunc = trunc


def where(condition: TensorT, x: TensorT, y: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Elements of x where the condition is not 0, otherwise of y. The condition has no gradient.

    Parameters
    ----------
    condition : tensor
        shape of x, or (x.shape[0],) to select whole slices; any dtype
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


def _adamw_update(
    weight: TensorT, grad: TensorT, mean: TensorT, var: TensorT, rescale_grad: TensorT, lr: float, beta1: float = 0.9,
    beta2: float = 0.999, epsilon: float = 1e-08, wd: float = 0.0, eta: float = ..., clip_gradient: float = -1.0, *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """g = clip(rescale_grad * grad); mean and var are running means of g and g * g; weight -= eta * (lr * mean /
    (sqrt(var) + epsilon) + wd * weight)

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mean : tensor
        shape and dtype of weight; replaced
    var : tensor
        shape and dtype of weight; replaced
    rescale_grad : tensor
        one element: factor applied to the gradient first; 0, infinite or nan skips the update
    lr : float
        Learning rate.
    beta1 : float
        Decay rate of the mean of gradients.
    beta2 : float
        Decay rate of the mean of squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    wd : float
        Weight decay: eta * wd * weight is subtracted.
    eta : float
        Factor of the whole step.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight; mean_out: replaces mean; var_out: replaces var
    Not differentiable.
    """


def _arange(
    start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False, ctx: str =
    '', dtype: DType = 'float32', *, out: Any = None, name: str | None = None
) -> Any:
    """Evenly spaced values from start, inclusive, to stop, exclusive.

    Parameters
    ----------
    start : float
        First value; if stop is None, the end, and the first value is 0.
    stop : float or None
        End, exclusive.
    step : float
        Distance between values; not 0.
    repeat : int, at least 1
        Number of repetitions of each value.
    infer_range : bool
        Whether to infer the number of values from the use of the output.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape (ceil((stop - start) / step) * repeat,)
    Not differentiable.
    """


def _contrib_AdaptiveAvgPooling2D(
    data: TensorT, output_size: int | Sequence[int] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """Averages of windows that cover the image, output_size of them; element k of an axis averages elements floor(k
    size / n) to ceil((k + 1) size / n) - 1.

    Parameters
    ----------
    data : tensor
        (batch, channels, height, width)
    output_size : tuple of int
        (height, width), or one number for both; empty: 1.

    Returns: output: (batch, channels, output_size)
    """


def _contrib_BatchNormWithReLU(
    data: TensorT, gamma: TensorT, beta: TensorT, moving_mean: TensorT, moving_var: TensorT, eps: float =
    0.0010000000474974513, momentum: float = 0.8999999761581421, fix_gamma: bool = True, use_global_stats: bool =
    False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False, min_calib_range: float | None = None,
    max_calib_range: float | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """BatchNorm followed by max(., 0).

    Parameters
    ----------
    data : tensor
        any shape with a channel axis
    gamma : tensor
        (channels,): factor after normalization
    beta : tensor
        (channels,): summand after normalization
    moving_mean : tensor
        (channels,): running mean, used at inference
    moving_var : tensor
        (channels,): running variance, used at inference
    eps : float, at least 0
        Added to the variance.
    momentum : float
        Factor of the old moving statistics.
    fix_gamma : bool
        Whether gamma is treated as 1 and has no gradient.
    use_global_stats : bool
        Whether the moving statistics are used in training, too.
    output_mean_var : bool
        Whether mean and var are outputs, too.
    axis : int
        Axis of the channels.

    Returns: output: shape of data; mean: (channels,): the mean that normalized data; var: (channels,): 1 /
    sqrt(variance + eps); new_moving_mean: (channels,); new_moving_var: (channels,)
    """


def _contrib_BilinearResize2D(
    data: TensorT, like: TensorT | None = None, height: int = 1, width: int = 1, scale_height: float | None = None,
    scale_width: float | None = None, mode: Literal['size', 'odd_scale', 'like', 'to_even_down', 'to_even_up',
    'to_odd_down', 'to_odd_up'] = 'size', align_corners: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Images resized to another height and width by bilinear interpolation.

    Parameters
    ----------
    data : tensor
        (batch, channels, height, width)
    like : tensor, optional
        mode like: an image with the new height and width; no gradient
    height : int, at least 1
        Height of the output; mode size without scale_height.
    width : int, at least 1
        Width of the output; mode size without scale_width.
    scale_height : float or None
        Factor of the height; modes size and odd_scale.
    scale_width : float or None
        Factor of the width; modes size and odd_scale.
    mode : {'size', 'odd_scale', 'like', 'to_even_down', 'to_even_up', 'to_odd_down', 'to_odd_up'}
        Source of the new sizes. size: the parameters; like: the second input; odd_scale: the scaled size, (size
        - 1) * scale + 1 for odd ones; to_even_down ... to_odd_up: the next even or odd size.
    align_corners : bool
        Whether the centers of the corner pixels are aligned; otherwise the corners of the images are.

    Returns: output: (batch, channels, new height, new width)
    """


def _contrib_DeformableConvolution(
    data: TensorT, offset: TensorT, weight: TensorT, bias: TensorT | None = None, kernel: int | Sequence[int] = ...,
    stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (),
    num_deformable_group: int = 1, num_filter: int = ..., num_group: int = 1, no_bias: bool = False, workspace: int =
    1024, layout: Literal['NCW', 'NCHW', 'NCDHW'] | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Convolution whose kernel points are displaced by offsets, per output pixel; values between pixels by bilinear
    interpolation.

    Parameters
    ----------
    data : tensor
        (batch, channels, height, width)
    offset : tensor
        (batch, groups * taps * 2, out height, out width): y, then x, of every kernel point
    weight : tensor
        (num_filter, channels / num_group, kernel height, kernel width)
    bias : tensor, optional
        (num_filter,)
    kernel : tuple of int
        Size of the kernel, (height, width).
    stride : tuple of int
        Stride between outputs; () is (1, 1).
    dilate : tuple of int
        Distance between kernel points; () is (1, 1).
    pad : tuple of int
        Width of the padding around data; () is (0, 0).
    num_deformable_group : int, at least 1
        Groups of channels that have offsets of their own.
    num_filter : int, at least 1
        Channels of the output.
    num_group : int, at least 1
        Groups of channels that are convolved separately.
    no_bias : bool
        Whether there is no bias.

    Returns: output: (batch, num_filter, out height, out width)
    """


def _contrib_DeformablePSROIPooling(
    data: TensorT, rois: TensorT, trans: TensorT | None = None, spatial_scale: float = ..., output_dim: int = ...,
    group_size: int = ..., pooled_size: int = ..., part_size: int = 0, sample_per_part: int = 1, trans_std: float =
    0.0, no_trans: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Means of points in the bins of regions, read by bilinear interpolation; offsets displace the bins.

    Parameters
    ----------
    data : tensor
        (batch, output_dim * group_size^2, height, width)
    rois : tensor
        (regions, 5): image, left, top, right, bottom in the image's pixels
    trans : tensor, optional
        (regions, 2 * classes, part_size, part_size): x and y per class, as fractions of the region; absent with
        no_trans
    spatial_scale : float
        Ratio of the size of data to the size of the image whose coordinates the regions use.
    output_dim : int, at least 1
        Channels of the output.
    group_size : int, at least 1
        Groups of channels along each side of a region.
    pooled_size : int, at least 1
        Bins along each side of a region.
    part_size : int, at least 0
        Number of offsets along each side; 0: pooled_size.
    sample_per_part : int, range [1, 256]
        Points per bin along each side.
    trans_std : float
        Factor of the offsets, which are fractions of a region.
    no_trans : bool
        Whether the bins are not displaced.

    Returns: output: (regions, output_dim, pooled_size, pooled_size); top_count: shape of output: points inside of
    the image
    """


def _contrib_ModulatedDeformableConvolution(
    data: TensorT, offset: TensorT, mask: TensorT, weight: TensorT, bias: TensorT | None = None, kernel: int |
    Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] =
    (), num_deformable_group: int = 1, num_filter: int = ..., num_group: int = 1, no_bias: bool = False, workspace: int
    = 1024, layout: Literal['NCW', 'NCHW', 'NCDHW'] | None = None, im2col_step: int = 64, *, out: Any = None, name: str
    | None = None
) -> TensorT:
    """Deformable convolution that multiplies the value at each kernel point by a factor, the mask, per output pixel.

    Parameters
    ----------
    data : tensor
        (batch, channels, height, width)
    offset : tensor
        (batch, groups * taps * 2, out height, out width): y, then x, of every kernel point
    mask : tensor
        (batch, groups * taps, out height, out width): factors of the values read
    weight : tensor
        (num_filter, channels / num_group, kernel height, kernel width)
    bias : tensor, optional
        (num_filter,)
    kernel : tuple of int
        Size of the kernel, (height, width).
    stride : tuple of int
        Stride between outputs; () is (1, 1).
    dilate : tuple of int
        Distance between kernel points; () is (1, 1).
    pad : tuple of int
        Width of the padding around data; () is (0, 0).
    num_deformable_group : int, at least 1
        Groups of channels that have offsets of their own.
    num_filter : int, at least 1
        Channels of the output.
    num_group : int, at least 1
        Groups of channels that are convolved separately.
    no_bias : bool
        Whether there is no bias.

    Returns: output: (batch, num_filter, out height, out width)
    """


def _contrib_MultiBoxDetection(
    cls_prob: TensorT, loc_pred: TensorT, anchor: TensorT, clip: bool = True, threshold: float = 0.01, background_id:
    int = 0, nms_threshold: float = 0.5, force_suppress: bool = False, nms_topk: int = -1, variances: Sequence[float] =
    (0.1, 0.1, 0.2, 0.2), *, out: Any = None, name: str | None = None
) -> TensorT:
    """Boxes of the most probable classes, sorted by falling probability; class -1 marks boxes that overlap a better
    box of their class and, at the end, unused rows. Gradients are zero.

    Parameters
    ----------
    cls_prob : tensor
        (batch, classes, anchors); class 0 is background
    loc_pred : tensor
        (batch, anchors * 4): offsets from the anchors
    anchor : tensor
        (1, anchors, 4): left, top, right, bottom
    clip : bool
        Whether boxes are clipped to the image.
    threshold : float
        Minimum probability of a detection.
    nms_threshold : float
        A box is removed if it overlaps a better box by this or more; outside (0, 1]: no box is removed.
    force_suppress : bool
        Whether a box is suppressed by boxes of other classes, too.
    nms_topk : int
        Number of best boxes that are kept; not positive: all.
    variances : tuple of float
        Factors of the offsets of x, y, width and height.

    Returns: output: (batch, anchors, 6): class - 1, probability, left, top, right, bottom
    """


def _contrib_MultiBoxPrior(
    data: TensorT, sizes: Sequence[float] = (1.0,), ratios: Sequence[float] = (1.0,), clip: bool = False, steps:
    Sequence[float] = (-1.0, -1.0), offsets: Sequence[float] = (0.5, 0.5), *, out: Any = None, name: str | None = None
) -> TensorT:
    """Anchors (left, top, right, bottom), as fractions of the image, around every pixel of data: each size with the
    first ratio, the first size with the other ratios.

    Parameters
    ----------
    data : tensor
        feature map (batch, channels, height, width); only its size matters
    sizes : tuple of float
        Heights of the anchors, as fractions of the image.
    ratios : tuple of float
        Width divided by height. The first is combined with every size, the others with the first size.
    clip : bool
        Whether anchors are clipped to the image.
    steps : tuple of float
        Distances of pixels along y and x, as fractions of the image; not positive: the inverse of the size of
        data.
    offsets : tuple of float
        Position of the anchors' center in a pixel, along y and x, each in [0, 1].

    Returns: output: (1, height * width * (sizes + ratios - 1), 4)
    """


def _contrib_MultiBoxTarget(
    anchor: TensorT, label: TensorT, cls_pred: TensorT, overlap_threshold: float = 0.5, ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0, negative_mining_thresh: float = 0.5, minimum_negative_samples: int = 0,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2), *, out: Any = None, name: str | None = None
) -> Any:
    """Training targets of anchors: every object is matched with the anchor that overlaps it most, then every anchor
    with an object that it overlaps enough; the others are background. Gradients are zero.

    Parameters
    ----------
    anchor : tensor
        (1, anchors, 4): left, top, right, bottom
    label : tensor
        (batch, objects, 5 or more): class, left, top, right, bottom; class -1 ends the objects of an example
    cls_pred : tensor
        (batch, classes, anchors): scores, class 0 is background; for mining
    overlap_threshold : float
        An anchor whose overlap with an object is larger is positive; not positive: only the best anchor of each
        object is.
    ignore_label : float
        Class target of ignored anchors.
    negative_mining_ratio : float
        Negative anchors per positive one, chosen by the lowest background probability; not positive: all are
        negative.
    negative_mining_thresh : float
        Only anchors whose overlap with every object is smaller are mined.
    variances : tuple of float
        Divisors of the offsets of x, y, width and height.

    Returns: loc_target: (batch, anchors * 4): offsets from the anchors; loc_mask: (batch, anchors * 4): 1 for
    positive anchors; cls_target: (batch, anchors): class + 1, 0 for background, ignore_label for ignored anchors
    """


def _contrib_MultiProposal(
    cls_prob: TensorT, bbox_pred: TensorT, im_info: TensorT, rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: int =
    300, threshold: float = 0.7, rpn_min_size: int = 16, scales: Sequence[float] = (4.0, 8.0, 16.0, 32.0), ratios:
    Sequence[float] = (0.5, 1.0, 2.0), feature_stride: int = 16, output_score: bool = False, iou_loss: bool = False, *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """Regions of interest from a region proposal network: anchors displaced by predicted offsets, of which non-maximum
    suppression keeps the best. Gradients are zero.

    Parameters
    ----------
    cls_prob : tensor
        (batch, 2 * anchors, height, width): scores of background, then of objects
    bbox_pred : tensor
        (batch, 4 * anchors, height, width): offsets
    im_info : tensor
        (batch, 3): height and width of the image without padding, and its scale
    rpn_pre_nms_top_n : int
        Number of best anchors that take part; not positive: all.
    rpn_post_nms_top_n : int, at least 0
        Number of regions per image.
    threshold : float
        A region is removed if its overlap with a better one is larger.
    rpn_min_size : int
        Minimum height and width of a region, in input pixels.
    scales : tuple of float
        Sizes of anchors, in strides.
    ratios : tuple of float
        Height divided by width of anchors.
    feature_stride : int, at least 1
        Image pixels per pixel of the scores.
    output_score : bool
        Whether the scores are a second output.
    iou_loss : bool
        Whether the offsets refer to corners, not to center and log size.

    Returns: output: (batch * rpn_post_nms_top_n, 5): image, left, top, right, bottom; score: (batch *
    rpn_post_nms_top_n, 1)
    """


def _contrib_PSROIPooling(
    data: TensorT, rois: TensorT, spatial_scale: float, output_dim: int, pooled_size: int, group_size: int = 0, *, out:
    Any = None, name: str | None = None
) -> TensorT:
    """Means of the bins of regions; bin (y, x) of output channel c is read from channel (c * group_size + gy) *
    group_size + gx.

    Parameters
    ----------
    data : tensor
        (batch, output_dim * group_size^2, height, width)
    rois : tensor
        (regions, 5): image, left, top, right, bottom in the image's pixels
    spatial_scale : float
        Ratio of the size of data to the size of the image whose coordinates the regions use.
    output_dim : int, at least 1
        Channels of the output.
    pooled_size : int, at least 1
        Bins along each side of a region.
    group_size : int, at least 0
        Groups of channels along each side; 0: pooled_size.

    Returns: output: (regions, output_dim, pooled_size, pooled_size)
    """


def _contrib_Proposal(
    cls_prob: TensorT, bbox_pred: TensorT, im_info: TensorT, rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: int =
    300, threshold: float = 0.7, rpn_min_size: int = 16, scales: Sequence[float] = (4.0, 8.0, 16.0, 32.0), ratios:
    Sequence[float] = (0.5, 1.0, 2.0), feature_stride: int = 16, output_score: bool = False, iou_loss: bool = False, *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """Regions of interest from a region proposal network: anchors displaced by predicted offsets, of which non-maximum
    suppression keeps the best. Gradients are zero.

    Parameters
    ----------
    cls_prob : tensor
        (batch, 2 * anchors, height, width): scores of background, then of objects
    bbox_pred : tensor
        (batch, 4 * anchors, height, width): offsets
    im_info : tensor
        (batch, 3): height and width of the image without padding, and its scale
    rpn_pre_nms_top_n : int
        Number of best anchors that take part; not positive: all.
    rpn_post_nms_top_n : int, at least 0
        Number of regions per image.
    threshold : float
        A region is removed if its overlap with a better one is larger.
    rpn_min_size : int
        Minimum height and width of a region, in input pixels.
    scales : tuple of float
        Sizes of anchors, in strides.
    ratios : tuple of float
        Height divided by width of anchors.
    feature_stride : int, at least 1
        Image pixels per pixel of the scores.
    output_score : bool
        Whether the scores are a second output.
    iou_loss : bool
        Whether the offsets refer to corners, not to center and log size.

    Returns: output: (batch * rpn_post_nms_top_n, 5): image, left, top, right, bottom; score: (batch *
    rpn_post_nms_top_n, 1)
    """


def _contrib_ROIAlign(
    data: TensorT, rois: TensorT, pooled_size: int | Sequence[int], spatial_scale: float, sample_ratio: int = -1,
    position_sensitive: bool = False, aligned: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Averages of interpolated points in pooled_size windows over each region of interest. Coordinates are not
    rounded. Regions with an invalid image number give 0; a negative image number skips a region.

    Parameters
    ----------
    data : tensor
        (batch, channels, height, width)
    rois : tensor
        (regions, 5): number of the image, then left, top, right and bottom; no gradient
    pooled_size : tuple of int
        (height, width) of the output.
    spatial_scale : float, range [0, 1]
        Ratio of the size of data to the size of the image whose coordinates rois use.
    sample_ratio : int
        Points along each axis of a window, at most 256; not positive: the number of pixels, at most 1024.
    position_sensitive : bool
        Whether each window reads its own channels: channels of data = channels of output * windows.
    aligned : bool
        Whether coordinates are shifted by half a pixel, and regions may be smaller than a pixel.

    Returns: output: (regions, channels, pooled_size); position_sensitive: channels / windows
    """


def _contrib_RROIAlign(
    data: TensorT, rois: TensorT, pooled_size: int | Sequence[int], spatial_scale: float, sampling_ratio: int = -1, *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """Means of points in the bins of rotated regions, read by bilinear interpolation. Gradients of regions are zero.

    Parameters
    ----------
    data : tensor
        (batch, channels, height, width)
    rois : tensor
        (regions, 6): image, x and y of the center, width, height, angle in degrees
    pooled_size : tuple of int
        Bins of a region: (height, width).
    spatial_scale : float
        Ratio of the size of data to the size of the image whose coordinates the regions use.
    sampling_ratio : int
        Points per bin along each side, at most 256; not positive: the number of pixels of a bin, at most 1024.

    Returns: output: (regions, channels, pooled height, pooled width)
    """


def _contrib_SparseEmbedding(
    data: TensorT, weight: TensorT, input_dim: int, output_dim: int, dtype: DType = 'float32', sparse_grad: bool =
    False, deterministic: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Rows of weight, selected by data; indices out of range select the nearest row.

    Parameters
    ----------
    data : tensor
        any shape; integers of any dtype
    weight : tensor
        shape (input_dim, output_dim)
    input_dim : int, at least 1
        Number of rows of weight.
    output_dim : int, at least 1
        Length of a row of weight.
    dtype : dtype
        Dtype of weight if nothing else determines it.
    sparse_grad : bool
        Requests a row_sparse gradient of weight; the storage of its buffer decides.

    Returns: output: shape of data with output_dim appended; dtype of weight
    """


def _contrib_SyncBatchNorm(
    data: TensorT, gamma: TensorT, beta: TensorT, moving_mean: TensorT, moving_var: TensorT, eps: float =
    0.0010000000474974513, momentum: float = 0.8999999761581421, fix_gamma: bool = True, use_global_stats: bool =
    False, output_mean_var: bool = False, ndev: int = 1, key: str = ..., *, out: Any = None, name: str | None = None
) -> TensorT:
    """BatchNorm with statistics over the devices of one process group; on one device they are those of its batch.

    Parameters
    ----------
    data : tensor
        any shape with a channel axis
    gamma : tensor
        (channels,): factor after normalization
    beta : tensor
        (channels,): summand after normalization
    moving_mean : tensor
        (channels,): running mean, used at inference
    moving_var : tensor
        (channels,): running variance, used at inference
    eps : float, at least 0
        Added to the variance.
    momentum : float
        Factor of the old moving statistics.
    fix_gamma : bool
        Whether gamma is treated as 1 and has no gradient.
    use_global_stats : bool
        Whether the moving statistics are used in training, too.
    output_mean_var : bool
        Whether mean and var are outputs, too.
    key : str
        Name of the group of layers that share statistics.

    Returns: output: shape of data; mean: (channels,): the mean that normalized data; var: (channels,): the variance
    that normalized data; new_moving_mean: (channels,); new_moving_var: (channels,)
    """


def _contrib_allclose(
    a: TensorT, b: TensorT, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = True, *, out: Any = None, name:
    str | None = None
) -> TensorT:
    """1 if |a - b| <= atol + rtol * |b| for all elements, else 0.

    Parameters
    ----------
    a : tensor
        array of any shape
    b : tensor
        shape and dtype of a
    rtol : float
        Tolerance relative to |b|.
    atol : float
        Absolute tolerance.
    equal_nan : bool
        Whether NaN equals NaN.

    Returns: out: uint8 ()
    Not differentiable.
    """


def _contrib_arange_like(
    data: TensorT, start: float = 0.0, step: float = 1.0, repeat: int = 1, ctx: str = '', axis: int | None = None, *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """Evenly spaced values, one per element of data or per position along one of its axes. Integers that the dtype of
    data cannot hold (bfloat16: above 256) are rounded, with a warning.

    Parameters
    ----------
    data : tensor
        defines sizes and dtype only
    start : float
        First value.
    step : float
        Distance between values.
    repeat : int, at least 1
        Number of repetitions of each value.
    axis : int or None
        Axis of data to count along; None: all elements.

    Returns: output: shape of data, or one axis of it; dtype of data
    Not differentiable.
    """


def _contrib_bipartite_matching(
    data: TensorT, is_ascend: bool = False, threshold: float = ..., topk: int = -1, *, out: Any = None, name: str |
    None = None
) -> Any:
    """Pairs of rows and columns: the best remaining score forms a pair, whose row and column are then removed.
    Gradients are zero.

    Parameters
    ----------
    data : tensor
        scores (..., rows, columns)
    is_ascend : bool
        Whether small scores are the better ones.
    threshold : float
        Scores must be better than this.
    topk : int
        Maximum number of pairs; not positive: no limit.

    Returns: rows: (..., rows): the column of each row, -1 if unpaired; columns: (..., columns): the row of each
    column, -1 if unpaired
    """


def _contrib_boolean_mask(
    data: TensorT, index: TensorT, axis: int = 0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The slices of data along an axis whose mask value is not zero.

    Parameters
    ----------
    data : tensor
        any shape of at least 1 dimension, any dtype
    index : tensor
        mask, one value of any dtype per slice
    axis : int
        The axis to select from.

    Returns: output: data with as many slices as the mask selects
    """


def _contrib_box_decode(
    data: TensorT, anchors: TensorT, std0: float = 1.0, std1: float = 1.0, std2: float = 1.0, std3: float = 1.0, clip:
    float = -1.0, format: Literal['corner', 'center'] = 'center', *, out: Any = None, name: str | None = None
) -> TensorT:
    """Boxes (left, top, right, bottom) from offsets and anchors: the inverse of _contrib_box_encode. Gradients are
    zero.

    Parameters
    ----------
    data : tensor
        (batch, boxes, 4): offsets
    anchors : tensor
        (1, boxes, 4)
    std0 : float
        Factor of the first encoded number, x.
    std1 : float
        Factor of the second, y.
    std2 : float
        Factor of the third, width.
    std3 : float
        Factor of the fourth, height.
    clip : float
        Upper bound of the log sizes; not positive: no bound.
    format : {'corner', 'center'}
        Coordinates of the anchors: corner (left, top, right, bottom) or center (x, y, width, height).

    Returns: output: (batch, boxes, 4)
    """


def _contrib_box_encode(
    samples: TensorT, matches: TensorT, anchors: TensorT, refs: TensorT, means: TensorT, stds: TensorT, *, out: Any =
    None, name: str | None = None
) -> Any:
    """Boxes as offsets from anchors: ((x - ax) / aw, (y - ay) / ah, log(w / aw), log(h / ah)), minus means, by stds;
    zero for anchors without a positive sample. Gradients are zero.

    Parameters
    ----------
    samples : tensor
        (batch, boxes): 1 positive, -1 negative, 0 ignored
    matches : tensor
        (batch, boxes): index of the reference matched with each anchor
    anchors : tensor
        (batch, boxes, 4): left, top, right, bottom
    refs : tensor
        (batch, references, 4): left, top, right, bottom
    means : tensor
        (4,), subtracted from the offsets
    stds : tensor
        (4,), divide the offsets

    Returns: targets: (batch, boxes, 4); masks: (batch, boxes, 4): 1 for positive samples, else 0
    """


def _contrib_box_iou(
    lhs: TensorT, rhs: TensorT, format: Literal['corner', 'center'] = 'corner', *, out: Any = None, name: str | None =
    None
) -> TensorT:
    """Intersection over union of every box of lhs with every box of rhs. Gradients are zero.

    Parameters
    ----------
    lhs : tensor
        boxes (..., 4)
    rhs : tensor
        boxes (..., 4)
    format : {'corner', 'center'}
        Coordinates: corner (left, top, right, bottom) or center (x, y, width, height).

    Returns: output: the axes of lhs except the last, then those of rhs except the last
    """


def _contrib_box_nms(
    data: TensorT, overlap_thresh: float = 0.5, valid_thresh: float = 0.0, topk: int = -1, coord_start: int = 2,
    score_index: int = 1, id_index: int = -1, background_id: int = -1, force_suppress: bool = False, in_format:
    Literal['corner', 'center'] = 'corner', out_format: Literal['corner', 'center'] = 'corner', *, out: Any = None,
    name: str | None = None
) -> TensorT:
    """Non-maximum suppression: boxes sorted by falling score, without those that overlap a better one of their class;
    the rows left over at the end are filled with -1. Gradients flow to the kept boxes.

    Parameters
    ----------
    data : tensor
        shape (..., boxes, numbers of a box): coordinates, score, class and anything else
    overlap_thresh : float
        A box is removed if its intersection over union with a better box is larger.
    valid_thresh : float
        Only boxes whose score is larger take part.
    topk : int
        Number of best boxes that take part; negative: all; 0: the output is data.
    coord_start : int, at least 0
        Index of the first of the 4 coordinates of a box.
    score_index : int, at least 0
        Index of the score of a box.
    id_index : int
        Index of the class of a box; negative: boxes have no class.
    background_id : int
        Boxes of this class do not take part.
    force_suppress : bool
        Whether a box is suppressed by boxes of other classes, too.
    in_format : {'corner', 'center'}
        Coordinates of data: corner (left, top, right, bottom) or center (x, y, width, height).
    out_format : {'corner', 'center'}
        Coordinates of the output.

    Returns: output: shape of data; record: (..., boxes, 1) int64: index of the box in this row, -1: none
    """

_contrib_box_non_maximum_suppression = _contrib_box_nms


def _contrib_calibrate_entropy(
    hist: TensorT, hist_edges: TensorT, num_quantized_bins: int = 255, *, out: Any = None, name: str | None = None
) -> Any:
    """The threshold in the histogram of a tensor, symmetric around zero, at which values cut off there and rounded to
    num_quantized_bins steps are distributed most like the values themselves.

    Parameters
    ----------
    hist : tensor
        float32 (bins,): counts; an odd number of bins
    hist_edges : tensor
        float32 (bins + 1,): ends of the bins
    num_quantized_bins : int, at least 1
        Number of quantization steps inside the range.

    Returns: threshold: (1,): the end of the range; divergence: (1,): Kullback-Leibler divergence, in nats
    Not differentiable.
    """


def _contrib_count_sketch(
    data: TensorT, h: TensorT, s: TensorT, out_dim: int, processing_batch_size: int = 32, *, out: Any = None, name: str
    | None = None
) -> TensorT:
    """Sketches of vectors: element i is multiplied by s[i] and added to element h[i] of the sketch.

    Parameters
    ----------
    data : tensor
        (..., n)
    h : tensor
        n integers from 0 to out_dim - 1; has no gradient
    s : tensor
        n numbers, 1 or -1
    out_dim : int, at least 1
        Number of elements of a sketch.
    processing_batch_size : int, at least 1
        Number of vectors that MXNet processes at a time; without effect.

    Returns: out: (..., out_dim), dtype of data
    """


def _contrib_dequantize(
    data: TensorT, min_range: TensorT, max_range: TensorT, out_type: DType = 'float32', *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Converts quantized bytes to floats.

    Parameters
    ----------
    data : tensor
        uint8 or int8, any shape
    min_range : tensor
        (1,): value of the smallest byte
    max_range : tensor
        (1,): value of the largest byte
    out_type : dtype
        float32.

    Returns: output: float32, shape of data
    Not differentiable.
    """


def _contrib_div_sqrt_dim(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Divides by the square root of the size of the last axis, for attention scores.

    Parameters
    ----------
    data : tensor
        floating array of rank 1 or more

    Returns: out: shape and dtype of data
    """


def _contrib_dynamic_quantized_fully_connected(
    data: TensorT, weight: TensorT, scale: TensorT, bias: TensorT | None = None, num_hidden: int = ..., no_bias: bool =
    False, flatten: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """FullyConnected with data that is rounded to bytes, and weights of bytes that have one scale per output:
    (rounded(data) weight^T) * scale + bias, with exact sums. Each row of data is rounded to the nearest of 256
    values with equal distances, from the smaller of its least value and 0 to the larger of its largest value and 0.
    A row with NaN or infinities gives NaN.

    Parameters
    ----------
    data : tensor
        float32 (batch, ...), or (..., features) with flatten=False
    weight : tensor
        int8 (num_hidden, features)
    scale : tensor
        (num_hidden,): value of a step of each row of weight
    bias : tensor, optional
        float32 (num_hidden,)
    num_hidden : int, at least 1
        Number of outputs per row.
    no_bias : bool
        Whether the bias input is absent, and its range where a bias has one.
    flatten : bool
        Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.

    Returns: output: float32 (batch, num_hidden), or (..., num_hidden) with flatten=False
    """


def _contrib_edge_id(data: TensorT, u: TensorT, v: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The values of a sparse matrix at (u[i], v[i]), -1 if none is stored.

    Parameters
    ----------
    data : tensor
        (rows, columns): numbers of edges, from 1
    u : tensor
        (edges,): rows
    v : tensor
        (edges,): columns

    Returns: output: (edges,), dtype of data
    Not differentiable.
    """


def _contrib_fft(data: TensorT, compute_size: int = 128, *, out: Any = None, name: str | None = None) -> TensorT:
    """Discrete Fourier transforms of real vectors, not normalized.

    Parameters
    ----------
    data : tensor
        (..., n), float32 or float64
    compute_size : int, at least 1
        Number of vectors that MXNet transforms at a time; without effect.

    Returns: out: (..., 2 n): real and imaginary part of each element
    """


def _contrib_flash_attention(
    query: TensorT, key: TensorT, value: TensorT, mask: TensorT | None = None, scale: float | None = None, causal: bool
    = False, mask_type: Literal['none', 'added', 'kept', 'lengths'] = 'none', *, out: Any = None, name: str | None =
    None
) -> TensorT:
    """softmax(scale * query key^T + mask) value, in memory linear in the lengths, not in their product. The output of
    a query that attends to no key is zero.  Dao, Fu, Ermon, Rudra, Re: FlashAttention: fast and memory-efficient
    exact attention with IO-awareness, NeurIPS 2022; Milakov, Gimelshein: Online normalizer calculation for softmax,
    2018.

    Parameters
    ----------
    query : tensor
        (batch..., length of queries, size)
    key : tensor
        (batch..., length of keys, size)
    value : tensor
        (batch..., length of keys, size of values)
    mask : tensor, optional
        by mask_type; can be broadcast to (batch..., length of queries, length of keys), lengths to (batch...,
        length of queries)
    scale : float or None
        Factor of the scores; None: 1 / sqrt(size of a query).
    causal : bool
        Query i attends to the keys 0 to i only.
    mask_type : {'none', 'added', 'kept', 'lengths'}
        Meaning of the input mask. added: terms added to the scaled scores; kept: 0 excludes a key; lengths:
        number of leading keys that take part.

    Returns: output: (batch..., length of queries, size of values); log_sums: (batch..., length of queries):
    logarithm of the sum of e^scores; infinity if there is no key
    """


def _contrib_getnnz(data: TensorT, axis: int | None = None, *, out: Any = None, name: str | None = None) -> TensorT:
    """The number of stored values of a sparse matrix, which are the nonzero values.

    Parameters
    ----------
    data : tensor
        (rows, columns)
    axis : int or None
        None: count in the whole matrix, 0: per column, 1: per row.

    Returns: output: int64 (1,), (columns,) or (rows,)
    Not differentiable.
    """


def _contrib_gradientmultiplier(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Copies the input; its gradient is multiplied by scalar. A negative scalar reverses the gradient, for domain-
    adversarial training (Ganin and Lempitsky, ICML 2015).

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape and dtype of data
    """

_contrib_backward_gradientmultiplier = _contrib_gradientmultiplier


def _contrib_group_adagrad_update(
    weight: TensorT, grad: TensorT, history: TensorT, lr: float, rescale_grad: float = 1.0, clip_gradient: float =
    -1.0, epsilon: float = 1e-05, *, out: Any = None, name: str | None = None
) -> TensorT:
    """g = clip(rescale_grad * grad); history += mean of g * g over the row; weight -= lr * g / sqrt(history + epsilon)

    Parameters
    ----------
    weight : tensor
        floating tensor (rows, ...)
    grad : tensor
        shape and dtype of weight
    history : tensor
        (rows, 1); replaced
    lr : float
        Learning rate.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    epsilon : float
        Added under the root, against division by zero.

    Returns: weight_out: updated weight; history_out: replaces history
    Not differentiable.
    """


def _contrib_hard_swish(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """0 for x <= -3, x for x >= 3, x * (x + 3) / 6 between: a swish of three pieces, exact in few instructions.

    Parameters
    ----------
    data : tensor
        floating array of any shape

    Returns: out: shape and dtype of the inputs
    """


def _contrib_hawkesll(
    lda: TensorT, alpha: TensorT, beta: TensorT, state: TensorT, lags: TensorT, marks: TensorT, valid_length: TensorT,
    max_time: TensorT, *, out: Any = None, name: str | None = None
) -> Any:
    """Log likelihood of Hawkes processes: intensity lda + alpha * sum of beta * exp(-beta * (t - t_i)) over past
    events. lda, alpha and beta have gradients.

    Parameters
    ----------
    lda : tensor
        (samples, processes): background intensities
    alpha : tensor
        (processes,): branching ratios
    beta : tensor
        (processes,): decay rates
    state : tensor
        (samples, processes): decayed number of events before the first point
    lags : tensor
        (samples, points): times since the previous point
    marks : tensor
        (samples, points) int32: the process of each point
    valid_length : tensor
        (samples,): number of valid points
    max_time : tensor
        (samples,): length of the observation

    Returns: output: (samples,): log likelihoods; out_state: (samples, processes): the state at max_time
    """


def _contrib_ifft(data: TensorT, compute_size: int = 128, *, out: Any = None, name: str | None = None) -> TensorT:
    """Real parts of inverse discrete Fourier transforms, without the factor 1 / n.

    Parameters
    ----------
    data : tensor
        (..., 2 n): real and imaginary part of each element, float32 or float64
    compute_size : int, at least 1
        Number of vectors that MXNet transforms at a time; without effect.

    Returns: out: (..., n)
    """


def _contrib_index_array(
    data: TensorT, axes: int | Sequence[int] | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The index of every element of data.

    Parameters
    ----------
    data : tensor
        defines the sizes only
    axes : tuple of int or None
        The axes whose indices are returned; None: all.

    Returns: output: shape of data followed by the number of axes; int64
    Not differentiable.
    """


def _contrib_index_copy(
    old_tensor: TensorT, index_vector: TensorT, new_tensor: TensorT, axis: int = 0, *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """old_tensor with the slices at index_vector along an axis replaced by those of new_tensor; if indices repeat, the
    last slice is kept.

    Parameters
    ----------
    old_tensor : tensor
        shape (..., N, ...) with N at the axis, any dtype
    index_vector : tensor
        shape (M,); integers of any dtype, negative ones count from the end
    new_tensor : tensor
        shape (..., M, ...)
    axis : int
        The axis along which slices are replaced; negative values count from the end.

    Returns: output: shape and dtype of old_tensor
    """


def _contrib_interleaved_matmul_encdec_qk(
    queries: TensorT, keys_values: TensorT, heads: int, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Scores of attention to an encoder: queries times keys, divided by the root of the head size.

    Parameters
    ----------
    queries : tensor
        (length, batch, heads * size)
    keys_values : tensor
        (length of keys, batch, heads * 2 * size): per head key, value
    heads : int, at least 1
        Number of heads.

    Returns: output: (batch * heads, length, length of keys)
    """


def _contrib_interleaved_matmul_encdec_valatt(
    keys_values: TensorT, attention: TensorT, heads: int, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Values of an encoder, mixed by attention weights.

    Parameters
    ----------
    keys_values : tensor
        (length of values, batch, heads * 2 * size)
    attention : tensor
        weights (batch * heads, length, length of values)
    heads : int, at least 1
        Number of heads.

    Returns: output: (length, batch, heads * size)
    """


def _contrib_interleaved_matmul_selfatt_qk(
    queries_keys_values: TensorT, heads: int, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Scores of self-attention: queries times keys, divided by the root of the head size.

    Parameters
    ----------
    queries_keys_values : tensor
        (length, batch, heads * 3 * size): per head query, key, value
    heads : int, at least 1
        Number of heads.

    Returns: output: (batch * heads, length, length)
    """


def _contrib_interleaved_matmul_selfatt_valatt(
    queries_keys_values: TensorT, attention: TensorT, heads: int, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Values of self-attention, mixed by attention weights.

    Parameters
    ----------
    queries_keys_values : tensor
        (length, batch, heads * 3 * size)
    attention : tensor
        weights (batch * heads, length, length of values)
    heads : int, at least 1
        Number of heads.

    Returns: output: (length, batch, heads * size)
    """


def _contrib_quadratic(
    data: TensorT, a: float = 0.0, b: float = 0.0, c: float = 0.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """a * data^2 + b * data + c, element by element.

    Parameters
    ----------
    data : tensor
        array of any shape
    a : float
        Factor of data squared.
    b : float
        Factor of data.
    c : float
        Constant.

    Returns: out: shape and dtype of the inputs
    """


def _contrib_quantize(
    data: TensorT, min_range: TensorT, max_range: TensorT, out_type: Literal['int8', 'uint8'] = 'uint8', *, out: Any =
    None, name: str | None = None
) -> Any:
    """Quantizes floats: to uint8 for [min_range, max_range], or to int8 for values around zero.

    Parameters
    ----------
    data : tensor
        float32, any shape
    min_range : tensor
        (1,): the minimum value
    max_range : tensor
        (1,): the maximum value
    out_type : {'int8', 'uint8'}
        dtype of the output.

    Returns: output: shape of data; min_output: (1,): value of the smallest byte; max_output: (1,): value of the
    largest byte
    Not differentiable.
    """


def _contrib_quantize_asym(
    data: TensorT, min_calib_range: float | None = None, max_calib_range: float | None = None, *, out: Any = None,
    name: str | None = None
) -> Any:
    """Quantizes floats to uint8 over their range: data * scale + shift, rounded.

    Parameters
    ----------
    data : tensor
        float32, any shape
    min_calib_range : float or None
        Minimum value; None: minimum of data.
    max_calib_range : float or None
        Maximum value; None: maximum of data.

    Returns: output: uint8, shape of data; scale: (1,): steps per unit; shift: (1,): the step of zero
    Not differentiable.
    """


def _contrib_quantize_v2(
    data: TensorT, out_type: Literal['auto', 'int8', 'uint8'] = 'int8', min_calib_range: float | None = None,
    max_calib_range: float | None = None, *, out: Any = None, name: str | None = None
) -> Any:
    """Quantizes floats, with a given range or the range of the data.

    Parameters
    ----------
    data : tensor
        float32, any shape; bytes are copied unchanged
    out_type : {'auto', 'int8', 'uint8'}
        dtype of the output; auto: uint8 if min_calib_range is not negative.
    min_calib_range : float or None
        Minimum value; None: minimum of data.
    max_calib_range : float or None
        Maximum value; None: maximum of data.

    Returns: output: shape of data; min_output: (1,): value of the smallest byte; max_output: (1,): value of the
    largest byte
    Not differentiable.
    """


def _contrib_quantized_act(
    data: TensorT, min_data: TensorT, max_data: TensorT, act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign',
    'tanh'], *, out: Any = None, name: str | None = None
) -> Any:
    """relu of bytes.

    Parameters
    ----------
    data : tensor
        int8 or uint8
    min_data : tensor
        (1,): value of the smallest byte
    max_data : tensor
        (1,): value of the largest byte
    act_type : {'relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'}
        relu; the other activations change the range of the data and are not supported.

    Returns: output: shape of data; min_output: (1,): min_data; max_output: (1,): max_data
    Not differentiable.
    """


def _contrib_quantized_batch_norm(
    data: TensorT, gamma: TensorT, beta: TensorT, moving_mean: TensorT, moving_var: TensorT, min_data: TensorT,
    max_data: TensorT, eps: float = 0.0010000000474974513, momentum: float = 0.8999999761581421, fix_gamma: bool =
    True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False,
    min_calib_range: float | None = None, max_calib_range: float | None = None, *, out: Any = None, name: str | None =
    None
) -> Any:
    """BatchNorm of quantized data by the moving statistics.

    Parameters
    ----------
    data : tensor
        int8 or uint8, any shape with the axis
    gamma : tensor
        (channels,)
    beta : tensor
        (channels,)
    moving_mean : tensor
        (channels,)
    moving_var : tensor
        (channels,)
    min_data : tensor
        (1,): value of the smallest byte
    max_data : tensor
        (1,): value of the largest byte
    eps : float, at least 0
        Added to the variance.
    fix_gamma : bool
        Whether gamma is treated as 1.
    axis : int
        The axis of the channels.
    min_calib_range : float or None
        Minimum value of the output. Required.
    max_calib_range : float or None
        Maximum value of the output. Required.

    Returns: output: int8, shape of data; min_output: (1,): min_calib_range; max_output: (1,): max_calib_range
    Not differentiable.
    """


def _contrib_quantized_concat(
    *data: TensorT, num_args: int = ..., dim: int = 1, out: Any = None, name: str | None = None
) -> Any:
    """Joins quantized tensors along an axis, in one range that contains all ranges. int8 if any input is.

    Parameters
    ----------
    data : tensor
        num_args arrays of int8 or uint8; then min and max of the first, of the second, ...
    num_args : int, range [1, 1.67772e+07]
        Number of inputs.
    dim : int
        The axis along which inputs are joined.

    Returns: output: sizes of the arrays; their sum in the joined axis; min_output: (1,): value of the smallest
    byte; max_output: (1,): value of the largest byte
    Not differentiable.
    """


def _contrib_quantized_conv(
    data: TensorT, weight: TensorT, bias: TensorT | None = None, min_data: TensorT | None = None, max_data: TensorT |
    None = None, min_weight: TensorT | None = None, max_weight: TensorT | None = None, min_bias: TensorT | None = None,
    max_bias: TensorT | None = None, kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int |
    Sequence[int] = (), pad: int | Sequence[int] = (), num_filter: int = ..., num_group: int = 1, workspace: int =
    1024, no_bias: bool = False, cudnn_tune: str | None = None, cudnn_off: bool = False, layout: Literal['NCW', 'NCHW',
    'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = None, *, out: Any = None, name: str | None = None
) -> Any:
    """Convolution of quantized tensors, with 32-bit sums. All ranges have 127 steps, for uint8 data, too: the value of
    a byte is byte * max(|min|, |max|) / 127.

    Parameters
    ----------
    data : tensor
        int8 or uint8 (batch, channels, spatial...)
    weight : tensor
        int8 (num_filter, channels / num_group, kernel...)
    bias : tensor, optional
        int8 (outputs,)
    min_data : tensor
        (1,): value of the smallest byte of data
    max_data : tensor
        (1,): value of the largest byte of data
    min_weight : tensor
        (1,): value of the smallest byte of weight
    max_weight : tensor
        (1,): value of the largest byte of weight
    min_bias : tensor, optional
        (1,): value of the smallest byte of bias
    max_bias : tensor, optional
        (1,): value of the largest byte of bias
    kernel : tuple of int
        Window: (w,), (h, w) or (d, h, w).
    stride : tuple of int
        Strides of the window; empty: 1 everywhere.
    dilate : tuple of int
        Distance between taps; empty: 1 everywhere.
    pad : tuple of int
        Zeros added on both sides; empty: none.
    num_filter : int, at least 1
        Number of output channels.
    num_group : int, at least 1
        Number of groups into which channels are split; each group is convolved separately.
    no_bias : bool
        Whether the bias input is absent.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'} or None
        Order of the axes of data, weight and output; None: channels second.

    Returns: output: int32 (batch, num_filter, out...); min_output: (1,): value of the smallest 32-bit integer;
    max_output: (1,): value of the largest 32-bit integer
    Not differentiable.
    """


def _contrib_quantized_elemwise_add(
    lhs: TensorT, rhs: TensorT, lhs_min: TensorT, lhs_max: TensorT, rhs_min: TensorT, rhs_max: TensorT,
    min_calib_range: float | None = None, max_calib_range: float | None = None, *, out: Any = None, name: str | None =
    None
) -> Any:
    """Sum of bytes that may have different ranges.

    Parameters
    ----------
    lhs : tensor
        int8 or uint8, any shape
    rhs : tensor
        shape of lhs
    lhs_min : tensor
        (1,): value of the smallest byte of lhs
    lhs_max : tensor
        (1,): value of the largest byte of lhs
    rhs_min : tensor
        (1,): value of the smallest byte of rhs
    rhs_max : tensor
        (1,): value of the largest byte of rhs
    min_calib_range : float or None
        Minimum value of the output; None: the output is int32.
    max_calib_range : float or None
        Maximum value of the output; None: the output is int32.

    Returns: output: int32; with a calibrated range the dtype of the inputs, int8 if they differ; min_output: (1,):
    value of the smallest integer; max_output: (1,): value of the largest integer
    Not differentiable.
    """


def _contrib_quantized_elemwise_mul(
    lhs: TensorT, rhs: TensorT, lhs_min: TensorT, lhs_max: TensorT, rhs_min: TensorT, rhs_max: TensorT,
    min_calib_range: float | None = None, max_calib_range: float | None = None, enable_float_output: bool = False, *,
    out: Any = None, name: str | None = None
) -> Any:
    """Product of bytes, element by element.

    Parameters
    ----------
    lhs : tensor
        int8, any shape
    rhs : tensor
        shape of lhs
    lhs_min : tensor
        (1,): value of the smallest byte of lhs
    lhs_max : tensor
        (1,): value of the largest byte of lhs
    rhs_min : tensor
        (1,): value of the smallest byte of rhs
    rhs_max : tensor
        (1,): value of the largest byte of rhs
    min_calib_range : float or None
        Minimum value of the output; None: the output is int32.
    max_calib_range : float or None
        Maximum value of the output; None: the output is int32.
    enable_float_output : bool
        Whether the only output is float32, without a range.

    Returns: output: int32; int8 with a calibrated range, rounded toward zero; or float32; min_output: (1,): value
    of the smallest integer; max_output: (1,): value of the largest integer
    Not differentiable.
    """


def _contrib_quantized_embedding(
    data: TensorT, weight: TensorT, min_weight: TensorT, max_weight: TensorT, input_dim: int, output_dim: int, dtype:
    DType = 'float32', sparse_grad: bool = False, *, out: Any = None, name: str | None = None
) -> Any:
    """Rows of a quantized matrix, selected by data; indices out of range select the nearest row.

    Parameters
    ----------
    data : tensor
        any shape; integers of any dtype
    weight : tensor
        int8 (input_dim, output_dim)
    min_weight : tensor
        (1,): value of the smallest byte
    max_weight : tensor
        (1,): value of the largest byte
    input_dim : int, at least 1
        Number of rows of weight.
    output_dim : int, at least 1
        Length of a row of weight.

    Returns: output: int8, shape of data with output_dim appended; min_output: (1,): min_weight; max_output: (1,):
    max_weight
    Not differentiable.
    """


def _contrib_quantized_flatten(
    data: TensorT, min_data: TensorT, max_data: TensorT, *, out: Any = None, name: str | None = None
) -> Any:
    """Flatten of bytes.

    Parameters
    ----------
    data : tensor
        int8 or uint8
    min_data : tensor
        (1,): value of the smallest byte
    max_data : tensor
        (1,): value of the largest byte

    Returns: output: (batch, the other axes); min_output: (1,): min_data; max_output: (1,): max_data
    Not differentiable.
    """


def _contrib_quantized_fully_connected(
    data: TensorT, weight: TensorT, bias: TensorT | None = None, min_data: TensorT | None = None, max_data: TensorT |
    None = None, min_weight: TensorT | None = None, max_weight: TensorT | None = None, min_bias: TensorT | None = None,
    max_bias: TensorT | None = None, num_hidden: int = ..., no_bias: bool = False, flatten: bool = True, *, out: Any =
    None, name: str | None = None
) -> Any:
    """FullyConnected of quantized tensors, with 32-bit sums.

    Parameters
    ----------
    data : tensor
        int8 or uint8 (batch, ...), or (..., features) with flatten=False
    weight : tensor
        int8 (num_hidden, features)
    bias : tensor, optional
        int8 (outputs,)
    min_data : tensor
        (1,): value of the smallest byte of data
    max_data : tensor
        (1,): value of the largest byte of data
    min_weight : tensor
        (1,): value of the smallest byte of weight
    max_weight : tensor
        (1,): value of the largest byte of weight
    min_bias : tensor, optional
        (1,): value of the smallest byte of bias
    max_bias : tensor, optional
        (1,): value of the largest byte of bias
    num_hidden : int, at least 1
        Number of outputs per row.
    no_bias : bool
        Whether the bias input is absent, and its range where a bias has one.
    flatten : bool
        Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.

    Returns: output: int32 (batch, num_hidden), or (..., num_hidden) with flatten=False; min_output: (1,): value of
    the smallest 32-bit integer; max_output: (1,): value of the largest 32-bit integer
    Not differentiable.
    """


def _contrib_quantized_hard_swish(
    data: TensorT, min_data: TensorT, max_data: TensorT, *, out: Any = None, name: str | None = None
) -> Any:
    """hard_swish of bytes, rounded to the nearest step of the range of the results.

    Parameters
    ----------
    data : tensor
        int8 or uint8, any shape
    min_data : tensor
        (1,): value of the smallest byte
    max_data : tensor
        (1,): value of the largest byte

    Returns: output: shape and dtype of data; min_output: (1,): value of the smallest byte; max_output: (1,): value
    of the largest byte
    Not differentiable.
    """


def _contrib_quantized_pooling(
    data: TensorT, min_data: TensorT, max_data: TensorT, kernel: int | Sequence[int] = (), pool_type: Literal['max',
    'avg', 'sum', 'lp'] = 'max', global_pool: bool = False, cudnn_off: bool = False, pooling_convention:
    Literal['full', 'valid', 'same'] = 'valid', stride: int | Sequence[int] = (), pad: int | Sequence[int] = (),
    p_value: int | None = None, count_include_pad: bool | None = None, layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC',
    'NHWC', 'NDHWC'] | None = None, *, out: Any = None, name: str | None = None
) -> Any:
    """Maximum or average of windows of a quantized image.

    Parameters
    ----------
    data : tensor
        int8 or uint8 (batch, channels, spatial...)
    min_data : tensor
        (1,): value of the smallest byte
    max_data : tensor
        (1,): value of the largest byte
    kernel : tuple of int
        Window: (w,), (h, w) or (d, h, w).
    pool_type : {'max', 'avg', 'sum', 'lp'}
        The reduction of each window.
    global_pool : bool
        Whether the window is the whole image.
    pooling_convention : {'full', 'valid', 'same'}
        valid: windows inside the padded image only; full: also a window over the rest; same: ceil(size /
        stride) outputs.
    stride : tuple of int
        Strides of the window; empty: 1 everywhere.
    pad : tuple of int
        Padding on both sides; empty: none.
    p_value : int or None, range [1, 3]
        Exponent of pool_type lp.
    count_include_pad : bool or None
        Whether an average includes the padding; None: True.
    layout : {'NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'} or None
        Order of the axes; None: channels second.

    Returns: output: dtype of data; shape of the output of Pooling; min_output: (1,): min_data; max_output: (1,):
    max_data
    Not differentiable.
    """


def _contrib_quantized_rnn(
    data: TensorT, parameters: TensorT, state: TensorT, state_cell: TensorT, data_scale: TensorT, data_shift: TensorT,
    state_size: int, num_layers: int, bidirectional: bool = False, mode: Literal['gru', 'lstm', 'rnn_relu', 'rnn_tanh']
    = ..., p: float = 0.0, state_outputs: bool = False, projection_size: int | None = None, lstm_state_clip_min: float
    | None = None, lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False, use_sequence_length:
    bool = False, *, out: Any = None, name: str | None = None
) -> Any:
    """LSTM layers over a sequence of uint8; parameters and outputs are those of RNN.

    Parameters
    ----------
    data : tensor
        uint8 (steps, batch, inputs), the output of quantize_asym
    parameters : tensor
        float32: all weights, then all biases, in one vector
    state : tensor
        initial states (layers * directions, batch, state_size)
    state_cell : tensor
        initial cells, same shape
    data_scale : tensor
        (1,): steps per unit of data
    data_shift : tensor
        (1,): the step of zero
    state_size : int, at least 1
        Size of the state.
    num_layers : int, at least 1
        Number of stacked layers.
    bidirectional : bool
        Whether each layer also reads the sequence backwards.
    mode : {'gru', 'lstm', 'rnn_relu', 'rnn_tanh'}
        lstm; the other cells are not supported.
    state_outputs : bool
        Whether the final states are outputs, too.
    projection_size : int or None
        None: not supported.
    lstm_state_clip_min : float or None
        None: not supported.
    lstm_state_clip_max : float or None
        None: not supported.
    use_sequence_length : bool
        False: not supported.

    Returns: output: float32 (steps, batch, directions * state_size); state_output: if state_outputs: states after
    the last step; statecell_output: if state_outputs: cells after the last step
    Not differentiable.
    """


def _contrib_requantize(
    data: TensorT, min_range: TensorT, max_range: TensorT, out_type: Literal['auto', 'int8', 'uint8'] = 'int8',
    min_calib_range: float | None = None, max_calib_range: float | None = None, *, out: Any = None, name: str | None =
    None
) -> Any:
    """Quantizes 32-bit integers, for example products of bytes.

    Parameters
    ----------
    data : tensor
        int32, any shape
    min_range : tensor
        (1,): value of the smallest integer
    max_range : tensor
        (1,): value of the largest integer
    out_type : {'auto', 'int8', 'uint8'}
        dtype of the output; auto: uint8 if min_calib_range is not negative.
    min_calib_range : float or None
        Minimum value; None: minimum of data.
    max_calib_range : float or None
        Maximum value; None: maximum of data.

    Returns: output: shape of data; min_output: (1,): value of the smallest byte; max_output: (1,): value of the
    largest byte
    Not differentiable.
    """


def _contrib_rms_norm(
    data: TensorT, gamma: TensorT, axis: int = -1, eps: float = 1e-05, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data / sqrt(mean(data^2) + eps) * gamma, with the mean along an axis: LayerNorm without the subtraction of the
    mean. Statistics of 16-bit floats are kept in 32 bits.  Zhang, Sennrich: Root mean square layer normalization,
    NeurIPS 2019.

    Parameters
    ----------
    data : tensor
        floating tensor of at least one axis
    gamma : tensor
        (size of the axis,): factor after normalization
    axis : int
        Axis to normalize along.
    eps : float, at least 0
        Added to the mean square.

    Returns: output: shape of data; rms: shape of data with 1 for the axis: sqrt(mean(data^2) + eps)
    """


def _contrib_round_ste(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rounds to the nearest integer; the gradient passes unchanged.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse__contrib_round_ste = _contrib_round_ste


def _contrib_sign_ste(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """-1, 0 or 1; the gradient passes unchanged.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of the inputs
    """

_sparse__contrib_sign_ste = _contrib_sign_ste


def _contrib_weight_only_embedding(
    data: TensorT, weight: TensorT, scale: TensorT, input_dim: int, output_dim: int, *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Embedding with a matrix of bytes that have one scale per row: weight[data] * scale[data]; indices out of range
    select the nearest row.

    Parameters
    ----------
    data : tensor
        any shape; integers of any dtype
    weight : tensor
        int8 (input_dim, output_dim)
    scale : tensor
        (input_dim,): value of a step of each row
    input_dim : int, at least 1
        Number of rows of weight.
    output_dim : int, at least 1
        Length of a row of weight.

    Returns: output: float32, shape of data with output_dim appended
    Not differentiable.
    """


def _contrib_weight_only_fully_connected(
    data: TensorT, weight: TensorT, scale: TensorT, bias: TensorT | None = None, num_hidden: int = ..., no_bias: bool =
    False, flatten: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """FullyConnected with weights of bytes that have one scale per output: (data weight^T) * scale + bias, summed in
    float32.

    Parameters
    ----------
    data : tensor
        float32 (batch, ...), or (..., features) with flatten=False
    weight : tensor
        int8 (num_hidden, features)
    scale : tensor
        (num_hidden,): value of a step of each row of weight
    bias : tensor, optional
        float32 (num_hidden,)
    num_hidden : int, at least 1
        Number of outputs per row.
    no_bias : bool
        Whether the bias input is absent, and its range where a bias has one.
    flatten : bool
        Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.

    Returns: output: float32 (batch, num_hidden), or (..., num_hidden) with flatten=False
    """


def _copy(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Copies the input.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: out: shape and dtype of data
    """

_copyto = _copy
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
        False: an integer array produces float64 instead of its dtype.

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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_EqualScalar = _equal_scalar


def _eye(
    N: int, M: int = 0, k: int = 0, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str | None =
    None
) -> Any:
    """A matrix of zeros with ones on a diagonal.

    Parameters
    ----------
    N : int, at least 0
        Number of rows.
    M : int, at least 0
        Number of columns; 0: the number of rows.
    k : int
        Index of the diagonal: 0 the main one, positive above, negative below.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape (N, M)
    Not differentiable.
    """


def _full(
    shape: int | Sequence[int], ctx: str = '', dtype: DType = 'float32', value: float = ..., *, out: Any = None, name:
    str | None = None
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

    Returns: output: shape and dtype given by the parameters
    Not differentiable.
    """


def _grad_add(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs + rhs, the sum of the gradients of several uses.

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
        False: an integer array produces float64 instead of its dtype.

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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_GreaterScalar = _greater_scalar


def _histogram(
    data: TensorT, bins: TensorT | None = None, bin_cnt: int | None = None, range: Sequence[float] = (), *, out: Any =
    None, name: str | None = None
) -> Any:
    """Counts the values of data that fall into each bin; the last bin includes its upper edge.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    bins : tensor, optional
        rising edges of the bins, shape (n + 1,); not with bin_cnt
    bin_cnt : int or None, at least 1
        Number of bins of equal width; None: the second input holds the edges.
    range : tuple of float
        (low, high), for bin_cnt.

    Returns: counts: shape (n,), int64; bin_edges: shape (n + 1,)
    Not differentiable.
    """


def _hypot(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """sqrt(lhs^2 + rhs^2) without overflow.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Hypot = _hypot


def _hypot_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """sqrt(data^2 + scalar^2) without overflow.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_HypotScalar = _hypot_scalar


def _identity_with_attr_like_rhs(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs unchanged; its shape and dtype are those of rhs, whichever of the two is known.

    Parameters
    ----------
    lhs : tensor
        array of any shape
    rhs : tensor
        defines shape and dtype only

    Returns: out: shape and dtype of both
    """


def _image_adjust_lighting(
    data: TensorT, alpha: Sequence[float], *, out: Any = None, name: str | None = None
) -> TensorT:
    """Adds amounts along the principal components of ImageNet's colors (Krizhevsky et al., NIPS 2012, section 4.1).

    Parameters
    ----------
    data : tensor
        (height, width, channels), 1 or 3 channels; bytes stay in [0, 255]
    alpha : tuple of float
        Amounts to add along the three principal components of colors.

    Returns: output: shape and dtype of data
    """


def _image_crop(
    data: TensorT, x: int, y: int, width: int, height: int, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The rectangle of an image that starts at (x, y).

    Parameters
    ----------
    data : tensor
        (height, width, channels), or a batch of those, any dtype
    x : int, at least 0
        Left border of the rectangle.
    y : int, at least 0
        Upper border of the rectangle.
    width : int, at least 1
        Width of the rectangle.
    height : int, at least 1
        Height of the rectangle.

    Returns: output: data with the rectangle's height and width
    """


def _image_flip_left_right(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Flips images: left becomes right.

    Parameters
    ----------
    data : tensor
        (height, width, channels), or a batch of those, any dtype

    Returns: output: shape and dtype of data
    """


def _image_flip_top_bottom(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Flips images: top becomes bottom.

    Parameters
    ----------
    data : tensor
        (height, width, channels), or a batch of those, any dtype

    Returns: output: shape and dtype of data
    """


def _image_normalize(
    data: TensorT, mean: Sequence[float] = (0.0, 0.0, 0.0, 0.0), std: Sequence[float] = (1.0, 1.0, 1.0, 1.0), *, out:
    Any = None, name: str | None = None
) -> TensorT:
    """(data - mean) / std, channel by channel.

    Parameters
    ----------
    data : tensor
        floating (channels, height, width), or a batch of those
    mean : tuple of float
        Means of the channels, or one for all.
    std : tuple of float
        Standard deviations of the channels, or one for all.

    Returns: output: shape and dtype of data
    """


def _image_random_brightness(
    data: TensorT, min_factor: float, max_factor: float, *, out: Any = None, name: str | None = None
) -> TensorT:
    """All values times a random factor between min_factor and max_factor.

    Parameters
    ----------
    data : tensor
        (height, width, channels), 1 or 3 channels; bytes stay in [0, 255]
    min_factor : float, at least 0
        Smallest factor drawn.
    max_factor : float, at least 0
        Largest factor drawn.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _image_random_color_jitter(
    data: TensorT, brightness: float, contrast: float, saturation: float, hue: float, *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Changes brightness, contrast, saturation and hue by random amounts, in a random order.

    Parameters
    ----------
    data : tensor
        (height, width, channels), 1 or 3 channels; bytes stay in [0, 255]
    brightness : float, at least 0
        The factor is drawn from 1 - brightness to 1 + brightness.
    contrast : float, at least 0
        The factor is drawn from 1 - contrast to 1 + contrast.
    saturation : float, at least 0
        The factor is drawn from 1 - saturation to 1 + saturation.
    hue : float, at least 0
        The fraction of the color circle is drawn from -hue to hue.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _image_random_contrast(
    data: TensorT, min_factor: float, max_factor: float, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Scales the distances of values from the image's mean luminance by a random factor.

    Parameters
    ----------
    data : tensor
        (height, width, channels), 1 or 3 channels; bytes stay in [0, 255]
    min_factor : float, at least 0
        Smallest factor drawn.
    max_factor : float, at least 0
        Largest factor drawn.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _image_random_flip_left_right(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Flips images, left becomes right, or not, with equal probability.

    Parameters
    ----------
    data : tensor
        (height, width, channels), or a batch of those, any dtype

    Returns: output: shape and dtype of data; flipped: (1,) int32: 1 if the images were flipped
    """


def _image_random_flip_top_bottom(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Flips images, top becomes bottom, or not, with equal probability.

    Parameters
    ----------
    data : tensor
        (height, width, channels), or a batch of those, any dtype

    Returns: output: shape and dtype of data; flipped: (1,) int32: 1 if the images were flipped
    """


def _image_random_hue(
    data: TensorT, min_factor: float, max_factor: float, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Rotates hues by a random fraction of the color circle.

    Parameters
    ----------
    data : tensor
        (height, width, channels), 1 or 3 channels; bytes stay in [0, 255]
    min_factor : float, at least 0
        Smallest factor drawn.
    max_factor : float, at least 0
        Largest factor drawn.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _image_random_lighting(
    data: TensorT, alpha_std: float = 0.05, *, out: Any = None, name: str | None = None
) -> TensorT:
    """_image_adjust_lighting with normally distributed amounts.

    Parameters
    ----------
    data : tensor
        (height, width, channels), 1 or 3 channels; bytes stay in [0, 255]
    alpha_std : float, at least 0
        Standard deviation of the amounts along the principal components of colors.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _image_random_saturation(
    data: TensorT, min_factor: float, max_factor: float, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Scales the distances of values from their pixel's luminance by a random factor.

    Parameters
    ----------
    data : tensor
        (height, width, channels), 1 or 3 channels; bytes stay in [0, 255]
    min_factor : float, at least 0
        Smallest factor drawn.
    max_factor : float, at least 0
        Largest factor drawn.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _image_resize(
    data: TensorT, size: int | Sequence[int] = (), keep_ratio: bool = False, interp: int = 1, *, out: Any = None, name:
    str | None = None
) -> TensorT:
    """Images resized to another height and width.

    Parameters
    ----------
    data : tensor
        (height, width, channels), or a batch of those
    size : tuple of int
        (width, height), or one number for both.
    keep_ratio : bool
        Whether one number is the size of the shorter side; the other side keeps the aspect ratio.
    interp : int, range [0, 4]
        0: nearest, 1: bilinear, 2: bicubic, 3: area, 4: Lanczos over 8x8 pixels.

    Returns: output: data with the new height and width; integers are rounded
    """


def _image_to_tensor(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Images with values in [0, 255] and channels last as tensors with values in [0, 1] and channels first.

    Parameters
    ----------
    data : tensor
        (height, width, channels), or a batch of those, any dtype

    Returns: output: float32 (channels, height, width), or a batch of those
    """


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
        False: an integer array produces float64 instead of its dtype.

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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_LesserScalar = _lesser_scalar


def _linalg_det(A: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The determinant of every matrix. The gradient of a singular matrix is zero.

    Parameters
    ----------
    A : tensor
        stack of square matrices (..., n, n)

    Returns: output: the axes of A before the last two; (1,) for a single matrix
    """

linalg_det = _linalg_det


def _linalg_extractdiag(A: TensorT, offset: int = 0, *, out: Any = None, name: str | None = None) -> TensorT:
    """A diagonal of every matrix.

    Parameters
    ----------
    A : tensor
        stack of square matrices (..., n, n)
    offset : int
        Index of the diagonal: positive above the main one, negative below.

    Returns: output: (..., elements)
    """

linalg_extractdiag = _linalg_extractdiag


def _linalg_extracttrian(
    A: TensorT, offset: int = 0, lower: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """A triangle of every matrix, row by row.

    Parameters
    ----------
    A : tensor
        stack of square matrices (..., n, n)
    offset : int
        The diagonal that bounds the triangle: positive: upper triangles from above the main diagonal, negative:
        lower ones.
    lower : bool
        Whether the triangle is the lower one, if offset is 0.

    Returns: output: (..., elements)
    """

linalg_extracttrian = _linalg_extracttrian


def _linalg_gelqf(A: TensorT, *, out: Any = None, name: str | None = None) -> Any:
    """LQ factorization: A = L Q with lower triangular L and orthonormal rows of Q. Gradients need matrices of full
    rank.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., rows, columns), rows <= columns

    Returns: Q: (..., rows, columns); L: (..., rows, rows)
    """

linalg_gelqf = _linalg_gelqf


def _linalg_gemm(
    A: TensorT, B: TensorT, C: TensorT, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, beta:
    float = 1.0, axis: int = -2, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Matrix products of two stacks of matrices plus a third stack: alpha * op(A) op(B) + beta * C.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., m, k), or (..., k, m) if transpose_a
    B : tensor
        stack of matrices (..., k, n), or (..., n, k) if transpose_b
    C : tensor
        (..., m, n)
    transpose_a : bool
        Whether to transpose the matrices of A.
    transpose_b : bool
        Whether to transpose the matrices of B.
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
    A: TensorT, B: TensorT, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, axis: int = -2,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """Matrix products of two stacks of matrices: alpha * op(A) op(B).

    Parameters
    ----------
    A : tensor
        stack of matrices (..., m, k), or (..., k, m) if transpose_a
    B : tensor
        stack of matrices (..., k, n), or (..., n, k) if transpose_b
    transpose_a : bool
        Whether to transpose the matrices of A.
    transpose_b : bool
        Whether to transpose the matrices of B.
    alpha : float
        Factor of the product.
    axis : int
        Axis of the matrix rows; the columns are the last axis.

    Returns: output: (..., m, n)
    """

linalg_gemm2 = _linalg_gemm2


def _linalg_inverse(A: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The inverse of every matrix. Raises ValueError for a singular one.

    Parameters
    ----------
    A : tensor
        stack of square matrices (..., n, n)

    Returns: output: shape and dtype of A
    """

linalg_inverse = _linalg_inverse


def _linalg_makediag(A: TensorT, offset: int = 0, *, out: Any = None, name: str | None = None) -> TensorT:
    """Matrices that are zero except on one diagonal.

    Parameters
    ----------
    A : tensor
        (..., elements)
    offset : int
        Index of the diagonal: positive above the main one, negative below.

    Returns: output: stack of square matrices (..., n, n)
    """

linalg_makediag = _linalg_makediag


def _linalg_maketrian(
    A: TensorT, offset: int = 0, lower: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Matrices that are zero but for one triangle, given row by row.

    Parameters
    ----------
    A : tensor
        (..., elements)
    offset : int
        The diagonal that bounds the triangle: positive: upper triangles from above the main diagonal, negative:
        lower ones.
    lower : bool
        Whether the triangle is the lower one, if offset is 0.

    Returns: output: stack of square matrices (..., n, n)
    """

linalg_maketrian = _linalg_maketrian


def _linalg_potrf(A: TensorT, lower: bool = True, *, out: Any = None, name: str | None = None) -> TensorT:
    """Cholesky factors: the lower triangular L with A = L L^T. Only the lower triangle of A is read; its gradient is
    symmetric.

    Parameters
    ----------
    A : tensor
        stack of symmetric positive definite matrices (..., n, n)
    lower : bool
        Lower triangular factors L with L L^T, or upper triangular ones U with U^T U. The other triangle is not
        read.

    Returns: output: shape and dtype of A; zeros above the diagonal
    """

linalg_potrf = _linalg_potrf


def _linalg_potri(A: TensorT, lower: bool = True, *, out: Any = None, name: str | None = None) -> TensorT:
    """The inverse of L L^T for a lower triangular L, for example the output of _linalg_potrf.

    Parameters
    ----------
    A : tensor
        stack of lower triangular matrices (..., n, n)
    lower : bool
        Lower triangular factors L with L L^T, or upper triangular ones U with U^T U. The other triangle is not
        read.

    Returns: output: shape and dtype of A
    """

linalg_potri = _linalg_potri


def _linalg_slogdet(A: TensorT, *, out: Any = None, name: str | None = None) -> Any:
    """The sign and the logarithm of the absolute value of every determinant: 0 and -inf for a singular matrix.

    Parameters
    ----------
    A : tensor
        stack of square matrices (..., n, n)

    Returns: sign: -1, 0 or 1; the axes of A before the last two; (1,) for a single matrix; logabsdet: shape of sign
    """

linalg_slogdet = _linalg_slogdet


def _linalg_sumlogdiag(A: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The sum of the logarithms of the diagonal of every matrix.

    Parameters
    ----------
    A : tensor
        stack of square matrices (..., n, n) with positive diagonals

    Returns: output: the axes of A before the last two; (1,) for a single matrix
    """

linalg_sumlogdiag = _linalg_sumlogdiag


def _linalg_syevd(A: TensorT, *, out: Any = None, name: str | None = None) -> Any:
    """Eigenvectors U, as rows, and eigenvalues L, rising, of symmetric matrices: U A = diag(L) U. Only the lower
    triangle is read. Gradients need eigenvalues that differ.

    Parameters
    ----------
    A : tensor
        stack of symmetric matrices (..., n, n)

    Returns: U: (..., n, n); L: (..., n)
    """

linalg_syevd = _linalg_syevd


def _linalg_syrk(
    A: TensorT, transpose: bool = False, alpha: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """alpha A A^T, or alpha A^T A, of every matrix.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., rows, columns)
    transpose : bool
        Whether to compute A^T A instead of A A^T.
    alpha : float
        Factor of the product.

    Returns: output: (..., rows, rows), or (..., columns, columns) if transpose
    """

linalg_syrk = _linalg_syrk


def _linalg_trmm(
    A: TensorT, B: TensorT, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """alpha op(A) B, or with rightside alpha B op(A), for triangular A.

    Parameters
    ----------
    A : tensor
        stack of triangular matrices (..., n, n)
    B : tensor
        stack of matrices (..., n, columns), or (..., rows, n) if rightside
    transpose : bool
        Whether to transpose the triangular matrices.
    rightside : bool
        Whether the triangular matrix is on the right.
    lower : bool
        Whether the lower triangle is used, else the upper one; the other triangle is not read.
    alpha : float
        Factor of the result.

    Returns: output: shape and dtype of B
    """

linalg_trmm = _linalg_trmm


def _linalg_trsm(
    A: TensorT, B: TensorT, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """Solves op(A) X = alpha B, or with rightside X op(A) = alpha B, for X; A is triangular.

    Parameters
    ----------
    A : tensor
        stack of triangular matrices (..., n, n)
    B : tensor
        stack of matrices (..., n, columns), or (..., rows, n) if rightside
    transpose : bool
        Whether to transpose the triangular matrices.
    rightside : bool
        Whether the triangular matrix is on the right.
    lower : bool
        Whether the lower triangle is used, else the upper one; the other triangle is not read.
    alpha : float
        Factor of the result.

    Returns: output: shape and dtype of B
    """

linalg_trsm = _linalg_trsm


def _linspace(
    start: float, stop: float, num: int, endpoint: bool = True, ctx: str = '', dtype: DType = 'float32', step: float =
    1.0, repeat: int = 1, infer_range: bool = False, *, out: Any = None, name: str | None = None
) -> Any:
    """num evenly spaced values from start to stop.

    Parameters
    ----------
    start : float
        First value.
    stop : float
        Last value; without endpoint, the value after the last.
    num : int, at least 0
        Number of values.
    endpoint : bool
        Whether stop is the last value.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape (num,)
    Not differentiable.
    """


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
        False: an integer array produces float64 instead of its dtype.

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
        False: an integer array produces float64 instead of its dtype.

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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_LogicalXorScalar = _logical_xor_scalar


def _maximum(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The larger element; NaN if either is NaN.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Maximum = _maximum


def _maximum_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The larger of data and scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_MaximumScalar = _maximum_scalar


def _minimum(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The smaller element; NaN if either is NaN.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Minimum = _minimum


def _minimum_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The smaller of data and scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_MinimumScalar = _minimum_scalar


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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_MinusScalar = _minus_scalar
_scatter_minus_scalar = _minus_scalar


def _mod(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Remainder of lhs / rhs with the sign of rhs; 0 where rhs is 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Mod = _mod


def _mod_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Remainder of data / scalar with the sign of scalar; 0 for scalar 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_ModScalar = _mod_scalar


def _mp_adamw_update(
    weight: TensorT, grad: TensorT, mean: TensorT, var: TensorT, weight32: TensorT, rescale_grad: TensorT, lr: float,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, wd: float = 0.0, eta: float = ..., clip_gradient:
    float = -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """_adamw_update on a float32 copy of the weight; the weight is the rounded copy.

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    mean : tensor
        shape of weight, float32; replaced
    var : tensor
        shape of weight, float32; replaced
    weight32 : tensor
        float32 copy of weight; replaced
    rescale_grad : tensor
        one element: factor applied to the gradient first; 0, infinite or nan skips the update
    lr : float
        Learning rate.
    beta1 : float
        Decay rate of the mean of gradients.
    beta2 : float
        Decay rate of the mean of squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    wd : float
        Weight decay: eta * wd * weight is subtracted.
    eta : float
        Factor of the whole step.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight; mean_out: replaces mean; var_out: replaces var; weight32_out: replaces
    weight32
    Not differentiable.
    """


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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_MulScalar = _mul_scalar


def _multi_adamw_update(
    *data: TensorT, lrs: Sequence[float] = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, wds:
    Sequence[float] = ..., etas: Sequence[float] = ..., clip_gradient: float = -1.0, num_weights: int = 1, out: Any =
    None, name: str | None = None
) -> Any:
    """_adamw_update of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient, mean and var of each tensor, then rescale_grad; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    beta1 : float
        Decay rate of the mean of gradients.
    beta2 : float
        Decay rate of the mean of squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    wds : tuple of float
        Weight decays, one per tensor.
    etas : tuple of float
        Factors of the whole steps, one per tensor.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def _multi_lamb_update(
    *data: TensorT, learning_rates: Sequence[float] = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float =
    1e-06, bias_correction: bool = True, wds: Sequence[float] = ..., rescale_grad: float = 1.0, clip_gradient: float =
    -1.0, lower_bound: float = -1.0, upper_bound: float = -1.0, step_count: int | Sequence[int] = ..., num_tensors: int
    = 1, out: Any = None, name: str | None = None
) -> Any:
    """LAMB updates of several tensors at once.

    Parameters
    ----------
    data : tensor
        weight, gradient, mean, var (and float32 weight) of each tensor; all except gradients are replaced
    learning_rates : tuple of float
        Learning rates, one per tensor.
    beta1 : float
        Decay rate of the mean of gradients.
    beta2 : float
        Decay rate of the mean of squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    bias_correction : bool
        Whether the bias of the moments is corrected.
    wds : tuple of float
        Weight decays, one per tensor.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    lower_bound : float
        Lower bound of the norm of the weight; negative: no bound.
    upper_bound : float
        Upper bound of the norm of the weight; negative: no bound.
    step_count : tuple of int
        Number of this update of each tensor, from 1.
    num_tensors : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def _multi_mp_adamw_update(
    *data: TensorT, lrs: Sequence[float] = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, wds:
    Sequence[float] = ..., etas: Sequence[float] = ..., clip_gradient: float = -1.0, num_weights: int = 1, out: Any =
    None, name: str | None = None
) -> Any:
    """_adamw_update of several tensors at once, on float32 copies of the weights.

    Parameters
    ----------
    data : tensor
        weight, gradient, mean and var of each tensor, then rescale_grad; states are replaced
    lrs : tuple of float
        Learning rates, one per tensor.
    beta1 : float
        Decay rate of the mean of gradients.
    beta2 : float
        Decay rate of the mean of squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    wds : tuple of float
        Weight decays, one per tensor.
    etas : tuple of float
        Factors of the whole steps, one per tensor.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    num_weights : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


def _multi_mp_lamb_update(
    *data: TensorT, learning_rates: Sequence[float] = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float =
    1e-06, bias_correction: bool = True, wds: Sequence[float] = ..., rescale_grad: float = 1.0, clip_gradient: float =
    -1.0, lower_bound: float = -1.0, upper_bound: float = -1.0, step_count: int | Sequence[int] = ..., num_tensors: int
    = 1, out: Any = None, name: str | None = None
) -> Any:
    """LAMB updates of several tensors at once, on float32 copies of the weights.

    Parameters
    ----------
    data : tensor
        weight, gradient, mean, var (and float32 weight) of each tensor; all except gradients are replaced
    learning_rates : tuple of float
        Learning rates, one per tensor.
    beta1 : float
        Decay rate of the mean of gradients.
    beta2 : float
        Decay rate of the mean of squared gradients.
    epsilon : float
        Added to the root, against division by zero.
    bias_correction : bool
        Whether the bias of the moments is corrected.
    wds : tuple of float
        Weight decays, one per tensor.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.
    lower_bound : float
        Lower bound of the norm of the weight; negative: no bound.
    upper_bound : float
        Upper bound of the norm of the weight; negative: no bound.
    step_count : tuple of int
        Number of this update of each tensor, from 1.
    num_tensors : int, range [1, 1.67772e+07]
        Number of tensors updated.

    Returns: weight_out: updated weights, then the replaced states
    Not differentiable.
    """


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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_NotEqualScalar = _not_equal_scalar


def _np_all(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Whether all elements along axes are not 0.

    Parameters
    ----------
    data : tensor
        array of any shape; elements other than 0 are true
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.

    Returns: out: bool; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _np_any(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Whether any element along axes is not 0.

    Parameters
    ----------
    data : tensor
        array of any shape; elements other than 0 are true
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.

    Returns: out: bool; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _np_atleast_1d(*arys: TensorT, num_args: int = ..., out: Any = None, name: str | None = None) -> Any:
    """Scalars as vectors of one element; other arrays are unchanged.

    Parameters
    ----------
    arys : tensor
        arrays of any shape
    num_args : int, at least 1
        Number of arrays.

    Returns: out: one per array, of the rank or above
    """


def _np_atleast_2d(*arys: TensorT, num_args: int = ..., out: Any = None, name: str | None = None) -> Any:
    """Scalars and vectors as matrices of one row; other arrays are unchanged.

    Parameters
    ----------
    arys : tensor
        arrays of any shape
    num_args : int, at least 1
        Number of arrays.

    Returns: out: one per array, of the rank or above
    """


def _np_atleast_3d(*arys: TensorT, num_args: int = ..., out: Any = None, name: str | None = None) -> Any:
    """Arrays of at least three axes: (N,) becomes (1, N, 1), (M, N) (M, N, 1).

    Parameters
    ----------
    arys : tensor
        arrays of any shape
    num_args : int, at least 1
        Number of arrays.

    Returns: out: one per array, of the rank or above
    """


def _np_cumsum(
    a: TensorT, axis: int | None = None, dtype: DType | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Sum of all elements up to each one along an axis. Floats are summed in float64, integers in int64.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : int or None
        Axis to sum along; None: all elements in row-major order.
    dtype : dtype or None
        Dtype of the output; None: dtype of a, int64 for bool.

    Returns: out: shape of a, or (a.size,) if axis is None
    """

cumsum = _np_cumsum


def _np_diag(data: TensorT, k: int = 0, *, out: Any = None, name: str | None = None) -> TensorT:
    """A diagonal of a matrix, or a matrix with a vector on a diagonal.

    Parameters
    ----------
    data : tensor
        a vector or a matrix, any dtype
    k : int
        Index of the diagonal: 0 the main one, positive above, negative below.

    Returns: out: a vector or a matrix, dtype of data
    """


def _np_diagflat(data: TensorT, k: int = 0, *, out: Any = None, name: str | None = None) -> TensorT:
    """A matrix with all elements of an array on a diagonal.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    k : int
        Index of the diagonal: 0 the main one, positive above, negative below.

    Returns: out: square matrix, dtype of data
    """


def _np_diagonal(
    data: TensorT, offset: int = 0, axis1: int = 0, axis2: int = 1, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The diagonals of two axes.

    Parameters
    ----------
    data : tensor
        at least two axes, any dtype
    offset : int
        Index of the diagonal: 0 the main one, positive above, negative below.
    axis1 : int
        The axis of rows.
    axis2 : int
        The axis of columns.

    Returns: out: data without the two axes, the diagonal last
    """


def _np_dot(a: TensorT, b: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Sum of products over the last axis of a and the second-to-last (or only) axis of b; scalars are multiplied.

    Parameters
    ----------
    a : tensor
        array of any shape
    b : tensor
        array of any shape

    Returns: out: the remaining axes of a, then those of b, in the common dtype
    """


def _np_max(
    a: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, initial: float | None = None, *, out:
    Any = None, name: str | None = None
) -> TensorT:
    """Largest element over axes.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    initial : float or None
        Value that is compared with those of the array.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _np_min(
    a: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, initial: float | None = None, *, out:
    Any = None, name: str | None = None
) -> TensorT:
    """Smallest element over axes.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    initial : float or None
        Value that is compared with those of the array.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _np_moveaxis(
    a: TensorT, source: int | Sequence[int], destination: int | Sequence[int], *, out: Any = None, name: str | None =
    None
) -> TensorT:
    """Moves axes to other positions; the others keep their order.

    Parameters
    ----------
    a : tensor
        any shape, any dtype
    source : tuple of int
        Axes to move.
    destination : tuple of int
        New position of each of them.

    Returns: out: dtype of a, its sizes in the new order
    """


def _np_prod(
    a: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, dtype: DType | None = None, initial:
    float | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Product over axes.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    dtype : dtype or None
        Dtype of the sum and of the result.
    initial : float or None
        Value that the reduction starts with.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _np_reshape(
    a: TensorT, newshape: int | Sequence[int], order: Literal['C'] = 'C', *, out: Any = None, name: str | None = None
) -> TensorT:
    """The same elements, in the same order, with another shape.

    Parameters
    ----------
    a : tensor
        any shape, any dtype
    newshape : tuple of int
        Target shape, taken literally; one size may be -1, which is inferred.
    order : {'C'}
        Row-major, the only supported order.

    Returns: out: dtype of a, the elements in the same order
    """


def _np_roll(
    data: TensorT, shift: int | Sequence[int] | None = None, axis: int | Sequence[int] | None = None, *, out: Any =
    None, name: str | None = None
) -> TensorT:
    """Moves elements along axes; elements beyond the end reappear at the start.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    shift : tuple of int or None
        Number of positions that elements move by, one number or one per axis.
    axis : tuple of int or None
        Axes to move along; None: row-major order.

    Returns: out: shape and dtype of data
    """


def _np_squeeze(
    a: TensorT, axis: int | Sequence[int] | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Removes axes of size 1.

    Parameters
    ----------
    a : tensor
        any shape, any dtype
    axis : tuple of int or None
        Axes of size 1 to remove; None: all of them.

    Returns: out: shape of a without the removed axes
    """


def _np_sum(
    a: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, dtype: DType | None = None, initial:
    float | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Sum over axes; True counts as 1.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    dtype : dtype or None
        Dtype of the sum and of the result.
    initial : float or None
        Value that the reduction starts with.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _np_trace(
    data: TensorT, offset: int = 0, axis1: int = 0, axis2: int = 1, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Sums along diagonals. Bools are counted.

    Parameters
    ----------
    data : tensor
        array of at least two axes
    offset : int
        Offset of the diagonal above the main one.
    axis1 : int
        Axis of the rows.
    axis2 : int
        Axis of the columns.

    Returns: out: the axes except axis1 and axis2
    """


def _np_transpose(
    a: TensorT, axes: int | Sequence[int] | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Permutes the axes.

    Parameters
    ----------
    a : tensor
        any shape, any dtype
    axes : tuple of int or None
        Axis i of the output is axis axes[i] of a; None: reversed order.

    Returns: out: dtype of a, its sizes permuted
    """


def _npi_add(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs + rhs with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    """


def _npi_add_scalar(
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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_arccos(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse cosine, in radians.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_arccosh(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse hyperbolic cosine.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_arcsin(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse sine, in radians.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_arcsinh(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse hyperbolic sine.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_arctan(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse tangent, in radians.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_arctan2(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Angle of the point (rhs, lhs), in radians.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs, float32 for integers
    """


def _npi_arctan2_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Angle of the point (scalar, data).

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integers
    """


def _npi_arctanh(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Inverse hyperbolic tangent.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_argmax(
    data: TensorT, axis: int | None = None, keepdims: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Position of the largest element along an axis: the first of equal elements, the first NaN if there is one.

    Parameters
    ----------
    data : tensor
        array of any shape with at least one element along the axis
    axis : int or None
        Axis to search; None: all elements in row-major order.
    keepdims : bool
        Keep reduced axes with size 1.

    Returns: out: int64; the shape without the searched axis, or with size 1 there (keepdims)
    Not differentiable.
    """


def _npi_argmin(
    data: TensorT, axis: int | None = None, keepdims: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Position of the smallest element along an axis: the first of equal elements, the first NaN if there is one.

    Parameters
    ----------
    data : tensor
        array of any shape with at least one element along the axis
    axis : int or None
        Axis to search; None: all elements in row-major order.
    keepdims : bool
        Keep reduced axes with size 1.

    Returns: out: int64; the shape without the searched axis, or with size 1 there (keepdims)
    Not differentiable.
    """


def _npi_around(x: TensorT, decimals: int = 0, *, out: Any = None, name: str | None = None) -> TensorT:
    """Rounds to a number of decimals; halves to the even digit.

    Parameters
    ----------
    x : tensor
        array of any shape
    decimals : int
        Number of decimal digits; negative: digits before the point that are rounded to 0.

    Returns: out: shape and dtype of x
    """


def _npi_average(
    a: TensorT, weights: TensorT | None = None, axis: int | Sequence[int] | None = None, returned: bool = False,
    weighted: bool = True, *, out: Any = None, name: str | None = None
) -> Any:
    """Weighted mean over axes.

    Parameters
    ----------
    a : tensor
        array of any shape
    weights : tensor, optional
        the shape of a, or one weight for each position along the one axis
    axis : tuple of int or None
        Axis or axes to average over; None: all.
    returned : bool
        Whether to return the sum of the weights, too.
    weighted : bool
        Whether there are weights.

    Returns: out: the common dtype of the inputs, float32 for integers; sum_of_weights: with returned: the shape of
    the mean
    """


def _npi_bernoulli(
    input1: TensorT | None = None, prob: float | None = ..., logit: float | None = ..., size: int | Sequence[int] |
    None = None, ctx: str = '', dtype: DType = 'float32', is_logit: bool = ..., *, out: Any = None, name: str | None =
    None
) -> TensorT:
    """1 with a probability given directly or by its logit, else 0.

    Parameters
    ----------
    input1 : tensor, optional
        prob or logit as an array
    prob : float or None
        Probability of 1, if is_logit is false; None: an array.
    logit : float or None
        Logit of the probability of 1, if is_logit is true; None: an array.
    size : tuple of int or None
        Shape of the result; None: the shape of the array.
    dtype : dtype
        Dtype of the result.
    is_logit : bool
        Whether logit is used instead of prob.

    Returns: out: the parameter's shape, or size
    """


def _npi_bincount(
    data: TensorT, weights: TensorT | None = None, minlength: int = 0, has_weights: bool = False, *, out: Any = None,
    name: str | None = None
) -> TensorT:
    """Number of occurrences of each number in a vector, or the sum of the weights at these positions.

    Parameters
    ----------
    data : tensor
        vector of integers that are not negative
    weights : tensor, optional
        shape of data
    minlength : int, at least 0
        Minimum number of bins.
    has_weights : bool
        Whether there are weights to sum.

    Returns: out: vector whose length follows from the largest number; int64, or the dtype of weights
    """


def _npi_bitwise_and(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Bits set in both, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    Not differentiable.
    """


def _npi_bitwise_and_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Bits set in data and scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape and dtype of data
    Not differentiable.
    """


def _npi_bitwise_not(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """All bits inverted; logical not for bool.

    Parameters
    ----------
    x : tensor
        array of integers or bool

    Returns: out: shape and dtype of x
    Not differentiable.
    """


def _npi_bitwise_or(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Bits set in either, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    Not differentiable.
    """


def _npi_bitwise_or_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Bits set in data or scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape and dtype of data
    Not differentiable.
    """


def _npi_bitwise_xor(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Bits set in exactly one, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    Not differentiable.
    """


def _npi_bitwise_xor_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Bits set in exactly one of data and scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape and dtype of data
    Not differentiable.
    """


def _npi_blackman(
    M: int | None = None, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str | None = None
) -> Any:
    """The Blackman window, 0.42 - 0.5 cos(2 pi i / (M - 1)) + 0.08 cos(4 pi i / (M - 1)).

    Parameters
    ----------
    M : int or None
        Number of values; below 1: no values.
    dtype : dtype
        Dtype of the output.

    Returns: out: shape (M,)
    Not differentiable.
    """


def _npi_broadcast_to(
    array: TensorT, shape: int | Sequence[int] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """Repeats an array along axes of size 1 and along new leading axes.

    Parameters
    ----------
    array : tensor
        a shape that broadcasts to the parameter's
    shape : tuple of int
        Shape of the output; -1 and -2 copy the input's size.

    Returns: out: dtype of array
    """


def _npi_cbrt(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Cube root.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_choice(
    input1: TensorT | None = None, input2: TensorT | None = None, a: int | None = None, size: int | Sequence[int] |
    None = None, ctx: str = '', replace: bool = True, weighted: bool = False, *, out: Any = None, name: str | None =
    None
) -> TensorT:
    """Random indices from a range: uniformly distributed, or with given probabilities.

    Parameters
    ----------
    input1 : tensor, optional
        the array whose indices are drawn, if a is None; else the probabilities
    input2 : tensor, optional
        the probabilities, if both are given
    a : int or None
        Exclusive upper bound of the indices; None: the length of the input array.
    size : tuple of int or None
        Shape of the result; None: one index, ().
    replace : bool
        Whether an index may occur more than once.
    weighted : bool
        Whether probabilities are an input.

    Returns: out: int64
    Not differentiable.
    """


def _npi_cholesky(A: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The lower triangular L with A = L L^T; raises ValueError if A is not positive definite.

    Parameters
    ----------
    A : tensor
        stack of symmetric positive definite matrices (..., n, n)

    Returns: out: shape of A
    """


def _npi_column_stack(*data: TensorT, num_args: int = ..., out: Any = None, name: str | None = None) -> TensorT:
    """Joins vectors, as columns, and matrices along the second axis.

    Parameters
    ----------
    data : tensor
        arrays whose sizes are equal except along the joined axis
    num_args : int, at least 1
        Number of arrays.

    Returns: out: the common dtype of the arrays
    """


def _npi_concatenate(
    *data: TensorT, num_args: int = ..., axis: int | None = 0, out: Any = None, name: str | None = None
) -> TensorT:
    """Joins arrays along an existing axis.

    Parameters
    ----------
    data : tensor
        arrays of one rank; sizes except along axis are equal
    num_args : int, at least 1
        Number of arrays.
    axis : int or None
        Axis along which arrays are joined; None: arrays are flattened first.

    Returns: out: the common dtype of the arrays
    """


def _npi_copysign(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The absolute value of lhs with the sign of rhs.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs, float32 for integers
    """


def _npi_copysign_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The absolute value of data with the sign of scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integers
    """


def _npi_cos(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Cosine of x in radians.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_cosh(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Hyperbolic cosine.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_cross(
    a: TensorT, b: TensorT, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None, *, out: Any =
    None, name: str | None = None
) -> TensorT:
    """Cross products of vectors of 2 or 3 elements; two of 2 elements give a number.

    Parameters
    ----------
    a : tensor
        array with vectors along axisa
    b : tensor
        array with vectors along axisb; the other axes broadcast
    axisa : int
        Axis of a with the vectors.
    axisb : int
        Axis of b with the vectors.
    axisc : int
        Axis of the result with the vectors.
    axis : int or None
        Replaces all three axes.

    Returns: out: vectors along axisc
    """


def _npi_degrees(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Converts radians to degrees.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_delete(
    arr: TensorT, start: int | None = None, stop: int | None = None, step: int | None = None, int_ind: int | None =
    None, axis: int | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Deletes some slices of an axis.

    Parameters
    ----------
    arr : tensor
        array of any shape
    start : int or None
        Start of a slice; None: the first.
    stop : int or None
        End of a slice, exclusive; None: after the last.
    step : int or None
        Step of a slice; None: 1.
    int_ind : int or None
        A single index instead of a slice.
    axis : int or None
        The axis; None: arr is flattened.

    Returns: out: arr without the slices, dtype of arr
    """


def _npi_det(A: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The determinant of every matrix.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., n, n)

    Returns: out: the axes of A before the last two
    """


def _npi_diag_indices_from(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The indices of the main diagonal of an array whose axes are of one size.

    Parameters
    ----------
    data : tensor
        at least two axes of one size

    Returns: out: (number of axes, size), int64
    """


def _npi_diff(a: TensorT, n: int = 1, axis: int = -1, *, out: Any = None, name: str | None = None) -> TensorT:
    """Differences of neighbors along an axis.

    Parameters
    ----------
    a : tensor
        at least one axis
    n : int, at least 0
        Number of times that differences are taken.
    axis : int
        The axis of the differences.

    Returns: out: n elements fewer along the axis; dtype of a
    """


def _npi_dsplit(
    data: TensorT, indices: int | Sequence[int], axis: int = 1, squeeze_axis: bool = False, sections: int = 0, *, out:
    Any = None, name: str | None = None
) -> Any:
    """Splits along the third axis.

    Parameters
    ----------
    data : tensor
        at least 3 dimensions, any dtype
    indices : tuple of int
        First index of each part, the first is 0. Ignored with sections.
    sections : int, range [0, 1.04858e+06]
        Number of equal parts.

    Returns: out: one array per part
    """


def _npi_dstack(*data: TensorT, num_args: int = ..., dim: int = 1, out: Any = None, name: str | None = None) -> TensorT:
    """Joins arrays along the third axis.

    Parameters
    ----------
    data : tensor
        arrays whose sizes are equal except along the joined axis
    num_args : int, at least 1
        Number of arrays.

    Returns: out: the common dtype of the arrays
    """


def _npi_ediff1d(
    input1: TensorT, input2: TensorT | None = None, input3: TensorT | None = None, to_begin_arr_given: bool = False,
    to_end_arr_given: bool = False, to_begin_scalar: float | None = None, to_end_scalar: float | None = None, *, out:
    Any = None, name: str | None = None
) -> TensorT:
    """Differences of neighbors in row-major order, with values prepended and appended.

    Parameters
    ----------
    input1 : tensor
        array of numbers of any shape
    input2 : tensor, optional
        values to prepend, or to append if none are prepended
    input3 : tensor, optional
        values to append
    to_begin_arr_given : bool
        Whether an array of values is prepended.
    to_end_arr_given : bool
        Whether an array of values is appended.
    to_begin_scalar : float or None
        Value to prepend.
    to_end_scalar : float or None
        Value to append.

    Returns: out: vector, dtype of input1
    """


def _npi_eig(A: TensorT, *, out: Any = None, name: str | None = None) -> Any:
    """Eigenvalues and eigenvectors of matrices whose eigenvalues are real; raises ValueError for others.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., n, n)

    Returns: w: (..., n): eigenvalues; v: (..., n, n): eigenvectors of length 1 as columns
    """


def _npi_eigh(A: TensorT, UPLO: Literal['L', 'U'] = 'L', *, out: Any = None, name: str | None = None) -> Any:
    """Eigenvalues, in ascending order, and eigenvectors of symmetric matrices. Gradients need eigenvalues that differ.

    Parameters
    ----------
    A : tensor
        stack of symmetric matrices (..., n, n)
    UPLO : {'L', 'U'}
        Whether the lower or the upper triangle is read.

    Returns: w: (..., n): eigenvalues; v: (..., n, n): eigenvectors as columns
    """


def _npi_eigvals(A: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Eigenvalues of matrices whose eigenvalues are real; raises ValueError for others.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., n, n)

    Returns: w: (..., n)
    """


def _npi_eigvalsh(A: TensorT, UPLO: Literal['L', 'U'] = 'L', *, out: Any = None, name: str | None = None) -> TensorT:
    """Eigenvalues of symmetric matrices, in ascending order.

    Parameters
    ----------
    A : tensor
        stack of symmetric matrices (..., n, n)
    UPLO : {'L', 'U'}
        Whether the lower or the upper triangle is read.

    Returns: w: (..., n)
    """


def _npi_einsum(
    *data: TensorT, num_args: int = ..., subscripts: str = '', optimize: int = 0, out: Any = None, name: str | None =
    None
) -> TensorT:
    """Sums of products by Einstein's convention: letters that are absent from the result are summed over.

    Parameters
    ----------
    data : tensor
        arrays of any shape; axes of size 1 broadcast
    num_args : int, at least 1
        Number of arrays.
    subscripts : str
        One letter per axis, the arrays separated by commas, '...' for further axes; then '->' and the axes of
        the result.
    optimize : int
        Order of the products. 0: from left to right; else the pair with the smallest product first.

    Returns: out: the axes of the letters after '->', in the common dtype
    """


def _npi_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether lhs == rhs, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: bool
    """


def _npi_equal_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Whether data == scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: bool, shape of data
    """


def _npi_exp(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """e to the power x.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_expm1(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """e to the power x, minus 1.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_exponential(
    input1: TensorT | None = None, scale: float | None = 1.0, size: int | Sequence[int] | None = None, ctx: str = '',
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """Exponentially distributed numbers.

    Parameters
    ----------
    input1 : tensor, optional
        scale as an array
    scale : float or None
        Mean, not negative.
    size : tuple of int or None
        Shape of the result; None: the shape of the array.

    Returns: out: float32; the parameter's shape, or size
    """


def _npi_eye(
    N: int, M: int | None = None, k: int = 0, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str |
    None = None
) -> Any:
    """A matrix of zeros with ones on a diagonal.

    Parameters
    ----------
    N : int, at least 0
        Number of rows.
    M : int or None, at least 0
        Number of columns; None: N.
    k : int
        Index of the diagonal.
    dtype : dtype
        Dtype of the output.

    Returns: out: shape (N, M)
    """


def _npi_flip(
    data: TensorT, axis: int | Sequence[int] | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Reverses the order of elements along axes.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    axis : tuple of int or None
        Axes to reverse; None: all.

    Returns: out: shape and dtype of data
    """


def _npi_floor_divide(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The largest integer that is not above lhs / rhs; 0 for an integer rhs of 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    """


def _npi_floor_divide_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The largest integer not above data / scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data - scalar
    """


def _npi_full_like(
    a: TensorT, fill_value: float, ctx: str = '', dtype: DType | None = None, *, out: Any = None, name: str | None =
    None
) -> TensorT:
    """An array of one value with the shape of another array.

    Parameters
    ----------
    a : tensor
        array of any shape
    fill_value : float
        Value of every element.
    dtype : dtype or None
        Dtype of the output; None: dtype of a.

    Returns: out: shape of a
    """


def _npi_gamma(
    input1: TensorT | None = None, input2: TensorT | None = None, shape: float | None = ..., scale: float | None = ...,
    size: int | Sequence[int] | None = None, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Gamma distributed numbers.

    Parameters
    ----------
    input1 : tensor, optional
        shape, or else scale, as an array
    input2 : tensor, optional
        scale as an array if both are arrays
    shape : float or None
        Shape, positive. It has no gradient.
    scale : float or None
        Scale, not negative.
    size : tuple of int or None
        Shape of the result; None: the common shape of the arrays.
    dtype : dtype
        float16, float32 or float64.

    Returns: out: the parameters' common shape, or size
    """


def _npi_gcd(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Greatest common divisor with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    Not differentiable.
    """


def _npi_gcd_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Greatest common divisor with scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape and dtype of data
    Not differentiable.
    """


def _npi_greater(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether lhs > rhs, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: bool
    """


def _npi_greater_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether lhs >= rhs, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: bool
    """


def _npi_greater_equal_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Whether data >= scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: bool, shape of data
    """


def _npi_greater_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Whether data > scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: bool, shape of data
    """


def _npi_gumbel(
    input1: TensorT | None = None, input2: TensorT | None = None, loc: float | None = ..., scale: float | None = ...,
    size: int | Sequence[int] | None = None, ctx: str = '', *, out: Any = None, name: str | None = None
) -> TensorT:
    """Numbers of the Gumbel distribution, that of largest values.

    Parameters
    ----------
    input1 : tensor, optional
        loc, or else scale, as an array
    input2 : tensor, optional
        scale as an array if both are arrays
    loc : float or None
        Mode.
    scale : float or None
        Spread, not negative.
    size : tuple of int or None
        Shape of the result; None: the common shape of the arrays.

    Returns: out: the parameters' common shape, or size
    """


def _npi_hamming(
    M: int | None = None, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str | None = None
) -> Any:
    """The Hamming window, 0.54 - 0.46 cos(2 pi i / (M - 1)).

    Parameters
    ----------
    M : int or None
        Number of values; below 1: no values.
    dtype : dtype
        Dtype of the output.

    Returns: out: shape (M,)
    Not differentiable.
    """


def _npi_hanning(
    M: int | None = None, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str | None = None
) -> Any:
    """The Hann window, 0.5 - 0.5 cos(2 pi i / (M - 1)).

    Parameters
    ----------
    M : int or None
        Number of values; below 1: no values.
    dtype : dtype
        Dtype of the output.

    Returns: out: shape (M,)
    Not differentiable.
    """


def _npi_hsplit(
    data: TensorT, indices: int | Sequence[int], axis: int = 1, squeeze_axis: bool = False, sections: int = 0, *, out:
    Any = None, name: str | None = None
) -> Any:
    """Splits along the second axis, vectors along the first.

    Parameters
    ----------
    data : tensor
        at least 1 dimensions, any dtype
    indices : tuple of int
        First index of each part, the first is 0. Ignored with sections.
    sections : int, range [0, 1.04858e+06]
        Number of equal parts.

    Returns: out: one array per part
    """


def _npi_hstack(*data: TensorT, num_args: int = ..., dim: int = 1, out: Any = None, name: str | None = None) -> TensorT:
    """Joins arrays along the second axis, vectors along the first.

    Parameters
    ----------
    data : tensor
        arrays whose sizes are equal except along the joined axis
    num_args : int, at least 1
        Number of arrays.

    Returns: out: the common dtype of the arrays
    """


def _npi_hypot(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """sqrt(lhs^2 + rhs^2) with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs, float32 for integers
    """


def _npi_hypot_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """sqrt(data^2 + scalar^2).

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_identity(
    shape: int | Sequence[int] = (), ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str | None =
    None
) -> Any:
    """The identity matrix.

    Parameters
    ----------
    shape : tuple of int
        (n, n).
    dtype : dtype
        Dtype of the output.

    Returns: out: shape (n, n)
    """


def _npi_indices(
    dimensions: int | Sequence[int], ctx: str = '', dtype: DType = 'int32', *, out: Any = None, name: str | None = None
) -> Any:
    """The indices of every position of a grid, axis by axis.

    Parameters
    ----------
    dimensions : tuple of int
        Sizes of the grid.
    dtype : dtype
        Dtype of the output.

    Returns: out: (number of axes, *dimensions)
    """


def _npi_insert_scalar(
    arr: TensorT, values: TensorT | None = None, val: float | None = None, start: int | None = None, stop: int | None =
    None, step: int | None = None, int_ind: int | None = None, axis: int | None = None, *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Inserts values before one slice of an axis.

    Parameters
    ----------
    arr : tensor
        array of any shape
    values : tensor, optional
        the values to insert; broadcast to slices of arr
    val : float or None
        The value to insert, instead of the input values.
    start : int or None
        Start of a slice; None: the first.
    stop : int or None
        End of a slice, exclusive; None: after the last.
    step : int or None
        Step of a slice; None: 1.
    int_ind : int or None
        A single index instead of a slice.
    axis : int or None
        The axis; None: arr is flattened.

    Returns: out: arr with the values, dtype of arr
    """


def _npi_insert_slice(
    arr: TensorT, values: TensorT | None = None, val: float | None = None, start: int | None = None, stop: int | None =
    None, step: int | None = None, int_ind: int | None = None, axis: int | None = None, *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Inserts values before the slices of an axis that a slice selects.

    Parameters
    ----------
    arr : tensor
        array of any shape
    values : tensor, optional
        the values to insert; broadcast to slices of arr
    val : float or None
        The value to insert, instead of the input values.
    start : int or None
        Start of a slice; None: the first.
    stop : int or None
        End of a slice, exclusive; None: after the last.
    step : int or None
        Step of a slice; None: 1.
    int_ind : int or None
        A single index instead of a slice.
    axis : int or None
        The axis; None: arr is flattened.

    Returns: out: arr with the values, dtype of arr
    """


def _npi_insert_tensor(
    arr: TensorT, values: TensorT | None = None, obj: TensorT | None = None, val: float | None = None, start: int |
    None = None, stop: int | None = None, step: int | None = None, int_ind: int | None = None, axis: int | None = None,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """Inserts values before the slices of an axis whose indices are in a vector.

    Parameters
    ----------
    arr : tensor
        array of any shape
    values : tensor, optional
        the values to insert; broadcast to slices of arr
    obj : tensor, optional
        vector of the indices before which values are inserted
    val : float or None
        The value to insert, instead of the input values.
    start : int or None
        Start of a slice; None: the first.
    stop : int or None
        End of a slice, exclusive; None: after the last.
    step : int or None
        Step of a slice; None: 1.
    int_ind : int or None
        A single index instead of a slice.
    axis : int or None
        The axis; None: arr is flattened.

    Returns: out: arr with the values, dtype of arr
    """


def _npi_inv(A: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The inverse of every matrix; raises ValueError for a singular matrix.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., n, n)

    Returns: out: shape of A
    """


def _npi_isfinite(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether x is neither infinite nor NaN.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: bool, shape of x
    """


def _npi_isinf(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether x is infinite.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: bool, shape of x
    """


def _npi_isnan(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether x is not a number.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: bool, shape of x
    """


def _npi_isneginf(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether x is minus infinity.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: bool, shape of x
    """


def _npi_isposinf(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether x is infinity.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: bool, shape of x
    """


def _npi_kron(a: TensorT, b: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Kronecker product: every element of a times b.

    Parameters
    ----------
    a : tensor
        array of any shape
    b : tensor
        array of any shape

    Returns: out: the products of the sizes, aligned at the last axis, in the common dtype
    """


def _npi_lcm(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Least common multiple with broadcasting; 0 if either is 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    Not differentiable.
    """


def _npi_lcm_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Least common multiple with scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape and dtype of data
    Not differentiable.
    """


def _npi_ldexp(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs * 2^rhs with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs, float32 for integers
    """


def _npi_ldexp_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data * 2^scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integers
    """


def _npi_less(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether lhs < rhs, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: bool
    """


def _npi_less_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether lhs <= rhs, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: bool
    """


def _npi_less_equal_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Whether data <= scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: bool, shape of data
    """


def _npi_less_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Whether data < scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: bool, shape of data
    """


def _npi_log(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Natural logarithm.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_log10(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Logarithm to base 10.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_log1p(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Natural logarithm of 1 + x.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_log2(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Logarithm to base 2.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_logical_not(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether x is 0.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: bool, shape of x
    """


def _npi_logistic(
    input1: TensorT | None = None, input2: TensorT | None = None, loc: float | None = ..., scale: float | None = ...,
    size: int | Sequence[int] | None = None, ctx: str = '', *, out: Any = None, name: str | None = None
) -> TensorT:
    """Numbers of the logistic distribution.

    Parameters
    ----------
    input1 : tensor, optional
        loc, or else scale, as an array
    input2 : tensor, optional
        scale as an array if both are arrays
    loc : float or None
        Mean.
    scale : float or None
        Spread, not negative.
    size : tuple of int or None
        Shape of the result; None: the common shape of the arrays.

    Returns: out: the parameters' common shape, or size
    """


def _npi_logspace(
    start: float, stop: float, num: int, endpoint: bool = True, base: float = 10.0, ctx: str = '', dtype: DType =
    'float32', *, out: Any = None, name: str | None = None
) -> Any:
    """num powers of base with evenly spaced exponents.

    Parameters
    ----------
    start : float
        Exponent of the first value.
    stop : float
        Exponent of the last value; without endpoint, of the value after the last.
    num : int, at least 0
        Number of values.
    endpoint : bool
        Whether stop is the last exponent.
    base : float
        Base of the exponents.
    dtype : dtype
        Dtype of the output.

    Returns: out: shape (num,)
    Not differentiable.
    """


def _npi_matmul(a: TensorT, b: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Matrix products of two arrays; axes before the matrices broadcast, a vector is a row or a column.

    Parameters
    ----------
    a : tensor
        vector, matrix or stack of matrices
    b : tensor
        vector, matrix or stack of matrices

    Returns: out: stack of products, in the common dtype
    """


def _npi_maximum(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The larger of two, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    """


def _npi_maximum_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The larger of data and scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_mean(
    a: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, dtype: DType | None = None, initial:
    float | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Mean over axes; float32 for integers.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    dtype : dtype or None
        Dtype of the sum and of the result.
    initial : float or None
        Value that the reduction starts with.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _npi_minimum(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The smaller of two, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    """


def _npi_minimum_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The smaller of data and scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_mod(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Remainder of lhs / rhs with the sign of rhs, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    """


def _npi_mod_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Remainder of data / scalar, with the sign of scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_multinomial(
    a: TensorT | None = None, n: int = ..., pvals: Sequence[float] = (), size: int | Sequence[int] | None = None, *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """Number of times that every outcome occurs in n independent experiments.

    Parameters
    ----------
    a : tensor, optional
        probabilities of the outcomes, one axis
    n : int, at least 0
        Number of experiments.
    pvals : tuple of float
        Probabilities of the outcomes; the last outcome gets the remainder to 1. Empty: the probabilities are an
        input array.
    size : tuple of int or None
        Shape of independent repetitions.

    Returns: out: int64: size, then one number per outcome; these sum to n
    Not differentiable.
    """


def _npi_multiply(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs * rhs with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    """


def _npi_multiply_scalar(
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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_nan_to_num(
    data: TensorT, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """The finite elements unchanged; NaN and infinities replaced by numbers.

    Parameters
    ----------
    data : tensor
        array of any shape
    copy : bool
        Ignored: the result is a new array.
    nan : float
        Replaces NaN.
    posinf : float or None
        Replaces infinity; None: the largest number.
    neginf : float or None
        Replaces minus infinity; None: the smallest number.

    Returns: out: shape and dtype of data
    """


def _npi_nanprod(
    a: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, dtype: DType | None = None, initial:
    float | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Product over axes; NaN counts as 1. int64 for integers.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    dtype : dtype or None
        Dtype of the sum and of the result.
    initial : float or None
        Value that the reduction starts with.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _npi_nansum(
    a: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, dtype: DType | None = None, initial:
    float | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Sum over axes; NaN counts as 0. int64 for integers.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    dtype : dtype or None
        Dtype of the sum and of the result.
    initial : float or None
        Value that the reduction starts with.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _npi_norm(
    data: TensorT, ord: float = 2.0, axis: int | Sequence[int] | None = None, keepdims: bool = False, flag: int = -2,
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """Norms of vectors or matrices.

    Parameters
    ----------
    data : tensor
        array of any shape
    ord : float
        Order: a number, inf or -inf.
    axis : tuple of int or None
        One axis: norms of vectors; two: norms of matrices, rows and columns; None: the axes of an array of one
        or two axes.
    keepdims : bool
        Keep reduced axes with size 1.
    flag : int, range [-2, 2]
        -2: root of the sum of all squares; -1: ord decides; 0: matrix norm; 1: Frobenius; 2: nuclear.

    Returns: out: the shape without the axes of the vectors or matrices, or with sizes 1 there (keepdims)
    """


def _npi_normal(
    input1: TensorT | None = None, input2: TensorT | None = None, loc: float | None = ..., scale: float | None = ...,
    size: int | Sequence[int] | None = None, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Normally distributed numbers.

    Parameters
    ----------
    input1 : tensor, optional
        loc, or else scale, as an array
    input2 : tensor, optional
        scale as an array if both are arrays
    loc : float or None
        Mean.
    scale : float or None
        Standard deviation, not negative.
    size : tuple of int or None
        Shape of the result; None: the common shape of the arrays.
    dtype : dtype
        float16, float32 or float64.

    Returns: out: the parameters' common shape, or size
    """


def _npi_normal_n(
    input1: TensorT | None = None, input2: TensorT | None = None, loc: float | None = ..., scale: float | None = ...,
    size: int | Sequence[int] | None = None, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Normally distributed numbers.

    Parameters
    ----------
    input1 : tensor, optional
        loc, or else scale, as an array
    input2 : tensor, optional
        scale as an array if both are arrays
    loc : float or None
        Mean.
    scale : float or None
        Standard deviation, not negative.
    size : tuple of int or None
        Shape of the result; None: the common shape of the arrays.
    dtype : dtype
        float16, float32 or float64.

    Returns: out: the parameters' common shape, or size
    """


def _npi_not_equal(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Whether lhs != rhs, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: bool
    """


def _npi_not_equal_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Whether data != scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: bool, shape of data
    """


def _npi_ones(
    shape: int | Sequence[int] = (), ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str | None =
    None
) -> Any:
    """An array of ones.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape and dtype given by the parameters; () is a scalar, a size of 0 an axis without elements
    Not differentiable.
    """


def _npi_pad(
    data: TensorT, pad_width: str, mode: Literal['constant', 'edge', 'reflect', 'symmetric', 'wrap', 'maximum',
    'minimum'] = 'constant', constant_value: float = 0.0, reflect_type: Literal['even'] = 'even', *, out: Any = None,
    name: str | None = None
) -> TensorT:
    """Pads data with values around its edges.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    pad_width : str
        ((before, after), ...), a pair per axis; one pair, or one number, serves all axes.
    mode : {'constant', 'edge', 'reflect', 'symmetric', 'wrap', 'maximum', 'minimum'}
        The padding values: constant_value; the nearest element; the array mirrored at its last elements
        (reflect) or after them (symmetric), or repeated (wrap); an extreme along the axis.
    constant_value : float
        Value in mode constant.
    reflect_type : {'even'}
        Kind of mirroring; only the plain kind is supported.

    Returns: out: sizes of data plus the widths of the padding
    """


def _npi_pareto(
    input1: TensorT | None = None, a: float | None = None, size: int | Sequence[int] | None = None, ctx: str = '', *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """Numbers of the Pareto II (Lomax) distribution of scale 1.

    Parameters
    ----------
    input1 : tensor, optional
        a as an array
    a : float or None
        Shape, positive.
    size : tuple of int or None
        Shape of the result; None: the shape of the array.

    Returns: out: float32; the parameter's shape, or size
    """


def _npi_percentile(
    a: TensorT, q: TensorT | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False,
    interpolation: Literal['linear', 'lower', 'higher', 'nearest', 'midpoint'] = 'linear', q_scalar: float | None =
    None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Percentiles over axes: q percent of the elements are not above the result.

    Parameters
    ----------
    a : tensor
        array of any shape with elements
    q : tensor, optional
        percentages in [0, 100], any shape; not with q_scalar
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    interpolation : {'linear', 'lower', 'higher', 'nearest', 'midpoint'}
        The value between two elements.
    q_scalar : float or None, range [0, 100]
        The percentage, instead of the input q.

    Returns: out: the axes of q, then the axes that are not reduced; float32 for integers
    """


def _npi_pinv(
    A: TensorT, rcond: TensorT, hermitian: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Moore-Penrose pseudo-inverses. Gradients are valid where the rank is constant.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., m, n)
    rcond : tensor
        broadcasts to the stack; singular values up to this fraction of the largest one are treated as 0
    hermitian : bool
        Whether the matrices are symmetric; without effect.

    Returns: out: (..., n, m)
    """


def _npi_pinv_scalar_rcond(
    A: TensorT, rcond: float = 1e-15, hermitian: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Moore-Penrose pseudo-inverses. Gradients are valid where the rank is constant.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., m, n)
    rcond : float
        Singular values up to this fraction of the largest one are treated as 0.
    hermitian : bool
        Whether the matrices are symmetric; without effect.

    Returns: out: (..., n, m)
    """


def _npi_polyval(p: TensorT, x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The value at x of the polynomial with coefficients p, highest power first.

    Parameters
    ----------
    p : tensor
        vector of coefficients
    x : tensor
        array of any shape

    Returns: out: shape of x, the common dtype of the inputs
    """


def _npi_power(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs to the power rhs, with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    """


def _npi_power_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data to the power scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_powerd(
    input1: TensorT | None = None, a: float | None = None, size: int | Sequence[int] | None = None, ctx: str = '', *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """Numbers in [0, 1] whose density is a x^(a - 1).

    Parameters
    ----------
    input1 : tensor, optional
        a as an array
    a : float or None
        Exponent, positive.
    size : tuple of int or None
        Shape of the result; None: the shape of the array.

    Returns: out: float32; the parameter's shape, or size
    """


def _npi_radians(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Converts degrees to radians.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_random_randint(
    low: int, high: int, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: DType = 'int32', *, out: Any =
    None, name: str | None = None
) -> Any:
    """Uniformly distributed integers in [low, high).

    Parameters
    ----------
    low : int
        Smallest number.
    high : int
        One above the largest number.
    shape : tuple of int or None
        Shape of the result; None: one number, ().
    dtype : dtype
        A whole dtype.

    Returns: out: shape given by the parameter
    """


def _npi_rarctan2_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Angle of the point (data, scalar).

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integers
    """


def _npi_rayleigh(
    input1: TensorT | None = None, scale: float | None = 1.0, size: int | Sequence[int] | None = None, ctx: str = '',
    *, out: Any = None, name: str | None = None
) -> TensorT:
    """Numbers of the Rayleigh distribution.

    Parameters
    ----------
    input1 : tensor, optional
        scale as an array
    scale : float or None
        Mode, not negative.
    size : tuple of int or None
        Shape of the result; None: the shape of the array.

    Returns: out: float32; the parameter's shape, or size
    """


def _npi_rcopysign_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The absolute value of scalar with the sign of data.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integers
    """


def _npi_rfloor_divide_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The largest integer not above scalar / data.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data - scalar
    """


def _npi_rldexp_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """scalar * 2^data.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integers
    """


def _npi_rmod_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Remainder of scalar / data, with the sign of data.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_rot90(
    data: TensorT, k: int = 1, axes: int | Sequence[int] | None = None, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Rotates planes by multiples of 90 degrees.

    Parameters
    ----------
    data : tensor
        at least 2 dimensions, any dtype
    k : int
        Number of rotations by 90 degrees.
    axes : tuple of int or None
        The plane of the rotation, from the first axis toward the second; None: (0, 1).

    Returns: out: dtype of data
    """


def _npi_rpower_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """scalar to the power data.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_rsubtract_scalar(
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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_rtrue_divide_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """scalar / data.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_searchsorted(
    a: TensorT, v: TensorT, right: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The indices at which values would be inserted into a sorted vector.

    Parameters
    ----------
    a : tensor
        vector in ascending order
    v : tensor
        array of any shape, dtype of a
    right : bool
        Whether to return the index after equal elements instead of before them.

    Returns: out: shape of v, int64
    Not differentiable.
    """


def _npi_sin(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Sine of x in radians.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_sinh(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Hyperbolic sine.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_slogdet(A: TensorT, *, out: Any = None, name: str | None = None) -> Any:
    """The sign and the logarithm of the absolute value of every determinant: 0 and -inf for a singular matrix.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., n, n)

    Returns: sign: -1, 0 or 1; the axes of A before the last two; logabsdet: shape of sign
    """


def _npi_solve(A: TensorT, B: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Solves A X = B for X; raises ValueError for a singular A. Axes before the matrices broadcast.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., n, n)
    B : tensor
        stack of matrices (..., n, k); or vectors (n,) or (..., n), one for each matrix of A

    Returns: X: shape of B, in the common dtype
    """


def _npi_sqrt(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Square root.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_stack(*data: TensorT, num_args: int = ..., axis: int = 0, out: Any = None, name: str | None = None) -> TensorT:
    """Joins arrays of one shape along a new axis.

    Parameters
    ----------
    data : tensor
        arrays of one shape
    num_args : int, at least 1
        Number of arrays.
    axis : int
        Position of the new axis.

    Returns: out: the common dtype of the arrays; one axis more
    """


def _npi_std(
    a: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, dtype: DType | None = None, ddof: int
    = 0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Standard deviation over axes; float32 for integers.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    dtype : dtype or None
        Dtype of the computation and of the result.
    ddof : int
        The divisor is the number of elements minus ddof.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _npi_subtract(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs - rhs with broadcasting.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs
    """


def _npi_subtract_scalar(
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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_svd(A: TensorT, *, out: Any = None, name: str | None = None) -> Any:
    """Singular value decomposition A = UT diag(L) V. Gradients through UT and V require distinct nonzero singular
    values.

    Parameters
    ----------
    A : tensor
        stack of matrices (..., m, n)

    Returns: UT: (..., m, k), orthonormal columns; k = min(m, n); L: (..., k), in descending order; V: (..., k, n),
    orthonormal rows
    """


def _npi_tan(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Tangent of x in radians.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_tanh(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Hyperbolic tangent.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: shape and dtype of x; float32 for integers
    """


def _npi_tensordot(
    a: TensorT, b: TensorT, a_axes_summed: int | Sequence[int], b_axes_summed: int | Sequence[int], *, out: Any = None,
    name: str | None = None
) -> TensorT:
    """Sums of products over pairs of axes.

    Parameters
    ----------
    a : tensor
        array of any shape
    b : tensor
        array whose summed axes have the sizes of the summed axes of a
    a_axes_summed : tuple of int
        Axes of a that are summed over.
    b_axes_summed : tuple of int
        Axes of b that are contracted with them, in the same order.

    Returns: out: the remaining axes of a, then those of b, in the common dtype
    """


def _npi_tensordot_int_axes(a: TensorT, b: TensorT, axes: int, *, out: Any = None, name: str | None = None) -> TensorT:
    """Sums of products over the last axes of a and the first axes of b.

    Parameters
    ----------
    a : tensor
        array of any shape
    b : tensor
        array whose first axes have the sizes of the last axes of a
    axes : int, at least 0
        Number of last axes of a and first axes of b that are summed over.

    Returns: out: the remaining axes of a, then those of b, in the common dtype
    """


def _npi_tensorinv(a: TensorT, ind: int = 2, *, out: Any = None, name: str | None = None) -> TensorT:
    """The tensor whose tensordot with a, over ind axes, is the identity.

    Parameters
    ----------
    a : tensor
        as many elements in the first ind axes as in the others
    ind : int, at least 1
        Number of axes of the rows.

    Returns: out: the remaining axes, then the first ind axes
    """


def _npi_tensorsolve(
    a: TensorT, b: TensorT, a_axes: int | Sequence[int] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """Solves tensordot(a, x, x.ndim) = b for x.

    Parameters
    ----------
    a : tensor
        the axes of b, then those of x; both have the same number of elements
    b : tensor
        array of any shape
    a_axes : tuple of int
        Axes of a that are first moved to its end.

    Returns: x: the axes of a after those of b
    """


def _npi_tril(data: TensorT, k: int = 0, *, out: Any = None, name: str | None = None) -> TensorT:
    """Elements on and below a diagonal of the last two axes, others 0.

    Parameters
    ----------
    data : tensor
        at least one axis; a vector is used as every row
    k : int
        Index of the diagonal: 0 the main one, positive above, negative below.

    Returns: out: shape of data, (n, n) for a vector
    """


def _npi_triu(data: TensorT, k: int = 0, *, out: Any = None, name: str | None = None) -> TensorT:
    """Elements on and above a diagonal of the last two axes, others 0.

    Parameters
    ----------
    data : tensor
        at least one axis; a vector is used as every row
    k : int
        Index of the diagonal: 0 the main one, positive above, negative below.

    Returns: out: shape of data, (n, n) for a vector
    """


def _npi_true_divide(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs / rhs with broadcasting; integers too.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array; shapes broadcast

    Returns: out: the common dtype of the inputs, float32 for integers
    """


def _npi_true_divide_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data / scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; float32 for integer data and a fractional scalar
    """


def _npi_uniform(
    input1: TensorT | None = None, input2: TensorT | None = None, low: float | None = ..., high: float | None = ...,
    size: int | Sequence[int] | None = None, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Uniformly distributed numbers.

    Parameters
    ----------
    input1 : tensor, optional
        low, or else high, as an array
    input2 : tensor, optional
        high as an array if both are arrays
    low : float or None
        Lower bound, inclusive.
    high : float or None
        Upper bound, exclusive.
    size : tuple of int or None
        Shape of the result; None: the common shape of the arrays.
    dtype : dtype
        float16, float32 or float64.

    Returns: out: the parameters' common shape, or size
    """


def _npi_uniform_n(
    input1: TensorT | None = None, input2: TensorT | None = None, low: float | None = ..., high: float | None = ...,
    size: int | Sequence[int] | None = None, ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str |
    None = None
) -> TensorT:
    """Uniformly distributed numbers.

    Parameters
    ----------
    input1 : tensor, optional
        low, or else high, as an array
    input2 : tensor, optional
        high as an array if both are arrays
    low : float or None
        Lower bound, inclusive.
    high : float or None
        Upper bound, exclusive.
    size : tuple of int or None
        Shape of the result; None: the common shape of the arrays.
    dtype : dtype
        float16, float32 or float64.

    Returns: out: the parameters' common shape, or size
    """


def _npi_unique(
    data: TensorT, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: int |
    None = None, *, out: Any = None, name: str | None = None
) -> Any:
    """The unique elements, or slices of an axis, in ascending order.

    Parameters
    ----------
    data : tensor
        array of any shape
    return_index : bool
        Whether to return the first index of each value.
    return_inverse : bool
        Whether to return, for each element, the index of its value among the unique ones.
    return_counts : bool
        Whether to return the number of occurrences of each value.
    axis : int or None
        Axis of the slices; None: single elements.

    Returns: out: vector, or data with fewer slices along axis; index: with return_index: index of the first
    occurrence of each, int64; inverse: with return_inverse: index of each element's value, int64; counts: with
    return_counts: number of occurrences of each, int64
    Not differentiable.
    """


def _npi_unravel_index(
    indices: TensorT, shape: int | Sequence[int], *, out: Any = None, name: str | None = None
) -> Any:
    """Flat indices into a tensor of the given shape as indices, one array for each axis.

    Parameters
    ----------
    indices : tensor
        any shape
    shape : tuple of int
        Shape of the tensor that the indices belong to; its first size may be -1.

    Returns: output: shape and dtype of indices
    Not differentiable.
    """


def _npi_var(
    a: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, dtype: DType | None = None, ddof: int
    = 0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Variance over axes; float32 for integers.

    Parameters
    ----------
    a : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None reduces all, () none.
    keepdims : bool
        Keep reduced axes with size 1.
    dtype : dtype or None
        Dtype of the computation and of the result.
    ddof : int
        The divisor is the number of elements minus ddof.

    Returns: out: the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _npi_vstack(*data: TensorT, num_args: int = ..., out: Any = None, name: str | None = None) -> TensorT:
    """Stacks arrays as rows.

    Parameters
    ----------
    data : tensor
        arrays whose sizes are equal except along the joined axis
    num_args : int, at least 1
        Number of arrays.

    Returns: out: the common dtype of the arrays
    """


def _npi_weibull(
    input1: TensorT | None = None, a: float | None = None, size: int | Sequence[int] | None = None, ctx: str = '', *,
    out: Any = None, name: str | None = None
) -> TensorT:
    """Numbers of the Weibull distribution of scale 1.

    Parameters
    ----------
    input1 : tensor, optional
        a as an array
    a : float or None
        Shape, positive.
    size : tuple of int or None
        Shape of the result; None: the shape of the array.

    Returns: out: float32; the parameter's shape, or size
    """


def _npi_where(condition: TensorT, x: TensorT, y: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """Elements of x where the condition is not 0, otherwise of y, with broadcasting.

    Parameters
    ----------
    condition : tensor
        any dtype
    x : tensor
        array
    y : tensor
        array; the three shapes broadcast

    Returns: out: the common dtype of x and y
    """


def _npi_where_lscalar(
    condition: TensorT, x: TensorT, scalar: float = 0.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """The number where the condition is not 0, otherwise elements of x.

    Parameters
    ----------
    condition : tensor
        any dtype
    x : tensor
        array; shapes broadcast
    scalar : float
        The number used in place of the other array.

    Returns: out: dtype of x; float32 for integers and a fractional number
    """


def _npi_where_rscalar(
    condition: TensorT, y: TensorT, scalar: float = 0.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Elements of y where the condition is not 0, otherwise the number.

    Parameters
    ----------
    condition : tensor
        any dtype
    y : tensor
        array; shapes broadcast
    scalar : float
        The number used in place of the other array.

    Returns: out: dtype of y; float32 for integers and a fractional number
    """


def _npi_where_scalar2(
    condition: TensorT, x: float = 0.0, y: float = 0.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """One number where the condition is not 0, another elsewhere.

    Parameters
    ----------
    condition : tensor
        any dtype
    x : float
        The number where the condition holds.
    y : float
        The number elsewhere.

    Returns: out: float32, shape of the condition
    """


def _npi_zeros(
    shape: int | Sequence[int] = (), ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str | None =
    None
) -> Any:
    """An array of zeros.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape and dtype given by the parameters; () is a scalar, a size of 0 an axis without elements
    Not differentiable.
    """


def _npx_constraint_check(
    input: TensorT, msg: str = 'Constraint violated.', *, out: Any = None, name: str | None = None
) -> TensorT:
    """True if all elements are true. Otherwise raises ValueError with the given message, when the result is waited
    for.

    Parameters
    ----------
    input : tensor
        bool, any shape
    msg : str
        Message of the error if an element is false.

    Returns: out: bool, ()
    Not differentiable.
    """


def _npx_nonzero(x: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The indices of the elements that are not 0, one row per element.

    Parameters
    ----------
    x : tensor
        array of any shape

    Returns: out: (number of nonzero elements, number of axes), int64
    Not differentiable.
    """


def _npx_reshape(
    a: TensorT, newshape: int | Sequence[int], order: Literal['C'] = 'C', reverse: bool = False, *, out: Any = None,
    name: str | None = None
) -> TensorT:
    """The same elements, in the same order, with a shape given by sizes and codes.

    Parameters
    ----------
    a : tensor
        any shape, any dtype
    newshape : tuple of int
        Target shape; -1 is inferred, -2 copies a size, -3 drops a size of 1, -4 copies all the rest, -5 merges
        two sizes, -6 splits one into the two that follow.
    order : {'C'}
        Row-major, the only supported order.
    reverse : bool
        Whether newshape and the array's shape are read from the right.

    Returns: out: dtype of a, the elements in the same order
    """


def _ones(
    shape: int | Sequence[int] = (), ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str | None =
    None
) -> Any:
    """A tensor of ones.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape and dtype given by the parameters
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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_PlusScalar = _plus_scalar
_scatter_plus_scalar = _plus_scalar


def _power(lhs: TensorT, rhs: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """lhs to the power of rhs. Integers wrap around; 1 / lhs^-rhs below 0.

    Parameters
    ----------
    lhs : tensor
        first array
    rhs : tensor
        second array, shape and dtype of lhs

    Returns: out: shape and dtype of the inputs
    """

_Power = _power


def _power_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """data to the power of scalar.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_PowerScalar = _power_scalar


def _random_exponential(
    lam: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: DType | None = None, *, out: Any
    = None, name: str | None = None
) -> Any:
    """Exponentially distributed numbers.

    Parameters
    ----------
    lam : float
        Rate, positive: one over the mean.
    shape : tuple of int or None
        Shape of the output; None: the shape of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape given by the parameter; floating
    Not differentiable.
    """

random_exponential = _random_exponential


def _random_exponential_like(data: TensorT, lam: float = 1.0, *, out: Any = None, name: str | None = None) -> TensorT:
    """Exponentially distributed numbers. One per element of data.

    Parameters
    ----------
    data : tensor
        defines shape and dtype only; floating
    lam : float
        Rate, positive: one over the mean.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _random_gamma(
    alpha: float = 1.0, beta: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: DType | None
    = None, *, out: Any = None, name: str | None = None
) -> Any:
    """Gamma distributed numbers.

    Parameters
    ----------
    alpha : float
        Shape, positive.
    beta : float
        Scale, positive.
    shape : tuple of int or None
        Shape of the output; None: the shape of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape given by the parameter; floating
    Not differentiable.
    """

random_gamma = _random_gamma


def _random_gamma_like(
    data: TensorT, alpha: float = 1.0, beta: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Gamma distributed numbers. One per element of data.

    Parameters
    ----------
    data : tensor
        defines shape and dtype only; floating
    alpha : float
        Shape, positive.
    beta : float
        Scale, positive.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _random_generalized_negative_binomial(
    mu: float = 1.0, alpha: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: DType | None =
    None, *, out: Any = None, name: str | None = None
) -> Any:
    """Negative binomial integers by mean and dispersion, as floating values.

    Parameters
    ----------
    mu : float
        Mean, not negative.
    alpha : float
        Dispersion, not negative; 0 gives Poisson.
    shape : tuple of int or None
        Shape of the output; None: the shape of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape given by the parameter; floating
    Not differentiable.
    """

random_generalized_negative_binomial = _random_generalized_negative_binomial


def _random_generalized_negative_binomial_like(
    data: TensorT, mu: float = 1.0, alpha: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Negative binomial integers by mean and dispersion, as floating values. One per element of data.

    Parameters
    ----------
    data : tensor
        defines shape and dtype only; floating
    mu : float
        Mean, not negative.
    alpha : float
        Dispersion, not negative; 0 gives Poisson.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _random_negative_binomial(
    k: float = 1.0, p: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: DType | None =
    None, *, out: Any = None, name: str | None = None
) -> Any:
    """Number of failures before k successes of probability p, as floating values.

    Parameters
    ----------
    k : float
        Number of successes, not negative.
    p : float
        Probability of a success, in (0, 1].
    shape : tuple of int or None
        Shape of the output; None: the shape of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape given by the parameter; floating
    Not differentiable.
    """

random_negative_binomial = _random_negative_binomial


def _random_negative_binomial_like(
    data: TensorT, k: float = 1.0, p: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Number of failures before k successes of probability p, as floating values. One per element of data.

    Parameters
    ----------
    data : tensor
        defines shape and dtype only; floating
    k : float
        Number of successes, not negative.
    p : float
        Probability of a success, in (0, 1].

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _random_normal(
    loc: float = 0.0, scale: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: DType | None
    = None, *, out: Any = None, name: str | None = None
) -> Any:
    """Normally distributed numbers.

    Parameters
    ----------
    loc : float
        Mean.
    scale : float
        Standard deviation, not negative.
    shape : tuple of int or None
        Shape of the output; None: the shape of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape given by the parameter; floating
    Not differentiable.
    """

normal = _random_normal
random_normal = _random_normal


def _random_normal_like(
    data: TensorT, loc: float = 0.0, scale: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Normally distributed numbers. One per element of data.

    Parameters
    ----------
    data : tensor
        defines shape and dtype only; floating
    loc : float
        Mean.
    scale : float
        Standard deviation, not negative.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _random_pdf_dirichlet(
    sample: TensorT, alpha: TensorT, is_log: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Density of Dirichlet distributions with concentrations alpha.

    Parameters
    ----------
    sample : tensor
        floating: the axes of alpha, with the axes drawn for each before the last, which holds the categories
    alpha : tensor
        (..., categories): concentrations
    is_log : bool
        Whether to return logarithms of densities.

    Returns: output: shape of sample without the last axis
    """

random_pdf_dirichlet = _random_pdf_dirichlet


def _random_pdf_exponential(
    sample: TensorT, lam: TensorT, is_log: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Density of exponential distributions with rate lam.

    Parameters
    ----------
    sample : tensor
        floating: the axes of the parameters, then the axes drawn for each
    lam : tensor
        floating tensor, any shape
    is_log : bool
        Whether to return logarithms of densities.

    Returns: output: shape and dtype of sample
    """

random_pdf_exponential = _random_pdf_exponential


def _random_pdf_gamma(
    sample: TensorT, alpha: TensorT, beta: TensorT, is_log: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Density of gamma distributions with shape alpha and rate beta.

    Parameters
    ----------
    sample : tensor
        floating: the axes of the parameters, then the axes drawn for each
    alpha : tensor
        floating tensor, any shape
    beta : tensor
        floating tensor, any shape
    is_log : bool
        Whether to return logarithms of densities.

    Returns: output: shape and dtype of sample
    """

random_pdf_gamma = _random_pdf_gamma


def _random_pdf_generalized_negative_binomial(
    sample: TensorT, mu: TensorT, alpha: TensorT, is_log: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Probabilities of negative binomial distributions with mean mu and dispersion alpha.

    Parameters
    ----------
    sample : tensor
        floating: the axes of the parameters, then the axes drawn for each
    mu : tensor
        floating tensor, any shape
    alpha : tensor
        floating tensor, any shape
    is_log : bool
        Whether to return logarithms of densities.

    Returns: output: shape and dtype of sample
    """

random_pdf_generalized_negative_binomial = _random_pdf_generalized_negative_binomial


def _random_pdf_negative_binomial(
    sample: TensorT, k: TensorT, p: TensorT, is_log: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Probabilities of negative binomial distributions with k and the probability p of failure.

    Parameters
    ----------
    sample : tensor
        floating: the axes of the parameters, then the axes drawn for each
    k : tensor
        floating tensor, any shape
    p : tensor
        floating tensor, any shape
    is_log : bool
        Whether to return logarithms of densities.

    Returns: output: shape and dtype of sample
    """

random_pdf_negative_binomial = _random_pdf_negative_binomial


def _random_pdf_normal(
    sample: TensorT, mu: TensorT, sigma: TensorT, is_log: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Density of normal distributions.

    Parameters
    ----------
    sample : tensor
        floating: the axes of the parameters, then the axes drawn for each
    mu : tensor
        floating tensor, any shape
    sigma : tensor
        floating tensor, any shape
    is_log : bool
        Whether to return logarithms of densities.

    Returns: output: shape and dtype of sample
    """

random_pdf_normal = _random_pdf_normal


def _random_pdf_poisson(
    sample: TensorT, lam: TensorT, is_log: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Probabilities of Poisson distributions with mean lam.

    Parameters
    ----------
    sample : tensor
        floating: the axes of the parameters, then the axes drawn for each
    lam : tensor
        floating tensor, any shape
    is_log : bool
        Whether to return logarithms of densities.

    Returns: output: shape and dtype of sample
    """

random_pdf_poisson = _random_pdf_poisson


def _random_pdf_uniform(
    sample: TensorT, low: TensorT, high: TensorT, is_log: bool = False, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Density of uniform distributions between low and high.

    Parameters
    ----------
    sample : tensor
        floating: the axes of the parameters, then the axes drawn for each
    low : tensor
        floating tensor, any shape
    high : tensor
        floating tensor, any shape
    is_log : bool
        Whether to return logarithms of densities.

    Returns: output: shape and dtype of sample
    """

random_pdf_uniform = _random_pdf_uniform


def _random_poisson(
    lam: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: DType | None = None, *, out: Any
    = None, name: str | None = None
) -> Any:
    """Poisson distributed integers, as floating values.

    Parameters
    ----------
    lam : float
        Mean, not negative.
    shape : tuple of int or None
        Shape of the output; None: the shape of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape given by the parameter; floating
    Not differentiable.
    """

random_poisson = _random_poisson


def _random_poisson_like(data: TensorT, lam: float = 1.0, *, out: Any = None, name: str | None = None) -> TensorT:
    """Poisson distributed integers, as floating values. One per element of data.

    Parameters
    ----------
    data : tensor
        defines shape and dtype only; floating
    lam : float
        Mean, not negative.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _random_randint(
    low: int, high: int, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: DType | None = None, *, out:
    Any = None, name: str | None = None
) -> Any:
    """Uniformly distributed integers in [low, high).

    Parameters
    ----------
    low : int
        Smallest number.
    high : int
        One above the largest number.
    shape : tuple of int or None
        Shape of the output; None: the shape of out, else one number.
    dtype : dtype or None
        int32 or int64; None: int32.

    Returns: output: shape given by the parameter; int32 or int64
    Not differentiable.
    """

random_randint = _random_randint


def _random_uniform(
    low: float = 0.0, high: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: DType | None =
    None, *, out: Any = None, name: str | None = None
) -> Any:
    """Uniformly distributed numbers in [low, high).

    Parameters
    ----------
    low : float
        Lower bound, inclusive.
    high : float
        Upper bound, exclusive.
    shape : tuple of int or None
        Shape of the output; None: the shape of out, else one number.
    dtype : dtype or None
        float16, float32, float64 or bfloat16; None: float32.

    Returns: output: shape given by the parameter; floating
    Not differentiable.
    """

random_uniform = _random_uniform
uniform = _random_uniform


def _random_uniform_like(
    data: TensorT, low: float = 0.0, high: float = 1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Uniformly distributed numbers in [low, high). One per element of data.

    Parameters
    ----------
    data : tensor
        defines shape and dtype only; floating
    low : float
        Lower bound, inclusive.
    high : float
        Upper bound, exclusive.

    Returns: output: shape and dtype of data
    Not differentiable.
    """


def _ravel_multi_index(
    data: TensorT, shape: int | Sequence[int], *, out: Any = None, name: str | None = None
) -> TensorT:
    """Tuples of indices, one per column, as flat indices into a tensor of the given shape.

    Parameters
    ----------
    data : tensor
        shape (M, ...), M the number of axes of shape
    shape : tuple of int
        Shape of the tensor that the indices belong to; its first size may be -1.

    Returns: output: shape of data without its first axis; dtype of data
    Not differentiable.
    """

ravel_multi_index = _ravel_multi_index


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
        False: an integer array produces float64 instead of its dtype.

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
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_RMinusScalar = _rminus_scalar


def _rmod_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """Remainder of scalar / data with the sign of data; 0 where data is 0.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_RModScalar = _rmod_scalar


def _rnn_param_concat(
    *data: TensorT, num_args: int = ..., dim: int = 1, out: Any = None, name: str | None = None
) -> TensorT:
    """Joins flattened parameters of a recurrent layer; one or two unknown sizes are inferred from the output.

    Parameters
    ----------
    data : tensor
        equal shapes except for the joined axis, one dtype
    num_args : int, range [1, 1.67772e+07]
        Number of inputs.
    dim : int
        The axis along which inputs are joined.

    Returns: output: sizes of the inputs; their sum in the joined axis
    """


def _rpower_scalar(
    data: TensorT, scalar: float = 1.0, is_int: bool = True, *, out: Any = None, name: str | None = None
) -> TensorT:
    """scalar to the power of data.

    Parameters
    ----------
    data : tensor
        array of any shape
    scalar : float
        The number.
    is_int : bool
        False: an integer array produces float64 instead of its dtype.

    Returns: out: shape of data; dtype of data, unless data is bool or is_int is false
    """

_RPowerScalar = _rpower_scalar


def _sample_exponential(
    lam: TensorT, shape: int | Sequence[int] = (), dtype: DType | None = None, *, out: Any = None, name: str | None =
    None
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
    alpha: TensorT, beta: TensorT, shape: int | Sequence[int] = (), dtype: DType | None = None, *, out: Any = None,
    name: str | None = None
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
    mu: TensorT, alpha: TensorT, shape: int | Sequence[int] = (), dtype: DType | None = None, *, out: Any = None, name:
    str | None = None
) -> TensorT:
    """Negative binomial integers by mean and dispersion, as floating values. One or more per element of the
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


def _sample_multinomial(
    data: TensorT, shape: int | Sequence[int] = (), get_prob: bool = False, dtype: DType = 'int32', *, out: Any = None,
    name: str | None = None
) -> Any:
    """Random outcomes of distributions over the last axis of data.

    Parameters
    ----------
    data : tensor
        floating (..., outcomes): probabilities; each distribution is divided by its sum
    shape : tuple of int
        Shape drawn from every distribution.
    get_prob : bool
        Whether the logarithms of the outcomes' probabilities are a second output; its gradient flows to data.
    dtype : dtype
        uint8, int32, float16, float32 or float64.

    Returns: output: outcomes in [0, outcomes): the axes of data before the last, then shape; log_prob: with
    get_prob: logarithms of the outcomes' probabilities
    """

sample_multinomial = _sample_multinomial


def _sample_negative_binomial(
    k: TensorT, p: TensorT, shape: int | Sequence[int] = (), dtype: DType | None = None, *, out: Any = None, name: str
    | None = None
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
    mu: TensorT, sigma: TensorT, shape: int | Sequence[int] = (), dtype: DType | None = None, *, out: Any = None, name:
    str | None = None
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
    lam: TensorT, shape: int | Sequence[int] = (), dtype: DType | None = None, *, out: Any = None, name: str | None =
    None
) -> TensorT:
    """Poisson distributed integers, as floating values. One or more per element of the parameters.

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
    low: TensorT, high: TensorT, shape: int | Sequence[int] = (), dtype: DType | None = None, *, out: Any = None, name:
    str | None = None
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


def _sample_unique_zipfian(
    range_max: int, shape: int | Sequence[int] | None = None, *, out: Any = None, name: str | None = None
) -> Any:
    """Classes drawn without replacement, the first classes most often: class k is round(exp(u log(range_max))) - 1 for
    uniform u.

    Parameters
    ----------
    range_max : int, at least 1
        Number of classes.
    shape : tuple of int or None
        (rows, classes drawn per row); None: the shape of out.

    Returns: samples: int64 (rows, classes drawn per row), no class twice in a row; num_tries: int64 (rows,): number
    of draws until a row was full
    Not differentiable.
    """


def _scatter_set_nd(
    lhs: TensorT, rhs: TensorT, indices: TensorT, shape: int | Sequence[int], *, out: Any = None, name: str | None =
    None
) -> TensorT:
    """lhs with the slices at the positions of tuples replaced by rhs; if tuples repeat, the last one is kept.

    Parameters
    ----------
    lhs : tensor
        any shape, any dtype
    rhs : tensor
        shape of indices without its first axis, then the axes of lhs after the first M
    indices : tensor
        shape (M, ...); integers, negative ones count from the end
    shape : tuple of int
        Shape of the output.

    Returns: output: shape and dtype of lhs
    """


def _shuffle(data: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """The slices of data along its first axis in random order, every order equally likely.

    Parameters
    ----------
    data : tensor
        array of any shape

    Returns: output: shape and dtype of data
    Not differentiable.
    """

shuffle = _shuffle


def _slice_assign(
    lhs: TensorT, rhs: TensorT, begin: int | Sequence[int | None], end: int | Sequence[int | None], step: int |
    Sequence[int | None] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """lhs with the slice selected by begin, end and step replaced by rhs.

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


def _slice_assign_scalar(
    data: TensorT, scalar: float = 0.0, begin: int | Sequence[int | None] = ..., end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = (), *, out: Any = None, name: str | None = None
) -> TensorT:
    """data with the slice selected by begin, end and step set to a scalar.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    scalar : float
        The value to write.
    begin : tuple of int or None items
        First index per axis; negative counts from the end; None: the start.
    end : tuple of int or None items
        End per axis, exclusive; None: to the end.
    step : tuple of int or None items
        Step per axis; None: 1.

    Returns: output: shape and dtype of data
    """

_crop_assign_scalar = _slice_assign_scalar


def _sparse_adagrad_update(
    weight: TensorT, grad: TensorT, history: TensorT, lr: float, epsilon: float = 1e-07, wd: float = 0.0, rescale_grad:
    float = 1.0, clip_gradient: float = -1.0, *, out: Any = None, name: str | None = None
) -> TensorT:
    """g = clip(rescale_grad * grad); history += g * g; weight -= lr * (g / sqrt(history + epsilon) + wd * weight)

    Parameters
    ----------
    weight : tensor
        floating tensor, any shape
    grad : tensor
        shape and dtype of weight
    history : tensor
        shape and dtype of weight; replaced
    lr : float
        Learning rate.
    epsilon : float
        Added under the root, against division by zero.
    wd : float
        Weight decay: lr * wd * weight is subtracted separately.
    rescale_grad : float
        Factor applied to the gradient first.
    clip_gradient : float
        Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.

    Returns: weight_out: updated weight; history_out: replaces history
    Not differentiable.
    """


def _sparse_retain(data: TensorT, indices: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """data with the rows in indices; all other rows are zero.

    Parameters
    ----------
    data : tensor
        (rows, ...), any dtype
    indices : tensor
        (count,): rows, integers; negative ones count from the end

    Returns: output: shape and dtype of data
    """


def _split_v2(
    data: TensorT, indices: int | Sequence[int], axis: int = 1, squeeze_axis: bool = False, sections: int = 0, *, out:
    Any = None, name: str | None = None
) -> Any:
    """Splits data along an axis at indices, or into sections.

    Parameters
    ----------
    data : tensor
        any shape, any dtype
    indices : tuple of int
        First index of each part, the first is 0. Ignored with sections.
    axis : int
        The axis to split.
    squeeze_axis : bool
        Whether to remove the axis of parts of size 1.
    sections : int, range [0, 1.04858e+06]
        Number of parts; if it does not divide the size, earlier parts are larger by one.

    Returns: output: one array per part, dtype of data
    """


def _square_sum(
    data: TensorT, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, *, out: Any
    = None, name: str | None = None
) -> TensorT:
    """Sum of squares over axes.

    Parameters
    ----------
    data : tensor
        array of any shape
    axis : tuple of int or None
        Axis or axes to reduce; negative ones count from the end; None or () reduces all.
    keepdims : bool
        Keep reduced axes with size 1.
    exclude : bool
        Whether to reduce the axes that are not listed.

    Returns: out: dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)
    """


def _unravel_index(data: TensorT, shape: int | Sequence[int], *, out: Any = None, name: str | None = None) -> TensorT:
    """Flat indices into a tensor of the given shape as tuples of indices, one per column.

    Parameters
    ----------
    data : tensor
        any shape
    shape : tuple of int
        Shape of the tensor that the indices belong to; its first size may be -1.

    Returns: output: shape (M, ...), M the number of axes of shape; dtype of data
    Not differentiable.
    """

unravel_index = _unravel_index


def _write_state(data: TensorT, value: TensorT, state: TensorT, *, out: Any = None, name: str | None = None) -> TensorT:
    """data unchanged; writes value into state.

    Parameters
    ----------
    data : tensor
        array of any shape
    value : tensor
        array of any shape
    state : tensor
        shape and dtype of value

    Returns: out: shape and dtype of data; new_state: shape and dtype of value
    """


def _zeros(
    shape: int | Sequence[int] = (), ctx: str = '', dtype: DType = 'float32', *, out: Any = None, name: str | None =
    None
) -> Any:
    """A tensor of zeros.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    dtype : dtype
        Dtype of the output.

    Returns: output: shape and dtype given by the parameters
    Not differentiable.
    """


def _zeros_without_dtype(
    shape: int | Sequence[int], ctx: str = '', dtype: int = -1, *, out: Any = None, name: str | None = None
) -> Any:
    """A tensor of zeros whose dtype may be inferred from its use.

    Parameters
    ----------
    shape : tuple of int
        Shape of the output.
    dtype : int
        Code of the dtype; -1: the dtype by the use of the output, else float32.

    Returns: output: shape and dtype given by the parameters
    Not differentiable.
    """
