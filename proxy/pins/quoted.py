"""Takes quoted material out of a turn: fences, mail quotes, logs, tracebacks and long quotations are data."""

from __future__ import annotations

import re

MOST = 2000  # characters at each end of a turn that rules look at

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_OPEN_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\[\[[^\[\]\n]{0,80}\]\]|\[(?:Image|Pasted text|image)\b[^\[\]\n]{0,60}\]")
_QUOTE = re.compile(r"\"[^\"\n]{16,}\"|“[^”\n]{16,}”|„[^“”\n]{16,}[“”]|«[^»\n]{16,}»|「[^」\n]{12,}」|`[^`\n]{24,}`")
_INLINE_ERROR = re.compile(r"(?:\bUncaught )?\b\w*(?:Error|Exception)\b: [ -~]*")
_LOG_LINE = re.compile(
    r"""^(?:
      \s*>                                                       # mail quote
    | \s*at\s+\S[^\n]*(?:\(|:\d)                                 # stack frame
    | \s*File\s"[^"\n]+",\sline\s\d
    | Traceback\s\(most\srecent | Caused\sby:
    | \[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d | \[?\d\d:\d\d:\d\d\b      # time stamp
    | (?:[\w.$]+\.)?[A-Z]\w*(?:Error|Exception|Warning)\b(?:\s\[\w+\])?:   # exception
    | [a-z_]\w*(?:\.\w+)+:\s\S | [\w-]+:\s\[\w+\]\s | Warning:\s | LISTEN\s
    | E\s{3,}\S | (?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|FAILED|TRACE)\b[\s:\[]
    | \[\w[\w:.-]*\]\s\S+ | npm\s(?:ERR!|WARN) | \$\s\S | PS\s[A-Z]:\\[^>\n]*> | [\w.-]+@[\w.-]+:\S*[$\#]\s
    | \s*[{<][^\n]*[}>]\s*$ | \s*<[a-z][\w-]*(?:\s[^>\n]*)?> | [+-]{3}\s[ab]/ | @@\s
    | (?:error|fatal|warning|panic|Error|Fatal)(?:\[\w+\])?:\s
    | Uncaught\s\w+Error | java\s-jar\s | [A-Z]{4,}\s{2,}
    )""",
    re.VERBOSE,
)


def strip_quoted(text: str) -> str:
    """Gives the writer's own words: what stands in quotations, fences and logs is left out."""
    if _OPEN_FENCE.search(text):
        text = _FENCE.sub("\n", text)
    lines = _PLACEHOLDER.sub(" ", text).split("\n")
    own = [line for index, line in enumerate(lines) if not _LOG_LINE.match(line) and not _indented(lines, index)]
    rest = "\n".join(own)
    if "Error" in rest or "Exception" in rest:
        rest = _INLINE_ERROR.sub("", rest)
    return _QUOTE.sub("“…”", rest).strip() if len(rest) > 11 else rest.strip()


def _indented(lines: list[str], index: int) -> bool:
    """Tells whether a line belongs to an indented block that follows a log line or a blank one."""
    line = lines[index]
    if not line.startswith(("    ", "\t")) or index == 0:
        return False
    before = lines[index - 1]
    return not before.strip() or before.startswith(("    ", "\t")) or _LOG_LINE.match(before) is not None


def ends_of(text: str) -> str:
    """Gives the first and the last characters of a long text, which bounds the work of every rule."""
    return text if len(text) <= 2 * MOST else f"{text[:MOST]}\n{text[-MOST:]}"
