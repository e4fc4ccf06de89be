"""Damages ONNX models in their fields: wrong types, sizes, names, lengths, places of data, nesting, recursion."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from onnx import TensorProto, helper

INTEGERS = (0, 1, -1, 2, -2, 3, 7, 64, -7, 100_000, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -1.0, 1e-30, 1e30, float("nan"), float("inf"), float("-inf"), 2.5)
TEXTS = ("", "x", "y", "\0", "é" * 300, "../weights.bin", "/etc/passwd", "linear", "N + ", "+", "9" * 40, "a/b")
_WHOLE = {
    FieldDescriptor.TYPE_INT32: 31,
    FieldDescriptor.TYPE_INT64: 63,
    FieldDescriptor.TYPE_UINT64: 64,
}


def _messages(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in value if field.is_repeated else [value]:
            yield from _messages(inner)


def _names(model: Any) -> list[str]:
    found = {name for message in _messages(model) for name in getattr(message, "input", ()) if isinstance(name, str)}
    return sorted(found | {one for m in _messages(model) for one in getattr(m, "output", ()) if isinstance(one, str)})


def _scalar(draw: random.Random, field: Any, names: list[str]) -> Any:
    if field.type == FieldDescriptor.TYPE_ENUM:
        return draw.choice([value.number for value in field.enum_type.values])
    if field.type in _WHOLE:
        bits = _WHOLE[field.type]
        number = draw.choice(INTEGERS) if draw.random() < 0.7 else draw.randint(-20, 40)
        return (
            max(0, number) if field.type == FieldDescriptor.TYPE_UINT64 else max(-(2**bits), min(number, 2**bits - 1))
        )
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return draw.choice(FLOATS)
    if field.type == FieldDescriptor.TYPE_STRING:
        return draw.choice(names) if names and draw.random() < 0.6 else draw.choice(TEXTS)
    return draw.choice([b"", b"\xff\xfe", b"\0" * 7, b"REFLECT", draw.randbytes(16), b"x" * 4096])


def _change(draw: random.Random, message: Any, field: Any, names: list[str]) -> None:
    if field.message_type is None and not field.is_repeated:
        setattr(message, field.name, _scalar(draw, field, names))
        return
    if not field.is_repeated:
        message.ClearField(field.name)
        return
    items = getattr(message, field.name)
    kind = draw.choice(["remove", "repeat", "swap", "change", "change", "add"])
    index = draw.randrange(len(items))
    if kind == "remove":
        del items[index]
    elif field.message_type is not None:
        copy = type(items[index])()
        copy.CopyFrom(items[index])
        if kind == "swap":
            del items[index]
            items.insert(draw.randint(0, len(items)), copy)
        else:
            items.append(copy)
    elif kind == "change":
        items[index] = _scalar(draw, field, names)
    elif kind == "swap":
        other = draw.randrange(len(items))
        items[index], items[other] = items[other], items[index]
    else:
        items.append(items[index] if kind == "repeat" else _scalar(draw, field, names))


def any_field(draw: random.Random, model: Any) -> None:
    """Changes, removes or repeats one field of one message, anywhere in the file."""
    messages = [message for message in _messages(model) if message.ListFields()]
    message = draw.choice(messages)
    field = draw.choice([field for field, _ in message.ListFields()])
    if draw.random() < 0.15:
        message.ClearField(field.name)
    else:
        _change(draw, message, field, _names(model))


def _nodes(model: Any) -> list[Any]:
    return [message for message in _messages(model) if isinstance(message, onnx.NodeProto)]


def _tensors(model: Any) -> list[Any]:
    return [message for message in _messages(model) if isinstance(message, TensorProto)]


def node_input(draw: random.Random, model: Any) -> None:
    """Another name, an absent input, or a cycle in place of an input."""
    node = draw.choice(_nodes(model))
    if node.input:
        node.input[draw.randrange(len(node.input))] = draw.choice(["", "nowhere", *node.output, *_names(model)])


def attribute(draw: random.Random, model: Any) -> None:
    """An attribute of another type, of another name, or with other values."""
    owners = [node for node in _nodes(model) if node.attribute]
    if not owners:
        return any_field(draw, model)
    node = draw.choice(owners)
    index = draw.randrange(len(node.attribute))
    name = node.attribute[index].name
    numbers = [draw.choice(INTEGERS) for _ in range(draw.randrange(5))]
    values: list[Any] = [
        draw.choice(INTEGERS),
        0.5,
        "text",
        [1.0, float("nan")],
        ["a", "b"],
        numbers or 3,
        numbers or 3,
    ]
    values += [numbers or 3] * 2
    values.append(helper.make_tensor("t", TensorProto.FLOAT, [2], [1, 2]))
    del node.attribute[index]
    node.attribute.append(helper.make_attribute(name, draw.choice(values)))
    return None


def operator(draw: random.Random, model: Any) -> None:
    """Another operator, domain, or opset."""
    node = draw.choice(_nodes(model))
    kind = draw.randrange(4)
    if kind == 0:
        node.op_type = draw.choice([other.op_type for other in _nodes(model)])
    elif kind == 1:
        node.op_type = draw.choice(sorted({schema.name for schema in onnx.defs.get_all_schemas()}))
    elif kind == 2:
        node.domain = draw.choice(["", "ai.onnx", "com.microsoft", "own", "ai.onnx.ml", "\0"])
    elif model.opset_import:
        model.opset_import[0].version = draw.choice([-1, 0, 1, 5, 9, 11, 13, 17, 21, 24, 99, 2**40])


def tensor(draw: random.Random, model: Any) -> None:
    """Dims, types and lengths of data that do not fit each other, and claims of huge data."""
    tensors = _tensors(model)
    if not tensors:
        return any_field(draw, model)
    victim = draw.choice(tensors)
    kind = draw.randrange(7)
    if kind == 0:
        del victim.dims[:]
        victim.dims.extend(draw.choice(INTEGERS) for _ in range(draw.randrange(4)))
    elif kind == 1:
        victim.raw_data = victim.raw_data[: draw.randrange(len(victim.raw_data) + 1)]
    elif kind == 2:
        victim.raw_data += b"\0" * draw.choice([1, 3, 4, 1000])
    elif kind == 3:
        victim.data_type = draw.choice([*TensorProto.DataType.values(), 77])
    elif kind == 4 and victim.dims:
        victim.dims[draw.randrange(len(victim.dims))] = draw.choice(INTEGERS)
    elif kind == 5:
        victim.ClearField("raw_data")
        victim.float_data.extend([1.0] * draw.randrange(9))
    else:
        array = [draw.choice(INTEGERS) for _ in range(draw.randrange(5))]
        victim.CopyFrom(helper.make_tensor(victim.name, TensorProto.INT64, [len(array)], array))
    return None


def external(draw: random.Random, model: Any) -> None:
    """Data in other files, at places that do not exist or that do not belong to the model."""
    tensors = _tensors(model)
    if not tensors:
        return any_field(draw, model)
    victim = draw.choice(tensors)
    victim.ClearField("raw_data")
    victim.data_location = TensorProto.EXTERNAL
    del victim.external_data[:]
    places = ("../secret.bin", "/etc/passwd", "link.bin", "weights.bin", "", ".", "no.bin", "\0", "a/../../secret.bin")
    victim.external_data.add(key="location", value=draw.choice(places))
    if draw.random() < 0.6:
        victim.external_data.add(key="offset", value=draw.choice(["0", "-4", "4", "1000", "x", "9" * 30, "1e3", ""]))
    if draw.random() < 0.6:
        victim.external_data.add(key="length", value=draw.choice(["0", "-1", "12", "100000", "x", "9" * 30]))
    return None


def declared(draw: random.Random, model: Any) -> None:
    """Other sizes, ranks and types of an input."""
    if not model.graph.input:
        return any_field(draw, model)
    given = draw.choice(model.graph.input)
    shape = given.type.tensor_type.shape
    kind = draw.randrange(5)
    if kind == 0:
        del shape.dim[:]
        sizes = draw.choices([0, 1, 2, 3, 5, -1, 2**40, 2**63 - 1], k=draw.randrange(6))
        for size in sizes:
            shape.dim.add(dim_value=size)
    elif kind == 1:
        given.type.tensor_type.elem_type = draw.choice([*TensorProto.DataType.values(), 99])
    elif kind == 2:
        given.type.tensor_type.ClearField("shape")
    elif kind == 3:
        for axis in shape.dim:
            axis.dim_param = draw.choice(["N", "M", "", "N + 1", "\0", "1", "²", "00"])
    else:
        given.type.CopyFrom(helper.make_sequence_type_proto(given.type))
    return None


def nested(draw: random.Random, model: Any) -> None:
    """Branches in branches, more than any program writes."""
    depth = draw.choice([3, 20, 45])
    made = helper.make_node("Identity", ["x"], ["deep_0"])
    for level in range(depth):
        graph = helper.make_graph([made], "g", [], [helper.make_empty_tensor_value_info(f"deep_{level}")])
        made = helper.make_node("If", ["yes"], [f"deep_{level + 1}"], then_branch=graph, else_branch=graph)
        if made.ByteSize() > 1 << 20:
            break
    model.graph.initializer.append(helper.make_tensor("yes", TensorProto.BOOL, [], [True]))
    model.graph.node.append(made)
    model.graph.output.append(helper.make_empty_tensor_value_info(made.output[0]))


def functions(draw: random.Random, model: Any) -> None:
    """A function that calls itself, two that call each other, or ones whose calls double at each level."""
    node = helper.make_node
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("loop", 1)]

    def call(name: str, given: str, made: str) -> Any:
        return node(name, [given], [made], domain="loop")

    kind = draw.randrange(4)
    bodies: dict[str, list[Any]] = {"F0": [call("F0", "a", "b")]}
    if kind == 1:
        bodies = {"F0": [call("F1", "a", "b")], "F1": [call("F0", "a", "b")]}
    elif kind == 2:
        bodies = {f"F{k}": [call(f"F{k + 1}", "a", "m"), call(f"F{k + 1}", "m", "b")] for k in range(40)}
        bodies["F40"] = [node("Relu", ["a"], ["b"])]
    elif kind == 3:
        bodies = {f"F{k}": [call(f"F{k + 1}", "a", "b")] for k in range(draw.choice([5, 400, 3000]))}
        bodies[f"F{len(bodies)}"] = [node("Relu", ["a"], ["b"])]
    for name, body in bodies.items():
        model.functions.append(helper.make_function("loop", name, ["a"], ["b"], body, opsets))
    model.graph.node.append(call("F0", "x", "called"))
    model.graph.output.append(helper.make_empty_tensor_value_info("called"))
    model.opset_import.append(helper.make_opsetid("loop", 1))


def huge(draw: random.Random, model: Any) -> None:
    """A few bytes that ask for much memory or time."""
    node, size = helper.make_node, draw.choice([10**9, 2**31, 10**12, 2**62, -1, 2**63 - 1])

    def number(name: str, *values: int, scalar: bool = False) -> str:
        dims = [] if scalar else [len(values)]
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, dims, values))
        return name

    def one(name: str, value: int) -> str:
        return number(name, value, scalar=True)

    made = draw.choice(
        [
            lambda: node("ConstantOfShape", [number("h", size)], ["much"]),
            lambda: node("ConstantOfShape", [number("h", 40_000, 40_000)], ["much"]),
            lambda: node("Range", [one("h", 0), one("i", size), one("j", 1)], ["much"]),
            lambda: node("Expand", [one("h", 1), number("i", size, 8)], ["much"]),
            lambda: node("Tile", [number("h", 1, 2), number("i", size)], ["much"]),
            lambda: node("Pad", [number("h", 1, 2), number("i", size, 0)], ["much"]),
            lambda: node("OneHot", [number("h", 1, 2), one("i", size), number("j", 0, 1)], ["much"]),
            lambda: node("EyeLike", [node_input_of(model, node, number("h", size, size))], ["much"]),
            lambda: node("RandomNormal", [], ["much"], shape=[size, 2]),
            lambda: node("HannWindow", [one("h", size)], ["much"]),
            lambda: node("Upsample", [number("h", 1, 2), "none"], ["much"]),
            lambda: node("MelWeightMatrix", [one("h", 9), one("i", size), one("j", 9), "none", "none"], ["much"]),
            lambda: node("MatMul", ["tall", "wide"], ["much"]),
            lambda: node("DepthToSpace", ["x"], ["much"], blocksize=size),
            lambda: node("Split", ["x"], ["much"], num_outputs=size),
            lambda: node("Slice", ["x", number("h", -size), number("i", size), number("j", 0)], ["much"]),
        ]
    )()
    if made.op_type == "MatMul":
        for name, shape in (("tall", [40_000, 1]), ("wide", [1, 40_000])):
            values = node("ConstantOfShape", [number(f"{name}_shape", *shape)], [name])
            model.graph.node.append(values)
    model.graph.node.append(made)
    model.graph.output.append(helper.make_empty_tensor_value_info("much"))


def node_input_of(model: Any, node: Callable[..., Any], shape: str) -> str:
    """A constant of the shape, made by a node."""
    model.graph.node.append(node("ConstantOfShape", [shape], ["of_shape"]))
    return "of_shape"


FIELDS = [any_field, any_field, any_field, node_input, attribute, operator, tensor, tensor, declared]
WHOLE = [external, nested, functions, huge]


def damage(draw: random.Random, model: Any) -> str:
    """Damages a model once to three times; returns the names of the kinds."""
    kinds = [draw.choice(FIELDS) for _ in range(draw.choice([1, 1, 2, 3]))]
    if draw.random() < 0.25:
        kinds = [draw.choice(WHOLE)]
    for kind in kinds:
        with contextlib.suppress(IndexError):  # earlier damage has removed all parts of the kind
            kind(draw, model)
    return ", ".join(kind.__name__ for kind in kinds)
