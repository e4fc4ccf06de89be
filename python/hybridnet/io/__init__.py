"""Data iterators: batches for Module.fit and training loops."""

from . import io
from .array_iter import *
from .batches import *
from .file_iters import *
from .record_iter import *
from .wrapping_iters import *
