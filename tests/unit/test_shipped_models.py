"""The models that we trained, in the catalogue: listed where they are, refused where changed, run by our own code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from app.services.catalogue import Catalogue, load_lazily
from app.services.errors import ModelUnavailable, UnknownModel
from app.services.shipped_models import SHIPPED, ShippedModel, shipped_models
from models.errors import UnsupportedModel
from models.own import OwnModel
from models.protocol import AttentionModel
from models.shipped import sign
from tests.unit.catalogues import load
from tests.unit.tiny_shipped import write_tiny

Make = Callable[..., Catalogue]
MINI, DATES = SHIPPED


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where tiny models lie as shipped ones do."""
    folder = tmp_path / "weights"
    write_tiny(folder, MINI, "decoder")
    write_tiny(folder, DATES, "encoder-decoder")
    return folder


def test_they_come_first(make: Make, root: Path) -> None:
    assert [entry.id for entry in make(shipped_dir=root).list()][:3] == [MINI, DATES, "smollm2-135m"]
    assert [entry.id for entry in make(shipped_dir=root, default_model=DATES).list()][:2] == [DATES, MINI]


def test_a_folder_that_is_not_there_is_no_model(make: Make, root: Path, tmp_path: Path) -> None:
    assert shipped_models(tmp_path / "absent") == []
    for file in (root / MINI).iterdir():
        file.unlink()
    (root / MINI).rmdir()
    catalogue = make(shipped_dir=root)
    assert next(entry.id for entry in catalogue.list()) == DATES
    with pytest.raises(UnknownModel):
        catalogue.entry(MINI)


def test_what_an_entry_says(make: Make, root: Path) -> None:
    mini, dates = list(make(shipped_dir=root).list())[:2]
    assert (mini.state, mini.kind, mini.n_layers, mini.n_heads, mini.n_kv_heads, mini.max_tokens) == (
        "ready",
        "decoder",
        2,
        2,
        2,
        16,
    )
    assert (mini.implementations, mini.takes_pair, mini.licence, mini.note) == (
        ("own",),
        False,
        "MIT",
        "a tiny decoder",
    )
    assert dates.kind == "encoder-decoder"
    assert mini.revision != dates.revision


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda root: (root / MINI / "card.json").write_text("{}"), "is not the file that was shipped"),
        (lambda root: (root / MINI / "tokenizer.json").unlink(), "is missing"),
        (lambda root: (root / "hashes.json").write_text("{}"), "not in hashes.json"),
        (lambda root: (root / "hashes.json").unlink(), "cannot be read"),
    ],
)
def test_a_changed_file_makes_it_unavailable(
    make: Make, root: Path, change: Callable[[Path], object], reason: str
) -> None:
    catalogue = make(shipped_dir=root)
    assert catalogue.entry(MINI).state == "ready"
    change(root)
    entry = catalogue.entry(MINI)
    assert entry.state == "unavailable"
    assert reason in (entry.reason or "")
    with pytest.raises(ModelUnavailable, match=reason):
        load(catalogue, MINI)


def test_a_configuration_that_is_none_says_so(make: Make, root: Path) -> None:
    """Signed all the same: the entry says what is wrong with it."""
    config = json.loads((root / MINI / "config.json").read_text())
    (root / MINI / "config.json").write_text(json.dumps(config | {"n_heads": 3}))
    sign(root)
    entry = make(shipped_dir=root).entry(MINI)
    assert (entry.state, "16" in (entry.reason or "")) == ("unavailable", True)


def test_new_weights_are_loaded_again(make: Make, root: Path) -> None:
    catalogue = make(shipped_dir=root, load_model=load_lazily)
    first = load(catalogue, MINI)
    assert load(catalogue, MINI) is first
    write_tiny(root, MINI, "encoder")
    assert catalogue.entry(MINI).kind == "encoder"
    assert load(catalogue, MINI) is not first


def loaded(root: Path, name: str) -> AttentionModel:
    """The model, loaded as the catalogue does."""
    source = ShippedModel(name, root)
    return load_lazily(source.folder(lambda _: None), source.entry(), "own")


def test_a_target_is_written_until_the_stop_token(root: Path) -> None:
    model = loaded(root, DATES)
    source = [token.id for token in model.tokenize("march 5")]
    assert len(source) == 7
    target = model.tokenize_target("2021-03")
    assert [token.text for token in target] == ["<start>", *"2021-03"]
    assert [token.index for token in target] == list(range(8))
    written = model.write_target(source, should_stop=lambda: False)
    assert written[0] == target[0]
    assert len(written) <= 16
    result = model.run(
        source, target_ids=[token.id for token in target], on_layer=lambda *_: None, should_stop=lambda: False
    )
    assert [(site.site, site.query_len, site.key_len) for site in result.capture.sites] == [
        ("encoder.self", 7, 7),
        ("decoder.self", 8, 8),
        ("decoder.cross", 8, 7),
    ]
    assert result.card.verdict == "pass"


def test_without_a_start_token_there_is_no_target(root: Path) -> None:
    write_tiny(root, DATES, "encoder-decoder", {})
    with pytest.raises(UnsupportedModel):
        loaded(root, DATES).tokenize_target("2021")
    with pytest.raises(UnsupportedModel):
        loaded(root, MINI).tokenize_target("2021")


@pytest.mark.parametrize("source", shipped_models(), ids=lambda source: source.name)
def test_what_is_shipped_is_whole_and_runs(source: ShippedModel) -> None:
    entry = source.entry()
    assert entry.state == "ready", entry.reason
    model = loaded(source.root, source.name)
    assert isinstance(model, OwnModel)
    about = model.description
    same = ("kind", "n_layers", "n_heads", "n_kv_heads", "max_tokens", "weight_precision", "revision")
    assert [getattr(entry, name) for name in same] == [getattr(about, name) for name in same]
    torch.set_num_threads(1)
    ids = [token.id for token in model.tokenize("5 March 2021")]
    target = model.write_target(ids, should_stop=lambda: False) if entry.kind == "encoder-decoder" else []
    target_ids = [token.id for token in target] or None
    result = model.run(ids, target_ids=target_ids, on_layer=lambda *_: None, should_stop=lambda: False)
    assert result.card.verdict == "pass"
    taken = sum(tensor.nbytes for tensor in result.capture.tensors().values())
    assert taken <= model.capture_bytes(len(ids), len(target)) * 1.1  # masks are not counted
    if source.name == DATES:
        assert "".join(token.text for token in target if not token.special) == "2021-03-05"
