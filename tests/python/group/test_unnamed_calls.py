"""Calls without a name carry the line of the program, so calls that are swapped in one process are an error."""

from __future__ import annotations

import pathlib

import pytest
from launched import launch, lines_of, needs_gloo

pytestmark = needs_gloo

SHOW = """
def show(work):
    try:
        work()
        mx.nd.waitall()
    except mx.errors.GroupError as error:
        print("error", " ".join(str(error).split()), flush=True)
        sys.exit(0)
    print("fine", flush=True)
a, b = mx.nd.ones((3,)), mx.nd.ones((3,)) * 10
"""

SWAPPED = {
    "sum": ("first = lambda: group.sum(a)", "second = lambda: group.sum(b)", "float32(3,)"),
    "sum_into": ("first = lambda: group.sum_into([a, b])", "second = lambda: group.sum_into([b, a])", "2 arrays"),
    "broadcast": ("first = lambda: group.broadcast(a)", "second = lambda: group.broadcast(b)", "float32(3,)"),
    "gather": ("first = lambda: group.gather(a)", "second = lambda: group.gather(b)", "float32(3,)"),
}


@pytest.mark.parametrize("name", ["sum", *(pytest.param(n, marks=pytest.mark.slow) for n in SWAPPED if n != "sum")])
def test_swapped_calls_name_both_lines(name: str, tmp_path: pathlib.Path) -> None:
    first, second, what = SWAPPED[name]
    swapped = "calls = [first, second] if rank else [second, first]\nshow(lambda: [call() for call in calls])\n"
    program = SHOW + f"{first}\n{second}\n{swapped}"
    done = launch(2, program, tmp_path)
    for rank in (0, 1):
        (line,) = lines_of(done, rank)
        assert line.startswith("error"), done.stdout + done.stderr
        assert f"of {what} at program.py:" in line
        assert "disagree in call" in line and "need the same name=" in line
        places = {word.rstrip(",") for word in line.split() if word.startswith("program.py:")}
        assert len(places) >= 2


# One call at one line for all processes, in a loop, in a function, and in a hybridized block; the gradient, too.
LEGAL = """
def total(x):
    return group.sum(x)

class Block(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return group.sum(x * 2) + group.sum(x)

def work():
    for _ in range(3):
        assert total(a).asnumpy().tolist() == [size] * 3
    if rank == 0:
        one = total(a)
    else:
        one = total(a)
    # Two lines for one call: a name joins them.
    if rank == 0:
        two = group.sum(b, name="b")
    else:
        two = group.sum(b, name="b")
    a.attach_grad()
    for hybrid in (False, rank == 0, True):  # one process may run the block as a graph
        block = Block()
        if hybrid:
            block.hybridize()
        assert block(b).asnumpy().tolist() == [30 * size] * 3
    with autograd.record():
        y = (group.sum(a) * (rank + 1)).sum()
    y.backward()
    assert a.grad.asnumpy().tolist() == [3] * 3
show(work)
"""


def test_calls_of_one_line_belong_together(tmp_path: pathlib.Path) -> None:
    done = launch(2, SHOW + LEGAL, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2, done.stdout + done.stderr


LONG = """
name = "\u00fcberlayer_" * 60
show(lambda: group.sum(a, name=name))
show(lambda: group.sum(a, name=name + str(rank)))
"""


@pytest.mark.slow
def test_long_names_that_differ_at_the_end_differ(tmp_path: pathlib.Path) -> None:
    done = launch(2, SHOW + LONG, tmp_path)
    for rank in (0, 1):
        fine, error = lines_of(done, rank)
        assert fine == "fine"
        assert "disagree in call 2" in error and "... #" in error
