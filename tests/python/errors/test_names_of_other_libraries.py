"""Names and keywords of PyTorch, Keras and NumPy: each has an error that names what exists here, and it does exist."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import pickle
import pydoc
import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet._habits import Habit, replacement
from hybridnet._habits._keyword_names import KEYWORD_NAMES
from hybridnet._habits._module_names import IMPORT_NAMES, MODULE_NAMES
from hybridnet._habits._object_names import OBJECT_NAMES
from hybridnet._keywords import _known
from hybridnet.gluon import nn

OWNERS = {
    "array": mx.nd.NDArray,
    "symbol": mx.sym.Symbol,
    "block": gluon.Block,
    "sequential": nn.basic_layers._Container,
    "trainer": gluon.Trainer,
    "parameter": gluon.Parameter,
    "parameters": gluon.ParameterDict,
    "loader": gluon.data.DataLoader,
    "dataset": gluon.data.Dataset,
    "optimizer": mx.optimizer.Optimizer,
    "metric": mx.metric.EvalMetric,
    "schedule": mx.lr_scheduler.LRScheduler,
}


def program_names() -> dict[str, object]:
    """Returns the variables that the lines of the tables use."""
    mx.random.seed(0)
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3))
    net.initialize()
    x, y = mx.nd.arange(1, 7).reshape((2, 3)), mx.nd.ones((2, 3))
    x.attach_grad()
    loss_fn, label = gluon.loss.SoftmaxCrossEntropyLoss(), mx.nd.array([0, 1])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    with autograd.record():
        loss = loss_fn(net(x), label)
    loss.backward(retain_graph=True)
    net.save_parameters("net.params")
    trainer.save_states("trainer.states")
    mx.nd.save("arrays", [x])
    dataset = gluon.data.ArrayDataset(np.ones((4, 3), "float32"), np.zeros(4, "float32"))
    loader = gluon.data.DataLoader(dataset, batch_size=2)
    return {
        "mx": mx, "gluon": gluon, "nn": nn, "autograd": autograd, "net": net, "x": x, "y": y, "a": x, "b": y.T,
        "loss_fn": loss_fn, "label": label, "loss": loss, "trainer": trainer, "dataset": dataset, "loader": loader,
        "param": net[0].weight, "values": np.ones((4, 3), "float32"), "shape": (2, 3), "name": "extra", "units": 4,
        "channels": 4, "rate": 0.5, "hidden_size": 4, "in_features": 3, "vocabulary": 9, "batch_size": 2, "value": 2.0,
        "dtype": "float32", "index": mx.nd.array([0, 1]), "data": np.ones((2, 3)), "metric": mx.metric.Accuracy(),
        "optimizer": mx.optimizer.SGD(), "images": mx.nd.ones((1, 2, 8, 8)),
        "mask": x > 3, "indices": mx.nd.array([[2, 0], [1, 1]], dtype="int64"),
    }  # fmt: skip


def symbol_names() -> dict[str, object]:
    """Returns the variables with graphs for arrays."""
    x, y = mx.sym.var("x", shape=(2, 3)), mx.sym.var("y", shape=(2, 3))
    images = mx.sym.var("images", shape=(1, 2, 8, 8))
    return {
        **program_names(), "x": x, "y": y, "a": x, "b": mx.sym.transpose(y), "index": mx.sym.var("index"),
        "images": images, "mask": x > 3,
    }  # fmt: skip


def run_line(line: str, names: dict[str, object]) -> None:
    """Runs the code of a line; of a line for GPUs only its names are looked up."""
    code = line.partition("# ")[0].strip()
    if "mx.gpu(" in code:
        code = code.partition("(")[0]
    if "batch_dot(a, b)" in code:  # the stacks of matrices of the line
        names = {**names, "a": names["a"].expand_dims(0), "b": names["b"].expand_dims(0)}
    try:
        exec(compile(code, "<table>", "exec"), names)
    finally:
        autograd.set_recording(False)
        mx.util.reset_np()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with mx.name.NameManager():
        yield


# --- the tables -------------------------------------------------------------------------------------------------------


def test_the_tables_have_at_least_250_entries():
    assert sum(len(names) for table in (MODULE_NAMES, OBJECT_NAMES) for names in table.values()) >= 250
    assert len(KEYWORD_NAMES) >= 100


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("path", MODULE_NAMES)
def test_names_of_a_module_do_not_exist_and_their_replacements_run(path, folder):
    module = importlib.import_module(f"hybridnet.{path}".rstrip("."))
    for name, line in MODULE_NAMES[path].items():
        with pytest.raises(mx.errors.AttributeError) as caught:
            getattr(module, name)
        assert caught.value.fix == replacement(line)
        assert str(caught.value).endswith(f"Fix: {replacement(line)}." if replacement(line)[-1] not in ".!?" else "")
        run_line(line, program_names())


@pytest.mark.parametrize("name", [name for name in MODULE_NAMES["ndarray"] if name != "var"])  # sym.var makes inputs
def test_replacements_of_symbol_functions_run(name, folder):
    with pytest.raises(mx.errors.AttributeError) as caught:
        getattr(mx.sym, name)
    found = re.match(r"write (mx\.sym\..*?)(: |$)", caught.value.fix or "")
    if found and "random" not in found[1]:
        run_line(found[1], symbol_names())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", OBJECT_NAMES)
def test_names_of_an_object_do_not_exist_and_their_replacements_run(kind, folder):
    for name, line in OBJECT_NAMES[kind].items():
        own = vars(OWNERS[kind])[name]
        assert isinstance(own, Habit), f"{kind}.{name} exists: remove it from the table"
        behind = [vars(base)[name] for base in OWNERS[kind].__mro__ if name in vars(base)]
        assert all(isinstance(value, Habit) for value in behind)
        with pytest.raises(mx.errors.AttributeError) as caught:
            own.__get__(None, OWNERS[kind])
        assert caught.value.fix == replacement(line)
        run_line(line, symbol_names() if kind == "symbol" else program_names())


def keywords_of_everything() -> dict[str, set[str]]:
    """Maps classes and operators to the keywords that they take."""
    places = (
        nn,
        gluon.rnn,
        gluon.loss,
        gluon.data,
        gluon.data.vision,
        gluon.data.vision.transforms,
        mx.optimizer,
        mx.init,
        mx.lr_scheduler,
        mx.metric,
        gluon,
    )
    classes = {c for place in places for c in vars(place).values() if isinstance(c, type)}
    known = {c.__name__: set(_known(c)) for c in classes if c.__module__.startswith("hybridnet")}
    known["resnet18_v1"] = {"classes"}
    functions = (gluon.Block.initialize, gluon.Block.load_parameters, gluon.Block.save_parameters)
    for function in (*functions, autograd.grad, autograd.backward):
        known[function.__name__] = set(inspect.signature(function).parameters)
    for name in dir(mx.nd):
        with contextlib.suppress(TypeError, ValueError):
            known.setdefault(name, set(inspect.signature(getattr(mx.nd, name)).parameters))
    for name in mx.nd.random.__all__:
        known[f"random.{name}"] = set(inspect.signature(getattr(mx.nd.random, name)).parameters)
    return known


def test_keywords_are_replaced_by_keywords_that_exist_where_they_do_not():
    known = keywords_of_everything()
    for word, replacements in KEYWORD_NAMES.items():
        for entry in replacements:
            only, line = entry if isinstance(entry, tuple) else ("", entry)
            owners = only.split() or [owner for owner, names in known.items() if word not in names]
            if line.startswith("# "):
                assert only, f"{word}: a remark needs owners"
                assert all(word not in known.get(owner, ()) for owner in owners), f"{word} exists in {owners}"
                continue
            wanted = set(re.findall(r"(?:^|, )(\w+)=", line) or [line])
            fitting = [owner for owner in owners if wanted <= known.get(owner, set()) and word not in known[owner]]
            assert fitting, f"{word} -> {line}: nothing takes the one and not the other"
            assert not only or fitting == owners, f"{word} -> {line}: not for {set(owners) - set(fitting)}"


def test_every_owner_of_a_keyword_exists():
    known = keywords_of_everything()
    limited = [entry[0] for entries in KEYWORD_NAMES.values() for entry in entries if isinstance(entry, tuple)]
    owners = {owner for names in limited for owner in names.split()}
    assert {owner for owner in owners if owner not in known and not owner.startswith("_")} == set()


# --- modules ----------------------------------------------------------------------------------------------------------


def failing(code: str, **names) -> Exception:
    with pytest.raises(mx.MXNetError) as caught:
        exec(code, {"mx": mx, "nn": nn, "gluon": gluon, "autograd": autograd, **names})
    return caught.value


def test_a_name_of_another_module_names_this_module():
    assert failing("mx.zeros").fix == "write mx.nd.zeros"
    assert failing("gluon.Dense").fix == "write mx.gluon.nn.Dense"
    assert failing("nn.SoftmaxCrossEntropyLoss").fix == "write mx.gluon.loss.SoftmaxCrossEntropyLoss"
    assert failing("gluon.data.CIFAR10").fix == "write mx.gluon.data.vision.CIFAR10"
    assert failing("mx.np.topk").fix == "write mx.npx.topk"


@pytest.mark.parametrize("path", IMPORT_NAMES)
def test_the_modules_of_other_libraries_cannot_be_imported_and_their_replacements_can(path):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"hybridnet.{path}")
    exec(IMPORT_NAMES[path].partition("  # ")[0], {})


def test_a_misspelt_name_has_the_nearest_one():
    assert failing("mx.nd.transposee").fix == "did you mean 'transpose'?"
    assert failing("nn.conv2d").fix == "did you mean 'Conv2D'?"
    assert "fix" not in str(failing("mx.nd.qqqqzzzz")).lower()


def test_an_import_of_a_name_has_the_fix():
    for code in ("from hybridnet.gluon.nn import Linear", "from hybridnet.nd import cat"):
        error = failing(code)
        assert isinstance(error, ImportError)
        assert error.fix
    in_function = failing("def f():\n from hybridnet.gluon.nn import Linear\nf()")
    assert in_function.fix == "write nn.Dense(units, in_units=in_features)"
    with pytest.raises(AttributeError):
        nn.Linear  # noqa: B018


def test_lookups_of_special_names_have_no_fix_and_are_plain():
    error = failing("mx.nd.__wrapped__")
    assert isinstance(error, AttributeError)
    assert error._finds_fix is None
    assert not hasattr(mx.nd, "Linear")
    assert getattr(nn, "Linear", None) is None


def test_an_error_keeps_its_fix_in_copies():
    error = failing("nn.Linear")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.fix == error.fix


# --- objects ----------------------------------------------------------------------------------------------------------


class Mixin:
    """A class of a program that has names of the table."""

    registry = ()

    def fit(self):
        return "fitted"

    @property
    def device(self):
        return "mine"


class Trained(nn.Dense, Mixin):
    def predict(self):
        return "predicted"

    def compile(self):
        return super().compile()


class Wrapper(gluon.Block):
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return f"delegated {name}"


def test_names_of_a_program_are_preferred():
    net = Trained(3)
    assert net.fit() == "fitted"
    assert net.device == "mine"
    assert net.predict() == "predicted"
    net.train = 5
    assert net.train == 5
    assert Trained.fit(net) == "fitted"
    assert Wrapper().parameters == "delegated parameters"
    assert "'Trained' object has no attribute 'compile'" in str(failing("net.compile()", net=net))


def test_names_that_exist_only_for_their_error_are_not_listed():
    net, x = nn.Dense(3), mx.nd.ones((2,))
    assert {"parameters", "train", "fit"}.isdisjoint(dir(net))
    assert {"view", "cuda", "numpy"}.isdisjoint(dir(x))
    assert {"collect_params", "weight"} <= set(dir(net))
    assert "fit" in dir(Trained(3))
    assert "asnumpy" in dir(x)


def test_help_shows_the_replacement():
    assert "No attribute here: write net.collect_params()." in pydoc.plain(pydoc.render_doc(nn.Dense))


def test_hasattr_is_false_for_names_of_other_libraries():
    net, x = nn.Dense(3), mx.nd.ones((2,))
    assert not any(hasattr(net, name) for name in OBJECT_NAMES["block"])
    assert not any(hasattr(x, name) for name in OBJECT_NAMES["array"])
    assert not hasattr(gluon.Block, "fit")


@pytest.mark.parametrize("kind", OWNERS)
def test_no_class_has_a_getattr_which_would_make_every_attribute_slower(kind):
    assert not any("__getattr__" in vars(base) for base in OWNERS[kind].__mro__)


def test_blocks_and_arrays_can_be_copied_and_pickled():
    x = mx.nd.arange(3)
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert made.asnumpy().tolist() == [0, 1, 2]
    schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=1)
    assert pickle.loads(pickle.dumps(schedule)).step == copy.deepcopy(schedule).step == 2
    init = mx.init.Normal(sigma=0.5)
    assert pickle.loads(pickle.dumps(init)).sigma == copy.deepcopy(init).sigma == 0.5
    dataset = gluon.data.ArrayDataset(np.ones((4, 3)))
    assert len(pickle.loads(pickle.dumps(gluon.data.SequentialSampler(len(dataset))))) == 4


def test_setting_what_would_have_no_effect_raises_the_error():
    net = nn.Dense(2, in_units=2)
    net.initialize()
    assert failing("p.requires_grad = False", p=net.weight).fix.startswith('write param.grad_req = "null"')
    assert failing("x.requires_grad = True", x=mx.nd.ones((2,))).fix.startswith("write x.attach_grad()")
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    assert "set_learning_rate" in failing("t.lr = 0.1", t=trainer).fix


def test_traced_arrays_have_the_fixes_too():
    class Net(gluon.HybridBlock):
        def forward(self, x):
            return x.view(-1)

    net = Net()
    net.hybridize()
    with pytest.raises(mx.errors.AttributeError, match=r"write x\.reshape"):
        net(mx.nd.ones((2, 3)))


# --- keywords ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        ("nn.Dense(units=3, in_features=2)", "write in_units=... in place of in_features=..."),
        ("nn.Conv2D(8, 3, stride=2)", "write strides=... in place of stride=..."),
        ("nn.Conv2D(out_channels=8, kernel_size=3)", "write channels=... in place of out_channels=..."),
        ("nn.Dropout(p=0.1)", "write rate=... in place of p=..."),
        ("gluon.rnn.LSTM(4, batch_first=True)", 'write layout="NTC" in place of batch_first=...'),
        ("mx.optimizer.Adam(lr=0.1)", "write learning_rate=... in place of lr=..."),
        ("mx.nd.sum(x, dim=1)", "write axis=... in place of dim=..."),
        ("x.mean(axis=1, keepdim=True)", "write keepdims=... in place of keepdim=..."),
        ("mx.nd.concat(x, x, axis=1)", "write dim=... in place of axis=..."),
        ("mx.sym.sum(mx.sym.var('x'), dim=1)", "write axis=... in place of dim=..."),
        ("gluon.data.DataLoader([1, 2], 1, collate_fn=list)", "write batchify_fn=... in place of collate_fn=..."),
        ("gluon.data.DataLoader([1, 2], 1, drop_last=True)", 'write last_batch="discard" in place of drop_last=...'),
        ("gluon.Trainer(net.collect_params(), 'sgd', lr=1)", "give it in the dict of the optimizer: "
         'gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})'),
        ("mx.nd.norm(x, p=2)", "write ord=... in place of p=..."),
        ("x.sort(descending=True)", "write is_ascend=False in place of descending=..."),
        ("nn.Conv2D(8, 3, input_shape=(3, 8, 8))",
         "give the number of channels: in_channels=3; or leave it out: the first batch tells it"),
        ("mx.nd.zeros((2,), requires_grad=True)", "call x.attach_grad() on the new array"),
        ("mx.init.Normal(std=0.1)", "write sigma=... in place of std=..."),
        ("mx.lr_scheduler.FactorScheduler(step_size=2)", "write step=... in place of step_size=..."),
        ("mx.nd.array([1], device=mx.cpu())", "write ctx=... in place of device=..."),
        ("mx.nd.full((2,), 1, requires_grad=True)", "call x.attach_grad() on the new array"),
        ("mx.np.array([1], device=mx.cpu())", "write ctx=... in place of device=..."),
        ("net.initialize(device=mx.cpu())", "write ctx=... in place of device=..."),
        ("net.load_parameters('f', skip_mismatch=True)", "write ignore_extra=... in place of skip_mismatch=..."),
        ("net.load_parameters('f', map_location=mx.cpu())", "write ctx=... in place of map_location=..."),
        ("autograd.grad(x, x, grad_outputs=x)", "write head_grads=... in place of grad_outputs=..."),
        ("gluon.Parameter('w', initializer='zeros')", "write init=... in place of initializer=..."),
    ],
)  # fmt: skip
def test_an_unknown_keyword_has_the_fix(code, fix):
    net = nn.Dense(2, in_units=2)
    net.initialize()
    error = failing(code, x=mx.nd.ones((2, 3)), net=net)
    assert isinstance(error, mx.errors.ParamError)
    assert isinstance(error, TypeError)
    assert error.fix == fix if fix else error.fix
    assert f"Fix: {error.fix}" in str(error)


def test_an_unknown_keyword_that_is_in_no_table_has_the_nearest_one():
    assert failing("nn.Dense(unitss=3)").fix == "did you mean 'units'?"
    assert failing("mx.nd.sum(mx.nd.ones((2, 3)), axiz=1)").fix == "did you mean 'axis'?"


def test_signatures_are_those_of_the_constructors():
    assert list(inspect.signature(gluon.Trainer).parameters)[:2] == ["params", "optimizer"]
    assert next(iter(inspect.signature(gluon.data.DataLoader).parameters)) == "dataset"
    assert list(inspect.signature(mx.init.Normal).parameters) == ["sigma"]
