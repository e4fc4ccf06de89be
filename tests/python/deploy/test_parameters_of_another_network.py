"""Loading a model without Python refuses parameters of another network and names the first that differs."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import hybridnet as mx
import numpy as np
import pytest
from control_flow import c_model
from hybridnet.gluon import nn

Arrays = dict[str, mx.nd.NDArray]
DATA = {"data": np.ones((1, 2, 6, 6), np.float32)}


def _export(folder: pathlib.Path, prefix: str, units: int = 3) -> pathlib.Path:
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Dense(8), nn.Dense(units))
    net.initialize()
    net.hybridize()
    net(mx.nd.array(DATA["data"]))
    net.export(str(folder / prefix))
    return folder / f"{prefix}-0000.params"


@pytest.fixture
def symbol(tmp_path: pathlib.Path) -> str:
    _export(tmp_path, "a_")
    return str(tmp_path / "a_-symbol.json")


def test_its_own_parameters_are_taken(symbol: str, tmp_path: pathlib.Path) -> None:
    assert c_model.run(symbol, str(tmp_path / "a_-0000.params"), DATA)[0].shape == (1, 3)


def test_parameters_under_other_names_are_refused(symbol: str, tmp_path: pathlib.Path) -> None:
    other = _export(tmp_path, "b_")
    with pytest.raises(RuntimeError, match=r"a_conv0_weight.*not in the file(.|\n)*b_batchnorm0_beta"):
        c_model.run(symbol, str(other), DATA)


def _reshaped(name: str, *shape: int) -> Callable[[Arrays], object]:
    return lambda arrays: arrays.update({name: mx.nd.ones(shape)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_reshaped("arg:a_conv0_weight", 4, 2, 5, 5), r"weight(.|\n)*\(4, \?, 3, 3\)(.|\n)*\(4, 2, 5, 5\)"),
        (_reshaped("arg:a_conv0_bias", 5), r"bias(.|\n)*\(4,\)(.|\n)*\(5,\)"),
        (_reshaped("aux:a_batchnorm0_running_mean", 5), r"moving_mean(.|\n)*\(4,\)(.|\n)*\(5,\)"),
        (_reshaped("arg:a_dense1_weight", 3, 9), r"weight(.|\n)*9|9(.|\n)*weight"),
        (lambda arrays: arrays.pop("arg:a_dense1_bias"), r"a_dense1_bias.*not in the file"),
        (lambda arrays: arrays.pop("aux:a_batchnorm0_running_var"), r"a_batchnorm0_running_var.*not in the file"),
        (lambda arrays: arrays.update({"arg:more": mx.nd.ones((2,))}), r"no variable 'more'"),
        (lambda arrays: arrays.clear(), r"a_conv0_weight.*not in the file"),
    ],
)
def test_the_first_difference_is_named(
    symbol: str, tmp_path: pathlib.Path, change: Callable[[Arrays], object], words: str
) -> None:
    file = str(tmp_path / "a_-0000.params")
    arrays = mx.nd.load(file)
    change(arrays)
    mx.nd.save(file, arrays)
    with pytest.raises(RuntimeError, match=words) as caught:
        c_model.run(symbol, file, DATA)
    assert "a_-0000.params" in str(caught.value)
