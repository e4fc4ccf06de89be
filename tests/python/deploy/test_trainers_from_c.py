"""Training through the C ABI: every optimizer, schedules and files of states equal Python's Trainer to the bit."""

from __future__ import annotations

import ctypes
import importlib.util
import json

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, lr_scheduler

from .c_trainer import SHAPES, CTrainer, PythonTrainer, draws, refusal, texts
from .client_programs import ROOT
from .test_operators_from_c import LIBRARY, Handle, check

MATRICES = {name: shape for name, shape in SHAPES.items() if len(shape) == 2}
GENERAL = {"learning_rate": 0.125, "wd": 0.03, "clip_gradient": 0.2, "rescale_grad": 0.7}
OWN = {
    "SGD": [{"momentum": 0.9}, {"momentum": 0.9, "multi_precision": True}],
    "NAG": [{"momentum": 0.9}],
    "Signum": [{"wd_lh": 0.1}, {"momentum": 0.0}],
    "DCASGD": [{"momentum": 0.5}],
    "AdamW": [{"correct_bias": False}],
    "LAMB": [{"lower_bound": 0.1, "upper_bound": 0.5, "bias_correction": False}],
    "RMSProp": [{"centered": True}, {"clip_weights": 0.5}],
    "LARS": [{"momentum": 0.9, "eta": 0.1, "eps": 1e-3}],
    "LBSGD": [
        {"momentum": 0.9, "batch_scale": 2, "warmup_epochs": 1, "updates_per_epoch": 4},
        {"batch_scale": 3, "warmup_strategy": "lars"},
    ],
}
CASES = []
for name in _core.optimizer_names():
    general = GENERAL if name != "GroupAdaGrad" else {"learning_rate": 0.125, "clip_gradient": 0.2}
    CASES += [(name, {}), (name, general), *((name, {**general, **own}) for own in OWN.get(name, []))]


def pair(name: str, settings, dtype: str = "float32", seed: int = 3):
    """Returns trainers of C and of Python with equal parameters."""
    shapes = MATRICES if name == "GroupAdaGrad" else SHAPES
    values = draws(np.random.default_rng(seed), dtype, shapes)
    return CTrainer(values, name.lower(), settings), PythonTrainer(values, name, settings), shapes


def steps(ours: CTrainer, theirs: PythonTrainer, shapes, dtype: str, count: int, seed: int = 5) -> None:
    rng = np.random.default_rng(seed)
    for step in range(count):
        grads = draws(rng, dtype, shapes)
        for each in (ours, theirs):
            each.backward(grads)
        mx.random.seed(step)
        check(ours.step(4.0))
        mx.random.seed(step)
        theirs.step(4.0)
        assert ours.values() == theirs.values(), f"step {step + 1}"


@pytest.mark.filterwarnings("ignore:Accumulating with float16")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("name", "settings"), CASES, ids=lambda value: str(value))
def test_five_steps_of_every_optimizer_have_the_bits_of_python(name: str, settings, dtype: str) -> None:
    if dtype == "float16":
        settings = {**settings, "multi_precision": True}
    ours, theirs, shapes = pair(name, settings, dtype)
    before = ours.values()
    steps(ours, theirs, shapes, dtype, 5)
    assert ours.values() != before
    ours.close()


@pytest.mark.parametrize("name", _core.optimizer_names())
def test_states_go_from_c_to_python_and_back(name: str, tmp_path) -> None:
    settings = {**OWN.get(name, [{}])[0], "learning_rate": 0.125}
    first, second, shapes = pair(name, settings)
    steps(first, second, shapes, "float32", 3)
    first.save(tmp_path / "c.states")
    second.trainer.save_states(str(tmp_path / "python.states"))
    values = {key: np.frombuffer(value, "float32").reshape(shapes[key]) for key, value in first.values().items()}
    # New trainers, which take the settings from the files.
    later, also = CTrainer(values, "sgd", {}), PythonTrainer(values, "sgd", {})
    check(later.load(tmp_path / "python.states"))
    also.trainer.load_states(str(tmp_path / "c.states"))
    assert type(also.trainer.optimizer).__name__ == name
    steps(later, also, shapes, "float32", 3, seed=8)
    steps(first, second, shapes, "float32", 3, seed=8)
    assert later.values() == first.values() == also.values()
    for trainer in (first, later):
        trainer.close()


