"""Images: files, cropping, resizing, augmentation, iterators. Images are NDArrays (height, width, channels)."""

from .._public_names import dir_of
from . import detection
from . import detection as det
from ._augment import *
from ._image_iter import *
from .detection import *
from .image import *

__dir__ = dir_of(__name__)
