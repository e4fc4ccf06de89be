"""NumPy references of the operators of src/ops/shape."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _reshape_target(shape: list[int], codes: list[int]) -> list[int]:
    out: list[int] = []
    source = list(shape)
    codes = list(codes)
    size = int(np.prod(shape, dtype=np.int64))
    while codes:
        code = codes.pop(0)
        if code == -2:
            out += source
            source = []
        elif code == -3:
            out.append(source.pop(0) * source.pop(0))
        elif code == -4:
            whole, left, right = source.pop(0), codes.pop(0), codes.pop(0)
            out += [whole // right if left == -1 else left, whole // left if right == -1 else right]
        elif code == 0:
            out.append(source.pop(0))
        else:
            out.append(code)
            source = source[1:]
    if -1 in out:
        known = int(np.prod([n for n in out if n != -1], dtype=np.int64))
        out[out.index(-1)] = size // known
    return out


def _reshape(inputs, attrs):
    (data,) = inputs
    codes = list(tuple_value(attrs, "shape"))
    if not codes:
        target = [-1 if n == 0 else n for n in tuple_value(attrs, "target_shape")]
        if value(attrs, "keep_highest", False):
            target[0] = data.shape[0]
        return [data.reshape(target)]
    if value(attrs, "reverse", False):
        return [data.reshape(_reshape_target(list(data.shape[::-1]), codes[::-1])[::-1])]
    return [data.reshape(_reshape_target(list(data.shape), codes))]


def _reshape_like(inputs, attrs):
    lhs, rhs = inputs

    def axes(side, array):
        begin = value(attrs, f"{side}_begin", None)
        end = value(attrs, f"{side}_end", None)
        begin = 0 if begin is None else begin % array.ndim
        end = array.ndim if end is None else (end % array.ndim if end < 0 else end)
        return begin, end

    lb, le = axes("lhs", lhs)
    rb, re = axes("rhs", rhs)
    return [lhs.reshape(lhs.shape[:lb] + rhs.shape[rb:re] + lhs.shape[le:])]


def _slices(attrs):
    begin, end = tuple_value(attrs, "begin"), tuple_value(attrs, "end")
    step = tuple_value(attrs, "step") + (None,) * len(begin)
    return tuple(slice(b, e, s) for b, e, s in zip(begin, end, step))


def _backward_slice(inputs, attrs):
    (data,) = inputs
    out = np.zeros(tuple_value(attrs, "shape"), data.dtype)
    places = [
        [begin + step * i for i in range(n)]
        for begin, step, n in zip(tuple_value(attrs, "begin"), tuple_value(attrs, "step"), data.shape)
    ]
    out[np.ix_(*places)] = data
    return [out]


def _slice_axis(inputs, attrs):
    (data,) = inputs
    index = [slice(None)] * data.ndim
    index[value(attrs, "axis")] = slice(value(attrs, "begin"), value(attrs, "end", None))
    return [data[tuple(index)]]


def _slice_like(inputs, attrs):
    data, like = inputs
    axes = tuple_value(attrs, "axes") or tuple(range(data.ndim))
    index = [slice(None)] * data.ndim
    for axis in axes:
        index[axis] = slice(0, like.shape[axis])
    return [data[tuple(index)]]


def _slice_assign(inputs, attrs):
    out = inputs[0].copy()
    out[_slices(attrs)] = inputs[1]
    return [out]


def _slice_assign_scalar(inputs, attrs):
    out = inputs[0].copy()
    out[_slices(attrs)] = value(attrs, "scalar", 0.0)
    return [out]


def _slice_channel(inputs, attrs):
    (data,) = inputs
    axis = value(attrs, "axis", 1)
    parts = np.split(data, value(attrs, "num_outputs"), axis=axis)
    return [p.squeeze(axis) for p in parts] if value(attrs, "squeeze_axis", False) else parts


def _split_v2(inputs, attrs):
    (data,) = inputs
    axis, sections = value(attrs, "axis", 1), value(attrs, "sections", 0)
    parts = np.array_split(data, sections if sections else tuple_value(attrs, "indices")[1:], axis=axis)
    return [p.squeeze(axis) for p in parts] if value(attrs, "squeeze_axis", False) else parts


def _squeeze(inputs, attrs):
    axis = value(attrs, "axis", None)
    return [inputs[0].squeeze(axis)]


def _repeat(inputs, attrs):
    return [np.repeat(inputs[0], value(attrs, "repeats"), axis=value(attrs, "axis"))]


def _pad(inputs, attrs):
    (data,) = inputs
    flat = tuple_value(attrs, "pad_width")
    width = list(zip(flat[::2], flat[1::2]))
    if attrs["mode"] == "constant":
        return [np.pad(data, width, constant_values=value(attrs, "constant_value", 0.0))]
    return [np.pad(data, width, mode=attrs["mode"])]


def _backward_pad(inputs, attrs):
    (grads,) = inputs
    flat = tuple_value(attrs, "pad_width")
    width = list(zip(flat[::2], flat[1::2]))
    shape = tuple(n - a - b for n, (a, b) in zip(grads.shape, width))
    source = np.pad(np.arange(int(np.prod(shape))).reshape(shape), width, mode=attrs["mode"])
    out = np.zeros(shape, grads.dtype)
    np.add.at(out.reshape(-1), source.reshape(-1), grads.reshape(-1))
    return [out]


def _depth_to_space(inputs, attrs):
    (data,) = inputs
    b = value(attrs, "block_size")
    n, c, h, w = data.shape
    blocks = data.reshape(n, b, b, c // (b * b), h, w)
    return [blocks.transpose(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b)]


def _space_to_depth(inputs, attrs):
    (data,) = inputs
    b = value(attrs, "block_size")
    n, c, h, w = data.shape
    blocks = data.reshape(n, c, h // b, b, w // b, b)
    return [blocks.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)]


def _diag(inputs, attrs):
    (data,) = inputs
    k = value(attrs, "k", 0)
    if data.ndim == 1:
        return [np.diag(data, k)]
    return [np.diagonal(data, k, value(attrs, "axis1", 0), value(attrs, "axis2", 1))]


def _backward_diag(inputs, attrs):
    out = np.zeros(tuple_value(attrs, "shape"), inputs[0].dtype)
    axis1, axis2, k = value(attrs, "axis1", 0), value(attrs, "axis2", 1), value(attrs, "k", 0)
    moved = np.moveaxis(out, (axis1, axis2), (-2, -1))
    for i in range(inputs[0].shape[-1]):
        moved[..., i + max(0, -k), i + max(0, k)] = inputs[0][..., i]
    return [out]


def _crop(inputs, attrs):
    data = inputs[0]
    height, width = inputs[1].shape[2:] if len(inputs) == 2 else tuple_value(attrs, "h_w", (0, 0))
    top, left = tuple_value(attrs, "offset", (0, 0))
    if value(attrs, "center_crop", False):
        top, left = (data.shape[2] - height) // 2, (data.shape[3] - width) // 2
    return [data[:, :, top : top + height, left : left + width]]


REFERENCES = {
    "Reshape": _reshape,
    "Flatten": lambda inputs, attrs: [inputs[0].reshape(inputs[0].shape[0], -1)],
    "reshape_like": _reshape_like,
    "expand_dims": lambda inputs, attrs: [np.expand_dims(inputs[0], value(attrs, "axis"))],
    "squeeze": _squeeze,
    "transpose": lambda inputs, attrs: [np.transpose(inputs[0], tuple_value(attrs, "axes") or None)],
    "SwapAxis": lambda inputs, attrs: [np.swapaxes(inputs[0], value(attrs, "dim1", 0), value(attrs, "dim2", 0))],
    "slice": lambda inputs, attrs: [inputs[0][_slices(attrs)]],
    "_backward_slice": _backward_slice,
    "slice_axis": _slice_axis,
    "slice_like": _slice_like,
    "_slice_assign": _slice_assign,
    "_slice_assign_scalar": _slice_assign_scalar,
    "Concat": lambda inputs, attrs: [np.concatenate(inputs, axis=value(attrs, "dim", 1))],
    "_rnn_param_concat": lambda inputs, attrs: [np.concatenate(inputs, axis=value(attrs, "dim", 1))],
    "stack": lambda inputs, attrs: [np.stack(inputs, axis=value(attrs, "axis", 0))],
    "SliceChannel": _slice_channel,
    "_split_v2": _split_v2,
    "tile": lambda inputs, attrs: [np.tile(inputs[0], tuple_value(attrs, "reps"))],
    "repeat": _repeat,
    "reverse": lambda inputs, attrs: [np.flip(inputs[0], tuple_value(attrs, "axis"))],
    "Pad": _pad,
    "_backward_pad": _backward_pad,
    "depth_to_space": _depth_to_space,
    "space_to_depth": _space_to_depth,
    "diag": _diag,
    "_backward_diag": _backward_diag,
    "Crop": _crop,
    "shape_array": lambda inputs, attrs: [np.array(inputs[0].shape, "int64")],
    "size_array": lambda inputs, attrs: [np.array([inputs[0].size], "int64")],
}
