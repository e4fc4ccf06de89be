"""Image networks: AlexNet, DenseNet, Inception v3, MobileNet v1 and v2, ResNet v1 and v2, SqueezeNet, VGG.

``get_model("resnet18_v1", classes=10)`` or ``resnet18_v1(classes=10)``. Parameter names are MXNet's, so that parameters
saved by MXNet load here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._public_names import dir_of
from ....errors import ParamError
from . import alexnet as _alexnet
from . import densenet as _densenet
from . import inception as _inception
from . import mobilenet as _mobilenet
from . import resnet as _resnet
from . import squeezenet as _squeezenet
from . import vgg as _vgg
from .alexnet import *
from .densenet import *
from .inception import *
from .mobilenet import *
from .resnet import *
from .squeezenet import *
from .vgg import *

_models: dict[str, Callable[..., Any]] = {
    **{f"resnet{n}_v{v}": getattr(_resnet, f"resnet{n}_v{v}") for v in (1, 2) for n in (18, 34, 50, 101, 152)},
    **{f"vgg{n}{bn}": getattr(_vgg, f"vgg{n}{bn}") for bn in ("", "_bn") for n in (11, 13, 16, 19)},
    "alexnet": _alexnet.alexnet,
    **{f"densenet{n}": getattr(_densenet, f"densenet{n}") for n in (121, 161, 169, 201)},
    "squeezenet1.0": _squeezenet.squeezenet1_0,
    "squeezenet1.1": _squeezenet.squeezenet1_1,
    "inceptionv3": _inception.inception_v3,
    "mobilenet1.0": _mobilenet.mobilenet1_0,
    "mobilenet0.75": _mobilenet.mobilenet0_75,
    "mobilenet0.5": _mobilenet.mobilenet0_5,
    "mobilenet0.25": _mobilenet.mobilenet0_25,
    "mobilenetv2_1.0": _mobilenet.mobilenet_v2_1_0,
    "mobilenetv2_0.75": _mobilenet.mobilenet_v2_0_75,
    "mobilenetv2_0.5": _mobilenet.mobilenet_v2_0_5,
    "mobilenetv2_0.25": _mobilenet.mobilenet_v2_0_25,
}


def get_model(name: str, **kwargs: Any) -> Any:
    """Returns a network by name, such as 'resnet50_v1', 'mobilenetv2_1.0', 'vgg16_bn'; case is ignored.

    Parameters
    ----------
    name : str
    pretrained : bool, default False
        Whether to read published parameters; they must be on this machine.
    classes : int, default 1000
    ctx : Context, default cpu()
    root : str, optional
        Folder of parameter files.

    Raises ParamError (a ValueError) for unknown names.
    """
    model = _models.get(name.lower())
    if model is None:
        options = "\n\t".join(sorted(_models))
        raise ParamError(f"Model {name.lower()} is not supported. Available options are\n\t{options}")
    return model(**kwargs)


__dir__ = dir_of(__name__)
