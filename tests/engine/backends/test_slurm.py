"""Packs, arrays and job scripts of the Slurm backend, through submitit's local executor and its script writer."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import time

import pytest

from pagnn_bench.config.errors import RequestError
from pagnn_bench.engine.backends import slurm
from pagnn_bench.engine.outcome import Outcome
from pagnn_bench.engine.plan import Batch
from pagnn_bench.engine.progress import Progress
from pagnn_bench.records.store import Store
from tests.engine.backends.common import SWEEP, accuracies, pagnn_bench
from tests.engine.test_plan import SETTINGS
from tests.records.common import CELL, ok

submitit = pytest.importorskip(
    "submitit", reason="submitit is not installed (pip install 'pagnn-bench[slurm]')"
)
pytestmark = pytest.mark.engines

OPTIONS = {
    "name": "slurm",
    "cluster": "slurm",
    "batches_per_job": 2,
    "array_size": 500,
    "parallel": 7,
    "minutes": 90,
    "cpus": 3,
    "gpus": 1,
    "memory_gb": 5,
    "partition": "short",
    "more": {"account": "mine"},
}


def batch(mask: int, generation: int = 0) -> Batch:
    return Batch(CELL, mask, [0], generation)


def test_packs_hold_whole_jobs():
    jobs = [(batch(0), batch(0)), (batch(1),), (batch(2),), (batch(3),)]
    masks = [[job[0].mask for job in pack] for pack in slurm.pack_jobs(jobs, 2)]
    assert masks == [[0], [1, 2], [3]]


def test_a_job_saves_each_batch_and_leaves_out_what_is_done(tmp_path, monkeypatch):
    settings = dataclasses.replace(SETTINGS, results_dir=str(tmp_path))
    trained = []

    def fake(job, settings):
        trained.append([each.mask for each in job])
        return [
            Outcome(each, {}, error="E: broken") if each.mask == 2 else Outcome(each, {}, [ok(0)])
            for each in job
        ]

    monkeypatch.setattr(slurm, "perform", fake)
    Store(tmp_path).save(CELL, 1, [ok(0)], {}, {})
    assert slurm.train_and_save([(batch(0), batch(1)), (batch(1),), (batch(2),)], settings) == 1
    assert trained == [[0], [2]]
    assert set(Store(tmp_path).load(CELL)) == {(0, 0), (1, 0)}
    assert [failure.mask for failure in Store(tmp_path).failures(CELL)] == [2]
    assert slurm.train_and_save([(batch(0, generation=1),)], settings) == 0  # forced: trained again
    assert trained == [[0], [2], [0]]


def test_the_job_script_field_by_field(tmp_path, monkeypatch):
    settings = dataclasses.replace(SETTINGS, results_dir=str(tmp_path), backend=OPTIONS)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")  # as on a machine of the cluster
    executor = slurm.make_executor(submitit, settings)
    script = executor._executor._make_submission_file_text("python work.py", "1")
    for line in (
        "--job-name=pagnn-bench",
        "--time=90",
        "--cpus-per-task=3",
        "--gpus-per-node=1",
        "--mem=5GB",
        "--partition=short",
        "--account=mine",
    ):
        assert f"#SBATCH {line}" in script
    assert executor._executor.parameters["array_parallelism"] == 7


def test_submit_and_return_with_the_local_executor(undisturbed, tmp_path):
    """The jobs are processes here; the command returns at once and the results arrive by themselves."""
    options = ("backend=slurm", "backend.cluster=local", "backend.batches_per_job=3", "backend.array_size=1")
    done = pagnn_bench("run", *SWEEP, *options, "backend.partition=null", cwd=tmp_path)
    assert "Submitted 6 batches in 2 jobs" in done.stdout
    deadline = time.monotonic() + 200
    while len(accuracies(tmp_path / "results")) < 12 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert accuracies(tmp_path / "results") == undisturbed
    status = pagnn_bench("status", cwd=tmp_path)
    assert "12 trials done, 0 failed, 0 to do" in status.stdout


def test_a_refusal_is_one_sentence(tmp_path, monkeypatch):
    class Refusing:
        def map_array(self, *arguments):
            raise submitit.core.utils.FailedJobError(
                "sbatch: error: no such partition\nsbatch: error: failed"
            )

    monkeypatch.setattr(slurm, "make_executor", lambda *arguments: Refusing())
    settings = dataclasses.replace(SETTINGS, results_dir=str(tmp_path), backend=OPTIONS)
    with pytest.raises(
        RequestError, match=r"nothing was submitted \(sbatch: error: no such partition; sbatch"
    ):
        slurm.SlurmBackend(settings).run([(batch(0),)], Progress(1, shown=False))


def sinfo() -> bool:
    if shutil.which("sinfo") is None:
        return False
    return subprocess.run(["sinfo"], capture_output=True, timeout=30).returncode == 0


@pytest.mark.skipif(
    not sinfo(), reason="no Slurm controller answers here (scripts/one_node_slurm.sh starts one)"
)
def test_a_real_controller(undisturbed, tmp_path):
    options = ["backend.cpus=1", "backend.memory_gb=2", "backend.minutes=5", "backend.batches_per_job=3"]
    done = pagnn_bench("run", *SWEEP, "backend=slurm", *options, cwd=tmp_path)
    assert "Submitted" in done.stdout
    assert "were submitted" in pagnn_bench("status", cwd=tmp_path).stdout
    deadline = time.monotonic() + 300
    while accuracies(tmp_path / "results") != undisturbed and time.monotonic() < deadline:
        time.sleep(2)
    assert accuracies(tmp_path / "results") == undisturbed
    assert "were submitted" not in pagnn_bench("status", cwd=tmp_path).stdout
