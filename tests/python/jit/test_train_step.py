"""mx.jit.train_step runs the body of a hybridized training loop as one plan, with the same bits."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, autograd, errors, gluon, nd
from hybridnet.gluon import nn, rnn

STEPS = 5


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dropout(0.3), nn.Dense(10))
    return net


def matrices():
    """Returns a network whose parameters are all matrices, as GroupAdaGrad requires."""
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu", use_bias=False), nn.Dropout(0.3), nn.Dense(10, use_bias=False))
    return net


def conv_net():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2), nn.Dense(10))
    return net


def plain_mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dense(10))
    return net


class Recurrent(gluon.HybridBlock):
    """An LSTM by foreach over (length, batch, 6), and a layer on its last row."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.cell = rnn.LSTMCell(8, input_size=6)
            self.out = nn.Dense(10, in_units=8)

    def hybrid_forward(self, F, x):
        begin = [
            F.zeros_like(F.slice_axis(F.slice_axis(x, axis=0, begin=0, end=1).reshape((-3, 0)), axis=1, begin=0, end=1))
        ]
        begin = [F.broadcast_axis(begin[0], axis=1, size=8)] * 2
        rows, _ = F.contrib.foreach(self.cell, x, begin)
        return self.out(F.SequenceLast(rows))


def batches(shape, dtype="float32", steps=STEPS, seed=0, axis=0):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        yield nd.array(rng.randn(*shape), dtype=dtype), nd.array(rng.randint(0, 10, shape[axis]))


def made(build, optimizer, options, example, dtype="float32", setup=None):
    mx.random.seed(3)
    net = build()
    net.initialize(mx.init.Xavier())
    net.cast(dtype)
    net(example)
    if setup:
        setup(net)
    return net, gluon.Trainer(net.collect_params(), optimizer, options())


def values(net):
    return [param.data().asnumpy() for param in net.collect_params().values()]


def looped(build, optimizer, options, data, dtype="float32", setup=None, clip=None, size=None):
    """Runs the hybridized loop and returns losses, final values, network and trainer."""
    net, trainer = made(build, optimizer, options, data[0][0], dtype, setup)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    net.hybridize(static_alloc=True)
    loss.hybridize(static_alloc=True)
    mx.random.seed(7)
    losses = []
    for x, y in data:
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        count = size or x.shape[0]
        if clip is not None:
            grads = [p.grad() for p in net.collect_params().values() if p.grad_req != "null"]
            gluon.utils.clip_global_norm(grads, clip * count)
        trainer.step(count)
        losses.append(value.asnumpy())
    return losses, values(net), net, trainer


def stepped(build, optimizer, options, data, dtype="float32", setup=None, clip=None, size=None, **more):
    """Runs train_step and returns losses, final values, network, trainer and step."""
    net, trainer = made(build, optimizer, options, data[0][0], dtype, setup)
    step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer, clip_global_norm=clip, **more)
    mx.random.seed(7)
    losses = [step(x, y, batch_size=size).asnumpy() for x, y in data]
    return losses, values(net), net, trainer, step


def check_equal(loop, step):
    for a, b in zip(loop[0] + loop[1], step[0] + step[1], strict=True):
        np.testing.assert_array_equal(a, b)


