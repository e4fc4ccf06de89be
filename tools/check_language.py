#!/usr/bin/env python3
"""Checks the language of comments, docstrings, messages, documentation and commit subjects.

A comment is a sentence, or a noun phrase that names its subject. The check refuses the forms that hide the subject:

- a comment or docstring that begins with What, Of, Who, As, Where or Which;
- two "what" in one sentence;
- nobody, somebody or whoever, where an object is meant;
- a commit subject longer than 72 characters, or one that begins with a word above.

Prints ``file:line: rule: text`` for each finding, then the share of comment lines with "what" in it, which has a budget
of its own. Exits with 1 if there is a finding, or if the share is above the budget.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = 0.005  # of the comment lines may contain "what"
MAX_SUBJECT = 72
SKIPPED = (  # recorded files, and texts that quote the forms
    "tests/fixtures/",
    "docs/api-coverage.md",
    "tools/check_language.py",
    "tests/python/tools/test_check_language.py",
)

OPENING = re.compile(r"(what|of|who|as|where|which)\b", re.IGNORECASE)
WHAT = re.compile(r"(?<![.`\w])what\b(?![(`\w])", re.IGNORECASE)
PERSON = re.compile(r"\b(nobody|somebody|whoever)\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.;:?!])\s+")
STRING = r'"(?:\\.|[^"\\\n])*"'
CPP_TOKEN = re.compile(rf"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|{STRING}|'(?:\\.|[^'\\\n])+'", re.DOTALL)
SHELL_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!!)\s*([^\n]*)", re.MULTILINE)


@dataclass(frozen=True)
class Text:
    """One comment, docstring, message or paragraph. `kind` is "comment", "message" or "prose"."""

    path: str
    line: int
    kind: str
    text: str


# --- where text stands ------------------------------------------------------------------------------------------------


def line_of(source: str, offset: int) -> int:
    return source.count("\n", 0, offset) + 1


def joined(path: str, comments: list[tuple[int, int, str]]) -> Iterator[Text]:
    """Joins comments on consecutive lines that begin in one column. Items are (line, column, text)."""
    block: list[tuple[int, int, str]] = []
    for comment in [*comments, (-1, -1, "")]:
        if block and comment[:2] != (block[-1][0] + 1, block[-1][1]):
            yield Text(path, block[0][0], "comment", "\n".join(text for _, _, text in block))
            block = []
        block.append(comment)


def cpp_texts(path: str, source: str) -> Iterator[Text]:
    comments = []
    for match in CPP_TOKEN.finditer(source):
        token, line = match.group(), line_of(source, match.start())
        if token.startswith("//"):
            column = match.start() - source.rfind("\n", 0, match.start())
            comments.append((line, column, token.lstrip("/<! ")))
        elif token.startswith("/*"):
            yield Text(path, line, "comment", re.sub(r"(?m)^[\s*/!]+|\*/$", "", token))
        elif token.startswith(('"', "R")):
            yield Text(path, line, "message", token)
    yield from joined(path, comments)


def python_texts(path: str, source: str) -> Iterator[Text]:
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                docstrings.add(node.body[0].lineno)
                yield Text(path, node.body[0].lineno, "comment", text)
    comments = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line, column = token.start
        if token.type == tokenize.COMMENT:
            comments.append((line, column, token.string.lstrip("#!: ")))
        elif token.type == tokenize.STRING and line not in docstrings:
            yield Text(path, line, "message", token.string)
    yield from joined(path, comments)


def shell_texts(path: str, source: str) -> Iterator[Text]:
    comments = []
    for match in SHELL_COMMENT.finditer(source):
        column = match.start() - source.rfind("\n", 0, match.start())
        comments.append((line_of(source, match.start()), column, match.group(1)))
    yield from joined(path, comments)


def markdown_texts(path: str, source: str) -> Iterator[Text]:
    source = re.sub(r"```.*?```|~~~.*?~~~", lambda block: re.sub(r"[^\n]", " ", block.group()), source, flags=re.DOTALL)
    for match in re.finditer(r"[^\n].*?(?=\n\s*\n|\n[-*|#\d]|\Z)", source, re.DOTALL):
        yield Text(path, line_of(source, match.start()), "prose", match.group())


READERS = {
    **dict.fromkeys((".cc", ".h", ".c", ".cpp", ".java", ".cu"), cpp_texts),
    **dict.fromkeys((".py", ".pyi"), python_texts),
    **dict.fromkeys((".sh", ".cmake", ".yml", ".toml", "dev", "run", "CMakeLists.txt"), shell_texts),
    ".md": markdown_texts,
}


def texts_of(path: str) -> Iterator[Text]:
    name = Path(path).name
    reader = READERS.get(Path(path).suffix) or READERS.get(name)
    if reader:
        yield from reader(path, (ROOT / path).read_text(encoding="utf-8"))


# --- the rules --------------------------------------------------------------------------------------------------------


def findings(text: Text) -> Iterator[tuple[int, str, str]]:
    """(line, rule, sentence) of what is wrong in one text."""
    opening = OPENING.match(text.text.strip())
    if text.kind == "comment" and opening:
        yield text.line, f'begins with "{opening.group()}"', text.text
    if text.kind == "message" and " " not in text.text:
        return
    for sentence in SENTENCE_END.split(text.text):
        line = text.line + text.text[: text.text.find(sentence)].count("\n")
        if len(WHAT.findall(sentence)) > 1:
            yield line, 'two "what"', sentence
        if person := PERSON.search(sentence):
            yield line, f'"{person.group()}"', sentence


def subject_findings(count: int) -> Iterator[str]:
    command = ["git", "log", f"-{count}", "--no-merges", "--format=%h %s"]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for line in log.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if OPENING.match(subject) or len(subject) > MAX_SUBJECT:
            yield f"{commit}: subject of {len(subject)} characters: {subject}"


def files_of_the_tree(named: list[str]) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard", "--", *named],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        path for path in listed.stdout.split("\0") if path and not path.startswith(SKIPPED) and (ROOT / path).is_file()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", help="files or folders; all of the tree by default")
    parser.add_argument("--commits", type=int, default=0, metavar="N", help="check the last N subjects, too")
    parser.add_argument("--what", action="store_true", help='print each comment line with "what"')
    args = parser.parse_args()
    found = lines = with_what = 0
    for path in files_of_the_tree(args.paths):
        for text in texts_of(path):
            for line, rule, sentence in findings(text):
                found += 1
                print(f"{path}:{line}: {rule}: {' '.join(sentence.split())[:110]}")
            if text.kind == "comment":
                for number, line_text in enumerate(text.text.splitlines()):
                    lines += 1
                    if WHAT.search(line_text):
                        with_what += 1
                        if args.what:
                            print(f"{path}:{text.line + number}: what: {line_text.strip()[:110]}")
    for message in subject_findings(args.commits) if args.commits else ():
        found += 1
        print(message)
    share = with_what / max(lines, 1)
    print(f'{found} findings; {with_what} of {lines} comment lines contain "what" ({share:.2%}; budget {BUDGET:.1%})')
    return int(found > 0 or (share > BUDGET and not args.paths))


if __name__ == "__main__":
    sys.exit(main())
