"""`python -m bench [LENGTH …]`: measure, print the tables, write bench/results.md. Without lengths: all of them."""

from __future__ import annotations

import sys

import transformers

from bench import api, forward, report
from bench.places import RESULTS


def main() -> None:
    """Lengths from short to long, then the API."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = forward.load_smollm2()
    results = {}
    for count in [int(length) for length in sys.argv[1:]] or forward.LENGTHS:
        results[count] = forward.measure(count, model)
        print(report.forward_table({count: results[count]}).splitlines()[-1], flush=True)
    del model
    figures = api.measure()
    print(report.api_table(figures))
    RESULTS.write_text(report.document(results, figures))


if __name__ == "__main__":
    main()
