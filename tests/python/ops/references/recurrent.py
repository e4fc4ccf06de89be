"""NumPy references of the recurrent operators: one example and one step at a time."""

from __future__ import annotations

import numpy as np

from .attributes import value

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _unpack(flat, attrs, inputs):
    """Returns a list of dicts: matrices and biases of every (layer, direction)."""
    hidden, layers = value(attrs, "state_size"), value(attrs, "num_layers")
    directions = 2 if value(attrs, "bidirectional", False) else 1
    projection = value(attrs, "projection_size")
    fed_back = projection or hidden
    rows = _GATES[attrs["mode"]] * hidden
    cells = [{} for _ in range(layers * directions)]
    at = 0

    def take(*shape):
        nonlocal at
        count = int(np.prod(shape))
        at += count
        return flat[at - count : at].reshape(shape)

    for i, cell in enumerate(cells):
        cell["i2h"] = take(rows, inputs if i < directions else directions * fed_back)
        cell["h2h"] = take(rows, fed_back)
        if projection:
            cell["h2r"] = take(projection, hidden)
    for cell in cells:
        cell["i2h_bias"], cell["h2h_bias"] = take(rows), take(rows)
    assert at == flat.size
    return cells, directions


def _step(mode, w, x, h, c, clip):
    from_x, from_h = w["i2h"] @ x + w["i2h_bias"], w["h2h"] @ h + w["h2h_bias"]
    if mode == "rnn_relu":
        return np.maximum(from_x + from_h, 0), None
    if mode == "rnn_tanh":
        return np.tanh(from_x + from_h), None
    if mode == "gru":
        (xr, xz, xn), (hr, hz, hn) = np.split(from_x, 3), np.split(from_h, 3)
        z = _sigmoid(xz + hz)
        return (1 - z) * np.tanh(xn + _sigmoid(xr + hr) * hn) + z * h, None
    i, f, g, o = np.split(from_x + from_h, 4)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    if clip is not None:
        c = np.clip(c, *clip)
    h = _sigmoid(o) * np.tanh(c)
    return (w["h2r"] @ h if "h2r" in w else h), c


def _rnn(inputs, attrs):
    data, flat, state = inputs[:3]
    mode = attrs["mode"]
    cells, directions = _unpack(flat, attrs, data.shape[2])
    state_cell = inputs[3] if mode == "lstm" else None
    steps, batch = data.shape[:2]
    lengths = (
        np.clip(np.asarray(inputs[-1]).astype(int), 0, steps)
        if value(attrs, "use_sequence_length", False)
        else np.full(batch, steps)
    )
    clip = None
    if value(attrs, "lstm_state_clip_min") is not None:
        clip = value(attrs, "lstm_state_clip_min"), value(attrs, "lstm_state_clip_max")
    last_state = np.array(state)
    last_cell = None if state_cell is None else np.array(state_cell)
    layer_in = data
    for first in range(0, len(cells), directions):
        out = np.zeros((steps, batch, directions * state.shape[2]), data.dtype)
        for direction in range(directions):
            k = first + direction
            part = slice(direction * state.shape[2], (direction + 1) * state.shape[2])
            for n in range(batch):
                order = range(lengths[n]) if direction == 0 else reversed(range(lengths[n]))
                for t in order:
                    c = None if last_cell is None else last_cell[k, n]
                    last_state[k, n], c = _step(mode, cells[k], layer_in[t, n], last_state[k, n], c, clip)
                    if c is not None:
                        last_cell[k, n] = c
                    out[t, n, part] = last_state[k, n]
        layer_in = out
    results = [layer_in]
    if value(attrs, "state_outputs", False):
        results += [last_state] if last_cell is None else [last_state, last_cell]
    return results


def _bytes(x, scale, shift):
    return np.rint(np.asarray(x, "float32") * np.float32(scale) + np.float32(shift)).clip(0, 255)


def _quantized_rnn(inputs, attrs):
    """Quantized RNN: one weight scale per gate for all layers; inputs and states have the scale of the data."""
    data, flat, states, memories, scale, shift = inputs
    scale, shift = float(scale[0]), float(shift[0])
    cells, directions = _unpack(flat, attrs, data.shape[2])
    matrices = [np.hstack([cell["i2h"], cell["h2h"]]) for cell in cells]
    w_steps = np.float32(127) / np.max([np.abs(m).max(1) for m in matrices], 0)
    layer_in, last_h, last_c = data.astype("float64"), np.array(states), np.array(memories)
    for first in range(0, len(cells), directions):
        out = np.zeros((*data.shape[:2], directions * states.shape[2]), "float32")
        for direction in range(directions):
            cell, matrix = cells[first + direction], np.rint(matrices[first + direction] * w_steps[:, None])
            h, c = last_h[first + direction], last_c[first + direction]
            for t in range(len(data))[:: -1 if direction else 1]:
                row = np.hstack([layer_in[t], _bytes(h, scale, shift)]) - shift
                gates = row @ matrix.T.astype("float64") / (scale * w_steps) + cell["i2h_bias"] + cell["h2h_bias"]
                i, f, g, o = np.split(gates, 4, 1)
                c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
                h = _sigmoid(o) * np.tanh(c)
                out[t, :, direction * h.shape[1] : (direction + 1) * h.shape[1]] = h
            last_h[first + direction], last_c[first + direction] = h, c
        layer_in = _bytes(out, scale, shift)
    return [out, last_h, last_c] if value(attrs, "state_outputs", False) else [out]


REFERENCES = {"_contrib_quantized_rnn": _quantized_rnn, "RNN": _rnn}
