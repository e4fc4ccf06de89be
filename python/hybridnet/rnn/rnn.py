"""Checkpoints of recurrent networks, under MXNet's module name."""

from .._public_names import dir_of
from ._checkpoint import do_rnn_checkpoint, load_rnn_checkpoint, save_rnn_checkpoint

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "save_rnn_checkpoint"]

__dir__ = dir_of(__name__)
