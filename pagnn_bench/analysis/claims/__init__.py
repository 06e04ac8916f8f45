"""The claims of the paper (section 4.3), checked one by one against our numbers.

A claim has parts, such as «PaGNN-N against GAIN on type 2», and each part is decided on its own:

* accuracy: the paired difference on the same masks, averaged over the paper's cells that both methods have, must differ
  from zero at 5 % (Holm's correction over the parts of the claim), and most cells must have its sign. If the average
  differs from zero but most cells do not have its sign, or the cells of a single rate have the opposite sign beyond
  chance (Holm's correction over the rates), the part is mixed;
* time: the quartiles over repeats must not overlap on any dataset that was timed.

A claim holds if all its parts hold, fails if one of them fails, is mixed if one of them is, and is undecided otherwise:
because something was not run, or because the numbers do not settle it. A part that is decided on only some of the
paper's cells says so, and does not decide the claim.
"""

from __future__ import annotations

from collections.abc import Sequence

from pagnn_bench.analysis.claims.accuracy import accuracy_parts
from pagnn_bench.analysis.claims.parts import FAILS, HOLDS, MIXED, UNDECIDED, Claim, ClaimPart
from pagnn_bench.analysis.claims.time import time_part
from pagnn_bench.analysis.tables.results import Result
from pagnn_bench.analysis.tables.timing import Timings

__all__ = ["FAILS", "HOLDS", "MIXED", "UNDECIDED", "Claim", "ClaimPart", "check_claims"]

PAGNN = ("pagnn_n", "pagnn_m")
SLIGHTLY = 2.0  # «slightly slower»: less than twice the time; the paper gives no number


def check_claims(results: Sequence[Result], timings: Timings) -> list[Claim]:
    """All claims.

    Args:
        results: of one protocol.
        timings: of trials that were timed alone.
    """
    both = ("type1", "type2")
    return [
        Claim(
            "PaGNN performs better than the imputation methods MF, VAE and GAIN on both types.",
            accuracy_parts(results, [(own, rival) for rival in ("mf", "vae", "gain") for own in PAGNN], both),
        ),
        Claim(
            "PaGNN generally performs better than SAT on type 1.",
            accuracy_parts(results, [(own, "sat") for own in PAGNN], ("type1",)),
        ),
        Claim(
            "PaGNN outperforms GCNmf.",
            accuracy_parts(results, [(own, "gcnmf") for own in PAGNN], both),
        ),
        Claim(
            "PaGNN-N generally performs slightly better than PaGNN-M.",
            accuracy_parts(results, [("pagnn_n", "pagnn_m")], both),
        ),
        Claim(
            "PaGNN is slightly slower per epoch than MF.",
            [time_part(timings, own, "mf", 1.0, SLIGHTLY) for own in PAGNN],
        ),
        Claim(
            "PaGNN is faster per epoch than GAIN, VAE, SAT and GCNmf.",
            [
                time_part(timings, own, rival, 0.0, 1.0)
                for rival in ("gain", "vae", "sat", "gcnmf")
                for own in PAGNN
            ],
        ),
    ]