OPTIMIZERS = {
    "sgd": ("sgd", {"learning_rate": 0.1}),
    "momentum": ("sgd", {"momentum": 0.9, "wd": 1e-3}),
    "clipped": ("sgd", {"momentum": 0.9, "clip_gradient": 0.01}),
    "nag": ("nag", {"momentum": 0.9, "wd": 1e-3}),
    "plain nag": ("nag", {}),
    "signum": ("signum", {"wd_lh": 1e-3}),
    "signsgd": ("signum", {"momentum": 0.0}),
    "adam": ("adam", {"wd": 1e-2, "clip_gradient": 0.1}),
    "adamw": ("adamw", {"wd": 1e-2}),
    "adamw uncorrected": ("adamw", {"correct_bias": False}),
    "lamb": ("lamb", {"wd": 1e-2, "lower_bound": 0.1, "upper_bound": 10.0}),
    "rmsprop": ("rmsprop", {"clip_weights": 0.5}),
    "centered": ("rmsprop", {"centered": True}),
    "adagrad": ("adagrad", {"wd": 1e-3}),
    "ftrl": ("ftrl", {}),
    "ftml": ("ftml", {"clip_gradient": 0.1}),
    "adadelta": ("adadelta", {"wd": 1e-3, "clip_gradient": 0.1}),
    "adamax": ("adamax", {"wd": 1e-3, "clip_gradient": 0.1}),
    "nadam": ("nadam", {"wd": 1e-3, "clip_gradient": 0.1}),
    "dcasgd": ("dcasgd", {"momentum": 0.9, "wd": 1e-3, "clip_gradient": 0.1}),
    "plain dcasgd": ("dcasgd", {}),
    "sgld": ("sgld", {"wd": 1e-3, "learning_rate": 1e-4}),
    "lars": ("lars", {"momentum": 0.9, "wd": 1e-3, "eta": 0.1}),
    "plain lars": ("lars", {"eps": 1e-3}),
    "lbsgd": ("lbsgd", {"momentum": 0.9, "updates_per_epoch": 1, "batch_scale": 2}),
    "lbsgd by norms": ("lbsgd", {"warmup_strategy": "lars", "wd": 1e-3, "learning_rate": 1e-3}),
    "lbsgd by norms of several": ("lbsgd", {"warmup_strategy": "lars", "batch_scale": 3, "learning_rate": 1e-3}),
    "test": ("test", {}),
}


