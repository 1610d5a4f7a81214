"""What an entry of the catalogue says, from its source alone."""

from __future__ import annotations

from pathlib import Path

from app.services.model_sources import CatalogueEntry
from models.checkpoints import Checkpoint


def test_encoder_decoder_models_say_what_they_need(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "t5", "encoder-decoder", 2, 4, 4, 512, "float32", "r")
    entry = CatalogueEntry(id="local:t5", name="t5", source="folder").described_by(checkpoint)
    assert entry.state == "unavailable"
    assert entry.kind == "encoder-decoder"
    assert "target text" in (entry.reason or "")
