"""`python -m bench`: measure everything, print the tables, write bench/results.md."""

from __future__ import annotations

import transformers

from bench import api, forward, report
from bench.places import RESULTS


def main() -> None:
    """Lengths from short to long, then the API."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = forward.load_smollm2()
    results = {}
    for count in forward.LENGTHS:
        results[count] = forward.measure(count, model)
        print(report.forward_table({count: results[count]}).splitlines()[-1], flush=True)
    del model
    figures = api.measure()
    print(report.api_table(figures))
    RESULTS.write_text(report.document(results, figures))


if __name__ == "__main__":
    main()