class TestEqualsTheLoop:
    @pytest.mark.parametrize("name", _core.optimizer_names())
    def test_with_every_optimizer_of_the_table(self, name):
        data = list(batches((8, 12), steps=20))
        loop, step = (run(matrices, name, lambda: {"learning_rate": 1e-3}, data) for run in (looped, stepped))
        check_equal(loop, step)
        assert np.isfinite(step[1][0]).all()
        assert loop[3].optimizer.num_update == step[3].optimizer.num_update == 20

    @pytest.mark.parametrize("name", OPTIMIZERS)
    def test_with_settings_of_optimizers(self, name):
        optimizer, options = OPTIMIZERS[name]
        data = list(batches((8, 12), steps=6))
        check_equal(*(run(mlp, optimizer, lambda: dict(options), data) for run in (looped, stepped)))

    @pytest.mark.parametrize("name", ["nadam", "lars", "lbsgd", "sgld"])
    def test_with_a_schedule(self, name):
        optimizer, options = OPTIMIZERS[name]

        def with_schedule():
            schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=1e-3)
            return {**options, "learning_rate": 1e-3, "lr_scheduler": schedule}

        data = list(batches((8, 12), steps=8))
        loop, step = (run(mlp, optimizer, with_schedule, data) for run in (looped, stepped))
        check_equal(loop, step)
        assert step[4].num_plans == (2 if name == "lbsgd" else 1)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    @pytest.mark.parametrize("name", _core.optimizer_names())
    def test_with_every_optimizer_in_mixed_precision(self, name, dtype):
        options = {"multi_precision": True, "learning_rate": 1e-3}
        data = list(batches((8, 12), dtype, steps=3))
        check_equal(*(run(matrices, name, lambda: options, data, dtype) for run in (looped, stepped)))

    @pytest.mark.parametrize("name", OPTIMIZERS)
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_in_mixed_precision(self, name, dtype):
        optimizer, options = OPTIMIZERS[name]
        data = list(batches((8, 12), dtype, steps=3))
        options = {**options, "multi_precision": True}
        check_equal(*(run(mlp, optimizer, lambda: options, data, dtype) for run in (looped, stepped)))

    def test_in_float64(self):
        data = list(batches((8, 12), "float64"))
        check_equal(*(run(mlp, "adam", dict, data, "float64") for run in (looped, stepped)))

    def test_with_images(self):
        data = list(batches((4, 3, 12, 12)))
        check_equal(*(run(conv_net, "sgd", lambda: {"momentum": 0.9}, data) for run in (looped, stepped)))

    def test_with_a_bound_of_the_global_norm(self):
        data = list(batches((8, 12)))
        loop, step = (run(mlp, "sgd", lambda: {"momentum": 0.9}, data, clip=0.05) for run in (looped, stepped))
        check_equal(loop, step)
        free = stepped(mlp, "sgd", lambda: {"momentum": 0.9}, data)
        assert not np.array_equal(free[1][0], step[1][0])

    def test_accumulated_gradients(self):
        def setup(net):
            net.collect_params().setattr("grad_req", "add")

        data = list(batches((8, 12)))
        loop, step = (run(mlp, "sgd", dict, data, setup=setup) for run in (looped, stepped))
        check_equal(loop, step)
        for a, b in zip(loop[2].collect_params().values(), step[2].collect_params().values(), strict=True):
            if a.grad_req == "add":
                np.testing.assert_array_equal(a.grad().asnumpy(), b.grad().asnumpy())

    def test_frozen_layers(self):
        def setup(net):
            net[0].collect_params().setattr("grad_req", "null")

        data = list(batches((8, 12)))
        loop, step = (run(mlp, "adam", dict, data, setup=setup) for run in (looped, stepped))
        check_equal(loop, step)

    def test_shared_parameters(self):
        def tied():
            net = nn.HybridSequential()
            first = nn.Dense(12, in_units=12, activation="tanh")
            net.add(first, nn.Dense(12, in_units=12, params=first.params), nn.Dense(10))
            return net

        data = list(batches((8, 12)))
        check_equal(*(run(tied, "sgd", lambda: {"momentum": 0.9}, data) for run in (looped, stepped)))

    def test_with_multipliers_and_another_batch_size(self):
        def setup(net):
            net[0].weight.lr_mult, net[0].weight.wd_mult, net[3].bias.lr_mult = 0.5, 3.0, 2.0

        data = list(batches((8, 12)))
        runs = (run(mlp, "sgd", lambda: {"wd": 0.01}, data, setup=setup, size=3) for run in (looped, stepped))
        check_equal(*runs)

    def test_with_a_loop_of_any_length(self):
        data = [next(batches((length, 3, 6), seed=length, axis=1)) for length in (5, 9, 7, 6, 8)]
        loop, step = (run(Recurrent, "sgd", lambda: {"momentum": 0.9}, data, size=3) for run in (looped, stepped))
        check_equal(loop, step)

    def test_with_a_branch(self):
        class Branch(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                with self.name_scope():
                    self.small, self.large = nn.Dense(10, in_units=12), nn.Dense(10, in_units=12)

            def hybrid_forward(self, F, x):
                return F.contrib.cond(F.sum(x) > 0, lambda: self.large(x), lambda: self.small(x))

        data = list(batches((8, 12)))
        check_equal(*(run(Branch, "sgd", lambda: {"momentum": 0.9}, data) for run in (looped, stepped)))


class TestPlans:
    def test_schedules_and_counts_are_inputs(self):
        def options():
            return {"learning_rate": 0.1, "lr_scheduler": mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.1)}

        data = list(batches((8, 12)))
        for optimizer in ("sgd", "adam", "ftml", "lamb"):
            loop, step = (run(mlp, optimizer, options, data) for run in (looped, stepped))
            check_equal(loop, step)
            assert step[4].num_plans == 1
            assert step[3].learning_rate == loop[3].learning_rate

    def test_new_batch_sizes_and_rates_need_no_new_plan(self):
        data = [next(batches((size, 12), seed=size)) for size in (8, 6, 5, 7, 9, 11)]
        step = stepped(mlp, "adam", dict, data)[4]
        assert step.num_plans == 1
        assert step._last.ops[0].num_rewritten == 2  # the graph of the second size serves all others

    def test_new_lengths_are_laid_out_as_in_hybridized_blocks(self):
        data = [next(batches((length, 3, 6), seed=length, axis=1)) for length in (5, 9, 7, 6, 8)]
        *_, net, _ = looped(Recurrent, "sgd", dict, data, size=3)
        step = stepped(Recurrent, "sgd", dict, data, size=3)[4]
        assert step.num_plans == net._cached_op.num_plans == 1
        assert step._last.ops[0].num_rewritten == net._cached_op.num_rewritten

    def test_parameters_and_states_are_written_in_place(self):
        step = stepped(mlp, "sgd", lambda: {"momentum": 0.9}, list(batches((8, 12))))[4]
        text = step.plan_text()
        updates = [line for line in text.splitlines() if "_update_with_rates (" in line]
        assert len(updates) == 6
        for line in updates:
            read, written = line.split("-> ")
            weight, _, state = read.split("(", 1)[1].split(")")[0].split(", ")[:3]
            assert written.startswith(f"{weight} ") and f" {state} " in written, line
        assert "copy" not in text

    def test_gradients_share_memory_one_after_the_other(self):
        def deep():
            net = nn.HybridSequential()
            for _ in range(8):
                net.add(nn.Dense(128, in_units=128, activation="relu", use_bias=False))
            return net

        step = stepped(deep, "sgd", dict, list(batches((4, 128), steps=1)))[4]
        arena = int(step.pass_report().split("arena ")[1].split(" ")[0])
        assert arena < 3 * 128 * 128 * 4  # less than three of the eight gradients

    def test_the_gradient_of_the_loss_reuses_the_memory_of_the_outputs(self):
        step = stepped(mlp, "sgd", dict, list(batches((8, 12), steps=1)))[4]
        [line] = [line for line in step.plan_text().splitlines() if "_log_softmax_pick_backward (" in line]
        assert " (in place) float32(8, 10)" in line

    def test_outputs_keep_their_memory_if_they_are_returned(self):
        net, trainer = made(mlp, "sgd", dict, nd.ones((8, 12)))
        step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer, outputs=True)
        (data, label), *_ = batches((8, 12))
        losses, outputs = step(data, label)
        chosen = outputs.log_softmax().pick(label)
        np.testing.assert_allclose(losses.asnumpy(), -chosen.asnumpy(), rtol=1e-5)

    def test_gradient_arrays_stay_zero(self):
        *_, net, _, _ = stepped(mlp, "sgd", dict, list(batches((8, 12))))
        assert not net[0].weight.grad().asnumpy().any()


