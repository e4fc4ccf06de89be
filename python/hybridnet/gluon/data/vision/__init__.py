"""Image datasets and transforms."""

from ...._lazy_names import refusing
from ...._public_names import dir_of
from . import transforms
from .datasets import *

__getattr__, __dir__ = refusing(__name__), dir_of(__name__)
