"""When the heads of everyhead-mini formed, from the snapshots of its training.

    python -m models.train everyhead-mini --snapshots 25 --until 1500
    python -m scripts.head_formation [FOLDER]

The checkpoints stay in the training's folder; what is written, docs/head-formation.json, are the scores alone: of the
best head of each kind, at every snapshot, on random tokens that come twice, out of those that the first stages draw.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from models.parameters import copy_parameters
from models.recipes.mini import MODEL, STAGES
from models.recipes.mini_figures import head_scores
from models.transformer import Transformer

FOLDER = Path("build/training/everyhead-mini")
WRITTEN = Path(__file__).resolve().parents[1] / "docs" / "head-formation.json"


def formation(snapshots: list[Path]) -> list[dict[str, Any]]:
    """Score each snapshot of the first stages, in the order of the steps."""
    model = Transformer(MODEL).eval()
    found = []
    for path in snapshots:
        copy_parameters(model, load_file(path))
        scores = head_scores(model, STAGES[0].context // 2, among=STAGES[0].random_tokens)
        kinds = ("previous", "induction", "duplicate")
        best = {kind: {key: scores[kind][key] for key in ("best", "layer", "head")} for kind in kinds}
        found.append({"step": _step(path), **best})
    return found


def main() -> int:
    """Measure, write."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    snapshots = sorted(path for path in (folder / "snapshots").glob("step-*.safetensors") if _step(path) <= _last())
    if not snapshots:
        sys.stderr.write(f"there are no snapshots in {folder / 'snapshots'}: train with --snapshots 25\n")
        return 1
    torch.set_num_threads(1)  # the matrices are small
    WRITTEN.write_text(json.dumps(formation(snapshots), indent=1) + "\n", "utf-8")
    sys.stdout.write(f"wrote {WRITTEN}, {len(snapshots)} snapshots\n")
    return 0


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def _last() -> int:
    return next(stage.from_step for stage in STAGES if stage.text)  # after the stages of random tokens alone


if __name__ == "__main__":
    sys.exit(main())
