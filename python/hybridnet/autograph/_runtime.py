"""The functions that converted code calls, as ag__.name."""

from __future__ import annotations

import builtins

from ._calls import call, fresh, star
from ._journal import note_nonlocals
from ._operators import (
    and_,
    assert_,
    augmented,
    augmented_attribute,
    augmented_item,
    chain,
    context,
    delete_attribute,
    delete_item,
    get_item,
    if_exp,
    in_,
    not_,
    not_in,
    note_block,
    or_,
    set_attribute,
    set_item,
    shape_of,
)
from ._statements import for_, if_, items_of, value_of, while_
from ._structure import UNDEFINED

__all__ = [
    "UNDEFINED", "and_", "assert_", "augmented", "augmented_attribute", "augmented_item", "call", "chain", "context",
    "delete_item", "for_", "fresh", "get_item", "if_", "if_exp", "in_", "items_of", "not_", "not_in", "note_block",
    "note_nonlocals", "delete_attribute",
    "or_",    "set_attribute", "set_item", "shape_of", "slice", "star", "value_of", "while_",
]  # fmt: skip

slice = builtins.slice