SCHEDULES = [
    ("FactorScheduler", {"step": 3, "factor": 0.7, "base_lr": 0.3}),
    ("FactorScheduler", {"step": 1, "factor": 0.1, "stop_factor_lr": 1e-3, "base_lr": 0.3, "warmup_steps": 4}),
    ("MultiFactorScheduler", {"step": [4, 9, 11], "factor": 0.3, "base_lr": 0.2, "warmup_steps": 3}),
    ("PolyScheduler", {"max_update": 15, "base_lr": 0.3, "pwr": 1.7, "final_lr": 0.01}),
    ("PolyScheduler", {"max_update": 12, "base_lr": 0.3, "warmup_steps": 5, "warmup_begin_lr": 0.1}),
    ("CosineScheduler", {"max_update": 17, "base_lr": 0.3, "final_lr": 0.02, "warmup_steps": 3}),
    ("CosineScheduler", {"max_update": 9, "base_lr": 0.7, "warmup_steps": 2, "warmup_mode": "constant"}),
]


def set_schedule(trainer: CTrainer, name: str, arguments) -> int:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in arguments.items()}
    return LIBRARY.hn_trainer_set_schedule(trainer.handle, name.encode(), *texts(values))


@pytest.mark.parametrize(("name", "arguments"), SCHEDULES, ids=str)
def test_schedules_give_the_rates_of_python_and_go_on_from_files(name: str, arguments, tmp_path) -> None:
    values = {"w": np.ones((2,), "float32")}
    ours = CTrainer(values, "sgd", {})
    check(set_schedule(ours, name, arguments))
    theirs = PythonTrainer(values, "sgd", {"lr_scheduler": getattr(lr_scheduler, name)(**arguments)})
    for step in range(20):
        assert ours.rate == theirs.trainer.learning_rate, step
        for each in (ours, theirs):
            each.backward(values)
        check(ours.step(1.0))
        theirs.step(1.0)
        assert ours.values() == theirs.values(), step
        if step in (1, 7):
            path = tmp_path / f"{step}.states"
            if step == 1:
                ours.save(path)
                fresh = PythonTrainer(values, "sgd", {"lr_scheduler": getattr(lr_scheduler, name)(**arguments)})
                fresh.trainer.load_states(str(path))
                assert fresh.trainer.learning_rate == ours.rate
            theirs.trainer.save_states(str(path))
            check(ours.load(path))
    ours.close()


@pytest.mark.parametrize("factor", [1.0, 0.5, 0.999, 0.0, -0.5])
def test_a_rate_that_stays_is_not_computed_again_and_again(factor: float, tmp_path) -> None:
    """After 10^12 updates, long after the last change, rate and count are as if each change had been computed."""
    arguments = {"step": 3, "factor": factor, "base_lr": 0.3, "stop_factor_lr": 1e-8}
    ours = CTrainer({"w": np.ones((2,), "float32")}, "sgd", {})
    check(set_schedule(ours, "FactorScheduler", arguments))
    check(LIBRARY.hn_trainer_set_setting(ours.handle, b"begin_num_update", b"1000000000000"))
    theirs, plain = lr_scheduler.FactorScheduler(**arguments), 0.3
    for _ in range(40_000):
        plain = max(plain * factor, 1e-8)
    ours.backward({"w": np.ones((2,), "float32")})
    check(ours.step(1.0))
    assert ours.rate == theirs(1_000_000_000_001) == plain
    assert theirs.count < 1_000_000_000_001 <= theirs.count + 3
    ours.save(tmp_path / "states")
    fresh = PythonTrainer({"w": np.ones((2,), "float32")}, "sgd", {})
    fresh.trainer.load_states(str(tmp_path / "states"))
    assert fresh.trainer.optimizer.lr_scheduler.count == theirs.count
    ours.close()


def test_files_whose_next_rate_is_endless_work_are_refused(tmp_path) -> None:
    values = {"w": np.ones((2,), "float32")}
    ours, theirs = CTrainer(values, "sgd", {}), PythonTrainer(values, "sgd", {})
    check(set_schedule(ours, "FactorScheduler", {"step": 1, "factor": 0.999999999999, "base_lr": 0.3}))
    ours.save(tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    header = json.loads(content[16:])
    header["optimizer"]["settings"]["num_update"] = 1 << 52
    text = json.dumps(header).encode()
    (tmp_path / "slow").write_bytes(content[:8] + len(text).to_bytes(8, "little") + text)
    assert "1000000000 changes behind update 4503599627370496" in refusal(ours.load(tmp_path / "slow"))
    with pytest.raises(mx.errors.FormatError, match="changes behind update 4503599627370496"):
        theirs.trainer.load_states(str(tmp_path / "slow"))
    ours.close()


@pytest.mark.parametrize("name", ["momentum", "master", "adam", "nadam", "centered"])
def test_the_files_that_fuzzing_starts_from_load(name: str, tmp_path) -> None:
    spec = importlib.util.spec_from_file_location("corpora", ROOT / "tests/fuzz/corpora.py")
    assert spec is not None and spec.loader is not None
    corpora = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpora)
    (tmp_path / "states").write_bytes(corpora.states()[name])
    values = {"bias": np.ones(4, "float32"), "table": np.ones((3, 2), "float32"), "thin": np.ones((2, 2), "float16")}
    trainer = CTrainer(values, "sgd", {"multi_precision": name == "master"})
    check(trainer.load(tmp_path / "states"))
    trainer.backward(values)
    check(trainer.step(1.0))
    trainer.close()


