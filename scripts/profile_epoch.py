"""Where the time of an epoch goes: the operations of a short training by their share of the time.

PAGNN_DATA=... python scripts/profile_epoch.py                          # 20 seeds on Cora, type 1, rate 0.5
PAGNN_DATA=... python scripts/profile_epoch.py method=gcnmf missing=type2 data=citeseer
"""

from __future__ import annotations

import argparse
import sys

import torch
from hydra.errors import HydraException
from torch.profiler import ProfilerActivity, profile

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.identity import Cell
from pagnn_bench.config.sweep import compose_combinations
from pagnn_bench.engine.execute import Executor

MOST_EXPENSIVE = 8
EPOCHS = 60
NAMES = {
    "aten::addmm": "sparse product",
    "aten::_sparse_mm": "sparse product",
    "aten::mm": "dense product",
    "aten::bmm": "dense product, per seed",
    "aten::__lshift__": "keep-bits to factors",
    "aten::bitwise_left_shift": "keep-bits to factors",
    "aten::bitwise_right_shift": "keep-bits to factors",
    "aten::bitwise_right_shift_": "keep-bits to factors",
    "aten::bitwise_and_": "keep-bits to factors",
    "aten::index_select": "rows and values in another order",
    "aten::random_": "random words",
    "aten::mul": "factors times values",
    "aten::_fused_adam_": "Adam",
    "aten::copy_": "copies between layouts",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="KEY=VALUE", help="as for pagnn-bench run -m")
    words = ["method=pagnn_n,mf,gcnmf", *parser.parse_args().words, f"protocol.max_epochs={EPOCHS}"]
    try:
        configs = compose_combinations(words, multirun=True)
    except (RequestError, HydraException) as error:
        parser.error(str(error).splitlines()[0])
    for config in configs:
        cell, executor = Cell.from_config(config), Executor(torch.device("cpu"))
        executor.run(cell, 0, range(20))  # does the preparation, which is not profiled
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            executor.run(cell, 0, range(20))
        events = [event for event in profiler.key_averages() if event.self_cpu_time_total > 0]
        total = sum(event.self_cpu_time_total for event in events)
        print(f"\n{config['method']['label']}, {total / EPOCHS / 20 / 1000:.2f} ms per epoch and seed\n")
        print("| operation | share |\n| --- | ---: |")
        events.sort(key=lambda event: -event.self_cpu_time_total)
        for event in events[:MOST_EXPENSIVE]:
            name = f"{event.key} ({NAMES[event.key]})" if event.key in NAMES else event.key
            print(f"| {name} | {100 * event.self_cpu_time_total / total:.0f} % |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
