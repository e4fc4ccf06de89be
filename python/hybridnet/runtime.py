"""Features of this build, and devices of this machine."""

from __future__ import annotations

from collections import OrderedDict

from . import _core
from ._public_names import dir_of
from .errors import ValueError as HybridNetValueError

__all__ = ["Feature", "Features", "feature_list", "gpu_libraries", "gpus", "isa", "why_no_gpu"]


class Feature:
    """A feature of the build: its name, and whether it is enabled."""

    def __init__(self, name: str, enabled: bool) -> None:
        self._name = name
        self._enabled = enabled

    @property
    def name(self) -> str:
        """The name of the feature, such as 'ONEDNN'."""
        return self._name

    @property
    def enabled(self) -> bool:
        """Whether the build has it."""
        return self._enabled

    def __repr__(self) -> str:
        return f"{'✔' if self._enabled else '✖'} {self._name}"


_BUILT = (
    "BLAS_ONEDNN",
    "F16C",
    "INT64_TENSOR_SIZE",
    "LAPACK",
    "MKLDNN",
    "ONEDNN",
    "OPENMP",
    "PROFILER",
    "SIGNAL_HANDLER",
)
_ABSENT = (
    "BLAS_APPLE",
    "BLAS_ATLAS",
    "BLAS_MKL",
    "BLAS_OPEN",
    "CAFFE",
    "CUDNN",
    "CXX14",
    "DEBUG",
    "DIST_KVSTORE",
    "JEMALLOC",
    "NCCL",
    "OPENCV",
    "SSE",
    "TENSORRT",
    "TVM_OP",
)
_WITH_A_GPU = ("CUDA", "CUDA_RTC")  # usable in this process
# Instruction sets, selected when the process starts: feature -> flag in /proc/cpuinfo.
_INSTRUCTIONS = {
    "CPU_SSE": "sse",
    "CPU_SSE2": "sse2",
    "CPU_SSE3": "pni",
    "CPU_SSE4_1": "sse4_1",
    "CPU_SSE4_2": "sse4_2",
    "CPU_SSE4A": "sse4a",
    "CPU_AVX": "avx",
    "CPU_AVX2": "avx2",
}


def _cpu_flags() -> set[str]:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            line = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return set()
    return set(line.partition(":")[2].split())


def feature_list() -> list[Feature]:
    """Returns every feature that MXNet names, with its state in this build."""
    flags = _cpu_flags()
    found = dict.fromkeys(_BUILT, True) | dict.fromkeys(_ABSENT, False)
    found |= dict.fromkeys(_WITH_A_GPU, _core.num_gpus() > 0)
    found |= {name: flag in flags for name, flag in _INSTRUCTIONS.items()}
    return [Feature(name, on) for name, on in sorted(found.items())]


class Features(OrderedDict):
    """Maps feature names to Features. A singleton."""

    _instance: Features | None = None

    def __new__(cls) -> Features:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            OrderedDict.__init__(cls._instance, ((feature.name, feature) for feature in feature_list()))
        return cls._instance

    def __init__(self) -> None:
        """Fills the table once, on first use."""

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.values()))}]"

    def is_enabled(self, feature_name: str) -> bool:
        """Whether the build has the feature. Raises ValueError for an unknown name."""
        name = feature_name.upper()
        if name not in self:
            raise HybridNetValueError("Features", expected=f"one of {', '.join(self)}", given=repr(feature_name))
        return self[name].enabled


def isa() -> str:
    """Returns the instruction sets that kernels use, such as ``'avx2 (Highway AVX2, oneDNN AVX2)'``.

    The first word is the widest set that both libraries support completely: sse4, avx2, avx512, avx512_bf16 or amx.
    ``HYBRIDNET_MAX_ISA`` caps it (``docs/environment-variables.md``).
    """
    return _core.isa()


def gpus() -> list[str]:
    """Returns the GPUs that this process can use, such as ``'NVIDIA H100 (sm_90)'``; index i is ``mx.gpu(i)``."""
    described = (_core.gpu_description(device) for device in range(_core.num_gpus()))
    return [f"{name} ({architecture})" for name, architecture, _ in described]


def gpu_libraries() -> dict[str, str]:
    """Returns the version and file of each library of GPUs, or why it is not used; empty without a GPU.

    The driver and NVRTC, which GPUs need; cuBLASLt and cuDNN, which are optional.
    """
    return dict(_core.gpu_libraries())


def why_no_gpu() -> str:
    """Returns the reason why ``mx.num_gpus()`` is 0; an empty text if there is a GPU."""
    return "" if _core.num_gpus() else _core.why_no_gpu()


def engine_type() -> str:
    """Returns the name of the engine in use."""
    return _core.engine_type()


__dir__ = dir_of(__name__)