class TestTrainer:
    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_steps_and_trainer_steps_mix(self, optimizer):
        options = {"momentum": 0.9} if optimizer == "sgd" else {}
        data = list(batches((8, 12), steps=6))
        losses, final, *_ = looped(mlp, optimizer, lambda: dict(options), data)
        net, trainer = made(mlp, optimizer, lambda: dict(options), data[0][0])
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        step = mx.jit.train_step(net, loss, trainer)
        mx.random.seed(7)
        mixed = []
        for i, (x, y) in enumerate(data):
            if i % 2 == 0:
                mixed.append(step(x, y).asnumpy())
                continue
            net.hybridize(static_alloc=True)
            loss.hybridize(static_alloc=True)
            with autograd.record():
                value = loss(net(x), y)
            value.backward()
            trainer.step(x.shape[0])
            mixed.append(value.asnumpy())
        check_equal((losses, final), (mixed, values(net)))

    def test_states_are_saved_and_loaded(self, tmp_path):
        data = list(batches((8, 12), steps=6))
        losses, final, *_ = stepped(mlp, "adam", dict, data)
        net, trainer = made(mlp, "adam", dict, data[0][0])
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        mx.random.seed(7)
        step = mx.jit.train_step(net, loss, trainer)
        first = [step(x, y).asnumpy() for x, y in data[:3]]
        trainer.save_states(str(tmp_path / "states"))
        net.save_parameters(str(tmp_path / "params"))
        [step(x, y) for x, y in data[3:]]
        net.load_parameters(str(tmp_path / "params"))
        trainer.load_states(str(tmp_path / "states"))
        mx.random.seed(7)
        for _ in data[:3]:  # skips the random draws of the first steps
            nd.random.uniform(shape=(1,)).wait_to_read()
        again = [step(x, y).asnumpy() for x, y in data[3:]]
        np.testing.assert_array_equal(first, losses[:3])
        assert trainer.optimizer.num_update == 6
        check_equal((losses[3:], final), (again, values(net)))

    def test_optimizer_settings_may_change(self):
        data = list(batches((8, 12), steps=4))
        net, trainer = made(mlp, "sgd", lambda: {"momentum": 0.9}, data[0][0])
        step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer)
        step(*data[0])
        trainer.set_learning_rate(0.0)
        before = net[3].weight.data().asnumpy()
        trainer.optimizer.momentum = 0.0001
        step(*data[1])
        moved = np.abs(net[3].weight.data().asnumpy() - before).max()
        assert moved < 1e-3
        assert step.num_plans == 2


