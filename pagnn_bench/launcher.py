"""Hydra's side of ``run``: composes the configurations and hands all of them to one plan.

Hydra's own launchers start one job per combination and know nothing of each other; this one turns a multirun into a
single plan, so that resuming, order and progress are those of the whole sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from pagnn_bench.runner import run


def plain(config: DictConfig) -> dict[str, Any]:
    """The resolved configuration without Hydra's own part."""
    resolved = OmegaConf.to_container(config, resolve=True)
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items() if key != "hydra"}


class PlanLauncher(Launcher):
    """Runs all combinations of a multirun as one plan, then leaves with its exit code."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.context, self.config = hydra_context, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        loader = self.context.config_loader
        configs = [plain(loader.load_sweep_config(self.config, list(chosen))) for chosen in job_overrides]
        code = run(configs)
        if code:
            raise SystemExit(code)
        return [JobReturn(status=JobStatus.COMPLETED, _return_value=None) for _ in configs]


def register() -> None:
    """Make ``hydra/launcher: plan`` known to Hydra."""
    Plugins.instance().register(PlanLauncher)
    node = {"_target_": f"{PlanLauncher.__module__}.{PlanLauncher.__qualname__}"}
    ConfigStore.instance().store(group="hydra/launcher", name="plan", node=node, provider="pagnn-bench")
