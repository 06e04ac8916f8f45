import pytest

from pagnn_bench.records.store import Store


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "results")
