"""Docstrings as Markdown: plain sentences, reStructuredText roles and literal blocks, and sections of numpydoc."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

SECTIONS = {
    *("Parameters", "Other Parameters", "Returns", "Yields", "Raises", "Attributes", "Notes", "Examples", "See Also"),
    *("Inputs", "Outputs", "References", "Warns"),
}
LISTS = SECTIONS - {"Notes", "Examples", "References", "See Also"}
ROLE = re.compile(r":(?:py:)?(?:class|func|meth|mod|attr|data|obj|exc|ref|math):`~?\.?([^`]+)`")
CODE = re.compile(r"(``.+?``|`[^`\n]+`)", re.DOTALL)
ITEM = re.compile(r"(\s*)([-*]|\d+\.) ")


def escaped(text: str) -> str:
    """Plain text with the characters of Markdown escaped; code in backquotes stays code."""
    parts = CODE.split(ROLE.sub(r"`\1`", text))
    for index, part in enumerate(parts):
        if index % 2:
            parts[index] = f"`{part.strip('`')}`" if "`" not in part.strip("`") else part
        else:
            parts[index] = re.sub(r"([*_\[\]|])", r"\\\1", part).replace("<", "&lt;")
    return "".join(parts)


def paragraphs(text: str) -> Iterator[str]:
    """Yields the parts of a text that blank lines separate."""
    yield from (part.strip("\n") for part in re.split(r"\n[ \t]*\n", text) if part.strip())


def is_code(part: str, after_colons: bool) -> bool:
    """True for a paragraph that is code: indented after `::`, indented as a whole, or a session of the interpreter."""
    indented = all(line.startswith("    ") for line in part.splitlines())
    return part.lstrip().startswith(">>>") or (indented and (after_colons or not ITEM.match(part)))


def code_block(part: str) -> str:
    text = textwrap.dedent(part).strip()
    return f"```{'pycon' if text.startswith('>>>') else 'python'}\n{text}\n```"


def prose(text: str) -> str:
    """Paragraphs, lists and literal blocks as Markdown."""
    result: list[str] = []
    code: list[str] = []
    after_colons = False
    for part in paragraphs(text):
        if is_code(part, after_colons):
            code.append(part)
            continue
        if code:
            result.append(code_block("\n\n".join(code)))
            code = []
        after_colons = part.rstrip().endswith("::")
        part = re.sub(r"\s*::\s*$", ":", part) if after_colons else part
        result.append(paragraph(part))
    if code:
        result.append(code_block("\n\n".join(code)))
    return "\n\n".join(result)


def paragraph(part: str) -> str:
    """One paragraph; lines that begin with a list's mark become a list."""
    lines = part.splitlines()
    for index, line in enumerate(lines):
        item = ITEM.match(line)
        if item and item[2] == "*":
            lines[index] = f"{item[1]}- {line[item.end() :]}"
    text = escaped("\n".join(lines))
    first = next((i for i, line in enumerate(lines) if ITEM.match(line)), None)
    if first:  # Markdown wants a blank line in front of a list
        rows = text.splitlines()
        text = "\n".join([*rows[:first], "", *rows[first:]])
    return text


def fields(body: str) -> str:
    """A list of numpydoc, ``name : type`` with an indented description, as a Markdown list."""
    rows: list[tuple[str, list[str]]] = []
    lines = re.sub(r"\\\n\s*", " ", inspect.cleandoc("\n" + body)).splitlines()
    rest = next((i for i, line in enumerate(lines) if is_sentence_after_list(lines, i)), len(lines))
    for line in lines[:rest]:
        if line.strip() and not line.startswith((" ", "\t")):
            rows.append((line.strip(), []))
        elif rows:
            rows[-1][1].append(line.strip())
    found = ["\n".join(field(head, " ".join(text).strip()) for head, text in rows), prose("\n".join(lines[rest:]))]
    return "\n\n".join(part for part in found if part)


def is_sentence_after_list(lines: list[str], number: int) -> bool:
    """True for the first line of a paragraph below a list, such as "Raises ValueError if ..."."""
    line = lines[number]
    return bool(number and not lines[number - 1].strip() and re.match(r"[A-Z]\w*\s+\w", line) and " : " not in line)


def field(head: str, text: str) -> str:
    """One row of a list: the name in bold, its type, its description."""
    name, colon, kind = head.partition(" : ")
    if not colon and not text:
        return f"- {escaped(head)}"
    title = f"**{escaped(name)}**" + (f" ({escaped(kind)})" if kind else "")
    return f"- {title}: {escaped(text)}" if text else f"- {title}"


def sections(doc: str) -> Iterator[tuple[str, str]]:
    """Yields (title, body) of the sections; the text in front of them has the title ""."""
    title, body = "", list[str]()
    lines = doc.splitlines()
    for index, line in enumerate(lines):
        underlined = index + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[index + 1].strip())
        if line.strip() in SECTIONS and underlined:
            yield title, "\n".join(body)
            title, body = line.strip(), []
        elif not (re.fullmatch(r"-{3,}", line.strip()) and index and lines[index - 1].strip() in SECTIONS):
            body.append(line)
    yield title, "\n".join(body)


def markdown(doc: str | None) -> str:
    """The whole docstring as Markdown; "" for None."""
    result = []
    for title, body in sections(inspect.cleandoc(doc or "")):
        if not body.strip():
            continue
        text = fields(body) if title in LISTS else prose(body)
        result.append(f"**{title}**\n\n{text}" if title else text)
    return "\n\n".join(result)


def summary(doc: str | None) -> str:
    """The first sentence, as Markdown on one line."""
    first = next(paragraphs(inspect.cleandoc(doc or "")), "")
    sentence = re.match(r".*?(?<!e\.g)(?<!i\.e)\.(?=\s|$)", first, re.DOTALL)
    return escaped(re.sub(r"\s+", " ", sentence[0] if sentence else first.rstrip(":")))
