"""``python -m pagnn_bench`` is ``pagnn-bench``."""

import sys

from pagnn_bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