def test_without_base_lr_a_schedule_begins_at_the_learning_rate() -> None:
    trainer = CTrainer({"w": np.ones((2,), "float32")}, "adam", {"learning_rate": 0.37})
    check(set_schedule(trainer, "FactorScheduler", {"step": 2, "factor": 0.5}))
    assert trainer.rate == 0.37
    assert "the learning rate is that of the schedule FactorScheduler" in refusal(
        LIBRARY.hn_trainer_set_learning_rate(trainer.handle, ctypes.c_double(1))
    )
    check(LIBRARY.hn_trainer_set_schedule(trainer.handle, None, *texts({})))
    check(LIBRARY.hn_trainer_set_learning_rate(trainer.handle, ctypes.c_double(0.5)))
    assert trainer.rate == 0.5
    trainer.close()


def test_multipliers_and_settings_between_steps_are_those_of_python() -> None:
    ours, theirs, shapes = pair("Adam", GENERAL)
    check(LIBRARY.hn_trainer_set_multipliers(ours.handle, b"a_bias", ctypes.c_double(0.25), ctypes.c_double(0)))
    theirs.params["a_bias"].lr_mult, theirs.params["a_bias"].wd_mult = 0.25, 0
    steps(ours, theirs, shapes, "float32", 2)
    check(LIBRARY.hn_trainer_set_setting(ours.handle, b"beta1", b"0.5"))
    check(LIBRARY.hn_trainer_set_setting(ours.handle, b"clip_gradient", b"None"))
    check(LIBRARY.hn_trainer_set_learning_rate(ours.handle, ctypes.c_double(0.01)))
    theirs.trainer.optimizer.beta1, theirs.trainer.optimizer.clip_gradient = 0.5, None
    theirs.trainer.set_learning_rate(0.01)
    text = ctypes.c_char_p()
    check(LIBRARY.hn_trainer_setting(ours.handle, b"beta1", ctypes.byref(text)))
    assert text.value == b"0.5"
    steps(ours, theirs, shapes, "float32", 2)
    ours.close()


def test_stale_gradients_are_named_or_passed_over() -> None:
    ours, theirs, _ = pair("Adam", {})
    grads = draws(np.random.default_rng(1))
    stale = grads.pop("deep_gamma")
    for each in (ours, theirs):
        each.backward(grads)
    assert "GradientError: input 'deep_gamma'" in refusal(ours.step(1.0)).replace("operator", "input")
    check(ours.step(1.0, ignore_stale=True))
    theirs.step(1.0, ignore_stale=True)
    assert ours.values() == theirs.values()
    for each in (ours, theirs):
        each.backward({**grads, "deep_gamma": stale})
    check(ours.step(1.0))
    theirs.step(1.0)
    assert ours.values() == theirs.values()
    ours.close()


def test_misuse_is_an_error_that_names_the_argument() -> None:
    trainer = CTrainer({"w": np.ones((2,), "float32")}, "adam", {})
    for batch_size in (0.0, -1.0, float("nan")):
        assert "batch_size" in refusal(trainer.step(batch_size))
    for name, arguments, words in [
        ("Factor", {}, "FactorScheduler"),
        ("FactorScheduler", {}, "step"),
        ("FactorScheduler", {"step": 1, "stop": 2}, "stop"),
        ("FactorScheduler", {"step": 0}, "step"),
        ("FactorScheduler", {"step": 1, "factor": 1.5}, "at most 1"),
        ("FactorScheduler", {"step": 1, "warmup_begin_lr": 1}, "warmup_begin_lr"),
        ("FactorScheduler", {"step": 1, "warmup_mode": "fast"}, "linear"),
        ("MultiFactorScheduler", {"step": [3, 3]}, "increasing"),
        ("MultiFactorScheduler", {"step": []}, "step"),
        ("CosineScheduler", {"max_update": 3, "warmup_steps": 3}, "warmup_steps"),
    ]:
        assert words in refusal(set_schedule(trainer, name, arguments)), (name, arguments)
    assert "learning_rate, wd" in refusal(LIBRARY.hn_trainer_set_setting(trainer.handle, b"momentum", b"1"))
    assert "beta1" in refusal(LIBRARY.hn_trainer_set_setting(trainer.handle, b"beta1", b"much"))
    one = ctypes.c_double(1)
    assert "one of w" in refusal(LIBRARY.hn_trainer_set_multipliers(trainer.handle, b"v", one, one))
    names = (ctypes.c_char_p * 2)(b"w", b"w")
    arrays = (Handle * 2)(trainer.arrays["w"], trainer.arrays["w"])
    made = Handle()

    def create(count: int, optimizer: bytes, **settings) -> str:
        size = ctypes.c_size_t(count)
        return refusal(LIBRARY.hn_trainer_create(size, names, arrays, optimizer, *texts(settings), ctypes.byref(made)))

    assert "twice" in create(2, b"sgd")
    assert "adamax" in create(1, b"adams")
    assert "ParamError" in create(1, b"sgd", beta1=1) and "beta1" in create(1, b"sgd", beta1=1)
    assert "cannot be set" in create(1, b"nadam", m_schedule=1)
    trainer.close()
    assert "freed" in refusal(trainer.step(1.0))


