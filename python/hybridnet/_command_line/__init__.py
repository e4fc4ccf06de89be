"""The command ``hybridnet``: inspects, runs, checks, measures, converts, compares and serves files of models.

Exit codes: 0 success; 1 the command ran and its result is negative (files differ, a check fails); 2 invalid command
line; 3 invalid file or value (the text says which and why); 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from ..errors import HybridNetError
from ..libinfo import __version__
from . import _bench, _convert, _diff, _info, _inspect, _run, _serve, _verify
from ._output import error_text

__all__ = ["main"]

_COMMANDS = (_info, _inspect, _run, _verify, _bench, _convert, _diff, _serve)
WRONG_INPUT, INTERRUPTED = 3, 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hybridnet", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--version", action="version", version=f"hybridnet {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        doc = module.__doc__ or ""
        name = module.__name__.rpartition("._")[2]
        command = commands.add_parser(
            name, help=doc.partition("\n")[0], description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(command)
        command.add_argument("--json", action="store_true", help="the answer as one JSON object")
        command.set_defaults(run=module.run)
    completion = commands.add_parser("completion", help="Prints the completion script of a shell.")
    completion.add_argument("shell", choices=["bash", "zsh"])
    completion.set_defaults(run=lambda options: print(_completion(parser, options.shell)) or 0)
    return parser


def _completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Returns the shell completion of commands and options; file names are completed by the shell."""
    chosen = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    cases = []
    for name, command in chosen.choices.items():
        words = " ".join(
            option for action in command._actions for option in action.option_strings if option[:2] == "--"
        )
        cases.append(f'    {name}) words="{words}" ;;')
    head = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return head + "\n".join(
        [
            "_hybridnet() {",
            '  local word=${COMP_WORDS[COMP_CWORD]} words=""',
            "  if [ $COMP_CWORD -eq 1 ]; then",
            f'    COMPREPLY=($(compgen -W "{" ".join(chosen.choices)}" -- "$word")); return',
            "  fi",
            "  case ${COMP_WORDS[1]} in",
            *cases,
            "  esac",
            '  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$words" -- "$word"))',
            '  else COMPREPLY=($(compgen -f -- "$word")); fi',
            "}",
            "complete -o filenames -F _hybridnet hybridnet",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; arguments: those after the program's name, default sys.argv. Returns the exit code."""
    options = _parser().parse_args(arguments)
    run: Callable[[Any], int] = options.run
    try:
        return run(options)
    except HybridNetError as error:
        text = error_text(error)
        if getattr(options, "json", False):
            print(json.dumps({"error": type(error).__name__, "text": text}))
        print(f"hybridnet {options.command}: {text}", file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
