"""Short reports of uncaught errors: they show the program's frames, not those of the package.

:func:`install` is called by ``import hybridnet``. It sets the hooks of the interpreter, of threads and of IPython,
unless something else has set them already. ``HYBRIDNET_FULL_TRACEBACK=1`` shows everything.

An error of the package names its reason and its fix, so its own frames, and the errors that it handled on the way, only
hide the program's line. Other errors keep the package's frames if the innermost frame is one of them: this may be a
fault of the package.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from .. import errors
from .._user_line import is_own_file
from ..errors import HybridNetError
from ..util import getenv
from ._python_errors import fix_of

__all__ = ["hide_in_pytest", "install", "mark_for_pytest", "report", "shortened"]

_LIBRARIES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_SOURCE = re.compile(r" +\d* \| ")  # a line of source in the text of an error, or the mark below it
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep


class _Count:
    """Number of hidden frames, known when a report begins, and the page of the error's class."""

    def __init__(self, error: BaseException) -> None:
        self.hidden = 0
        name = type(error).__name__
        has_page = isinstance(error, HybridNetError) and name in errors.__all__
        self.page = f"; docs/errors/{name}.md has examples" if has_page else ""
        self.fix = fix_of(error)

    def note(self) -> str:
        """Returns the last lines of a report: the fix of an error that Python raised, the number of hidden frames."""
        fix = f"  Fix: {errors._sentence(self.fix)}\n" if self.fix else ""
        if not self.hidden:
            return fix
        frames = "1 frame" if self.hidden == 1 else f"{self.hidden} frames"
        return f"{fix}({frames} inside hybridnet and Python hidden: HYBRIDNET_FULL_TRACEBACK=1 shows all{self.page}.)\n"


def _wants_everything() -> bool:
    return (getenv("HYBRIDNET_FULL_TRACEBACK") or "0").lower() not in ("", "0", "false", "off")


def _file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _frames(trace: TracebackType | None) -> list[TracebackType]:
    """Returns the entries of a traceback, outermost first."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    return frames


def _is_hidden(file: str) -> bool:
    """Whether frames of a file tell a user nothing: the package, ``python -m``, the start of a thread."""
    return is_own_file(file) or file.startswith("<frozen ") or file == threading.__file__


def _is_library(file: str) -> bool:
    return _is_hidden(file) or file.startswith(_STANDARD_LIBRARY) or any(part in file for part in _LIBRARIES)


def _hides_frames(error: BaseException, frames: list[TracebackType]) -> bool:
    if isinstance(error, (HybridNetError, KeyboardInterrupt)):
        return True
    return bool(frames) and not is_own_file(_file(frames[-1]))


def _is_detail(error: BaseException, outer: BaseException) -> bool:
    """Whether the package handled error and raised outer instead, without code of the program in between.

    The traceback of an error that was caught begins at the frame that caught it.
    """
    frames = _frames(error.__traceback__)
    if not frames or not isinstance(outer, HybridNetError):
        return False
    return is_own_file(_file(frames[0])) and all(_is_library(_file(frame)) for frame in frames)


def _without_line(text: str, frame: TracebackType) -> str:
    """Returns an error's text without the place and the source of the line of frame, which a report shows above it."""
    where = f"  At: {_file(frame)}:{frame.tb_lineno}"
    lines = text.split("\n")
    if where not in lines:
        return text
    return "\n".join(line for line in lines if line != where and not _SOURCE.match(line))


def _shown_with(error: BaseException) -> BaseException | None:
    """Returns the error that Python's report shows before this one."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _drop_details(error: BaseException) -> None:
    """Cuts details of error out of its chain."""
    shown = first = _shown_with(error)
    while shown is not None and _is_detail(shown, error):
        shown = _shown_with(shown)
    if shown is not first:
        error.__cause__, error.__context__ = None, shown
        error.__suppress_context__ = shown is None


def _shorten(error: BaseException, count: _Count, restore: list[Callable[[], None]], seen: set[int]) -> None:
    """Hides frames of error and of the errors in its chain; appends functions that undo it."""
    if id(error) in seen:
        return
    seen.add(id(error))
    before = (error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__)

    def undo() -> None:
        error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__ = before

    restore.append(undo)
    frames = _frames(error.__traceback__)
    kept = [frame for frame in frames if not _is_hidden(_file(frame))]
    if kept and len(kept) < len(frames) and _hides_frames(error, frames):
        visible: TracebackType | None = None
        for frame in reversed(kept):
            visible = TracebackType(visible, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        error.__traceback__ = visible
        count.hidden += len(frames) - len(kept)
    _drop_details(error)
    if isinstance(error, HybridNetError) and kept and error.args and isinstance(error.args[0], str):
        text = error.args
        restore.append(lambda: setattr(error, "args", text))
        error.args = (_without_line(error.args[0], kept[-1]), *error.args[1:])
    for chained in (_shown_with(error), *getattr(error, "exceptions", ())):
        if isinstance(chained, BaseException):
            _shorten(chained, count, restore, seen)


@contextlib.contextmanager
def shortened(error: BaseException) -> Iterator[_Count]:
    """Hides frames of the package in an error and its chain while the ``with`` block runs."""
    count = _Count(error)
    restore: list[Callable[[], None]] = []
    try:
        if not _wants_everything():
            _shorten(error, count, restore, set())
        yield count
    finally:
        for undo in reversed(restore):
            undo()


def report(error: BaseException) -> str:
    """Returns the report of an uncaught error as a terminal shows it."""
    import traceback

    with shortened(error) as count:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
    return "".join(lines) + count.note()


# --- hooks ------------------------------------------------------------------------------------------------------------


def _print_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The value of sys.excepthook."""
    with shortened(error) as count:
        sys.__excepthook__(kind, error, error.__traceback__)
    _print_note(count)


def _print_in_thread(args: Any) -> None:
    """The value of threading.excepthook."""
    if args.exc_value is None:
        threading.__excepthook__(args)
        return
    with shortened(args.exc_value) as count:
        parts = (args.exc_type, args.exc_value, args.exc_value.__traceback__, args.thread)
        threading.__excepthook__(threading.ExceptHookArgs(parts))
    if args.exc_type is not SystemExit:
        _print_note(count)


def _print_note(count: _Count) -> None:
    if sys.stderr is not None:
        sys.stderr.write(count.note())


def _print_in_ipython(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """The handler of the package's errors in IPython and Jupyter."""
    with shortened(error) as count:
        shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)
    _print_note(count)


def hide_in_pytest(caught: Any) -> bool:
    """The value of ``__tracebackhide__`` in the package's modules: hides them in pytest's reports of its own errors."""
    return caught is not None and isinstance(caught.value, HybridNetError) and not _wants_everything()


_num_marked = 0  # modules that were loaded at the last call


def mark_for_pytest() -> None:
    """Sets ``__tracebackhide__`` in all modules of the package. Called for each new error while pytest runs, because
    modules are imported on first use."""
    global _num_marked
    if len(sys.modules) == _num_marked:
        return
    _num_marked = len(sys.modules)
    package = __name__.partition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.startswith(package) and hasattr(module, "__dict__"):
            vars(module).setdefault("__tracebackhide__", hide_in_pytest)


def install() -> None:
    """Sets the hooks that nothing else has set."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_uncaught
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _print_in_thread
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_shell is None else get_shell()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((HybridNetError,), _print_in_ipython)
