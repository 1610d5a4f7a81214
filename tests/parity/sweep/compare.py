"""One family of models through the product's own path, from the listing of its folder to every weight, beside eager.

The other side is transformers' own `output_attentions` with its eager attention, on the same checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from models.checkpoints import UnusableCheckpoint, read_checkpoint
from models.errors import UnsupportedModel
from models.families import kind_of
from models.huggingface import HuggingFaceModel
from models.protocol import CaptureReader, RunResult
from tests.parity.sweep.build import VOCABULARY, class_for, tiny_model

LENGTHS = (24, 70)  # less than a block of 64 rows and a bit more than one; both longer than a window of 16
TARGETS = {24: 9, 70: 67}
LONG = 300  # of which only a part is compared with the model's own kernel
WRITTEN = 6  # tokens of a target that is written
SUMS = 1e-4  # by which a row's sum may differ from 1: float32
# Three layers of float32 from end to end, whose rounding peaked attention multiplies: 2.0e-4 is the largest seen of all
# families. What is wrong shows as differences of the size of the weights themselves, which are peaked.
EQUAL = 1e-3
# Mean of each row's largest weight; a row of 70 keys that looks at all of them alike has 0.07 (causal) or 0.014.
PEAKED = 0.1


@dataclass(frozen=True)
class Measured:
    """What came of one family: shown, with the largest difference seen; or refused, with the reason and by what.

    refused_by  "listing" (from the configuration), "loading"; None where it is shown
    """

    family: str
    kind: str
    sites: str = ""
    difference: float | None = None
    top: float | None = None
    reason: str | None = None
    refused_by: str | None = None


def measured(name: str, config: PreTrainedConfig, folder: Path) -> Measured:
    """Save a random model of this configuration, list it, load it, run it and compare every weight.

    Raises:  whatever is wrong: everything but a refusal before the run is a fault
    """
    save(tiny_model(name, config), folder)
    try:
        listed = read_checkpoint(folder, within=folder)
    except UnusableCheckpoint as error:
        return Measured(name, kind_of(config), reason=str(error), refused_by="listing")
    try:
        model = HuggingFaceModel.load(folder, weight_precision="float32", revision="tiny", device=torch.device("cpu"))
    except UnsupportedModel as error:
        return Measured(name, listed.kind, reason=str(error), refused_by="loading")
    assert model.description.kind == listed.kind, "the listing says another kind than the masks"
    theirs = class_for(name, config).from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    found = [_compared(model, theirs, count) for count in LENGTHS]
    _passed(model, LONG)
    if listed.kind == "encoder-decoder":
        check_written(model, theirs)
    worst = max(difference for difference, _, _ in found)
    return Measured(name, listed.kind, found[-1][2], difference=worst, top=found[-1][1])


def _compared(model: HuggingFaceModel, theirs: Any, count: int) -> tuple[float, float, str]:  # noqa: ANN401
    """One text through both: largest difference, mean of the largest weights, sites in words."""
    ids, targets, result = _passed(model, count)
    taken = sum(tensor.nbytes for name, tensor in result.capture.tensors().items() if not name.startswith("mask."))
    assert taken <= model.capture_bytes(count, len(targets or ())), "a capture takes more than was announced"
    eager = eager_weights(theirs, ids, targets)
    pairs = [(site, eager[site.site]) for site in result.capture.sites]
    worst = max(difference(result.capture, site.site, weights) for site, weights in pairs)
    top = torch.cat([layer.amax(-1).flatten() for _, weights in pairs for layer in weights])
    return worst, float(top.mean()), ", ".join(f"{site.site} {site.n_layers} × {site.n_heads}" for site, _ in pairs)


def _passed(model: HuggingFaceModel, count: int) -> tuple[list[int], list[int] | None, RunResult]:
    """A text, a target where the model reads one, and the run over them: its card has nothing red and nothing open."""
    ids, two = random_ids(count), model.description.kind == "encoder-decoder"
    targets = random_ids(TARGETS.get(count, count - 1), seed=1) if two else None
    result = model.run(ids, target_ids=targets)
    open_lines = [check for check in result.card.checks if check.status not in ("pass", "info")]
    assert result.card.verdict == "pass", f"{count} tokens: {open_lines}"
    return ids, targets, result


@torch.no_grad()
def check_written(model: HuggingFaceModel, theirs: Any) -> None:  # noqa: ANN401  transformers' classes share no type
    """What the model writes is, token by token, what its own eager pass finds likeliest."""
    ids = random_ids(LENGTHS[0])
    model.description = replace(model.description, max_tokens=WRITTEN + 1)
    written = [token.id for token in model.write_target(ids, should_stop=lambda: False)]
    output = theirs(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([written]), use_cache=False)
    assert written[1:] == output.logits[0, :-1].argmax(-1).tolist()


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
    """Layers of weights (n_heads, query_len, key_len), by site."""
    given: dict[str, Any] = {"input_ids": torch.tensor([list(ids)]), "output_attentions": True, "use_cache": False}
    if targets is None:
        layers = [layer[0] for layer in model(**given).attentions if layer is not None]
        return {"encoder.self": layers, "decoder.self": layers}
    output = model(**given, decoder_input_ids=torch.tensor([list(targets)]))
    encoder = output.encoder_attentions
    if encoder is None:  # an encoder–decoder made of two
        encoder = model.get_encoder()(**given).attentions
    found = {"encoder.self": encoder, "decoder.self": output.decoder_attentions}
    found["decoder.cross"] = output.cross_attentions
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
