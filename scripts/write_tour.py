"""Run the notebook docs/tour.ipynb and write the outputs of its cells into it.

The cells run in order, in one namespace and in an empty folder, without a kernel or Jupyter.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

TOUR = Path(__file__).resolve().parent.parent / "docs/tour.ipynb"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    notebook = json.loads(TOUR.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        done = execute(notebook)
    TOUR.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def execute(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of running its cells now."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    done, names = copy.deepcopy(notebook), {"__name__": "__main__"}
    code = [cell for cell in done["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, start=1):
        cell["execution_count"] = number
        cell["outputs"] = _run("".join(cell["source"]), names, number)
    return done


def _run(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """The printed output of one cell, and the value of its last line if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append(
            {"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}}
        )
    return outputs


if __name__ == "__main__":
    main()
