"""Standard operators inside of forms: for operators of other domains that are defined by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._arithmetic import calculate
from ._errors import refuse
from ._node import NodeView
from ._package import onnx
from ._values import Value

__all__ = ["activate", "renamed", "standard"]

# Forms of standard operators are used as this operator set defines them.
_VERSION = 21


def standard(
    g: Any, op_type: str, inputs: Sequence[Value | None], name: str, outputs: int = 1, **attributes: Any
) -> Any:
    """The results of a standard operator; attributes that are None are left out."""
    given = {key: value for key, value in attributes.items() if value is not None}
    names = [f"{name}_{index}" for index in range(outputs)]
    proto = onnx().helper.make_node(
        op_type, ["x" if value is not None else "" for value in inputs], names, name, **given
    )
    return g.apply(NodeView(proto, _VERSION, g.folder), list(inputs))


def renamed(g: Any, node: Any, op_type: str, without: Sequence[str] = (), version: int = _VERSION) -> NodeView:
    """The node as one of a standard operator, without some of its attributes."""
    proto = onnx().NodeProto()
    proto.CopyFrom(node.proto)
    proto.op_type, proto.domain = op_type, ""
    kept = [attribute for attribute in node.proto.attribute if attribute.name not in without]
    del proto.attribute[:]
    proto.attribute.extend(kept)
    return NodeView(proto, version, g.folder)


def activate(g: Any, node: Any, x: Value, kind: str, alpha: float | None = None, beta: float | None = None) -> Value:
    """An activation that is an attribute of a layer; "" for none."""
    if not kind:
        return x
    if kind == "Clip":
        if alpha is None and beta is None:
            return x
        return g.emit("clip", [x], name=node.name, a_min=alpha, a_max=beta)
    if kind in ("Relu", "Sigmoid", "Tanh", "Softsign", "Softplus"):
        return standard(g, kind, [x], node.name)
    if kind in ("LeakyRelu", "Elu", "ThresholdedRelu"):
        return standard(g, kind, [x], node.name, alpha=alpha)
    if kind == "HardSigmoid":
        return standard(g, kind, [x], node.name, alpha=alpha, beta=beta)
    if kind == "Gelu":
        return g.emit("LeakyReLU", [x], name=node.name, act_type="gelu")
    if kind in ("Silu", "QuickGelu"):
        scaled = x if alpha in (None, 1) else calculate(g, "*", x, alpha)
        return calculate(g, "*", x, g.emit("sigmoid", [scaled]), node.name)
    raise refuse(f"the activation {kind} is not known", node=node.proto)
