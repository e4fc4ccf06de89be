"""Sparse arrays in C: files give the same parts as in Python, and lazy updates the same bits."""

from __future__ import annotations

import ctypes

import hybridnet as mx
import numpy as np
import pytest

from .c_trainer import CTrainer, refusal, texts
from .test_operators_from_c import LIBRARY, Handle, bytes_of, check, to_handle


def load(path) -> list[Handle]:
    count, arrays, names = ctypes.c_size_t(), ctypes.POINTER(Handle)(), ctypes.POINTER(ctypes.c_char_p)()
    check(LIBRARY.hn_arrays_load(str(path).encode(), ctypes.byref(count), ctypes.byref(arrays), ctypes.byref(names)))
    loaded = [Handle(arrays[i]) for i in range(count.value)]
    for i in range(count.value):
        arrays[i] = None
    check(LIBRARY.hn_arrays_free(count, arrays, names))
    return loaded


def part(array: Handle, name: str) -> Handle:
    made = Handle()
    check(LIBRARY.hn_array_part(array, name.encode(), ctypes.byref(made)))
    return made


def storage(array: Handle) -> str:
    name = ctypes.c_char_p()
    check(LIBRARY.hn_array_storage(array, ctypes.byref(name)))
    return (name.value or b"").decode()


def held_rows(shape, count: int):
    rows = np.sort(np.random.default_rng(3).choice(shape[0], count, replace=False))
    values = np.random.default_rng(4).normal(size=(count, *shape[1:])).astype("float32")
    return mx.nd.sparse.row_sparse_array((values, rows), shape=shape)


@pytest.mark.parametrize("shape", [(4, 3), (1_000_000_000, 3), (6,)])
def test_rows_of_files_are_those_of_python(tmp_path, shape) -> None:
    held = held_rows(shape, 2)
    mx.nd.save(str(tmp_path / "a.params"), [held])
    (array,) = load(tmp_path / "a.params")
    assert storage(array) == "row_sparse"
    for name in ("data", "indices"):
        found, expected = bytes_of(part(array, name)), getattr(held, name).asnumpy()
        assert (found[0], found[2]) == (expected.shape, expected.tobytes())


def test_a_matrix_of_a_file_has_the_parts_and_values_of_python(tmp_path) -> None:
    dense = np.random.default_rng(2).integers(0, 2, (5, 4)).astype("float32")
    held = mx.nd.array(dense).tostype("csr")
    mx.nd.save(str(tmp_path / "a.params"), {"m": held})
    (array,) = load(tmp_path / "a.params")
    assert storage(array) == "csr"
    for name in ("data", "indices", "indptr"):
        assert bytes_of(part(array, name))[2] == getattr(held, name).asnumpy().tobytes()
    assert bytes_of(array)[2] == dense.tobytes()


def test_a_parameter_of_a_small_file_that_would_fill_the_memory_is_refused(tmp_path) -> None:
    """Model parameters become dense, so a sparse one of a huge shape is refused."""
    net = mx.gluon.nn.Dense(3, in_units=4, use_bias=False)
    net.initialize()
    net.hybridize()
    net(mx.nd.zeros((1, 4)))
    symbol, _ = net.export(str(tmp_path / "net"))
    for rows, status in ((3, 0), (1_000_000_000, -1)):
        mx.nd.save(str(tmp_path / "a.params"), {"arg:" + net.weight.name: held_rows((rows, 4), 1)})
        model = Handle()
        found = LIBRARY.hn_model_load(symbol.encode(), str(tmp_path / "a.params").encode(), ctypes.byref(model))
        assert found == status
    text = refusal(found)
    assert "FormatError" in text and "(1000000000, 4) would take 15258 MB" in text and "keeps it sparse" in text


def make_rows(values: np.ndarray, rows: np.ndarray, shape: tuple[int, ...]) -> Handle:
    sizes, made = (ctypes.c_int64 * len(shape))(*shape), Handle()
    parts = to_handle(values), to_handle(rows)
    check(LIBRARY.hn_array_create_sparse(b"row_sparse", sizes, len(shape), *parts, None, ctypes.byref(made)))
    return made