class TestResults:
    def test_outputs_and_several_losses_and_inputs(self):
        class Two(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                with self.name_scope():
                    self.a, self.b = nn.Dense(3, in_units=4), nn.Dense(2, in_units=4)

            def hybrid_forward(self, F, x, y):
                return self.a(x + y), self.b(x * y)

        rng = np.random.RandomState(1)
        x, y, t, u = (nd.array(rng.randn(5, n)) for n in (4, 4, 3, 2))
        l2 = gluon.loss.L2Loss()

        def losses(a, b, t, u):
            return l2(a, t), l2(b, u) * 2

        results = []
        for compiled in (False, True):
            mx.random.seed(1)
            net = Two()
            net.initialize()
            trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
            if compiled:
                step = mx.jit.train_step(net, losses, trainer, outputs=True)
                (first, second), (a, b) = step((x, y), (t, u))
            else:
                with autograd.record():
                    a, b = net(x, y)
                    first, second = losses(a, b, t, u)
                autograd.backward([first, second])
                trainer.step(5)
            results.append([v.asnumpy() for v in (first, second, a, b)] + values(net))
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_net_may_give_the_loss(self):
        class Net(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                with self.name_scope():
                    self.out = nn.Dense(1, in_units=4)

            def hybrid_forward(self, F, x, y):
                return F.square(self.out(x) - y)

        net = Net()
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
        step = mx.jit.train_step(net, None, trainer)
        x = nd.array(np.random.RandomState(0).randn(32, 4))
        y = nd.sum(x, axis=1, keepdims=True)
        losses = [float(step((x, y)).mean().asscalar()) for _ in range(60)]
        assert losses[-1] < 0.2 * losses[0]

    def test_the_first_batch_determines_shapes(self):
        net = mlp()
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "sgd")
        step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer)
        x, y = next(batches((8, 12)))
        assert step(x, y).shape == (8,)
        assert net[0].weight.shape == (16, 12)

    def test_arrays_of_numpy_kind(self):
        with mx.np_shape(), mx.np_array():
            net = nn.Dense(3, in_units=4)
            net.initialize()
            trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
            step = mx.jit.train_step(net, gluon.loss.L2Loss(), trainer, clip_global_norm=1.0)
            loss = step(mx.np.ones((2, 4)), mx.np.zeros((2, 3)))
            assert isinstance(loss, mx.np.ndarray)


class TestLossScale:
    def trainer(self, net, scale, trainer=None):
        from hybridnet.contrib.amp.loss_scaler import LossScaler

        trainer = trainer or gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9, "multi_precision": True})
        trainer._amp_loss_scaler = LossScaler(init_scale=scale)  # like amp.init_trainer
        trainer._amp_original_scale = trainer._scale
        return trainer

    def test_overflow_skips_the_update_and_halves_the_scale(self):
        x, y = next(batches((8, 12), "float16"))
        net, _ = made(mlp, "sgd", dict, x, "float16")
        trainer = self.trainer(net, 2.0**24)
        step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer)
        before = net[3].weight.data().asnumpy()
        step(x, y)
        np.testing.assert_array_equal(net[3].weight.data().asnumpy(), before)
        assert trainer._amp_loss_scaler.loss_scale == 2.0**23
        assert trainer.optimizer.num_update == 0
        for _ in range(20):
            step(x, y)
        assert not np.array_equal(net[3].weight.data().asnumpy(), before)
        assert 0 < trainer.optimizer.num_update < 20
        assert step.num_plans == 1

    @pytest.mark.parametrize("name", _core.optimizer_names())
    def test_overflow_leaves_weights_and_states_of_every_optimizer(self, name):
        x, y = next(batches((8, 12), "float16"))
        net, _ = made(matrices, "sgd", dict, x, "float16")
        options = {"learning_rate": 1e-3, "multi_precision": True}
        trainer = self.trainer(net, 1.0, gluon.Trainer(net.collect_params(), name, options))
        step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer)

        def all_values():
            optimizer, updater = trainer.optimizer, trainer._updaters[0]
            plain = {k: v for k, v in vars(optimizer).items() if isinstance(v, (int, float)) and k != "rescale_grad"}
            return values(net), updater.get_states(), plain, dict(optimizer._index_update_count)

        for _ in range(2):
            step(x, y)
        before = all_values()
        step(x * np.inf, y)
        for one, other in zip(before, all_values(), strict=True):
            np.testing.assert_equal(other, one)
        step(x, y)
        assert all_values()[1] != before[1]  # the states contain float32 copies of the weights

    def test_the_scale_does_not_change_float32_results(self):
        data = list(batches((8, 12)))
        plain = stepped(mlp, "sgd", lambda: {"momentum": 0.9}, data)
        net, _ = made(mlp, "sgd", dict, data[0][0])
        step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), self.trainer(net, 1024.0))
        mx.random.seed(7)
        losses = [step(x, y).asnumpy() for x, y in data]
        check_equal(plain[:2], (losses, values(net)))  # scaling by a power of two is exact


