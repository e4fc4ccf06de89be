"""The number of Python frames in a call of a hybridized block: each takes a twentieth of the time of a small call."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

import hybridnet as mx
import pytest
from hybridnet.gluon import nn


class Twice(mx.gluon.HybridBlock):
    """A block without parameters."""

    def forward(self, x: Any) -> Any:
        return x * 2


def frames_of(block: mx.gluon.HybridBlock, x: Any) -> list[str]:
    block(x).wait_to_read()
    frames: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            frames.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        block(x)
    finally:
        sys.setprofile(None)
    return [name for name in frames if not name.startswith("<")]


@pytest.mark.parametrize("with_parameters", [False, True])
def test_a_call_of_a_compiled_graph_runs_four_frames_and_one_more_for_parameters(with_parameters: bool) -> None:
    block = nn.Dense(3) if with_parameters else Twice()
    block.initialize()
    block.hybridize()
    expected = ["__call__", "current", "_call_cached_op", "run", *(["arrays"] if with_parameters else [])]
    assert frames_of(block, mx.nd.ones((2, 3))) == expected


def test_the_warning_of_an_unused_input_names_the_line_of_the_call() -> None:
    class First(mx.gluon.HybridBlock):
        def forward(self, x: Any, y: Any) -> Any:
            return x + 1

    block = First()
    block.hybridize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        block(mx.nd.ones((2,)), mx.nd.ones((2,)))
    assert [warning.filename for warning in caught] == [__file__]


def test_an_error_of_a_block_that_runs_imperatively_has_no_context() -> None:
    """The failed trace of the block is not part of the error."""

    class ReadsValues(mx.gluon.HybridBlock):
        def forward(self, x: Any) -> Any:
            if float(x.sum().asscalar()) > 0:
                raise KeyError("mine")
            return x

    block = ReadsValues()
    block.hybridize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(KeyError, match="mine") as caught:
            block(mx.nd.ones((2,)))
    assert caught.value.__context__ is None
