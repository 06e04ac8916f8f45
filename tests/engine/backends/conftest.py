from __future__ import annotations

import pytest

from tests.engine.backends.common import SWEEP, accuracies, pagnn_bench


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> dict[tuple[str, int, int], float]:
    """The trials of the sweep, trained in one process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    pagnn_bench("run", *SWEEP, cwd=folder)
    trials = accuracies(folder / "results")
    assert len(trials) == 12
    return trials
