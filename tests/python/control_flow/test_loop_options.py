"""Options pass from Python to a loop by the names of its operator's parameters; a wrong one is an error."""

from __future__ import annotations

import pytest
from hybridnet import _core
from hybridnet.errors import ParamError


@pytest.mark.parametrize(
    ("op", "options", "message"),
    [
        ("_foreach", {"revers": True}, "did you mean 'reverse'"),
        ("_while_loop", {"max_iteration": 3}, "did you mean 'max_iterations'"),
        ("_while_loop", {"on_limit": "stopp"}, "expected one of 'stop', 'warn', 'raise', got 'stopp'"),
        ("_foreach", {"length": "three"}, "got 'three'"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(op: str, options: dict, message: str) -> None:
    with pytest.raises(ParamError, match=message):
        _core.LoopSpec(op, **options)
