"""One family of models through the product's own path, from the listing of its folder to every weight, beside eager.

The other side is transformers' own `output_attentions` with its eager attention, on the same checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from models.checkpoints import UnusableCheckpoint, read_checkpoint
from models.errors import UnsupportedModel
from models.huggingface import HuggingFaceModel
from models.protocol import CaptureReader
from tests.parity.sweep.build import VOCABULARY, class_for, tiny_model

LENGTHS = (24, 70)  # less than a block of 64 rows and a bit more than one; both longer than a window of 16
TARGETS = {24: 9, 70: 67}
SUMS = 1e-4  # by which a row's sum may differ from 1: float32


@dataclass(frozen=True)
class Measured:
    """What came of one family: shown, with the largest difference seen; or refused, with the reason and by what.

    refused_by  "listing" (from the configuration), "loading"; None where it is shown
    """

    family: str
    kind: str
    sites: str
    difference: float | None = None
    reason: str | None = None
    refused_by: str | None = None


def measured(family: str, config: PreTrainedConfig, folder: Path) -> Measured:
    """Save a random model of this configuration, list it, load it, run it and compare every weight.

    Raises:  whatever is wrong: everything but a refusal before the run is a fault
    """
    save(tiny_model(family, config), folder)
    try:
        listed = read_checkpoint(folder, within=folder)
    except UnusableCheckpoint as error:
        return Measured(family, "", "", reason=str(error), refused_by="listing")
    try:
        model = HuggingFaceModel.load(
            folder, weight_precision="float32", revision="tiny", device=torch.device("cpu")
        )
    except UnsupportedModel as error:
        return Measured(family, listed.kind, "", reason=str(error), refused_by="loading")
    theirs = class_for(family, config).from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    worst, sites = 0.0, ""
    for count in LENGTHS:
        ids = random_ids(count)
        targets = random_ids(TARGETS[count], seed=1) if model.description.kind == "encoder-decoder" else None
        result = model.run(ids, target_ids=targets)
        if result.card.verdict != "pass":
            raise AssertionError(f"{family}: {[c for c in result.card.checks if c.status == 'fail']}")
        weights = eager_weights(theirs, ids, targets)
        sites = ", ".join(f"{site.site} {site.n_layers} × {site.n_heads}" for site in result.capture.sites)
        for site in result.capture.sites:
            worst = max(worst, difference(result.capture, site.site, weights[site.site.partition(".")[0] if site.site != "decoder.cross" else "cross"]))
    if model.description.kind != listed.kind:
        raise AssertionError(f"{family}: listed as {listed.kind}, loaded as {model.description.kind}")
    return Measured(family, model.description.kind, sites, difference=worst)


def save(model: PreTrainedModel, folder: Path) -> None:
    """A checkpoint with a tokenizer of single characters."""
    model.save_pretrained(folder)
    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3} | {chr(0x4E00 + i): 4 + i for i in range(VOCABULARY - 4)}
    tokenizer = Tokenizer(models.WordLevel(words, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)


def random_ids(count: int, seed: int = 0) -> list[int]:
    """Token ids that do not mean anything."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, VOCABULARY, (count,), generator=generator).tolist()


@torch.no_grad()
def eager_weights(model: Any, ids: Sequence[int], targets: Sequence[int] | None) -> dict[str, list[Tensor]]:  # noqa: ANN401
    """Layers of weights (n_heads, query_len, key_len), by encoder, decoder and cross."""
    given: dict[str, Any] = {"input_ids": torch.tensor([list(ids)]), "output_attentions": True, "use_cache": False}
    if targets is None:
        output = model(**given)
        layers = [layer[0] for layer in output.attentions if layer is not None]
        return {"encoder": layers, "decoder": layers}
    output = model(**given, decoder_input_ids=torch.tensor([list(targets)]))
    encoder = output.encoder_attentions
    if encoder is None:
        encoder = model.get_encoder()(**given).attentions
    found = {"encoder": encoder, "decoder": output.decoder_attentions, "cross": output.cross_attentions}
    return {name: [layer[0] for layer in layers] for name, layers in found.items()}


def difference(capture: CaptureReader, site: str, theirs: Sequence[Tensor]) -> float:
    """The largest over every weight of a site. Raises where there are not as many layers on both sides."""
    described = next(known for known in capture.sites if known.site == site)
    heads, rows, cols = (0, described.n_heads), (0, described.query_len), (0, described.key_len)
    ours = [capture.weights(site, layer, heads, rows, cols) for layer in range(described.n_layers)]
    theirs = [_after_sinks(weights, capture.sink_share(site, layer)) for layer, weights in enumerate(theirs)]
    return max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))


def _after_sinks(weights: Tensor, share: Tensor | None) -> Tensor:
    # Granite's eager weights are those before the sink takes its share, by which it then scales the output
    if share is None or float(weights.sum(-1).min()) < 1.0 - SUMS:
        return weights
    return weights * (1.0 - share)[..., None]
