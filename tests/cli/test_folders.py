"""A results folder that does not exist: a typo if it was named, a fresh start if not."""

from __future__ import annotations

import pytest

from pagnn_bench.cli import main
from tests.cli.common import refusal

READERS = ("tables", "status", "collect", "report")


@pytest.mark.parametrize("command", READERS)
def test_a_folder_that_was_named_must_exist(capsys, folder, command):
    assert (
        refusal(capsys, folder, [command, "--results", "nope"]) == "--results nope: there is no such folder."
    )


@pytest.mark.parametrize("command", READERS)
def test_before_the_first_run_there_is_nothing_to_show_and_nothing_is_written(capsys, folder, command):
    assert main([command]) == 0
    assert capsys.readouterr().out.startswith("Nothing has been run yet")
    assert list(folder.iterdir()) == []
