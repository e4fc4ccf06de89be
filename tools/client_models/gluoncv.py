"""GluonCV 0.10: every name of its model zoo."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import mxnet as mx
from gluoncv import model_zoo
from gluoncv.model_zoo import model_zoo as by_name
from gluoncv.model_zoo.action_recognition import actionrec_resnetv1b

from .subject import BlockSubject, Subject, random, whole

CLASSES = ["a", "b", "c"]
CROP = 96
SEGMENTS = 21  # segments of a video: a multiple of the 3 and 7 that the graphs from files average
# Pattern of names, of which the first match counts: shapes of the inputs, and keywords of the constructor.
INPUTS: list[tuple[str, list[tuple[int, ...]], dict[str, Any]]] = [
    # Graphs from files, for the sizes that they were made for.
    (r"(fcn|psp|deeplab)_.*_int8", [(1, 3, 480, 480)], {}),
    (r"inceptionv3_(ucf101|kinetics400)_int8", [(SEGMENTS, 3, 299, 299)], {}),
    (r".*_(ucf101|kinetics400)_int8", [(SEGMENTS, 3, 224, 224)], {}),
    (r"yolo3_.*_custom", [(1, 3, 96, 96)], {"classes": CLASSES}),
    (r"yolo3_", [(1, 3, 96, 96)], {}),
    (r"ssd_\d+_.*_custom", [(1, 3, 300, 300)], {"classes": CLASSES}),
    (r"ssd_300_", [(1, 3, 300, 300)], {}),
    (r"ssd_512_", [(1, 3, 512, 512)], {}),
    (r"custom_faster_rcnn", [(1, 3, 128, 128)], {"classes": CLASSES}),
    (r"custom_mask_rcnn", [(1, 3, 128, 128)], {"classes": [f"class{number}" for number in range(60)]}),
    (r".*rcnn_.*_custom", [(1, 3, 128, 128)], {"classes": CLASSES}),
    (r".*rcnn_", [(1, 3, 128, 128)], {}),
    (r"center_net_", [(1, 3, 128, 128)], {}),
    (r"siamrpn_", [(1, 3, 127, 127), (1, 3, 287, 287)], {}),
    (r"monodepth2_.*posenet", [(1, 6, 192, 320)], {}),
    (r"monodepth2_", [(1, 3, 192, 320)], {}),
    (r"deeplab_resnest", [(1, 3, 224, 224)], {"crop_size": 224}),  # drops blocks of feature maps of this size
    (r"(fcn|psp|deeplab|icnet|fastscnn|danet)_", [(1, 3, CROP, CROP)], {"crop_size": CROP}),
    (r"hrnet_.*_s$", [(1, 3, 128, 128)], {}),
    (r"(simple|mobile|alpha)_pose_", [(1, 3, 256, 192)], {}),
    (r"cifar_", [(2, 3, 32, 32)], {}),
    (r"slowfast_.*_custom", [(1, 3, 36, 64, 64)], {"use_kinetics_pretrain": False}),
    (r"slowfast_4x16_", [(1, 3, 36, 64, 64)], {}),
    (r"slowfast_8x8_", [(1, 3, 40, 64, 64)], {}),
    (r"slowfast_16x8_", [(1, 3, 80, 64, 64)], {}),
    (r"i3d_.*_(ucf101|hmdb51|custom)", [(1, 3, 16, 224, 224)], {"use_kinetics_pretrain": False}),
    (r"resnet\d+_v1b_(ucf101|hmdb51|custom)", [(1, 3, 224, 224)], {"use_kinetics_pretrain": False}),
    (r"i3d_slow_", [(1, 3, 16, 64, 64)], {}),
    (r"i3d_inceptionv3", [(1, 3, 16, 299, 299)], {}),
    (r"i3d_", [(1, 3, 16, 224, 224)], {}),
    (r"(c3d|p3d|r2plus1d)_", [(1, 3, 16, 112, 112)], {}),
    (r"inceptionv3|xception", [(1, 3, 299, 299)], {}),
    (r"nasnet_", [(1, 3, 224, 224)], {}),
    (r"", [(1, 3, 224, 224)], {}),
]


@contextmanager
def _without_published_base() -> Iterator[None]:
    """Quantized networks make their float network first, without stating that its base needs no weights: states it."""
    get_model = by_name.get_model
    try:
        by_name.get_model = lambda name, **given: _without_base(get_model, name, given)
        yield
    finally:
        by_name.get_model = get_model


@contextmanager
def _without_published_weights() -> Iterator[None]:
    """Lets constructors that load or move the weights of a published base network run without these weights."""
    base, move = actionrec_resnetv1b, mx.gluon.Parameter.reset_ctx
    functions = {name: getattr(base, name) for name in dir(base) if re.fullmatch(r"resnet\d+_v1b", name)}

    def reset_ctx(parameter: Any, ctx: Any) -> None:
        if parameter._data is not None or parameter._deferred_init:
            move(parameter, ctx)

    try:
        mx.gluon.Parameter.reset_ctx = reset_ctx
        for name, function in functions.items():
            setattr(base, name, lambda function=function, **given: function(**{**given, "pretrained": False}))
        yield
    finally:
        mx.gluon.Parameter.reset_ctx = move
        for name, function in functions.items():
            setattr(base, name, function)


def _without_base(get_model: Callable[..., Any], name: str, keywords: dict[str, Any]) -> Any:
    try:
        return get_model(name, **{"pretrained_base": False, **keywords})
    except (TypeError, Warning) as problem:  # constructors without the parameter pretrained_base fail this way
        if "pretrained_base" not in str(problem) and "should only accept" not in str(problem):
            raise
        return get_model(name, **keywords)


def _construct(name: str, keywords: dict[str, Any]) -> Any:
    """Returns the model before any training."""
    with _without_published_weights():
        if name.endswith("_int8"):
            with _without_published_base():
                net = model_zoo.get_model(name, **keywords)
        else:
            net = _without_base(model_zoo.get_model, name, {"pretrained": False, **keywords})
    for parameter, value in net.collect_params().items():
        # Xavier refuses vectors, such as those of the batch norms that detectors contain as a graph.
        ones, zeros = parameter.endswith(("gamma", "var")), parameter.endswith(("beta", "bias", "mean"))
        value.initialize(default_init=mx.init.One() if ones else mx.init.Zero() if zeros else mx.init.Xavier())
    if "rcnn" in name:
        _examine_few_regions(net)
    return net


def _examine_few_regions(net: Any) -> None:
    """With some hundred regions per image, models without a pyramid take a minute per image."""
    net._rpn_test_post_nms = net.rpn._test_post_nms = 20
    net._num_sample = net.sampler._num_sample = 16
    net.sampler._max_pos = 4


def _training(name: str, net: Any, image: Any) -> tuple[Any, ...] | None:
    """The training inputs of a detector: images, boxes and their classes; None if they are the same as in inference."""
    boxes = _boxes(image.shape[-1])
    if "rcnn" in name:
        return image, boxes, whole(1, 2, 1, below=2)
    if name.startswith("yolo3"):
        places = 3 * sum((image.shape[-1] // stride) ** 2 for stride in (8, 16, 32))
        targets = [random(1, places, size, low=0) for size in (1, 2, 2, 2, len(net.classes))]
        return image, boxes, *targets
    return None


def _boxes(size: int) -> Any:
    """Two boxes in an image, as corners: (1, 2, 4)."""
    return mx.nd.array([[[0.1, 0.1, 0.5, 0.6], [0.3, 0.4, 0.8, 0.9]]]) * size


class PredictingSubject(BlockSubject):
    """A quantized network, which is not trained."""

    def train(self) -> None:
        pass


def _subject(name: str) -> Subject:
    _, shapes, keywords = next(row for row in INPUTS if re.match(row[0], name))
    net = _construct(name, keywords)
    inputs = [random(*shape) for shape in shapes]
    if name.endswith("_int8"):
        return PredictingSubject(net, *inputs, initialize=False)
    return BlockSubject(net, *inputs, training=_training(name, net, inputs[0]), initialize=False)


MODELS: dict[str, Callable[[], Subject]] = {name: partial(_subject, name) for name in model_zoo.get_model_list()}
