"""A model and a catalogue for tests of the service and the page: quick, deterministic, with the shapes of a real one.

The queries and keys are made up (`tests/fake_heads.py`), the attention and the capture are the product's own. Used by
tests only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from app.services.errors import ModelNeedsDownload, ModelUnavailable, UnknownModel
from app.services.ports import ModelEntry, OnProgress, State
from models.attention import causal_mask
from models.blocks import Workspace
from models.blockwise import blockwise_attention
from models.capture_builder import CaptureBuilder
from models.card import Card, Check
from models.errors import Cancelled
from models.head_targets import HeadTargets
from models.masks import MaskLayout
from models.protocol import ModelDescription, OnLayer, RunResult, ShouldStop
from models.token_facts import TokenFacts
from models.tokens import Token
from tests.fake_heads import CONTENT, WIDTH, fake_inputs, fake_norms


def fake_tokens(text: str, *, add_special_tokens: bool = True) -> list[Token]:
    """Words with the space before them; a character beyond the basic alphabets becomes its bytes; <s> comes first."""
    spans = [(match.start(), match.end()) for match in re.finditer(r"\s?[A-Za-z0-9]+|[\s\S]", text)]
    tokens: list[Token] = [Token(0, 1, "<s>", "<s>", 0, 0, True, None, 1, 1, None)] if add_special_tokens else []
    for word, (start, end) in enumerate(spans):
        piece = text[start:end]
        parts = len(piece.encode("utf-8", "replace")) if len(piece) == 1 and ord(piece) > 0x2E7F else 1
        for part in range(1, parts + 1):
            data = piece.encode("utf-8", "replace")[part - 1 : part].hex().upper() if parts > 1 else None
            number = 2 + sum(ord(c) * 31**i for i, c in enumerate(piece)) % 50_000 + part
            tokens.append(Token(len(tokens), number, piece, piece, start, end, False, word, part, parts, data))
    return tokens


SITES = {
    "decoder": ("decoder.self",),
    "encoder": ("encoder.self",),
    "encoder-decoder": ("encoder.self", "decoder.self", "decoder.cross"),
}
START = Token(0, 1, "<s>", "<s>", 0, 0, True, None, 1, 1, None)


class FakeModel:
    """30 layers × 9 heads unless told otherwise; can be slow, and can fail, both per module."""

    def __init__(
        self,
        n_layers: int = 30,
        n_heads: int = 9,
        *,
        kind: Literal["decoder", "encoder", "encoder-decoder"] = "decoder",
        takes_pair: bool = False,
        max_tokens: int = 8192,
        delay_s: float = 0.0,
        fail_at: int | None = None,
        failure: Exception | None = None,
    ) -> None:
        self.description = ModelDescription(
            "fake",
            kind,
            n_layers,
            n_heads,
            max(1, n_heads // 3),
            max_tokens,
            "transformers",
            "float32",
            "float32",
            "fake-1",
            takes_pair,
        )
        self.delay_s, self.fail_at = delay_s, fail_at
        self.failure = failure or RuntimeError("planted")
        self.runs = 0
        self.layers_done = 0
        self.given: dict[str, Any] = {}  # what the last run was given

    def tokenize(
        self,
        text: str,
        *,
        text_pair: str | None = None,
        add_special_tokens: bool = True,
        should_stop: ShouldStop = lambda: False,
    ) -> list[Token]:
        """See `fake_tokens`; a second text follows after a </s>, with one more at the end."""
        tokens = fake_tokens(text, add_special_tokens=add_special_tokens)
        if text_pair is None:
            return tokens
        second = [replace(token, segment=1) for token in fake_tokens(text_pair, add_special_tokens=False)]
        end = replace(START, id=2, piece="</s>", text="</s>")
        ends = (
            [replace(end, start=len(text), end=len(text))],
            [replace(end, start=len(text_pair), end=len(text_pair), segment=1)],
        )
        parts = [*tokens, *ends[0], *second, *ends[1]] if add_special_tokens else [*tokens, *second]
        return [token.at(index) for index, token in enumerate(parts)]

    def tokenize_target(self, text: str) -> list[Token]:
        """<s>, then the text."""
        return fake_tokens(text)

    def write_target(
        self, token_ids: Sequence[int], *, segments: Sequence[int] | None = None, should_stop: ShouldStop
    ) -> list[Token]:
        """The same words for every source, a few more for a longer one."""
        words = ["what", "the", "fake", "wrote", "by", "itself"][: 3 + len(token_ids) % 4]
        for _ in words:
            if should_stop():
                raise Cancelled("stopped")
            time.sleep(self.delay_s)
        return [replace(token, word=None) for token in fake_tokens(" ".join(words))]

    def capture_bytes(self, n_tokens: int, n_target: int = 0) -> int:
        """Query, key and value in float32."""
        both = self.description.kind == "encoder-decoder"
        places = 2 * (n_tokens + n_target) if both else n_tokens
        return 4 * (2 * WIDTH + CONTENT) * places * self.description.n_layers * self.description.n_heads

    def run(
        self,
        token_ids: Sequence[int],
        *,
        target_ids: Sequence[int] | None = None,
        segments: Sequence[int] | None = None,
        facts: TokenFacts | None = None,
        target_facts: TokenFacts | None = None,
        seed: int | None = None,
        on_layer: OnLayer,
        should_stop: ShouldStop,
    ) -> RunResult:
        """A pass whose weights depend on token ids, site, layer and head alone."""
        self.runs += 1
        self.layers_done = 0
        self.given = {"token_ids": list(token_ids), "target_ids": target_ids, "segments": segments}
        started = time.perf_counter()
        builder, workspace, sites = CaptureBuilder(), Workspace(), SITES[self.description.kind]
        for number, site in enumerate(sites):
            ids = self._ids_of(site, token_ids, target_ids)
            mask = _mask_of(site, *map(len, ids))
            told = target_facts if site == "decoder.self" and target_facts else facts
            same = site != "decoder.cross"
            targets = HeadTargets(mask, told or TokenFacts(tuple(ids[1])), same_sequence=same)
            for layer in range(self.description.n_layers):
                module = number * self.description.n_layers + layer
                if should_stop():
                    raise Cancelled("stopped")
                time.sleep(self.delay_s)
                if module == self.fail_at:
                    raise self.failure
                inputs = fake_inputs(site, layer, self.description.n_heads, ids, number=module, mask=mask)
                inputs = replace(inputs, targets=targets)
                summary = blockwise_attention(inputs, workspace)
                # as if the output projection were known in decoders, and in no other
                norms = fake_norms(inputs) if self.description.kind == "decoder" else None
                builder.add(site, layer, inputs, replace(summary, output=summary.output.new_empty(0)), norms)
                self.layers_done = module + 1
                on_layer(module + 1, len(sites) * self.description.n_layers)
        seconds = {"forward": time.perf_counter() - started, "check": 0.001}
        return RunResult(builder.build(), fake_card(len(token_ids)), seconds)

    @staticmethod
    def _ids_of(site: str, source: Sequence[int], target: Sequence[int] | None) -> tuple[list[int], list[int]]:
        """Token ids of the queries and keys of a site."""
        queries = source if target is None or site == "encoder.self" else target
        keys = source if site == "decoder.cross" else queries
        return (list(queries), list(keys))

    def compare_whole_pass(
        self,
        token_ids: Sequence[int],
        *,
        target_ids: Sequence[int] | None = None,
        segments: Sequence[int] | None = None,
        should_stop: ShouldStop,
    ) -> Check:
        """Always within the bound."""
        self.given = {"token_ids": list(token_ids), "target_ids": target_ids, "segments": segments}
        time.sleep(self.delay_s)
        if should_stop():
            raise Cancelled("stopped")
        return Check("whole_pass", "pass", 2.5e-6, 1e-5, {"reference": "sdpa"})


def _mask_of(site: str, query_len: int, key_len: int) -> MaskLayout:
    if site == "decoder.self":
        return MaskLayout.from_mask(causal_mask(query_len))
    return MaskLayout.full(query_len, key_len)


def fake_card(n_tokens: int) -> Card:
    """All checks pass; the whole pass is compared up to 256 tokens."""
    whole = Check("whole_pass", "pass", 1.2e-6, 1e-5, {"reference": "sdpa"})
    return Card(
        (
            Check("modules", "pass", 30, 30),
            Check("eval_mode", "pass", "eval"),
            Check("arithmetic", "info", "float32", None, {"weight_precision": "float32", "path": "fake"}),
            Check("row_sums", "pass", 3e-7, 1e-5),
            Check("outside_mask", "pass", 0.0, 0.0),
            Check("non_finite", "pass", 0, 0),
            Check("module_output", "pass", 8e-7, 1e-5, {"rows": 8}),
            whole if n_tokens <= 256 else replace(whole, status="not_compared", value=None),
        )
    )


@dataclass(frozen=True)
class FakeEntry:
    """One line of the fake catalogue."""

    id: str
    name: str
    family: str = "fake"
    kind: str = "decoder"
    n_layers: int | None = 30
    n_heads: int | None = 9
    n_kv_heads: int | None = 3
    max_tokens: int | None = 8192
    state: State = "ready"
    reason: str | None = None
    progress: float | None = None
    source: str = "made up by the tests"
    licence: str = "MIT"
    revision: str | None = "fake-1"
    weight_precision: str = "float32"
    note: str | None = "A fake: its weights are random."
    takes_pair: bool | None = False
    implementations: tuple[str, ...] = ("transformers",)

    def as_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


class FakeModels:
    """A decoder, an encoder–decoder, an encoder of pairs, one that must be downloaded, one that cannot be used."""

    def __init__(self, model: FakeModel | None = None, *, load_s: float = 0.0) -> None:
        self.model = model or FakeModel()
        about = self.model.description
        same: dict[str, Any] = {"max_tokens": about.max_tokens, "delay_s": self.model.delay_s}
        self.others = {
            "fake-seq2seq": FakeModel(3, 4, kind="encoder-decoder", **same),
            "fake-pairs": FakeModel(4, 6, kind="encoder", takes_pair=True, **same),
        }
        self.load_s = load_s
        self.loaded = load_s == 0.0
        self.downloads: list[str] = []

    def list(self) -> Iterable[ModelEntry]:
        """Every model, the default one first."""
        first = FakeEntry(
            "fake-30x9",
            "Fake 30 × 9",
            state="ready" if self.loaded else "preparing",
            progress=None if self.loaded else 0.5,
        )
        return [
            _described(first, self.model),
            _described(FakeEntry("fake-seq2seq", "Fake encoder–decoder"), self.others["fake-seq2seq"]),
            _described(FakeEntry("fake-pairs", "Fake encoder of pairs"), self.others["fake-pairs"]),
            FakeEntry(
                "gpt2",
                "GPT-2",
                "gpt2",
                n_layers=None,
                n_heads=None,
                n_kv_heads=None,
                state="needs_download",
                implementations=("own", "transformers"),
            ),
            FakeEntry("broken", "Broken", state="unavailable", reason="its folder holds no safetensors file"),
        ]

    def entry(self, model_id: str) -> ModelEntry:
        """One model. Raises UnknownModel."""
        for entry in self.list():
            if entry.id == model_id:
                return entry
        raise UnknownModel(model_id)

    def prepare(self, model_id: str) -> None:
        """Nothing to do ahead of time."""

    def is_loaded(self, model_id: str, implementation: str | None = None) -> bool:
        """Whether the first model has been waited for."""
        return self.loaded and self.entry(model_id).state == "ready"

    def load(
        self, model_id: str, on_progress: OnProgress, should_stop: ShouldStop, implementation: str | None = None
    ) -> FakeModel:
        """The model, after load_s seconds the first time."""
        entry = self.entry(model_id)
        if entry.state == "needs_download":
            raise ModelNeedsDownload(model_id)
        if entry.state == "unavailable":
            raise ModelUnavailable(model_id, entry.reason or "")
        started = time.perf_counter()
        while not self.loaded and (past := time.perf_counter() - started) < self.load_s:
            if should_stop():
                raise Cancelled("stopped")
            on_progress(past / self.load_s)
            time.sleep(0.05)
        self.loaded = True
        return self.others.get(model_id, self.model)

    def start_download(self, model_id: str) -> None:
        """Only noted."""
        if self.entry(model_id).state != "needs_download":
            raise ModelUnavailable(model_id, "it does not come from a download")
        self.downloads.append(model_id)

    def download_events(self, model_id: str) -> Iterator[Mapping[str, Any]]:
        """Two steps, then an end."""
        self.entry(model_id)
        yield {"status": "progress", "done": 1, "total": 2}
        yield {"status": "done", "done": 2, "total": 2}


def _described(entry: FakeEntry, model: FakeModel) -> FakeEntry:
    """The entry with what its model says of itself."""
    about = model.description
    same = ("kind", "n_layers", "n_heads", "n_kv_heads", "max_tokens", "takes_pair")
    return replace(entry, **{name: getattr(about, name) for name in same})
