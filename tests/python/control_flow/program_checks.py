"""Checks that every random program must pass; a failed check raises AssertionError."""

from __future__ import annotations

import pathlib
from collections import Counter

import hybridnet as mx
import numpy as np
from hybridnet import test_utils

from .random_programs import Program, Tree, inputs, parts, smooth

UNFUSED = "fast_run,-fusion"  # without fusion every operator keeps its name


def _arrays(values: list[np.ndarray]) -> list[mx.nd.NDArray]:
    return [mx.nd.array(v, dtype="float64") for v in values]


def hybridized(program: Program, passes: str | None = None) -> Program:
    """A copy of the program, hybridized."""
    copy = Program(program.tree, program.weight.data().asnumpy())
    copy.hybridize(**({"passes": passes} if passes else {}))
    return copy


def same_in_graphs(tree: Tree, seed: int, folder: pathlib.Path, name: str, passes: str | None = None) -> bool:
    """Checks that arrays and graph agree; exports the model to `folder` for compare_models, with inputs and results.

    Returns whether arrays and graph agree to the last bit: rewrites may change the order of sums.
    """
    program, values = Program(tree), inputs(seed)
    arrays = _arrays(values)
    want = program(*arrays).asnumpy()
    graph = hybridized(program, passes)
    got = graph(*arrays).asnumpy()
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    graph.export(str(folder / name))
    case = {f"input:data{i}": array for i, array in enumerate(arrays)}
    mx.nd.save(str(folder / f"{name}-case.params"), {**case, "output:0": mx.nd.array(got, dtype="float64")})
    return np.array_equal(got, want)


def evaluate(program: Program, values: list[np.ndarray], order: int = 1) -> tuple[np.ndarray, float, list[np.ndarray]]:
    """Returns result, loss and gradients of the loss, a weighted sum of the result (order 2: of squared gradients)."""
    arrays, weight = _arrays(values), program.weight.data()
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        out = program(*arrays)
        loss = (out * mx.nd.array([0.7, -1.3], dtype="float64")).sum()
        if order == 2:
            first = mx.autograd.grad(loss, [*arrays, weight], create_graph=True, retain_graph=True)
            loss = sum((g * g).sum() for g in first)
    loss.backward()
    gradients = [array.grad.asnumpy() for array in arrays] + [program.weight.grad().asnumpy()]
    return out.asnumpy(), float(loss.asnumpy().reshape(())), gradients


def same_gradients(tree: Tree, seed: int, order: int, passes: str | None = None) -> None:
    """Checks that arrays and graph have the same gradients."""
    program, values = Program(tree), inputs(seed)
    want = evaluate(program, values, order)
    got = evaluate(hybridized(program, passes), values, order)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-10, atol=1e-12)
    for one, two in zip(got[2], want[2], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)


def gradients_of_differences(tree: Tree, seed: int, order: int) -> Counter[str]:
    """Checks that gradients of the graph agree with central differences to 1e-6 + 1e-5 |g|.

    An element whose difference straddles a jump (another branch, another number of iterations) cannot be compared.
    Returns the numbers of elements compared and of elements at a jump.
    """
    tree, values = smooth(tree), inputs(seed)
    graph = hybridized(Program(tree))
    _, _, gradients = evaluate(graph, values, order)
    places = [*values, graph.weight.data().asnumpy()]
    found: Counter[str] = Counter()
    for position, value in enumerate(places):
        for index in np.ndindex(value.shape):
            found[_compare(tree, graph, places, (position, index), gradients[position][index], order)] += 1
    return found


def _compare(
    tree: Tree, graph: Program, places: list[np.ndarray], at: tuple[int, tuple[int, ...]], gradient: float, order: int
) -> str:
    def moved(distance: float) -> list[np.ndarray]:
        position, index = at
        changed = [place.copy() for place in places]
        changed[position][index] += distance
        return changed

    def loss(distance: float) -> float:
        *values, weight = moved(distance)
        graph.weight.set_data(mx.nd.array(weight, dtype="float64"))
        return evaluate(graph, values, order)[1]

    def difference(step: float) -> float:
        return (loss(step) - loss(-step)) / (2 * step)

    def decisions(distance: float) -> list[float]:
        *values, weight = moved(distance)
        program = Program(tree, weight)
        program(*_arrays(values))
        return program.decisions

    tolerance = 1e-6 + 1e-5 * abs(gradient)
    differences = [difference(1e-5)]
    if abs(differences[0] - gradient) <= tolerance:
        return "compared"
    if decisions(1e-5) != decisions(-1e-5):
        return "at a jump"
    # Steep functions: a fourth-order difference, with steps between truncation and rounding errors.
    for step in (1e-4, 2e-5, 4e-6):
        differences.append((4 * difference(step / 2) - difference(step)) / 3)
        if abs(differences[-1] - gradient) <= tolerance:
            return "compared, steep"
    raise AssertionError(f"gradient of order {order} at {at}: {gradient}, by differences {differences}")


def branches_not_taken_never_run(tree: Tree, seed: int) -> Counter[str]:
    """Checks that no operator of a branch that is not taken runs, forward or backward. Counts the runs of branches."""
    program, values = Program(tree), inputs(seed)
    program(*_arrays(values))
    # Hoisted work of both branches runs in front, under the name of one: it would count as a run of that branch.
    graph = hybridized(program, f"{UNFUSED},-hoist")
    with test_utils.exec_counts() as ran:
        evaluate(graph, values)
        mx.nd.waitall()
    once = not any(getattr(part, "checkpoint", None) for part in parts(tree))  # nothing is computed again
    found: Counter[str] = Counter()
    for (op, node), count in ran.items():
        if op == "copy":  # plans insert copies by themselves
            continue
        name, kind = node[node.find("branch") :], "forward"  # drops the name of the block
        if not name.startswith("branch"):
            continue
        if name.endswith("_backward"):
            name, kind = name.removesuffix("_backward"), "backward"
        assert program.runs[name] > 0, f"{node} ran {count} times, but its branch is not taken"
        if kind == "forward" and once:
            assert count <= program.runs[name], f"{node} ran {count} times, on arrays {program.runs[name]} times"
        found[kind] += count
    found["on arrays"] += sum(program.runs.values())
    return found
