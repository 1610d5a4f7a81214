"""Every family of text models: shown with eager's weights, or refused before the run, as docs/families.md says.

The families that people use most are measured here, all others by `make test-deep`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from models.huggingface import HuggingFaceModel
from tests.parity.sweep import compare
from tests.parity.sweep.build import class_for, families, tiny_config, tiny_model, why_not_tried
from tests.parity.sweep.compare import EQUAL, PEAKED, measured
from tests.parity.sweep.table import PAGE, SHOWN, not_tried_in, row, rows_of

MOST_USED = [
    "albert", "bart", "bart, its decoder", "bert", "camembert", "clip_text_model", "cohere", "data2vec-text",
    "deberta-v2", "deepseek_v3", "deepseek_v32", "distilbert", "electra", "encoder-decoder", "falcon_h1", "gemma",
    "gemma2", "gemma3", "gemma3_text", "gemma3_text, both ways", "gemma4_text", "gpt2", "gpt_neox", "gpt_oss",
    "granite", "llama", "llama4_text", "longcat_flash", "mamba", "marian", "mistral", "mixtral", "modernbert", "opt",
    "phi3", "qwen2", "qwen3", "qwen3_moe", "roberta", "switch_transformers", "t5", "t5, its encoder",
    "t5, two layers and three", "whisper", "xlm-roberta", "zamba2",
]  # fmt: skip
LEAST_SHOWN = 114
NO_HELP = re.compile(r"retry|again|Error|Exception|see the above|Traceback|object has no", re.IGNORECASE)


def cases() -> list[object]:
    """Every family; those that are used less are deep."""
    return [pytest.param(name, marks=() if name in MOST_USED else pytest.mark.deep) for name in families()]


@pytest.mark.filterwarnings("ignore")  # what transformers warns of while it makes and loads random models
@pytest.mark.parametrize("name", cases())
def test_a_family_is_shown_as_eager_has_it_or_refused_before_the_run(name: str, tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    if (why := why_not_tried(name)) is not None:
        assert name in not_tried_in(page), why
        return
    found = measured(name, tiny_config(name), tmp_path)
    kind, sites, shown, difference = rows_of(page)[name]
    assert (found.kind, found.sites) == (kind, sites)
    if found.difference is None:
        assert found.refused_by == "listing", found.reason
        assert found.reason == shown
        assert not NO_HELP.search(str(found.reason)), "a reason that a person understands, and no retry"
        return
    assert found.difference <= EQUAL
    assert found.top is not None
    assert found.top >= PEAKED, "flat attention would hide a wrong scale"
    assert shown == SHOWN
    assert 0.0 < float(difference) <= EQUAL
    assert row(found).startswith(f"| {name} | {kind} |")


def test_the_page_speaks_of_every_family() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = rows_of(page)
    assert {*rows, *not_tried_in(page)} == set(families())
    assert sum(cells[2] == SHOWN for cells in rows.values()) >= LEAST_SHOWN
    assert set(MOST_USED) <= set(rows)
    assert len(MOST_USED) >= 40


def test_what_is_compared_can_fail(tmp_path: Path) -> None:
    """A model whose weights are other ones than those of the file differs by far more than the bound."""
    config = tiny_config("llama")
    compare.save(tiny_model("llama", config), tmp_path)
    model = HuggingFaceModel.load(tmp_path, weight_precision="float32", revision="x", device=torch.device("cpu"))
    theirs = class_for("llama", config).from_pretrained(tmp_path, attn_implementation="eager").eval()
    with torch.no_grad():
        theirs.model.layers[0].self_attn.q_proj.weight.mul_(1.05)
    ids = compare.random_ids(24)
    capture = model.run(ids).capture
    weights = compare.eager_weights(theirs, ids, None)["decoder.self"]
    assert compare.difference(capture, "decoder.self", weights) > EQUAL
