"""Memory of a process that loads a network and predicts: gradients, files, packed copies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, gluon
from hybridnet.gluon import nn

from process.parameter_writes import WRITES, write_parameters

MIB = 1 << 20
UNITS = 1024  # a weight takes 4 MiB


def in_use() -> int:
    mx.nd.waitall()
    return _core.memory_statistics(1, 0)["in_use"]


def dense_layers(count: int = 2) -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(*(nn.Dense(UNITS, in_units=UNITS) for _ in range(count)))
    return net


@pytest.fixture
def saved(tmp_path: Path) -> tuple[str, list[np.ndarray]]:
    """A parameter file, and the values of its parameters."""
    net = dense_layers()
    net.initialize(mx.init.Xavier())
    path = str(tmp_path / "net.params")
    net.save_parameters(path)
    return path, [param.data().asnumpy() for param in net.collect_params().values()]


def loaded(path: str) -> nn.HybridSequential:
    net = dense_layers()
    net.load_parameters(path)
    net.hybridize()
    return net


def expected(values: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    for weight, bias in zip(values[::2], values[1::2], strict=True):
        x = x.astype("float64") @ weight.T.astype("float64") + bias
    return x


def some_rows(seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1, 1, (4, UNITS)).astype("float32")


def check(net: gluon.Block, values: list[np.ndarray], seed: int = 0) -> None:
    x = some_rows(seed)
    np.testing.assert_allclose(net(mx.nd.array(x)).asnumpy(), expected(values, x), rtol=1e-4, atol=1e-3)


# ------------------------------------------------------------------------------------------------------------ gradients
def test_gradients_take_no_memory_before_they_are_used() -> None:
    before = in_use()
    net = dense_layers()
    net.initialize()
    net(mx.nd.array(some_rows()))
    held = in_use() - before
    assert held < 9 * MIB, "two weights of 4 MiB"
    param = net[0].weight
    assert param.grad().shape == param.list_grad()[0].shape == (UNITS, UNITS)
    assert not param.grad().asnumpy().any()
    assert in_use() - before >= held + 4 * MIB


def test_gradients_of_attach_grad_take_no_memory_before_they_are_used() -> None:
    x = mx.nd.ones((UNITS, UNITS))
    before = in_use()
    x.attach_grad()
    assert in_use() - before < MIB
    assert x.grad.dtype == np.float32 and not x.grad.asnumpy().any()


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("hybridize", [False, True])
def test_gradients_that_were_never_read_are_written_by_backward(req: str, hybridize: bool) -> None:
    net = nn.Dense(3, in_units=2, use_bias=False)
    net.initialize(mx.init.One())
    net.weight.grad_req = req
    if hybridize:
        net.hybridize()
    for time in range(1, 3):
        with mx.autograd.record():
            loss = net(mx.nd.array([[1.0, 2.0]])).sum()
        loss.backward()
        want = np.tile([1.0, 2.0], (3, 1)) * (time if req == "add" else 1)
        np.testing.assert_array_equal(net.weight.grad().asnumpy(), want)
    net.weight.zero_grad()
    assert not net.weight.grad().asnumpy().any()


def test_a_gradient_held_before_backward_shows_the_new_values() -> None:
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize()
    gradient = net.weight.grad()
    with mx.autograd.record():
        loss = net(mx.nd.array([[1.0, 2.0]])).sum()
    loss.backward()
    np.testing.assert_array_equal(gradient.asnumpy(), [[1.0, 2.0]])


def test_changing_grad_req_frees_and_makes_gradients() -> None:
    net = nn.Dense(1, in_units=2)
    net.initialize()
    net.weight.grad_req = "null"
    with pytest.raises(RuntimeError, match="grad_req='null'"):
        net.weight.grad()
    net.weight.grad_req = "add"
    assert not net.weight.grad().asnumpy().any()


def test_threads_that_read_an_untouched_gradient_at_once_see_zeros() -> None:
    net = dense_layers(1)
    net.initialize()
    gradient = net[0].weight.grad()
    sums: list[float] = []
    threads = [threading.Thread(target=lambda: sums.append(float(np.abs(gradient.asnumpy()).sum()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [0.0] * 4


# ---------------------------------------------------------------------------------------------------------------- files
def test_loading_takes_no_memory_for_large_parameters(saved: tuple[str, list[np.ndarray]]) -> None:
    path, values = saved
    before = in_use()
    net = loaded(path)
    assert in_use() - before < MIB
    check(net, values)


@pytest.mark.parametrize("who", ["everybody", "another user", "another group"])
def test_a_file_that_others_may_write_can_be_cut_short_while_it_is_used(
    saved: tuple[str, list[np.ndarray]], tmp_path: Path, who: str
) -> None:
    path, values = saved
    copy = tmp_path / "copy.params"
    shutil.copyfile(path, copy)
    copy.chmod({"everybody": 0o646, "another user": 0o644, "another group": 0o664}[who])
    if who != "everybody":
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(copy, 12345 if who == "another user" else -1, 12345)
    net = loaded(str(copy))
    os.truncate(copy, 0)
    check(net, values)


def test_a_file_of_the_own_group_is_mapped(saved: tuple[str, list[np.ndarray]], tmp_path: Path) -> None:
    copy = tmp_path / "copy.params"
    shutil.copyfile(saved[0], copy)
    copy.chmod(0o664)
    before = in_use()
    net = loaded(str(copy))
    assert in_use() - before < MIB
    check(net, saved[1])


def test_a_prediction_keeps_one_copy_of_each_weight(saved: tuple[str, list[np.ndarray]]) -> None:
    path, values = saved
    net = loaded(path)
    before = in_use()
    for rows in (4, 5, 6, 8, 16):
        net(mx.nd.array(np.ones((rows, UNITS), "float32"))).wait_to_read()
    assert in_use() - before < 2 * 4 * MIB + 3 * MIB, "packed copies of two weights of 4 MiB, and an arena"
    check(net, values)


def test_parameters_that_were_initialized_before_become_those_of_the_file(saved: tuple[str, list[np.ndarray]]) -> None:
    path, values = saved
    before = in_use()
    net = dense_layers()
    net.initialize()
    net.hybridize()
    net(mx.nd.array(some_rows())).wait_to_read()
    weight, bias = net[0].weight.data(), net[0].bias.data()
    gradient = net[0].weight.grad()
    held = net[1].weight.data().reshape((-1,))  # a view of the memory, so load_parameters must write into it
    net.load_parameters(path)
    assert in_use() - before < (4 + 2 * 4 + 3) * MIB, "the memory that is shown, packed copies, an arena"
    check(net, values)
    np.testing.assert_array_equal(weight.asnumpy(), values[0])
    np.testing.assert_array_equal(bias.asnumpy(), values[1])
    np.testing.assert_array_equal(held.asnumpy(), values[2].reshape(-1))
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, UNITS))).sum()
    loss.backward()
    assert gradient is net[0].weight.grad() and gradient.asnumpy().any()
    weight[:] = 0
    values[0] = np.zeros_like(values[0])
    check(net, values)


@pytest.mark.parametrize("how", WRITES)
def test_a_parameter_of_a_file_that_is_written_after_predictions(saved: tuple[str, list[np.ndarray]], how: str) -> None:
    path, values = saved
    stored = Path(path).read_bytes()
    net = loaded(path)
    check(net, values)
    weight = net[0].weight
    write_parameters(how, net, values, mx.nd.array(some_rows(3)))
    for seed in range(3):
        check(net, values, seed)
        net(mx.nd.array(np.ones((seed + 1, UNITS), "float32"))).wait_to_read()  # other plans, which pack again
    np.testing.assert_allclose(weight.data().asnumpy(), values[0], rtol=1e-5, atol=1e-6)
    assert Path(path).read_bytes() == stored


def test_a_file_may_be_replaced_while_its_parameters_live(saved: tuple[str, list[np.ndarray]]) -> None:
    path, values = saved
    net = loaded(path)
    other = dense_layers()
    other.initialize(mx.init.Constant(0.25))
    other.save_parameters(path)
    check(net, values)
    net.save_parameters(path)  # over the file that it was loaded from
    os.unlink(path)
    check(net, values, 1)
    for param, value in zip(net.collect_params().values(), values, strict=True):
        np.testing.assert_array_equal(param.data().asnumpy(), value)


def test_a_child_process_predicts_and_writes_its_own_values(saved: tuple[str, list[np.ndarray]]) -> None:
    path, _ = saved
    done = run(
        f"""
        net = load({path!r})
        x = mx.nd.ones((2, {UNITS}))
        before = net(x).asnumpy()
        child = os.fork()
        if child == 0:
            same = (net(x).asnumpy() == before).all()
            net[0].weight.set_data(mx.nd.zeros(({UNITS}, {UNITS})))
            os._exit(0 if same and not (net(x).asnumpy() == before).all() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert (net(x).asnumpy() == before).all()
        """
    )
    assert done.returncode == 0, done.stderr


def test_predictions_of_threads_see_the_last_value_that_was_set(saved: tuple[str, list[np.ndarray]]) -> None:
    path, values = saved
    net = loaded(path)
    x = mx.nd.array(np.ones((2, UNITS), "float32"))
    done = threading.Event()
    failures: list[str] = []

    def predict() -> None:
        while not done.is_set():
            out = net(x).asnumpy()
            if not np.isfinite(out).all():
                failures.append("not finite")

    threads = [threading.Thread(target=predict) for _ in range(3)]
    for thread in threads:
        thread.start()
    for time in range(10):
        values[0] = np.full_like(values[0], time / 1000)
        net[0].weight.set_data(mx.nd.array(values[0]))
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    check(net, values)


# ------------------------------------------------------------------------------------------------------- resident size
PRELUDE = f"""
    import os
    import hybridnet as mx
    from hybridnet.gluon import nn

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096 / {MIB}

    def load(path, layers=2, units={UNITS}):
        net = nn.HybridSequential()
        net.add(*(nn.Dense(units, in_units=units) for _ in range(layers)))
        net.load_parameters(path)
        net.hybridize()
        return net
"""


def run(body: str, **env: str) -> subprocess.CompletedProcess:
    code = textwrap.dedent(PRELUDE) + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **env},
    )


@pytest.mark.parametrize("mapped", ["1", "0"])
def test_resident_size_after_the_first_prediction_is_that_of_the_packed_weights(tmp_path: Path, mapped: str) -> None:
    units, layers = 2048, 6  # 6 layers of 16 MiB: 96 MiB
    net = nn.HybridSequential()
    net.add(*(nn.Dense(units, in_units=units) for _ in range(layers)))
    net.initialize(mx.init.Xavier())
    path = str(tmp_path / "large.params")
    net.save_parameters(path)
    x = np.ones((4, units), "float32")
    done = run(
        f"""
        warm = nn.Dense(8, in_units=8)
        warm.initialize()
        warm.hybridize()
        warm(mx.nd.ones((4, 8))).wait_to_read()
        before = resident()
        net = load({path!r}, {layers}, {units})
        out = net(mx.nd.ones((4, {units}))).asnumpy()
        print(resident() - before, out[0, 0])
        """,
        HYBRIDNET_MAP_PARAMS=mapped,
    )
    assert done.returncode == 0, done.stderr
    grown, first = map(float, done.stdout.split())
    np.testing.assert_allclose(first, net(mx.nd.array(x)).asnumpy()[0, 0], rtol=1e-4, atol=1e-3)
    copies = 1 if mapped == "1" else 2
    assert grown < copies * 96 * 1.15 + 8, f"grew by {grown:.0f} MiB; {copies} times 96 MiB expected"


FOLDED = """
    import numpy as np

    def convolutions(layers, channels):
        net = nn.HybridSequential()
        for _ in range(layers):
            net.add(nn.Conv2D(channels, 1, use_bias=False, in_channels=channels), nn.BatchNorm(in_channels=channels))
        return net

    def image(batch, channels, seed=0):
        return mx.nd.array(np.random.RandomState(seed).randn(batch, channels, 4, 4).astype("float32"))
"""


def test_weights_with_folded_batch_norms_are_not_kept_beside_their_packed_copies(tmp_path: Path) -> None:
    path = str(tmp_path / "folded.params")
    made = run(FOLDED + f"\n    net = convolutions(4, 2048)\n    net.initialize()\n    net.save_parameters({path!r})")
    assert made.returncode == 0, made.stderr
    done = run(
        FOLDED
        + f"""
    warm = convolutions(1, 8)
    warm.initialize()
    warm.hybridize()
    warm(image(1, 8)).wait_to_read()
    before = resident()
    net = convolutions(4, 2048)
    net.load_parameters({path!r})
    net.hybridize()
    net(image(1, 2048)).wait_to_read()
    print(resident() - before)
        """
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 64 * 1.3 + 10, "four weights of 16 MiB"


@pytest.mark.parametrize("limit", ["-1", "0", "2"])
def test_folded_weights_have_their_values_for_every_size_limit_and_thread(limit: str) -> None:
    done = run(
        FOLDED
        + """
    import threading
    net = convolutions(3, 256)
    net.initialize(mx.init.Xavier())
    sizes = (1, 2, 3, 8, 16, 32)
    want = {n: net(image(n, 256, n)).asnumpy() for n in sizes}
    net.hybridize()
    def check():
        for n in sizes:
            np.testing.assert_allclose(net(image(n, 256, n)).asnumpy(), want[n], rtol=1e-3, atol=1e-4)
    check()
    check()
    first = {n: net(image(n, 256, n)).asnumpy() for n in sizes}
    wrong = []
    def repeat():
        for _ in range(5):
            for n in sizes:
                if not (net(image(n, 256, n)).asnumpy() == first[n]).all():
                    wrong.append(n)
    threads = [threading.Thread(target=repeat) for _ in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong
    scale = net[1].gamma.data()
    scale[:] = scale * 2
    net.hybridize(False)
    want = {n: net(image(n, 256, n)).asnumpy() for n in sizes}
    net.hybridize()
    check()
    net.hybridize(False)
    net.hybridize()
    scale[:] = scale * 3
    net[0].weight.set_data(net[0].weight.data() * 0.5)
    before = net(image(2, 256, 2)).asnumpy()
    net[2].weight.set_data(net[2].weight.data() * 2)
    assert not (net(image(2, 256, 2)).asnumpy() == before).all()
    net.hybridize(False)
    want = {n: net(image(n, 256, n)).asnumpy() for n in sizes}
    net.hybridize()
    check()
        """,
        HYBRIDNET_PACKED_LIMIT_MB=limit,
    )
    assert done.returncode == 0, done.stderr
