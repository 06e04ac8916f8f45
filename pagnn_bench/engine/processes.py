"""How many processes train the jobs of a command with ``n_jobs=auto``, and how to cut jobs to keep all of them busy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from pagnn_bench.config.identity import Cell
from pagnn_bench.config.text import count
from pagnn_bench.engine.cores import granted_cores, usable_cores
from pagnn_bench.engine.plan import Batch, Job, Settings

# Workers pay off if one process would take longer than this: starting them takes three seconds of processor time, which
# are hidden only if workers are started before the graphs are read.
WORTH_SECONDS, LATE_WORTH_SECONDS = 4.0, 10.0
EPOCH_SECONDS = 0.3e-3  # of one trial in a stack, on the smallest graphs
USUAL_EPOCHS = 400  # most trials stop early, long before `max_epochs`
# Processor time of a stack, counted in trials: its members and two more. Measured with PaGNN-N on Cora: 100 epochs of
# 20, 10, 5, 2 and 1 trials took 1.23, 0.68, 0.39, 0.22 and 0.16 s; with dense input the surcharge is smaller.
STACK_SURCHARGE = 2
LEAST_GAIN = 0.1  # a stack is cut only if that saves this share of the time of its round


class Choice(NamedTuple):
    """Processes, the threads of each (None: as torch chooses) and a note for the user, if any."""

    processes: int
    threads: int | None
    note: str = ""


def may_need_workers(plan: Sequence[Batch], settings: Settings) -> bool:
    """Whether to start workers before the sizes of the graphs are known; needs no torch."""
    if settings.n_jobs != "auto":
        return settings.n_jobs > 1
    return _processes_by_cores(settings) > 1 and _seconds(plan) >= WORTH_SECONDS


def choose_processes(jobs: Sequence[Job], settings: Settings, devices: Sequence[str]) -> Choice:
    """As many processes as cores, jobs and memory allow, one thread each; on GPUs one process each."""
    from pagnn_bench.engine.memory import affordable_processes
    from pagnn_bench.engine.workload import entry_seconds

    if devices[0].startswith("cuda"):
        return Choice(min(len(devices), len(jobs)), settings.threads)
    threads = settings.threads or 1
    wanted = min(_processes_by_cores(settings), sum(map(_size, jobs)))
    batches = [batch for job in jobs for batch in job]
    worth = _seconds(batches) >= WORTH_SECONDS or _seconds(batches, entry_seconds) >= LATE_WORTH_SECONDS
    if wanted == 1 or not worth:
        return Choice(1, threads)
    wanted = min(wanted, len(fill_last_round(jobs, wanted)))
    affordable = affordable_processes(jobs, wanted)
    if affordable == wanted:
        return Choice(wanted, threads)
    fit = count(affordable, "process", "processes")
    note = f"Free memory is enough for {fit}, not {wanted}; n_jobs={wanted} uses all of them anyway."
    return Choice(affordable, threads, note)


def worker_threads(settings: Settings) -> int:
    """Threads of each of several processes: as given, one with ``auto``, else the cores divided among them.

    More threads than cores would only wait for each other.
    """
    processes = usable_cores() if settings.n_jobs == "auto" else settings.n_jobs
    return settings.threads or max(1, usable_cores() // processes)


def fill_last_round(jobs: Sequence[Job], processes: int) -> list[Job]:
    """The same trials, with the stacks of the last, incomplete round cut so that no process is idle.

    A trial in a smaller stack is the same trial up to the rounding of floating-point numbers.
    """
    whole = len(jobs) // processes * processes
    last = jobs[whole:]
    if not last:
        return list(jobs)
    longest = max(map(_size, last))
    # With every job cut into p parts, the round takes as many turns as all parts need, each as long as the largest.
    times = {
        parts: math.ceil(len(last) * parts / processes) * (math.ceil(longest / parts) + STACK_SURCHARGE)
        for parts in range(1, min(longest, processes) + 1)
    }
    best = min(times, key=lambda parts: times[parts])
    if times[best] > (1 - LEAST_GAIN) * times[1]:
        return list(jobs)
    return [*jobs[:whole], *(part for job in last for part in _cut(job, best))]


def _cut(job: Job, parts: int) -> list[Job]:
    """The trials of a job as this many jobs of nearly equal size, or fewer if it has fewer trials."""
    members = [(batch, seed) for batch in job for seed in batch.seeds]
    parts = min(parts, len(members))
    bounds = [len(members) * k // parts for k in range(parts + 1)]
    cut = []
    for first, last in pairwise(bounds):
        own = members[first:last]
        shares = [(batch, [seed for other, seed in own if other is batch]) for batch in job]
        cut.append(tuple(replace(batch, seeds=seeds) for batch, seeds in shares if seeds))
    return cut


def _size(job: Job) -> int:
    return sum(len(batch.seeds) for batch in job)


def _processes_by_cores(settings: Settings) -> int:
    return max(1, granted_cores() // (settings.threads or 1))


def _seconds(batches: Iterable[Batch], size: Callable[[Cell], float] = lambda cell: 0.0) -> float:
    """Rough time in one process; ``size`` is what an epoch costs beyond the minimum, 0 by default."""
    return sum(len(batch.seeds) * _epochs(batch) * (EPOCH_SECONDS + size(batch.cell)) for batch in batches)


def _epochs(batch: Batch) -> int:
    limit = batch.cell.protocol.get("max_epochs")  # not checked yet when workers are started
    return min(limit, USUAL_EPOCHS) if isinstance(limit, int) else USUAL_EPOCHS