def test_files_that_fit_other_models_or_are_damaged_change_nothing(tmp_path) -> None:
    ours, theirs, shapes = pair("Adam", GENERAL)
    steps(ours, theirs, shapes, "float32", 2)
    path, broken = tmp_path / "whole.states", tmp_path / "broken.states"
    ours.save(path)
    whole = path.read_bytes()
    refused = 0
    cuts = [whole[:size] for size in range(0, len(whole), 7)] + [whole + b"\0"]
    rng = np.random.default_rng(3)
    for place in rng.integers(0, len(whole), 400):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        cuts.append(bytes(changed))
    for content in cuts:
        broken.write_bytes(content)
        if ours.load(broken) == -1:
            refused += 1
        else:  # the damage changed only a value, such as a number in an array
            check(ours.load(path))
    assert refused > len(whole) // 7
    check(ours.load(path))
    size = int.from_bytes(whole[8:16], "little")
    header = json.loads(whole[16 : 16 + size])

    def load(change) -> str:
        changed = json.loads(json.dumps(header))
        change(changed)
        text = json.dumps(changed).encode()
        broken.write_bytes(whole[:8] + len(text).to_bytes(8, "little") + text + whole[16 + size :])
        return refusal(ours.load(broken))

    assert "float32 (5,)" in load(lambda h: h["states"][0][1]["tuple"][0].update(shape=[6]))
    assert "a tuple of 2" in load(lambda h: h["states"][0].__setitem__(1, {"value": None}))
    assert "Mine" in load(lambda h: h["optimizer"].update({"class": "Mine"}))
    assert "beta1" in load(lambda h: h["optimizer"]["settings"].update(beta1=[1]))
    assert "belong to 3 parameters" in load(
        lambda h: (h["parameters"].pop(), h["parameters"][0].__setitem__(1, "other"))
    )
    assert "'states' is no list" in load(lambda h: h.update(states=3))
    assert "Endless" in load(lambda h: h["optimizer"].update(scheduler={"class": "Endless", "settings": {}}))
    assert "FileError" in refusal(ours.load(tmp_path / "missing"))
    steps(ours, theirs, shapes, "float32", 2, seed=9)  # refused files left no trace
    ours.close()


def test_parameters_are_found_by_name_in_any_order(tmp_path) -> None:
    """gluon.Trainer keeps the order of a list; trainers of C order parameters by name."""
    values = draws(np.random.default_rng(2))
    ours = CTrainer(values, "adam", {})
    theirs = PythonTrainer(values, "adam", {})
    listed = [theirs.params[name] for name in sorted(values, reverse=True)]
    theirs.trainer = mx.gluon.Trainer(listed, "adam", {})
    steps(ours, theirs, SHAPES, "float32", 2)
    theirs.trainer.save_states(str(tmp_path / "python"))
    ours.save(tmp_path / "c")
    check(ours.load(tmp_path / "python"))
    theirs.trainer.load_states(str(tmp_path / "c"))
    steps(ours, theirs, SHAPES, "float32", 2)
    ours.close()


def test_numbers_that_json_lacks_survive_files(tmp_path) -> None:
    ours, theirs, shapes = pair("SGD", {"clip_gradient": float("inf"), "momentum": 0.5})
    steps(ours, theirs, shapes, "float32", 1)
    for source, target in ((ours.save, theirs.trainer.load_states), (theirs.trainer.save_states, ours.load)):
        source(str(tmp_path / "states"))
        assert not target(str(tmp_path / "states"))
    assert theirs.trainer.optimizer.clip_gradient == float("inf")
    steps(ours, theirs, shapes, "float32", 1)
    ours.close()
