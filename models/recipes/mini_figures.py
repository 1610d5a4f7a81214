"""What the card of everyhead-mini states: loss against a bigram baseline, and which heads do what on random tokens.

The scores are means of weights over rows, as the words say; nothing here is corrected for chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from models.corpus import Corpus
from models.multi_head import MultiHeadAttention, explicit_attention
from models.transformer import Transformer

TEXTS_AT_ONCE = 8
RANDOM_TEXTS = 16  # over which the scores of heads are averaged
REPEATS = {"64": 64, "256": 256}  # tokens in a span that comes twice
SMOOTHING = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # tried for the baseline; the one that suits it best is taken
CONTEXT = 512


def evaluate(corpus: Corpus, model: Transformer) -> Mapping[str, Any]:
    """Every figure of the card."""
    by_position = validation_losses(model, corpus.validation, CONTEXT)
    heads = {name: head_scores(model, span) for name, span in REPEATS.items()}
    return {
        "validation_loss": round(float(by_position.mean()), 4),
        "validation_loss_at_64_to_128": round(float(by_position[64:128].mean()), 4),
        "validation_loss_at_384_to_512": round(float(by_position[384:512].mean()), 4),
        "bigram_loss": round(bigram_loss(corpus), 4),
        "unit": "nats per token",
        "heads_on_repeated_random_tokens": heads,
        "mean_distance_by_layer": mean_distances(model, corpus.validation, CONTEXT),
    }


@torch.no_grad()
def validation_losses(model: Transformer, text: NDArray[np.int32], context: int) -> Tensor:
    """Measure the loss at each position, over windows that follow each other.

    Shapes:  text (tokens) -> (context), nats
    """
    rows = torch.from_numpy(_windows(text, context + 1))  # (windows, context + 1)
    total = torch.zeros(context)
    for part in rows.split(TEXTS_AT_ONCE):
        logits = model(part[:, :-1])
        total += cross_entropy(logits.transpose(1, 2), part[:, 1:], reduction="none").sum(0)
    return total / len(rows)


def bigram_loss(corpus: Corpus) -> float:
    """Loss of counting which token follows which, smoothed with how frequent tokens are: the baseline.

    Values:  p(b | a) = (count(a, b) + k · p(b)) / (count(a) + k), nats per token of the validation texts
    Source:  MacKay and Peto 1995
    """
    size = int(max(corpus.train.max(), corpus.validation.max())) + 1
    pairs: NDArray[np.float64] = np.zeros((size, size))
    np.add.at(pairs, (corpus.train[:-1], corpus.train[1:]), 1.0)
    single = np.bincount(corpus.train, minlength=size) + 1.0
    single /= single.sum()
    before, after = corpus.validation[:-1], corpus.validation[1:]
    counts, totals = pairs[before, after], pairs.sum(1)[before]
    return min(float(-np.log((counts + k * single[after]) / (totals + k)).mean()) for k in SMOOTHING)


def head_scores(model: Transformer, span: int, among: int | None = None) -> dict[str, Any]:
    """Run random tokens that come twice, and measure how much each head looks where the field expects it to.

    span    tokens that come twice
    among   they are drawn from the first so many entries of the vocabulary; None: from all

    Values:  previous: mean weight on the token before, over all rows but the first; induction: mean weight on the
             token after the earlier copy, duplicate: on the earlier copy, over the rows of the second copy; per layer
             and head, and the best head
    Source:  Olsson et al. 2022, "prefix matching"
    """
    random = torch.Generator().manual_seed(span)
    once = torch.randint(among or model.config.vocab_size, (RANDOM_TEXTS, span), generator=random)
    weights = torch.stack([_weights(model, row[None]).squeeze(1) for row in once.repeat(1, 2)]).mean(0)
    previous = weights.diagonal(-1, 2, 3).mean(-1)  # (n_layers, n_heads)
    induction = weights.diagonal(1 - span, 2, 3)[..., 1:].mean(-1)  # row span + i looks at i + 1
    duplicate = weights.diagonal(-span, 2, 3).mean(-1)
    found = {"previous": previous, "induction": induction, "duplicate": duplicate}
    return {**{kind: _best(scores) for kind, scores in found.items()}, "span": span}


def mean_distances(model: Transformer, text: NDArray[np.int32], context: int) -> list[float]:
    """Measure how far back each layer looks on average, in tokens; the last entry is what equal weights would give.

    Shapes:  text (tokens) -> n_layers + 1 numbers
    """
    position = torch.arange(context)
    distance = (position[:, None] - position).clamp(min=0).float()  # (context, context)
    rows = torch.from_numpy(_windows(text, context)[:TEXTS_AT_ONCE])
    weights = torch.stack([_weights(model, row[None]).squeeze(1) for row in rows]).mean(0)
    found = (weights * distance).sum(-1).mean((1, 2))  # over heads and rows
    return [round(float(value), 1) for value in (*found, position.float().mean() / 2)]


@torch.no_grad()
def _weights(model: Transformer, ids: Tensor) -> Tensor:
    # one (n_layers, batch, n_heads, seq_len, seq_len) of all layers
    found: list[Tensor] = []

    def attend(module: MultiHeadAttention, *inputs: Any) -> tuple[Tensor, Tensor]:
        output, weights = explicit_attention(module, *inputs)
        found.append(weights)
        return output, weights

    model.hidden(ids, attend=attend)
    return torch.stack(found)


def _best(scores: Tensor) -> dict[str, Any]:
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    return {
        "best": round(float(scores.max()), 4),
        "layer": layer,
        "head": head,
        "all": [[round(float(score), 3) for score in heads] for heads in scores],
    }


def _windows(text: NDArray[np.int32], length: int) -> NDArray[np.int64]:
    count = len(text) // length
    return text[: count * length].reshape(count, length).astype(np.int64)