def read_table(trainer: CTrainer, numbers: np.ndarray, factors: np.ndarray) -> None:
    """Runs backward of sum(table[numbers] * factors) through the C API."""
    check(LIBRARY.hn_autograd_set_recording(1, None))
    taken, head = Handle(), Handle()
    for op, attributes, inputs, out in (
        (b"Embedding", {"input_dim": 7, "output_dim": 3, "sparse_grad": True},
         (to_handle(numbers), trainer.arrays["table"]), taken),
        (b"elemwise_mul", {}, (taken, to_handle(factors)), head),
    ):  # fmt: skip
        given, count = (Handle * 2)(*inputs), ctypes.c_size_t(1)
        check(LIBRARY.hn_invoke(op, *texts(attributes), 2, given, ctypes.byref(count), ctypes.byref(out)))
    check(LIBRARY.hn_autograd_set_recording(0, None))
    check(LIBRARY.hn_autograd_backward(ctypes.c_size_t(1), ctypes.byref(head), None, 0, 1))


SETTINGS = {"learning_rate": 0.125, "wd": 0.03, "clip_gradient": 0.7}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("SGD", {"momentum": 0.9, "lazy_update": True, **SETTINGS}),
        ("SGD", {"lazy_update": True, **SETTINGS}),
        ("SGD", {"momentum": 0.9, "lazy_update": False, **SETTINGS}),
        ("Adam", {"lazy_update": True, **SETTINGS}),
        ("Adam", {"lazy_update": False, **SETTINGS}),
        ("Ftrl", SETTINGS),
        ("AdaGrad", SETTINGS),
        ("RMSProp", SETTINGS),
        ("GroupAdaGrad", {"learning_rate": 0.125}),
    ],
    ids=str,
)
def test_updates_by_row_sparse_gradients_have_the_bits_of_python(name: str, settings) -> None:
    rng = np.random.default_rng(1)
    start = rng.normal(size=(7, 3)).astype("float32")
    ours = CTrainer({"table": start}, name.lower(), settings)
    check(LIBRARY.hn_array_attach_grad_in(ours.arrays["table"], b"write", b"row_sparse"))
    table = mx.gluon.Parameter("table", shape=start.shape, grad_stype="row_sparse")
    table.initialize()
    table.set_data(mx.nd.array(start))
    theirs = mx.gluon.Trainer({"table": table}, name, dict(settings))
    for step in range(4):
        numbers = rng.integers(0, 7, 5).astype("float32")
        factors = rng.normal(size=(5, 3)).astype("float32")
        read_table(ours, numbers, factors)
        with mx.autograd.record():
            taken = mx.nd.Embedding(mx.nd.array(numbers), table.data(), input_dim=7, output_dim=3, sparse_grad=True)
            head = taken * mx.nd.array(factors)
        head.backward()
        gradient = Handle()
        check(LIBRARY.hn_array_grad(ours.arrays["table"], ctypes.byref(gradient)))
        assert storage(gradient) == "row_sparse"
        for each in ("data", "indices"):
            assert bytes_of(part(gradient, each))[2] == getattr(table.grad(), each).asnumpy().tobytes()
        check(ours.step(4.0))
        theirs.step(4.0)
        assert ours.values()["table"] == table.data().asnumpy().tobytes(), f"step {step + 1}"
    ours.close()


def test_a_lazy_update_leaves_rows_that_were_not_read() -> None:
    start = np.ones((7, 3), "float32")
    trainer = CTrainer({"table": start}, "sgd", {"learning_rate": 0.5, "wd": 0.5, "lazy_update": True})
    check(LIBRARY.hn_array_attach_grad_in(trainer.arrays["table"], b"write", b"row_sparse"))
    read_table(trainer, np.array([2, 2], "float32"), np.ones((2, 3), "float32"))
    check(trainer.step(1.0))
    changed = (np.frombuffer(trainer.values()["table"], "float32").reshape(7, 3) != 1).all(axis=1)
    assert changed.tolist() == [row == 2 for row in range(7)]
    trainer.close()


