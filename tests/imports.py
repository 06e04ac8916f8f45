"""What a command brings into the process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable


def answer_without(modules: Iterable[str], arguments: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, which fails if any of these modules is in it at the end."""
    program = (
        "import sys; from pagnn_bench.cli import main; code = main(sys.argv[1:]); "
        f"bad = {set(modules)!r} & set(sys.modules); sys.exit(f'imported: {{bad}}' if bad else code)"
    )
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
