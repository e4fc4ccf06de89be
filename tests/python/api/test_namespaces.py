"""Completion and help show the names of the package: no imports, no private names, nothing without a description."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import types
import typing
from pathlib import Path

import hybridnet as mx
import pytest

TOP = Path(mx.__file__).parent


def public_modules():
    for path in sorted(TOP.rglob("*.py")):
        parts = [part for part in path.relative_to(TOP).with_suffix("").parts if part != "__init__"]
        if not any(part.startswith("_") for part in parts):
            yield ".".join(["hybridnet", *parts])


MODULES = list(public_modules())
# Objects of NumPy that mx.np shares with it.
SHARED = {"bool", "bool_", "dtype", "float16", "float32", "float64", "int8", "int32", "int64", "uint8"}
NUMPY = {"hybridnet.numpy": SHARED, "hybridnet.symbol.numpy": SHARED}


def shown(module):
    return [name for name in dir(module) if not (name.startswith("__") and name.endswith("__"))]


def owner(value):
    """Returns the module of a function or class, its own name for a module, None for other values."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    found = getattr(value, "__module__", None)
    return found if isinstance(found, str) and (callable(value) or isinstance(value, type)) else None


def values(name):
    module = importlib.import_module(name)
    for member in shown(module):
        yield member, getattr(module, member)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_lists_its_own_names(name):
    foreign = [
        member
        for member, value in values(name)
        if member not in NUMPY.get(name, ())
        and (
            member.startswith("_")
            or (owner(value) or "hybridnet").partition(".")[0] not in ("hybridnet", "builtins")
            or typing.get_origin(value) is not None
            or isinstance(value, typing.TypeVar)
        )
    ]
    assert foreign == []
    module = importlib.import_module(name)
    exported = {member for member in getattr(module, "__all__", ()) if not member.startswith("_")}
    assert exported <= set(dir(module))


def test_first_use_does_not_change_a_list():
    for name in ("hybridnet", "hybridnet.ndarray", "hybridnet.gluon", "hybridnet.symbol.random", "hybridnet.contrib"):
        module = importlib.import_module(name)
        before = dir(module)
        for member in before:
            getattr(module, member)
        assert dir(module) == before, name


@pytest.mark.parametrize(
    ("name", "expected", "absent"),
    [
        ("hybridnet", "nd gluon autograd viz init cpu Context metric np jit __version__", "Any annotations atexit sys"),
        ("hybridnet.ndarray", "array zeros NDArray random linalg contrib relu FullyConnected", "Any importlib"),
        ("hybridnet.autograd", "record backward grad", "Any Sequence HybridNetTypeError"),
        ("hybridnet.profiler", "set_config start dumps", "json os threading Any"),
        ("hybridnet.visualization", "plot_network plot_history plot_confusion_matrix", "json math re np"),
        ("hybridnet.gluon", "Block HybridBlock Trainer nn data loss contrib save_training", "TYPE_CHECKING names_from"),
        ("hybridnet.gluon.nn", "Dense Conv2D HybridSequential BatchNorm", "Any annotations"),
        ("hybridnet.gluon.data", "DataLoader batchify vision DataFrameDataset NumpyFileDataset", "names_from"),
        ("hybridnet.gluon.data.vision.transforms", "Compose ToTensor Normalize", "Any np annotations"),
        ("hybridnet.gluon.contrib.estimator", "Estimator ProgressBarHandler History", "Any annotations"),
    ],
)  # fmt: skip
def test_common_names_are_listed_and_imports_are_not(name, expected, absent):
    listed = set(dir(importlib.import_module(name)))
    assert set(expected.split()) <= listed
    assert not set(absent.split()) & listed


def own(value):
    return owner(value) is not None and owner(value).startswith("hybridnet") and not isinstance(value, types.ModuleType)


@pytest.mark.parametrize("name", MODULES)
def test_functions_and_classes_have_a_description(name):
    bare = [
        member
        for member, value in values(name)
        if own(value) and len((inspect.getdoc(value) or "").split()) < 2 and not isinstance(value, typing.TypeVar)
    ]
    assert bare == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_help_of_a_module_can_be_shown(name):
    module = importlib.import_module(name)
    assert pydoc.plain(pydoc.render_doc(module)).startswith("Python Library Documentation: ")


# The 400 functions of nd are made by one class: every 25th is enough.
@pytest.mark.parametrize(
    ("name", "step"),
    [
        *(("", 1), (".gluon", 1), (".gluon.nn", 5), (".gluon.data", 1), (".autograd", 1), (".metric", 3)),
        *((".ndarray", 25), (".numpy", 25), (".gluon.contrib.estimator", 5), (".visualization", 1)),
    ],
)
def test_help_of_functions_and_classes_can_be_shown(name, step):
    module = importlib.import_module(f"hybridnet{name}")
    for member in shown(module)[::step]:
        value = getattr(module, member)
        if own(value):
            text = pydoc.render_doc(value, renderer=pydoc.plaintext)
            assert member in text or getattr(value, "__name__", member) in text, member


def instances():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(2, in_units=3))
    net.initialize()
    data = mx.gluon.data.ArrayDataset([1, 2])
    return {
        "array": mx.nd.ones((2,)),
        "numpy array": mx.np.ones((2,)),
        "symbol": mx.sym.var("x"),
        "net": net,
        "layer": net[0],
        "parameter": net[0].weight,
        "trainer": mx.gluon.Trainer(net.collect_params(), "sgd"),
        "loss": mx.gluon.loss.L2Loss(),
        "loader": mx.gluon.data.DataLoader(data, 2),
        "metric": mx.metric.Accuracy(),
    }


@pytest.mark.parametrize("name", instances())
def test_completion_of_an_object_shows_methods_with_a_description(name):
    instance = instances()[name]
    public = [member for member in dir(instance) if not member.startswith("_")]
    assert public
    bare = [
        member
        for member in public
        if inspect.isroutine(getattr(type(instance), member, None))
        and len((inspect.getdoc(getattr(type(instance), member)) or "").split()) < 2
    ]
    assert bare == []
    for member in public:
        value = inspect.getattr_static(instance, member)
        assert not isinstance(value, types.ModuleType) and not isinstance(value, typing.TypeVar), member
