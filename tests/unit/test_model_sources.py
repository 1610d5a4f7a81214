"""What an entry of the catalogue says, from its source alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.services.model_sources import CatalogueEntry, LocalModel
from models.checkpoints import Checkpoint
from tests.unit.tiny_checkpoints import save_bert, save_gpt2


def test_an_entry_says_what_its_checkpoint_says(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "t5", "encoder-decoder", 2, 4, 4, 512, "float32", "r")
    entry = CatalogueEntry(id="local:t5", name="t5", source="folder").described_by(checkpoint)
    assert (entry.state, entry.kind, entry.takes_pair) == ("ready", "encoder-decoder", False)
    assert entry.implementations == ("transformers",)


@pytest.mark.parametrize(
    ("changes", "implementations"),
    [({}, ("own", "transformers")), ({"scale_attn_by_inverse_layer_idx": True}, ("transformers",))],
)
def test_gpt2_runs_on_our_own_transformer_where_ours_can_be_it(
    tmp_path: Path, changes: dict[str, bool], implementations: tuple[str, ...]
) -> None:
    config = json.loads((save_gpt2(tmp_path / "mine") / "config.json").read_text())
    (tmp_path / "mine" / "config.json").write_text(json.dumps(config | changes))
    assert LocalModel(tmp_path, "mine").entry().implementations == implementations


def test_bert_takes_a_pair_of_texts(tmp_path: Path) -> None:
    save_bert(tmp_path / "mine")
    save_gpt2(tmp_path / "other")
    assert [LocalModel(tmp_path, name).entry().takes_pair for name in ("mine", "other")] == [True, False]
