"""Sessions allocate no memory and take no lock; many threads on one model get the bits of one thread."""

from __future__ import annotations

import pathlib

import hybridnet as mx
import pytest

from .client_programs import ROOT, compile_program, run


class LSTM(mx.gluon.HybridBlock):
    """An LSTM over the leading axis, written as a loop."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.cell = mx.gluon.rnn.LSTMCell(units, input_size=units)
        self.units = units

    def hybrid_forward(self, F, x, h, c):
        outputs, _ = F.contrib.foreach(self.cell, x, [h, c])
        return outputs


def export(net: mx.gluon.HybridBlock, folder: pathlib.Path, *inputs: mx.nd.NDArray) -> list[str]:
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True)
    net(*inputs)
    return [str(file) for file in net.export(str(folder / "net"))]


def small_lstm(folder: pathlib.Path) -> list[str]:
    return export(LSTM(8), folder, mx.nd.zeros((5, 2, 8)), mx.nd.zeros((2, 8)), mx.nd.zeros((2, 8)))


def dense(folder: pathlib.Path) -> list[str]:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(32, activation="relu"), mx.gluon.nn.LayerNorm(), mx.gluon.nn.Dense(4))
    return export(net, folder, mx.nd.zeros((3, 16)))


def packed(folder: pathlib.Path) -> list[str]:
    """Layers that read packed copies of their weights; two of the layers share a kernel."""
    net = mx.gluon.nn.HybridSequential()
    for units in (128, 128, 128, 4):
        net.add(mx.gluon.nn.Dense(units, activation="relu"))
    return export(net, folder, mx.nd.zeros((1, 128)))


def lenet(folder: pathlib.Path) -> list[str]:
    """A network whose work two cores share if calls follow each other closely."""
    net = mx.gluon.nn.HybridSequential()
    for channels in (20, 50):
        net.add(mx.gluon.nn.Conv2D(channels, 5, activation="relu"), mx.gluon.nn.MaxPool2D())
    net.add(mx.gluon.nn.Dense(500, activation="relu"), mx.gluon.nn.Dense(10))
    return export(net, folder, mx.nd.zeros((1, 1, 28, 28)))


def of_bytes(net: mx.gluon.HybridBlock, folder: pathlib.Path, data: mx.nd.NDArray) -> list[str]:
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(data)
    made = mx.contrib.quantization.quantize_net(
        net, quantized_dtype="auto", quantize_mode="full", calib_mode="naive", calib_data=[data]
    )
    made(data)
    return [str(file) for file in made.export(str(folder / "net"))]


def lstm_of_bytes(folder: pathlib.Path) -> list[str]:
    class OfBytes(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            of_layers = (8 * 32 + 8 * 32 + 64) * 2 + (16 * 32 + 8 * 32 + 64) * 2
            self.weights = self.params.get("weights", shape=(of_layers,), init=mx.init.Uniform(0.2))

        def hybrid_forward(self, F, x, state, weights):
            data, scale, shift = F.contrib.quantize_asym(x)
            sizes = {"state_size": 8, "num_layers": 2, "bidirectional": True, "mode": "lstm", "state_outputs": True}
            return F.contrib.quantized_rnn(data, weights, state, state, scale, shift, **sizes)[0]

    return export(OfBytes(), folder, mx.nd.random.uniform(shape=(5, 2, 8)), mx.nd.zeros((4, 2, 8)))


def images_of_bytes(folder: pathlib.Path) -> list[str]:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(16, 3, activation="relu"), mx.gluon.nn.AvgPool2D(), mx.gluon.nn.Dense(4))
    files = of_bytes(net, folder, mx.nd.random.uniform(shape=(1, 3, 8, 8)))
    assert "_contrib_quantized_pooling" in pathlib.Path(files[0]).read_text()
    return files


def branching(folder: pathlib.Path) -> list[str]:
    class Branching(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            _, (grown,) = F.contrib.while_loop(
                lambda v: v.sum() < 50, lambda v: ([], [v * 2 + 1]), [x], max_iterations=9
            )
            return F.contrib.cond(grown.sum() > 100, lambda: grown * 2, lambda: grown - 1)

    return export(Branching(), folder, mx.nd.zeros((2, 3)))


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[str, pathlib.Path]:
    folder = tmp_path_factory.mktemp("programs")
    sources = ("session_allocations.c", "many_threads.cc")
    return {
        source: compile_program(ROOT / "tests/cpp/clients" / source, folder / source.partition(".")[0])
        for source in sources
    }


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (dense, ["data", 3, 16]),
        (packed, ["data", 1, 128]),
        (branching, ["data", 2, 3]),
        (small_lstm, ["data0", 5, 2, 8, "data1", 2, 8, "data2", 2, 8]),
        (lstm_of_bytes, ["data0", 5, 2, 8, "data1", 4, 2, 8]),
        (images_of_bytes, ["data", 1, 3, 8, 8]),
    ],
)
def test_a_session_allocates_nothing_and_takes_no_lock_in_a_hundred_thousand_runs(
    make, inputs, programs, tmp_path, monkeypatch
) -> None:
    symbol, params = make(tmp_path)
    if make in (lstm_of_bytes, images_of_bytes):  # with VNNI, oneDNN multiplies bytes and allocates memory
        monkeypatch.setenv("HYBRIDNET_MAX_ISA", "avx2")
    text = run(programs["session_allocations.c"], [symbol, params, 100_000, *inputs])
    assert text.startswith("0 allocations, 0 locks,"), text


def test_a_session_whose_work_cores_share_allocates_nothing(programs, tmp_path) -> None:
    """The worker threads may take locks to sleep and wake."""
    symbol, params = lenet(tmp_path)
    text = run(programs["session_allocations.c"], [symbol, params, 100_000, "data", 1, 1, 28, 28])
    assert text.startswith("0 allocations,"), text


def test_many_threads_get_the_bits_of_one(programs, tmp_path) -> None:
    symbol, params = small_lstm(tmp_path)
    case = {}
    for number in range(7):
        case[f"input:data0:{number}"] = mx.nd.random.normal(shape=(5, 2, 8))
        case[f"input:data1:{number}"] = mx.nd.random.normal(shape=(2, 8))
        case[f"input:data2:{number}"] = mx.nd.random.normal(shape=(2, 8))
    mx.nd.save(str(tmp_path / "case.params"), case)
    text = run(programs["many_threads.cc"], [symbol, params, tmp_path / "case.params", 64, 10_000], timeout=500)
    assert text == "640000 calls, 0 differ\n"
