"""Plan, execute, store: train what is missing, batch by batch, on any backend.

Nothing here imports torch until there is something to train.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from pagnn_bench.config.identity import Cell
from pagnn_bench.config.text import count, duration
from pagnn_bench.config.variants import set_apart
from pagnn_bench.engine.backends import check_backend, open_backend, with_device
from pagnn_bench.engine.backends.cards import devices_here
from pagnn_bench.engine.estimate import estimate_seconds
from pagnn_bench.engine.outcome import DeviceLost
from pagnn_bench.engine.plan import Batch, Request, Settings, collect_requests, make_jobs, make_plan
from pagnn_bench.engine.progress import Progress
from pagnn_bench.engine.tensorboard import ScalarLog
from pagnn_bench.engine.tuning import choose, is_tuned, pending_tries
from pagnn_bench.records.runs import RunLog
from pagnn_bench.records.sealed import StoreError
from pagnn_bench.records.store import Store

STOPPED = 130  # exit code after Ctrl-C or SIGTERM

ShowResults: TypeAlias = "Callable[[Sequence[Request], Store], None]"


class Ending(NamedTuple):
    """How a plan ended.

    Attributes:
        code: the exit code.
        trained: whether all of it was trained, successfully or not: False after a dry run, an interruption, or
            submission to a batch system.
    """

    code: int
    trained: bool


def run(configs: Sequence[dict[str, Any]], show_results: ShowResults) -> int:
    """Run the cells of one command; those of ``protocol=tuned`` after the search for their settings.

    Args:
        configs: resolved configurations, one per combination; a trial that several request is trained once.
        show_results: prints the results; not called after a successful search or an interruption.

    Returns:
        The exit code: 0; 1 if something failed; 130 if it was interrupted. Finished batches are always kept.
    """
    settings = Settings.shared_by(configs)
    check_backend(settings.backend)
    settings = with_device(settings)
    collect_requests(configs)  # refuses a wrong configuration before a search is trained for it
    store = Store(settings.results_dir)
    if tuned := [config for config in configs if is_tuned(config)]:
        searched, broken = search(tuned, store, settings, show_results)
        if not searched.trained and not settings.dry_run:
            return searched.code
        # A dry run continues with cells that need no search, or whose search is over.
        unready = broken if searched.trained else [config for config in tuned if pending_tries(config, store)]
        ready = [config for config in configs if config not in unready]
        configs = [choose(config, store) if is_tuned(config) else config for config in ready]
        if not configs:
            return max(int(bool(broken)), searched.code)
        if broken:
            return max(1, _run(configs, store, settings, show_results).code)
    return _run(configs, store, settings, show_results).code


def search(
    tuned: Sequence[dict[str, Any]], store: Store, settings: Settings, show_results: ShowResults
) -> tuple[Ending, list[dict[str, Any]]]:
    """Train the tries of all searches, rung by rung.

    Returns:
        (how it ended, the configurations whose search failed). A setting that diverges counts as a bad one and has
        records; a failed search has none to choose by.
    """
    ending, broken = Ending(0, trained=True), []
    pending = [(config, tries) for config in tuned if (tries := pending_tries(config, store))]
    if not pending:
        print("Search on validation data: all done already.")
    while pending:
        print("Search on validation data:", end=" ")
        rung_configs = [tried for _, tries in pending for tried in tries]
        rung = _run(rung_configs, store, settings, show_results, searching=True)
        ending = Ending(max(ending.code, rung.code), rung.trained)
        if not rung.trained:
            break
        after = [(config, tries, pending_tries(config, store)) for config, tries in pending]
        broken += [config for config, tries, left in after if left == tries]
        pending = [(config, left) for config, tries, left in after if left and left != tries]
    return ending, broken


def _run(
    configs: Sequence[dict[str, Any]],
    store: Store,
    settings: Settings,
    show_results: ShowResults,
    searching: bool = False,
) -> Ending:
    requests = collect_requests(configs)
    plan = make_plan(requests, store, settings)
    wanted = sum(len(request.trials) for request in requests)
    todo = sum(len(batch.seeds) for batch in plan)
    head = f"{count(len(requests), 'cell')}, {count(wanted, 'trial')}:"
    if plan and not settings.dry_run and check_backend(settings.backend).here:
        _call_workers(plan, settings)
    _check(plan, settings)  # before anything is printed about training
    if settings.dry_run:
        print(f"{head} {wanted - todo} done already, {todo} to train{_estimate(plan, store, settings)}.")
        _print_plan(requests, plan, searching)
        return Ending(0, trained=False)
    ending = Ending(0, trained=True)
    if plan:
        guess = _estimate(plan, store, settings) if len(requests) > 1 else ""
        print(f"{head} {wanted - todo} done already, {todo} to train{guess}.", flush=True)
        ending = _train(plan, requests, store, settings)
    else:
        print(f"{head} all done already, nothing to train (force=true trains again).")
    if ending.trained and (ending.code or not searching):
        show_results(requests, store)
    return ending


def distinctions(requests: Sequence[Request]) -> dict[str, str]:
    """For every cell (by hash) what tells it from others with its method, data, type and rate; often nothing."""
    cells = [request.cell for request in requests]
    several, settings = len({cell.protocol["name"] for cell in cells}) > 1, set_apart(cells)
    protocols = {cell.hash: f"protocol {cell.protocol['name']}" if several else "" for cell in cells}
    return {key: ", ".join(filter(None, (protocol, settings[key]))) for key, protocol in protocols.items()}


def _estimate(plan: Sequence[Batch], store: Store, settings: Settings) -> str:
    seconds, unknown = estimate_seconds(plan, store, _device_kind(settings) if plan else None)
    if not seconds:
        return ""
    rest = f" and {count(unknown, 'trial')} of unknown length" if unknown else ""
    return f", about {duration(seconds)} in one process{rest}"


def _device_kind(settings: Settings) -> str | None:
    """``cpu`` or ``cuda``; None if only the workers know. A dry run opens no GPU, so it relies on what torch sees."""
    from pagnn_bench.engine.device import candidates

    if settings.device != "auto":
        return settings.device.partition(":")[0]
    if not check_backend(settings.backend).here:
        return None
    if settings.dry_run:
        return "cuda" if candidates(settings.device) else "cpu"
    return devices_here(settings)[0].partition(":")[0]


def _print_plan(requests: Sequence[Request], plan: Sequence[Batch], searching: bool) -> None:
    """Print a dry run: a line per cell, or per search, which has many cells that differ in their settings."""
    left: dict[str, int] = {}
    for batch in plan:
        left[batch.cell.hash] = left.get(batch.cell.hash, 0) + len(batch.seeds)
    differing = distinctions(requests)
    lines: dict[str, list[Request]] = {}
    for request in requests:
        own = "" if searching else differing[request.cell.hash]
        lines.setdefault(f"{request.cell} ({own})" if own else str(request.cell), []).append(request)
    for name, sharing in lines.items():
        todo = sum(left.get(request.cell.hash, 0) for request in sharing)
        done = sum(len(request.trials) for request in sharing) - todo
        settings = f"{count(len(sharing), 'setting')}, " if searching else ""
        print(f"  {name}: {settings}{done} done, {todo} to train")


def _train(plan: Sequence[Batch], requests: Sequence[Request], store: Store, settings: Settings) -> Ending:
    """Train all batches and save each as it ends. A batch that fails does not stop the others."""
    from pagnn_bench.engine.execute import check_graph, stack_key

    masks = {request.cell.hash: {mask for mask, _ in request.trials} for request in requests}
    for cell in _cells(plan):
        check_graph(cell, masks[cell.hash])
    backend = open_backend(settings)
    jobs = backend.arrange(make_jobs(plan, settings.stack, stack_key))
    scalars = ScalarLog(settings.tensorboard) if settings.tensorboard else None
    store.prepare()
    progress = Progress(sum(len(batch.seeds) for batch in plan), shown=backend.waits)
    failed, notes = False, {""}
    outcomes = backend.run(jobs, progress)  # a batch system may refuse the jobs here, before we log them
    try:
        with progress, terminable(), _run_log(plan, requests, store) as log:
            for outcome in outcomes:
                outcome.save(store)
                log.done(len(outcome.batch.seeds))
                if scalars is not None:
                    scalars.add(outcome)
                failed |= outcome.failed
                if outcome.note not in notes:
                    notes.add(outcome.note)
                    progress.say(outcome.note)
            if not backend.waits:
                log.submitted(backend.submitted)
    except StoreError as error:  # a full disk, say: later batches could not be saved either
        print(f"pagnn-bench: {error} Every batch saved before is kept.", file=sys.stderr)
        return Ending(1, trained=True)
    except DeviceLost as error:
        print(
            f"pagnn-bench: {error}, so the sweep stops. Every batch saved is kept, and the same command continues.",
            file=sys.stderr,
        )
        return Ending(1, trained=False)
    except KeyboardInterrupt:
        same = "the same command without force=true" if settings.force else "the same command"
        print(f"Stopped. Every finished batch is kept; {same} continues from here.", file=sys.stderr)
        return Ending(STOPPED, trained=False)
    if not backend.waits:
        first, last = backend.submitted[0], backend.submitted[-1]
        size = f"{count(len(plan), 'batch', 'batches')} in {count(len(backend.submitted), 'job')}"
        print(f"Submitted {size}: {first} to {last}.")
        print(f"pagnn-bench status --results {store.results_dir} shows their progress.")
    return Ending(int(failed), trained=backend.waits)


def _call_workers(plan: Sequence[Batch], settings: Settings) -> None:
    """Start worker processes while this one still reads and checks what to train."""
    from pagnn_bench.engine.backends.nursery import warm_up
    from pagnn_bench.engine.processes import may_need_workers, worker_threads

    if may_need_workers(plan, settings):
        warm_up(worker_threads(settings))


def _check(plan: Sequence[Batch], settings: Settings) -> None:
    """Refuse a plan that makes no sense."""
    if plan:
        from pagnn_bench.engine.execute import check_cell  # brings torch

        # A dry run may be for another machine, and workers elsewhere have other devices.
        if check_backend(settings.backend).here and not settings.dry_run:
            devices_here(settings)
        for cell in _cells(plan):
            check_cell(cell)


def _cells(plan: Sequence[Batch]) -> list[Cell]:
    """The cells of a plan, each once."""
    return list({batch.cell.hash: batch.cell for batch in plan}.values())


def _run_log(plan: Sequence[Batch], requests: Sequence[Request], store: Store) -> RunLog:
    """The log that shows this command to others."""
    wanted = [(request.cell, request.trials) for request in requests]
    return RunLog(store.results_dir, wanted, to_train=sum(len(batch.seeds) for batch in plan))


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end a sweep like Ctrl-C, so that a batch system's time limit leaves clean results."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    # Only the main thread may set signal handlers; in a web server, say, this is another one.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
