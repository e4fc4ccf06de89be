"""Modules: a symbol, its parameters, and training by ``fit``."""

from .._public_names import dir_of
from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .executor_group import DataParallelExecutorGroup
from .module import Module
from .python_module import PythonLossModule, PythonModule
from .sequential_module import SequentialModule

__all__ = [
    "BaseModule",
    "BucketingModule",
    "DataParallelExecutorGroup",
    "Module",
    "PythonLossModule",
    "PythonModule",
    "SequentialModule",
]

__dir__ = dir_of(__name__)
