"""The capture: what a run keeps of each head, enough to give back any weight exactly.

Per module: query, key, value, and each row's maximum and sum, with scaling, soft cap, sink logits, and one shared mask
and position bias per distinct tensor. A weight comes back as exp(score − row_max) / row_sum, computed from the kept
query and key (`models/read_back.py`). Per site: row statistics and the pooled overviews. Memory is
O(seq_len · d_head) per head.

A capture is flat named tensors with JSON-ready metadata, so it can be written to one file and read back without a copy.
It does not know where it is stored, nor which model it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.attention import sink_share
from models.errors import ConfigError, RangeError
from models.head_scores import ScoresOfSites
from models.masks import BiasLayout, MaskLayout
from models.pooling import PooledCells, cells_of, fit_steps, pooling_step, split_aligned, widened
from models.protocol import Index, Pool, Rows, SiteDescription, Span, Window
from models.read_back import KeptModule, read_weights

VERSION = 4  # of names and meaning of what is stored; a capture of another version is not read
WEIGHTS_REDUCED = 64_000_000  # weights over several heads that are pooled for one window, about half a second
WEIGHTS_AT_ONCE = 1_000_000  # weights in memory while a large window is pooled, 4 MB in float32


@dataclass(frozen=True)
class ModuleOptions:
    """How one module turns query and key into weights: numbers, and which of the shared masks and biases."""

    scaling: float
    softcap: float | None
    mask: int
    bias: int | None
    has_sinks: bool


class Capture:
    """Reads what a run kept, which never changes; any method may be called from several threads at once.

    What `head_scores` gives is put into words when it is first asked for, and kept: see ScoresOfSites for its memory.
    """

    def __init__(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
        if metadata["version"] != VERSION:
            raise ConfigError(f"capture version {metadata['version']} cannot be read, this is version {VERSION}")
        self._tensors, self._metadata = tensors, metadata
        self._scores_of_sites = ScoresOfSites()
        self._masks = [
            MaskLayout.from_tensors(self._named(f"mask.{i}."), key_len) for i, key_len in enumerate(metadata["masks"])
        ]
        self._biases = [
            BiasLayout.from_tensors(self._named(f"bias.{i}."), *lengths) for i, lengths in enumerate(metadata["biases"])
        ]
        self._modules = {
            site["site"]: [ModuleOptions(**module) for module in site["modules"]] for site in metadata["sites"]
        }
        self.sites = tuple(self._describe(site) for site in metadata["sites"])

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> Capture:
        """The capture that `tensors` and `metadata` gave. Raises ConfigError for another version."""
        return cls(tensors, metadata)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be stored, by flat name."""
        return dict(self._tensors)

    def metadata(self) -> dict[str, Any]:
        """JSON-ready description that, with the tensors, gives the capture back."""
        return dict(self._metadata)

    def site(self, name: str) -> SiteDescription:
        """The description of one site. Raises RangeError."""
        for described in self.sites:
            if described.site == name:
                return described
        raise RangeError("site", name, "one of " + ", ".join(described.site for described in self.sites))

    def mask(self, site: str, layer: int) -> MaskLayout:
        """The mask of one module. Raises RangeError."""
        self._check(site, layer)
        return self._masks[self._modules[site][layer].mask]

    def weights(self, site: str, layer: int, heads: Span, rows: Rows, cols: Rows) -> Tensor:
        """Give back weights of neighbouring heads of one module, exactly; rows and columns are each a span or a list.

        Shapes:  -> (heads, rows, cols), float32 (float64 for float64 models)
        Values:  0 where the mask hides the key
        Raises:  RangeError if the rectangle is not inside the capture
        """
        self._check(site, layer)
        return self.weights_of_layers(site, (layer, layer + 1), heads, rows, cols)[0]

    def weights_of_layers(self, site: str, layers: Span, heads: Span, rows: Rows, cols: Rows) -> Tensor:
        """Give back the same rectangle of neighbouring layers, exactly; few weights of many layers come fastest so.

        Shapes:  -> (layers, heads, rows, cols), float32 (float64 for float64 models)
        Values:  0 where the mask hides the key
        Raises:  RangeError if the rectangle is not inside the capture
        """
        described = self.site(site)
        check_span("layers", layers, described.n_layers)
        check_span("heads", heads, described.n_heads)
        for name, chosen, length in (("rows", rows, described.query_len), ("cols", cols, described.key_len)):
            for span in [chosen] if isinstance(chosen, tuple) else [(index, index + 1) for index in chosen]:
                check_span(name, span, length)
        return read_weights([self._kept(site, layer) for layer in range(*layers)], heads, rows, cols)

    def window(
        self,
        site: str,
        layer: Index,
        head: Index,
        rows: Span | None,
        cols: Span | None,
        max_cells: int,
        pool: Pool,
    ) -> Window:
        """One window, pooled by the smallest steps that need at most max_cells cells.

        Shapes:  -> weights (ceil(rows / row_step), ceil(cols / col_step)), cells aligned to index 0 of the whole matrix
        Values:  NaN where no weight of the cell is visible; exact when both steps are 1. With layer or head "mean" or
                 "max": exact when both steps are 1, else from the stored overviews, with their steps
        Raises:  RangeError
        """
        described = self._check(site, layer, head)
        rows = check_span("rows", rows or (0, described.query_len), described.query_len)
        cols = check_span("cols", cols or (0, described.key_len), described.key_len)
        row_step, col_step = fit_steps(rows, cols, max_cells)
        if isinstance(layer, int) and isinstance(head, int):
            if row_step == col_step == 1:
                weights = self._exact(site, layer, head, rows, cols)
            else:
                weights = self._pooled(site, layer, head, rows, cols, row_step, col_step, pool)
        elif row_step == col_step == 1:
            weights = self._reduced(site, layer, head, rows, cols)
        else:
            return self._window_over(described, layer, head, rows, cols, max_cells, pool)
        return Window(rows, cols, row_step, col_step, pool, weights)

    def overview(self, site: str, pool: Pool) -> Tensor:
        """Give all heads of a site as small pictures.

        Shapes:  -> (n_layers, n_heads, g_rows, g_cols), float32
        Values:  largest weight of the cell, or mean over its visible weights; 0 where all are hidden
        Raises:  RangeError
        """
        self.site(site)
        return self._tensors[f"{site}.overview_{pool}"].float()

    def row_stats(self, site: str) -> dict[str, Tensor]:
        """Give the statistics of every row of every head.

        Shapes:  -> by name, each (n_layers, n_heads, query_len); names and values as in AttentionSummary.rows
        Raises:  RangeError
        """
        self.site(site)
        return self._named(f"{site}.rows.")

    def figures(self, site: str) -> dict[str, Tensor]:
        """Give what was collected of every head, as in HeadCollector.figures, layers first; empty if nothing was.

        Raises:  RangeError
        """
        self.site(site)
        return self._named(f"{site}.figures.")

    def head_scores(self, site: str) -> list[dict[str, Any]]:
        """Give one JSON-ready dict per head: {"site", "layer", "head"} and what `head_scores.head_scores` gives.

        Raises:  RangeError
        """
        return self._scores_of_sites.read(self.site(site), self.figures(site))

    def module_tensors(self, site: str, layer: int) -> dict[str, Tensor]:
        """Give what is kept of one module by name: its own tensors, and its layer of those that a site has together.

        Shapes:  each as the module gave it
        Raises:  RangeError
        """
        self._check(site, layer)
        own = self._named(f"{site}.{layer}.")
        together = {name: tensor for name, tensor in self._named(f"{site}.").items() if not name[0].isdigit()}
        return own | {name: tensor[layer] for name, tensor in together.items()}

    def sink_share(self, site: str, layer: int) -> Tensor | None:
        """Give the share of each row that goes to its head's sink, None for a module without sinks.

        Shapes:  -> (n_heads, query_len)
        Raises:  RangeError
        """
        self._check(site, layer)
        sinks = self._tensors.get(f"{site}.{layer}.sinks")
        if sinks is None:
            return None
        row_max, row_sum = (self._tensors[f"{site}.rows.{name}"][layer] for name in ("row_max", "row_sum"))
        taken = sink_share(sinks, row_max, row_sum)
        return taken.masked_fill(row_sum == 0, 0.0)  # a row without keys has no weights at all

    # ------------------------------------------------------------------------------------------------------- one window

    def _kept(self, site: str, layer: int) -> KeptModule:
        module = self._modules[site][layer]
        rows = {name: self._tensors[f"{site}.rows.{name}"][layer] for name in ("row_max", "row_sum", "top_key")}
        return KeptModule(
            query=self._tensors[f"{site}.{layer}.query"],
            key=self._tensors[f"{site}.{layer}.key"],
            scaling=module.scaling,
            softcap=module.softcap,
            mask=self._masks[module.mask],
            bias=None if module.bias is None else self._biases[module.bias],
            sink_logits=self._tensors[f"{site}.{layer}.sinks"] if module.has_sinks else None,
            **rows,
        )

    def _read(
        self, site: str, layer: int, head: int, rows: Span, cols: Span, row_step: int
    ) -> Iterator[tuple[Span, Tensor]]:
        # parts of a window, float32, 0 where hidden; each is within one cell of rows or ends where a cell does
        mask, at_once = self.mask(site, layer), WEIGHTS_AT_ONCE // (cols[1] - cols[0])
        for part in split_aligned(rows, row_step, lambda first: first + at_once):
            seen = mask.key_range(part)  # hidden columns on either side are never computed
            inner = (min(max(cols[0], seen[0]), cols[1]), max(min(cols[1], seen[1]), cols[0]))
            weights = torch.zeros(part[1] - part[0], cols[1] - cols[0])
            if inner[0] < inner[1]:
                exact = self.weights(site, layer, (head, head + 1), part, inner)[0]
                weights[:, inner[0] - cols[0] : inner[1] - cols[0]] = exact
            yield part, weights

    def _exact(self, site: str, layer: int, head: int, rows: Span, cols: Span) -> Tensor:
        mask, found = self.mask(site, layer), torch.empty(rows[1] - rows[0], cols[1] - cols[0])
        for part, weights in self._read(site, layer, head, rows, cols, 1):
            hidden = ~mask.visible(part, cols)
            found[part[0] - rows[0] : part[1] - rows[0]] = weights.masked_fill_(hidden, torch.nan)
        return found

    def _pooled(
        self, site: str, layer: int, head: int, rows: Span, cols: Span, row_step: int, col_step: int, pool: Pool
    ) -> Tensor:
        cells = PooledCells(rows, cols, (row_step, col_step), pool)
        for part, weights in self._read(site, layer, head, rows, cols, row_step):
            cells.add(part, weights)
        return cells.pooled(self.mask(site, layer).cell_counts(row_step, col_step, rows, cols)).float()

    def _reduced(self, site: str, layer: Index, head: Index, rows: Span, cols: Span) -> Tensor:
        described = self.site(site)
        heads, layers = _chosen(head, described.n_heads), _chosen(layer, described.n_layers)
        across = [_reduce(self.weights(site, i, heads, rows, cols), head) for i in range(*layers)]
        reduced = _reduce(torch.stack(across), layer).float()
        visible = torch.stack([self.mask(site, i).visible(rows, cols) for i in range(*layers)]).any(0)
        return reduced.masked_fill(~visible, torch.nan)

    def _window_over(
        self, described: SiteDescription, layer: Index, head: Index, rows: Span, cols: Span, max_cells: int, pool: Pool
    ) -> Window:
        """A pooled window over several heads or layers: each head pooled, then reduced."""
        heads, layers = _chosen(head, described.n_heads), _chosen(layer, described.n_layers)
        n_weights = (heads[1] - heads[0]) * (layers[1] - layers[0]) * (rows[1] - rows[0]) * (cols[1] - cols[0])
        if n_weights <= WEIGHTS_REDUCED:
            steps = fit_steps(rows, cols, max_cells)
            pictures = [
                torch.stack([self._pooled(described.site, i, j, rows, cols, *steps, pool) for j in range(*heads)])
                for i in range(*layers)
            ]
        else:
            rows = widened(rows, described.row_step, described.query_len)
            cols = widened(cols, described.col_step, described.key_len)
            factors = fit_steps(cells_of(rows, described.row_step), cells_of(cols, described.col_step), max_cells)
            steps = factors[0] * described.row_step, factors[1] * described.col_step
            pictures = [self._overview_again(described, i, heads, rows, cols, factors, pool) for i in range(*layers)]
        seen = [self.mask(described.site, i).cell_counts(*steps, rows, cols) > 0 for i in range(*layers)]
        reduced = _reduce(torch.stack([_reduce(picture.nan_to_num(0.0), head) for picture in pictures]), layer)
        return Window(rows, cols, *steps, pool, reduced.masked_fill(~torch.stack(seen).any(0), torch.nan))

    def _overview_again(
        self,
        described: SiteDescription,
        layer: int,
        heads: Span,
        rows: Span,
        cols: Span,
        factors: tuple[int, int],
        pool: Pool,
    ) -> Tensor:
        # (heads, row cells, col cells): the stored cells of a window that they fill, pooled `factors` at a time
        steps, mask = (described.row_step, described.col_step), self.mask(described.site, layer)
        cell_rows, cell_cols = cells_of(rows, steps[0]), cells_of(cols, steps[1])
        cells = self.overview(described.site, pool)[layer, slice(*heads), slice(*cell_rows), slice(*cell_cols)]
        counts = mask.cell_counts(factors[0] * steps[0], factors[1] * steps[1], rows, cols)
        if pool == "mean":
            cells = cells * mask.cell_counts(*steps, rows, cols)  # sums, which the larger cells divide again
        pictures = []
        for picture in cells:
            larger = PooledCells(cell_rows, cell_cols, factors, pool)
            larger.add(cell_rows, picture)
            pictures.append(larger.pooled(counts).float())
        return torch.stack(pictures)

    # ---------------------------------------------------------------------------------------------------------- look-up

    def _named(self, prefix: str) -> dict[str, Tensor]:
        return {name[len(prefix) :]: tensor for name, tensor in self._tensors.items() if name.startswith(prefix)}

    def _describe(self, site: Mapping[str, Any]) -> SiteDescription:
        modules = self._modules[site["site"]]
        fields = {name: site[name] for name in ("site", "n_layers", "n_heads", "n_kv_heads", "query_len", "key_len")}
        return SiteDescription(
            **fields,
            row_step=pooling_step(site["query_len"]),
            col_step=pooling_step(site["key_len"]),
            masks=tuple(self._masks[module.mask].kind for module in modules),
            sums_to_one=not any(module.has_sinks for module in modules),
        )

    def _check(self, site: str, layer: Index, head: Index = 0) -> SiteDescription:
        described = self.site(site)
        for name, index, count in (("layer", layer, described.n_layers), ("head", head, described.n_heads)):
            if index in ("mean", "max"):
                continue
            if isinstance(index, str) or not 0 <= index < count:
                raise RangeError(name, index, f"0 to {count - 1}, or mean or max")
        return described


def check_span(name: str, span: Span, length: int) -> Span:
    """The span, if it is a non-empty part of 0:length. Raises RangeError."""
    if not 0 <= span[0] < span[1] <= length:
        raise RangeError(name, f"{span[0]}:{span[1]}", f"start:stop with 0 ≤ start < stop ≤ {length}")
    return span


def _chosen(index: Index, count: int) -> Span:
    return (0, count) if isinstance(index, str) else (index, index + 1)


def _reduce(stacked: Tensor, how: Index) -> Tensor:
    # Over the first axis; a single layer or head was selected before, so that the axis has one entry.
    if how == "mean":
        return stacked.mean(0)
    return stacked.amax(0)