@pytest.mark.parametrize("sparse", ["dot", "embedding"])
def test_models_take_sparse_inputs_and_give_sparse_gradients(sparse: str, tmp_path) -> None:
    rng = np.random.default_rng(6)
    data = mx.sym.var("data")
    if sparse == "dot":
        symbol = mx.sym.dot(data, mx.sym.var("w"))
        dense = (rng.normal(size=(4, 7)) * rng.integers(0, 2, (4, 7))).astype("float32")
        given = mx.nd.array(dense).tostype("csr")
    else:
        symbol = mx.sym.Embedding(data, mx.sym.var("w"), input_dim=7, output_dim=3, sparse_grad=True)
        given = mx.nd.array(rng.integers(0, 7, (4,)))
    table = rng.normal(size=(7, 3)).astype("float32")
    symbol.save(str(tmp_path / "net-symbol.json"))
    mx.nd.save(str(tmp_path / "net.params"), {"arg:w": mx.nd.array(table)})
    mx.nd.save(str(tmp_path / "in.params"), [given])

    weights = mx.nd.array(table)
    weights.attach_grad(stype="row_sparse")
    with mx.autograd.record():
        if sparse == "dot":
            expected = mx.nd.dot(given, weights)
        else:
            expected = mx.nd.Embedding(given, weights, input_dim=7, output_dim=3, sparse_grad=True)
    expected.backward()
    gradient = weights.grad

    model, weight, out, found = Handle(), Handle(), (Handle * 1)(), Handle()
    paths = str(tmp_path / "net-symbol.json").encode(), str(tmp_path / "net.params").encode()
    check(LIBRARY.hn_model_load(*paths, ctypes.byref(model)))
    check(LIBRARY.hn_model_parameter(model, ctypes.c_size_t(0), ctypes.byref(weight)))
    check(LIBRARY.hn_array_attach_grad_in(weight, b"write", b"row_sparse"))
    inputs = (Handle * 1)(load(tmp_path / "in.params")[0])
    check(LIBRARY.hn_autograd_set_recording(1, None))
    check(LIBRARY.hn_model_run(model, ctypes.c_size_t(1), inputs, ctypes.c_size_t(1), out))
    check(LIBRARY.hn_autograd_set_recording(0, None))
    assert bytes_of(Handle(out[0]))[2] == expected.asnumpy().tobytes()
    check(LIBRARY.hn_autograd_backward(ctypes.c_size_t(1), out, None, 0, 1))
    check(LIBRARY.hn_array_grad(weight, ctypes.byref(found)))
    assert (storage(found), gradient.stype) == ("row_sparse", "row_sparse")
    for each in ("data", "indices"):
        assert bytes_of(part(found, each))[2] == getattr(gradient, each).asnumpy().tobytes()


def test_sessions_say_that_they_need_dense_arrays(tmp_path) -> None:
    mx.sym.relu(mx.sym.var("data")).save(str(tmp_path / "net-symbol.json"))
    model, session = Handle(), Handle()
    check(LIBRARY.hn_model_load(str(tmp_path / "net-symbol.json").encode(), None, ctypes.byref(model)))
    rows = (Handle * 1)(make_rows(np.ones((1, 2), "float32"), np.array([1]), (3, 2)))
    dense = (Handle * 1)(to_handle(np.zeros((3, 2), "float32")))
    one = ctypes.c_size_t(1)
    text = refusal(LIBRARY.hn_session_create(model, one, rows, ctypes.c_size_t(0), None, ctypes.byref(session)))
    assert "UnsupportedError" in text and "sparse" in text
    text = refusal(LIBRARY.hn_session_create(model, one, dense, one, rows, ctypes.byref(session)))
    assert "UnsupportedError" in text and "output 0" in text
    check(LIBRARY.hn_model_run_into(model, one, dense, one, rows))  # the values replace the earlier ones, as in Python
    assert bytes_of(Handle(rows[0]))[2] == bytes(24)
