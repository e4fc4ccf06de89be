"""What this build can do."""

from __future__ import annotations

from collections import OrderedDict

from . import _core
from .errors import ValueError as HybridNetValueError

__all__ = ["Feature", "Features", "feature_list"]


class Feature:
    """One ability of the build: its name, and whether it is there."""

    def __init__(self, name: str, enabled: bool) -> None:
        self._name = name
        self._enabled = enabled

    @property
    def name(self) -> str:
        """Such as 'ONEDNN'."""
        return self._name

    @property
    def enabled(self) -> bool:
        """Whether the build has it."""
        return self._enabled

    def __repr__(self) -> str:
        return f"{'✔' if self._enabled else '✖'} {self._name}"


_ENABLED = {"CPU_AVX2": True, "CPU_SSE": True, "F16C": True, "INT64_TENSOR_SIZE": True, "MKLDNN": True, "ONEDNN": True, "OPENMP": True}
_ABSENT = ("CAFFE", "CUDA", "CUDNN", "CUDA_RTC", "DIST_KVSTORE", "NCCL", "OPENCV", "TENSORRT", "TVM_OP")


def feature_list() -> list[Feature]:
    """Every feature that MXNet names, with what this build has."""
    return [Feature(name, on) for name, on in sorted({**_ENABLED, **dict.fromkeys(_ABSENT, False)}.items())]


class Features(OrderedDict):
    """Feature name -> Feature."""

    def __init__(self) -> None:
        super().__init__((feature.name, feature) for feature in feature_list())

    def is_enabled(self, feature_name: str) -> bool:
        """Whether the build has the feature. Raises ValueError for a name that nobody knows."""
        name = feature_name.upper()
        if name not in self:
            raise HybridNetValueError(f"Features: expected one of {', '.join(self)}, got {feature_name!r}")
        return self[name].enabled


def engine_type() -> str:
    """Name of the engine in use."""
    return _core.engine_type()
