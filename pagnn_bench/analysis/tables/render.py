"""Tables as text: Markdown aligned for the terminal, LaTeX with booktabs, HTML."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from pagnn_bench.analysis.tables.layout import Table, TablePart, Value

# ---- Markdown


def to_markdown(table: Table) -> str:
    """With aligned columns, to read as well in a terminal as on a page."""
    blocks = [f"### {_md(table.title)}", *(_markdown_part(part) for part in table.parts)]
    return "\n\n".join([*blocks, *([_wrapped(table.caption)] if table.caption else [])]) + "\n"


def _one_heading(part: TablePart) -> TablePart:
    """Move a single heading above the columns into the corner, which saves a line."""
    headings = [text for text, _ in part.spans if text]
    return replace(part, spans=[], header=[headings[0], *part.header[1:]]) if len(headings) == 1 else part


def _markdown_part(part: TablePart) -> str:
    part = _one_heading(part)
    header = list(part.header)
    if part.spans:  # Markdown allows only one line of headings
        above = [text for text, span in part.spans for _ in range(span)]
        header = [f"{group} {text}".strip() for group, text in zip(above, header)]
    # Text and small print are aligned separately, so that decimal points line up.
    columns = []
    for place, name in enumerate(header):
        values = [row[place] for row in part.rows]
        texts = [f"**{_md(value.text)}**" if value.bold else _md(value.text) for value in values]
        if place >= part.stub and any(value.bold for value in values):
            texts = [text if text.endswith("*") or not text else f"{text}  " for text in texts]
        smalls = [_md(value.small) for value in values]
        columns.append(_column(_md(name), texts, smalls, left=place < part.stub))
    lines = ["| " + " | ".join(cells) + " |" for cells in zip(*columns)]
    return "\n".join(lines)


def _column(name: str, texts: list[str], smalls: list[str], left: bool) -> list[str]:
    """Header, rule and entries of one column, all of the same width."""
    wide, narrow = (max(map(len, column), default=0) for column in (texts, smalls))
    entries = [
        text.ljust(wide) if left else text.rjust(wide) + (" " + small.ljust(narrow) if narrow else "")
        for text, small in zip(texts, smalls)
    ]
    width = max(3, len(name), *map(len, entries)) if entries else max(3, len(name))
    if left:
        return [name.ljust(width), "-" * width, *(entry.ljust(width) for entry in entries)]
    return [name.rjust(width), "-" * (width - 1) + ":", *(entry.rjust(width) for entry in entries)]


def _md(text: str) -> str:
    return re.sub(r"([|<>\\`])", r"\\\1", " ".join(text.split()))


def _wrapped(sentences: list[str]) -> str:
    return "\n".join(_md(sentence) for sentence in sentences)


# ---- LaTeX

_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "=": "$=$",
    "*": r"$^{\ast}$",
    "–": "--",
    "…": r"\dots{}",
    "[": "{[}",  # after \\ a bracket would be read as an argument
}


def latex_text(text: str) -> str:
    """Text for LaTeX; characters that pdflatex cannot typeset become question marks."""
    known = "".join(_LATEX.get(character, character) for character in " ".join(text.split()))
    return "".join(c if c.isprintable() and ord(c) < 0x250 else "?" for c in known)


def to_latex(table: Table) -> str:
    r"""A ``table*`` for ``\input``, shrunk to the width of the text if it is wider."""
    columns = max((len(part.header) for part in table.parts), default=1)
    stub = max((part.stub for part in table.parts), default=1)
    title = re.sub(r"^Table \d+: ", "", table.title)  # LaTeX numbers its tables itself
    lines = [
        "% needs \\usepackage{booktabs,graphicx}",
        "\\begin{table*}[!htp]",
        "\\centering",
        "\\setlength{\\belowcaptionskip}{4pt}",
        f"\\caption{{{latex_text(' '.join([f'{title}.', *table.caption]))}}}",
        f"\\label{{tab:{re.sub(r'[^A-Za-z0-9.-]+', '-', table.name).strip('-')}}}",
        "\\footnotesize",
        "\\setlength{\\tabcolsep}{3pt}",
        "\\sbox0{%",
        f"\\begin{{tabular}}{{@{{}}{'l' * stub}{'c' * (columns - stub)}@{{}}}}",
        "\\toprule",
    ]
    for number, part in enumerate(table.parts):
        lines += ["\\midrule"] if number else []
        lines += _latex_part(part)
    lines += ["\\bottomrule", "\\end{tabular}}%"]
    lines += [
        "\\ifdim\\wd0>\\textwidth\\resizebox{\\textwidth}{!}{\\usebox0}\\else\\usebox0\\fi",
        "\\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _latex_part(part: TablePart) -> list[str]:
    lines = []
    if part.spans:
        cells, rules, column = [], [], 1
        for text, span in part.spans:
            cells.append(f"\\multicolumn{{{span}}}{{c}}{{{latex_text(text)}}}" if span > 1 or text else "")
            if text:
                rules.append(f"\\cmidrule(lr){{{column}-{column + span - 1}}}")
            column += span
        lines += [" & ".join(cells) + " \\\\", "".join(rules)]
    lines += [" & ".join(map(latex_text, part.header)) + " \\\\", "\\midrule"]
    for number, row in enumerate(part.rows):
        lines += ["\\midrule"] if number in part.rules else []
        lines.append(" & ".join(map(_latex_value, row)) + " \\\\")
    return lines


def _latex_value(value: Value) -> str:
    text = latex_text(value.text)
    text = f"\\textbf{{{text}}}" if value.bold else text
    return f"{text}{{\\tiny\\,{latex_text(value.small)}}}" if value.small else text


# ---- HTML


def to_html(table: Table) -> str:
    """A fragment: one figure with its tables and caption."""
    parts = "\n".join(map(_html_part, table.parts))
    caption = "".join(f"<p>{escape(sentence)}</p>" for sentence in table.caption)
    return (
        f'<figure class="table" id="table-{escape(table.name)}">\n<h3>{escape(table.title)}</h3>\n'
        f'<div class="parts">\n{parts}\n</div>\n'
        f"<figcaption>{caption}</figcaption>\n</figure>\n"
    )


def _html_part(part: TablePart) -> str:
    part, head = _one_heading(part), ""
    if any(text for text, _ in part.spans):
        cells = (f'<th colspan="{span}" scope="colgroup">{escape(text)}</th>' for text, span in part.spans)
        head += f"<tr>{''.join(cells)}</tr>\n"
    names = (f'<th scope="col">{escape(text)}</th>' for text in part.header)
    head += f"<tr>{''.join(names)}</tr>"
    rows = "\n".join(_html_row(part, number) for number in range(len(part.rows)))
    return (
        f'<div class="scroll"><table>\n<thead>\n{head}\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>'
    )


def _html_row(part: TablePart, number: int) -> str:
    row = part.rows[number]
    cells = (_html_value(value, place < part.stub) for place, value in enumerate(row))
    kind = "rule" if number in part.rules else "" if row[0].text else "more"
    attribute = f' class="{kind}"' if kind else ""
    return f"<tr{attribute}>{''.join(cells)}</tr>"


def _html_value(value: Value, name: bool) -> str:
    text = f"<b>{escape(value.text)}</b>" if value.bold else escape(value.text)
    small = f" <small>{escape(value.small)}</small>" if value.small else ""
    if name:
        return f'<th scope="row">{text}</th>'
    kind = f' class="{escape("-".join(value.verdict.split()))}"' if value.verdict else ""
    return f"<td{kind}>{text}{small}</td>"