class TestExport:
    def test_a_program_in_cpp_trains_on(self, tmp_path):
        from deploy import client_programs

        data = list(batches((8, 12), steps=6))
        net, trainer = made(plain_mlp, "sgd", lambda: {"momentum": 0.9, "wd": 1e-3}, data[0][0])
        step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer)
        for x, y in data[:3]:
            step(x, y)
        symbol_file, params_file = step.export(str(tmp_path / "step"))
        rates = nd.array(np.array(step._last._rows), dtype="float64")
        case = {}
        for i, (x, y) in enumerate(data[3:]):
            case |= {f"data0:{i}": x, f"data1:{i}": y, f"step_rates:{i}": rates}
        nd.save(str(tmp_path / "case.params"), case)
        source = client_programs.ROOT / "tests/cpp/clients/train_model.cc"
        program = client_programs.compile_program(source, tmp_path / "train_model")
        client_programs.run(program, [symbol_file, params_file, tmp_path / "case.params", tmp_path / "result.params"])
        found = nd.load(str(tmp_path / "result.params"))
        for i, (x, y) in enumerate(data[3:]):
            np.testing.assert_array_equal(found[f"loss:{i}"].asnumpy(), step(x, y).asnumpy())
        for param in net.collect_params().values():
            np.testing.assert_array_equal(found[param.name].asnumpy(), param.data().asnumpy())

    @pytest.mark.parametrize("name", _core.optimizer_names())
    def test_a_file_of_a_step_trains_on_with_every_optimizer(self, name, tmp_path):
        def plain():
            net = nn.HybridSequential()
            net.add(nn.Dense(16, activation="relu", use_bias=False), nn.Dense(10, use_bias=False))
            return net

        (x, y), (u, v) = batches((8, 12), steps=2)
        net, trainer = made(plain, name, lambda: {"learning_rate": 1e-3}, x)
        step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer)
        step(x, y)
        symbol_file, params_file = step.export(str(tmp_path / "step"))
        expected = step(u, v).asnumpy()
        loaded = gluon.SymbolBlock.imports(symbol_file, ["data0", "data1", "step_rates"], params_file)
        rates = nd.array(np.array(step._last._rows), dtype="float64")
        with autograd.train_mode():
            losses = loaded(u, v, rates)
        np.testing.assert_array_equal(losses.asnumpy(), expected)
        found = {key: param.data().asnumpy() for key, param in loaded.collect_params().items()}
        for key, param in net.collect_params().items():
            np.testing.assert_array_equal(found[key], param.data().asnumpy())

    def test_before_the_first_step(self):
        net = nn.Dense(3, in_units=4)
        net.initialize()
        step = mx.jit.train_step(net, gluon.loss.L2Loss(), gluon.Trainer(net.collect_params(), "sgd"))
        with pytest.raises(errors.HybridNetError, match="no graph yet"):
            step.export("nowhere")


