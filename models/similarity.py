"""How alike the heads of a site are: distances, an order that puts like beside like, a map in two dimensions.

    distance(p, q) = sqrt(1 − mean over rows i of Σ_j √(p_ij · q_ij))        0: the same weights, 1: never the same key

This is the Hellinger distance, for the mean of the rows, over up to 128 evenly spaced rows that see at least two keys:
exact weights, since pooled pictures would call every local head a duplicate of every other. What a head's sink takes
counts as one more key. All of it comes from one Gram matrix of √weights, added up over parts of the rows and columns,
so that memory does not grow with the text. Clustering is SciPy's, the map scikit-learn's.

Sources: Hellinger 1909; average linkage: Sokal and Michener 1958; order of the leaves: Bar-Joseph et al. 2001; map:
Torgerson 1952 (classical scaling, which is the kernel PCA of −d²/2). This module knows nothing of tokens or layers'
meaning.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from models.head_targets import MIN_ROWS
from models.protocol import CaptureReader, SiteDescription, Span

ROWS = 128
FEWEST_ROWS = 16
WEIGHTS_READ = 400_000_000  # of all heads: 1,200 heads at 2,048 tokens keep their 128 rows; some 5 s
ROWS_AT_ONCE = 16
HEADS_AT_ONCE = 256
VALUES_IN_MEMORY = 20_000_000  # √weights of one part, 80 MB
ALIKE = 0.1  # distance below which two heads are called near-duplicates
MOST_DUPLICATES = 200
MOST_ORDERED = 500  # heads whose leaves are put in the best order: a second; 1,200 take seconds


class Similarity(NamedTuple):
    """How alike the heads of a site are. Flat index of a head = layer · n_heads + head.

    Shapes:  rows: indices of the rows used; distances (heads, heads), float32; order: flat indices, leaves of the
             clustering; positions (heads, 2), float64; duplicates: (one, other, distance), nearest first
    Values:  distances 0…1, NaN but for 0 on the diagonal where no row can be used; duplicates_in_all counts also those
             beyond the MOST_DUPLICATES nearest
    """

    rows: list[int]
    distances: Tensor
    order: list[int]
    positions: Tensor
    duplicates: list[tuple[int, int, float]]
    duplicates_in_all: int


def similarity(capture: CaptureReader, site: SiteDescription) -> Similarity:
    """Compare every head of a site with every other.

    Shapes:  see Similarity
    """
    rows = usable_rows(capture, site)
    distances = head_distances(capture, site, rows)
    duplicates = near_duplicates(distances, ALIKE)
    return Similarity(
        rows,
        distances,
        cluster_order(distances),
        layout(distances),
        duplicates[:MOST_DUPLICATES],
        len(duplicates),
    )


def alike_within_layers(
    distances: Tensor, n_heads: int, threshold: float = ALIKE
) -> list[list[tuple[int, int, float]]]:
    """The near-identical heads of each layer: one list a layer of (head, head, distance), nearest first.

    Shapes:  distances (heads, heads), heads by layer
    Values:  pairs whose distance is under the threshold
    """
    layers = range(0, len(distances), n_heads)
    return [near_duplicates(distances[at : at + n_heads, at : at + n_heads], threshold) for at in layers]


# ----------------------------------------------------------------------------------------------------------- distances


def usable_rows(capture: CaptureReader, site: SiteDescription) -> list[int]:
    """Up to ROWS evenly spaced query rows, of those that see at least two keys in every layer.

    Values:  none of a text with fewer than MIN_ROWS such rows, which shows no likeness; fewer, but FEWEST_ROWS, where
             the heads' rows would hold more than WEIGHTS_READ
    """
    counts = torch.stack([capture.mask(site.site, layer).visible_counts() for layer in range(site.n_layers)])
    usable = (counts.amin(0) >= 2).nonzero()[:, 0]
    most = min(ROWS, max(FEWEST_ROWS, WEIGHTS_READ // (site.n_layers * site.n_heads * site.key_len)))
    if len(usable) < MIN_ROWS:
        return []
    if len(usable) > most:
        usable = usable[torch.linspace(0, len(usable) - 1, most).round().long()]
    chosen: list[int] = usable.tolist()
    return chosen


def head_distances(capture: CaptureReader, site: SiteDescription, rows: list[int]) -> Tensor:
    """Hellinger distances between the heads of all layers.

    Shapes:  -> (heads, heads), float32, symmetric; heads = n_layers · n_heads
    Values:  0…1, 0 on the diagonal; equal heads come out at up to 1e-3 apart: the square root of float32 rounding
    """
    n_heads = site.n_layers * site.n_heads
    if not rows:
        return torch.full((n_heads, n_heads), torch.nan).fill_diagonal_(0.0)
    gram = torch.zeros(n_heads, n_heads, dtype=torch.float64)
    for first in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[first : first + ROWS_AT_ONCE]
        masks = [capture.mask(site.site, layer) for layer in range(site.n_layers)]
        seen = [mask.key_range((some[0], some[-1] + 1)) for mask in dict.fromkeys(masks)]
        start, stop = min(ends[0] for ends in seen), max(ends[1] for ends in seen)
        step = max(1, VALUES_IN_MEMORY // (n_heads * len(some)))
        for left in range(start, stop, step):
            roots = _roots(capture, site, some, (left, min(left + step, stop)))
            for block in range(0, n_heads, HEADS_AT_ONCE):  # below the diagonal is what is above it
                gram[block:, block : block + HEADS_AT_ONCE] += roots[block:] @ roots[block : block + HEADS_AT_ONCE].T
        gram += _sinks(capture, site, some)
    gram = (gram.tril() + gram.tril(-1).T) / len(rows)
    own = gram.diagonal()  # 1 but for rounding, which is the same in a product of equal heads
    squares = ((own[:, None] + own[None, :]) / 2 - gram).clamp(0, 1)
    return squares.sqrt().fill_diagonal_(0.0).float()


def _roots(capture: CaptureReader, site: SiteDescription, rows: list[int], cols: Span) -> Tensor:
    # (heads of all layers, rows · cols): square roots of weights, float32
    heads = (0, site.n_heads)
    parts = torch.empty(site.n_layers * site.n_heads, len(rows) * (cols[1] - cols[0]))
    for layer in range(site.n_layers):
        weights = capture.weights(site.site, layer, heads, rows, cols)
        parts[layer * site.n_heads : (layer + 1) * site.n_heads] = weights.flatten(1).sqrt()
    return parts


def _sinks(capture: CaptureReader, site: SiteDescription, rows: list[int]) -> Tensor | float:
    # what the sinks of the heads add to the Gram matrix: one more key of every row
    shares = [capture.sink_share(site.site, layer) for layer in range(site.n_layers)]
    if all(share is None for share in shares):
        return 0.0
    none = torch.zeros(site.n_heads, len(rows))
    roots = torch.cat([none if share is None else share[:, rows].float().sqrt() for share in shares])
    return roots @ roots.T


# ------------------------------------------------------------------------------------------------ what is made of them


def near_duplicates(distances: Tensor, threshold: float) -> list[tuple[int, int, float]]:
    """Pairs of heads nearer than the threshold, nearest first.

    Shapes:  distances (heads, heads) -> (one, other, distance), one < other
    """
    one, other = torch.triu_indices(len(distances), len(distances), 1)
    apart = distances[one, other]
    near = apart < threshold
    one, other, apart = one[near], other[near], apart[near]
    order = apart.argsort(stable=True)
    return list(zip(one[order].tolist(), other[order].tolist(), apart[order].tolist(), strict=True))


def cluster_order(distances: Tensor) -> list[int]:
    """Heads in the order of the leaves of an average-linkage clustering: like beside like.

    Shapes:  distances (heads, heads) -> a permutation of 0 … heads − 1
    Source:  Sokal and Michener 1958; Bar-Joseph et al. 2001 for the best order of the leaves, up to MOST_ORDERED heads
    """
    from scipy.cluster.hierarchy import leaves_list, linkage  # here: a second of loading that few requests need
    from scipy.spatial.distance import squareform

    count = len(distances)
    if count < 3 or bool(distances.isnan().any()):
        return list(range(count))
    tree = linkage(squareform(distances.double().numpy()), "average", optimal_ordering=count <= MOST_ORDERED)
    order: list[int] = leaves_list(tree).tolist()
    return order


def layout(distances: Tensor) -> Tensor:
    """Heads as points of a plane whose distances come as near to the given ones as a linear map allows.

    Shapes:  distances (heads, heads) -> (heads, 2), float64
    Values:  the same for the same distances: signs are those that scikit-learn fixes
    Source:  Torgerson 1952. As kernel PCA, which finds two directions instead of all: 0.1 s for 1,200 heads, where
             scikit-learn's ClassicalMDS takes 7 s for the same points
    """
    from sklearn.decomposition import KernelPCA  # here: seconds of loading that few requests need

    count = len(distances)
    if count < 3 or not float(distances.max()) > 0:  # also where they are NaN
        points = torch.zeros(count, 2, dtype=torch.float64)
        if count == 2 and float(distances[0, 1]) > 0:
            points[:, 0] = distances[0, 1] * torch.tensor([0.5, -0.5])
        return points
    solver = "arpack" if count > 200 else "dense"  # arpack needs more heads than directions, and pays with many
    scaling = KernelPCA(n_components=2, kernel="precomputed", eigen_solver=solver, random_state=0)
    return torch.from_numpy(scaling.fit_transform(-0.5 * distances.double().numpy() ** 2))