class TestErrors:
    def build(self, **options):
        net = nn.Dense(3, in_units=4)
        net.initialize(**options)
        return net

    def test_optimizers_in_python_are_named(self):
        net = self.build()

        class Mine(mx.optimizer.SGD):
            def update(self, *arguments):
                raise NotImplementedError

        with pytest.raises(errors.UnsupportedError, match=r"(?s)Mine.*written in Python.*use one of.*SGLD"):
            mx.jit.train_step(net, gluon.loss.L2Loss(), gluon.Trainer(net.collect_params(), Mine()))

    def test_several_contexts(self):
        net = self.build(ctx=[mx.cpu(0), mx.cpu(1)])
        step = mx.jit.train_step(net, gluon.loss.L2Loss(), gluon.Trainer(net.collect_params(), "sgd"))
        with pytest.raises(errors.UnsupportedError, match=r"several contexts: cpu\(0\), cpu\(1\)"):
            step(nd.ones((2, 4)), nd.ones((2, 3)))

    def test_parameters_that_nothing_reads(self):
        net, other = self.build(), self.build()
        params = {**net.collect_params(), **other.collect_params()}
        trainer = gluon.Trainer(params, "sgd")
        with pytest.raises(errors.UserWarning, match=other.weight.name.replace("weight", "")):
            mx.jit.train_step(net, gluon.loss.L2Loss(), trainer)(nd.ones((2, 4)), nd.ones((2, 3)))
        before = other.weight.data().asnumpy()
        step = mx.jit.train_step(net, gluon.loss.L2Loss(), trainer, ignore_stale_grad=True)
        step(nd.ones((2, 4)), nd.ones((2, 3)))
        np.testing.assert_array_equal(other.weight.data().asnumpy(), before)

    def test_nothing_to_train(self):
        net, other = self.build(), self.build()
        trainer = gluon.Trainer(other.collect_params(), "sgd")
        step = mx.jit.train_step(net, gluon.loss.L2Loss(), trainer, ignore_stale_grad=True)
        with pytest.raises(errors.ValueError, match="no parameter of net is trained"):
            step(nd.ones((2, 4)), nd.ones((2, 3)))

    def test_sparse_gradients(self):
        net = nn.Embedding(10, 4, sparse_grad=True)
        net.initialize()
        step = mx.jit.train_step(net, lambda out: out.sum(), gluon.Trainer(net.collect_params(), "sgd"))
        with pytest.raises(errors.UnsupportedError, match="row_sparse"):
            step(nd.array([1, 2]))

    def test_arguments(self):
        net = self.build()
        trainer = gluon.Trainer(net.collect_params(), "sgd")
        with pytest.raises(errors.TypeError, match="HybridBlock"):
            mx.jit.train_step(gluon.nn.Sequential(), gluon.loss.L2Loss(), trainer)
        with pytest.raises(errors.TypeError, match="Trainer"):
            mx.jit.train_step(net, gluon.loss.L2Loss(), "sgd")
        with pytest.raises(errors.ParamError, match="clip_global_norm"):
            mx.jit.train_step(net, gluon.loss.L2Loss(), trainer, clip_global_norm=0)

    def test_loops_without_a_limit_are_said(self):
        class Endless(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                with self.name_scope():
                    self.out = nn.Dense(3, in_units=4)

            def hybrid_forward(self, F, x):
                out = self.out(x)
                return F.contrib.while_loop(lambda v: F.sum(v) < 10, lambda v: ([], [v * 2]), [F.abs(out) + 1])[1][0]

        net = Endless()
        net.initialize()
        step = mx.jit.train_step(net, gluon.loss.L2Loss(), gluon.Trainer(net.collect_params(), "sgd"))
        with pytest.raises(errors.HybridNetError, match="max_iterations"):
            step(nd.ones((2, 4)), nd.ones((2, 3)))

    def test_a_step_that_fails_in_the_middle_is_said_at_the_next(self):
        class Fails(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0])

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                if float(in_data[0].max().asscalar()) > 50:
                    raise RuntimeError("no gradient")
                self.assign(in_grad[0], req[0], out_grad[0])

        @mx.operator.register("step_fails")
        class FailsProp(mx.operator.CustomOpProp):
            def create_operator(self, ctx, shapes, dtypes):
                return Fails()

        class Net(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                with self.name_scope():
                    self.a, self.b = nn.Dense(4, in_units=4), nn.Dense(3, in_units=4)

            def hybrid_forward(self, F, x):
                return self.b(F.Custom(self.a(x), op_type="step_fails"))

        net = Net()
        net.initialize(mx.init.One())
        step = mx.jit.train_step(net, gluon.loss.L2Loss(), gluon.Trainer(net.collect_params(), "sgd"))
        x, y = nd.ones((2, 4)), nd.ones((2, 3))
        step(x, y).wait_to_read()
        with pytest.raises(RuntimeError, match="no gradient"):
            step(x * 100, y).wait_to_read()
        with pytest.raises(errors.HybridNetError, match="parameters are inconsistent"):
            step(x, y)
        net.initialize(force_reinit=True)
        step.reset()
        step(x, y).wait_to_read()


def test_the_profile_debug_follows_every_rewrite_of_a_step():
    data = list(batches((8, 12), steps=2))
    step = stepped(mlp, "adam", dict, data, passes="debug")
    loop = looped(mlp, "adam", dict, data)
    for got, want in zip(step[0] + step[1], loop[0] + loop[1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def layers_of(make):
    """Returns a block that runs make() over (length, batch, 6) and a dense layer on its last row."""

    class Layers(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.layers = make()
                self.out = nn.Dense(10)

        def hybrid_forward(self, F, x):
            return self.out(F.SequenceLast(self.layers(x)))

    return Layers


RECURRENT_LAYERS = {
    "lstm": lambda: rnn.LSTM(8),
    "two_layers": lambda: rnn.LSTM(8, num_layers=2, dropout=0.3),
    "bidirectional": lambda: rnn.LSTM(8, num_layers=2, bidirectional=True),
    "projected": lambda: rnn.LSTM(8, num_layers=2, bidirectional=True, projection_size=5),
    "clipped": lambda: rnn.LSTM(8, state_clip_min=-0.1, state_clip_max=0.1),
    "gru": lambda: rnn.GRU(8, num_layers=2, bidirectional=True),
    "relu": lambda: rnn.RNN(8, num_layers=2, bidirectional=True),
    "tanh": lambda: rnn.RNN(7, activation="tanh"),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("length", [1, 6])
@pytest.mark.parametrize("kind", RECURRENT_LAYERS)
def test_the_gradient_of_recurrent_layers_may_reuse_their_kept_memory(kind, length, dtype):
    build = layers_of(RECURRENT_LAYERS[kind])
    data = list(batches((length, 3, 6), dtype, steps=3, axis=1))
    options = lambda: {"learning_rate": 0.1, "momentum": 0.9}  # noqa: E731
    loop = looped(build, "sgd", options, data, dtype)
    step = stepped(build, "sgd", options, data, dtype)
    check_equal(loop, step)
    text = step[4].plan_text()
    assert any("_backward_RNN" in line and "(in place)" in line for line in text.splitlines()), text


def test_the_gradient_of_rows_of_unequal_lengths_may_take_that_memory_too():
    class Layers(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.layers = rnn.LSTM(8, num_layers=2, bidirectional=True, use_sequence_length=True)
                self.out = nn.Dense(10)

        def hybrid_forward(self, F, x):
            lengths = F.sum(F.sum(x > 0, axis=0), axis=1) / 6  # per example, from 0 to the full length
            return self.out(F.SequenceLast(self.layers(x, sequence_length=lengths)))

    data = list(batches((6, 5, 6), steps=3, axis=1))
    options = lambda: {"learning_rate": 0.1}  # noqa: E731
    step = stepped(Layers, "sgd", options, data)
    check_equal(looped(Layers, "sgd", options, data), step)
    assert any("_backward_RNN" in line and "(in place)" in line for line in step[4].plan_text().splitlines())


@pytest.mark.parametrize("wanted", [True, False])
def test_the_gradient_of_a_sequence_is_made_where_it_is_wanted_only(wanted):
    net, x = rnn.LSTM(8), nd.array(np.random.RandomState(0).randn(4, 3, 6))
    net.initialize()
    net.hybridize()
    grads = []
    for _ in range(2):  # hybridized, then imperative
        x.attach_grad("write" if wanted else "null")
        with autograd.record():
            out = net(x).sum()
        out.backward()
        of = [param.grad() for param in net.collect_params().values()] + ([x.grad] if wanted else [])
        grads.append([grad.asnumpy() for grad in of])
        assert not wanted or np.abs(x.grad.asnumpy()).min() > 0
        if net._active:
            (line,) = [line for line in net.plan_text().splitlines() if "_backward_RNN (" in line]
            assert ("float32(0,)" in line) != wanted
        net.hybridize(False)
    for hybridized, imperative in zip(*grads, strict=True):
        np.testing.assert_allclose(hybridized, imperative, rtol=1e-5, atol=1e-6)


def test_without_inplace_the_gradient_of_a_recurrent_layer_overwrites_nothing():
    build, data = layers_of(RECURRENT_LAYERS["lstm"]), list(batches((6, 3, 6), steps=2, axis=1))
    options = lambda: {"learning_rate": 0.1}  # noqa: E731
    kept = stepped(build, "sgd", options, data, passes="fast_run,-inplace")
    check_equal(looped(build, "sgd", options, data), kept)
    assert "(in place)" not in kept[4].plan_text()


def test_backward_may_run_twice_over_values_kept_by_a_recurrent_layer():
    net, x = rnn.LSTM(8), nd.ones((4, 3, 6))
    net.initialize()
    net.hybridize()
    with autograd.record():
        out = net(x).sum()
    grads = []
    for _ in range(2):
        out.backward(retain_graph=True)
        grads.append([param.grad().asnumpy() for param in net.collect_params().values()])
    for first, second in zip(*grads, strict=True):
        np.testing.assert_array_equal(first, second)
