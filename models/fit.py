"""Whether the tensors of a checkpoint are those that its model has: every name and shape, before a weight is read.

transformers fills what is missing with random numbers and leaves out what it has no place for, without an error. Here
its own loading code runs once on tensors without values (device "meta"), so that its renamings and conversions count,
and what it reports decides. `models/loading.py` asks the same again of the weights that were really loaded.

This module knows nothing of folders, nor of what is done with a model that does not fit.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto.auto_factory import _get_model_class

from models.card import Check
from models.errors import EngineError
from models.families import auto_class
from models.headers import StoredTensor

DEEPEST = 3  # parts of a name that may stand before all names of a file
T = TypeVar("T")
NAMED = 6  # tensors in a message; more are counted
# What torch puts into names when a model is saved while it is wrapped: torch.compile, FSDP, activation checkpointing.
WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
# Masks and tables that old checkpoints keep beside their weights and that models make themselves.
BOOKKEEPING = re.compile(
    r"(^|\.)(position_ids|inv_freq|original_inv_freq|causal_mask|masked_bias|attn\.bias|attention\.bias)$"
)
ATTENTION = re.compile(r"attn|attention|(^|[._])(q|k|v|o|qkv|query|key|value)(_proj|_lin|_norm)?[._]", re.IGNORECASE)
NUMBERED = re.compile(r"\.(\d+)\.")
LOADING = threading.Lock()  # transformers swaps torch's initialisers and default dtype while it builds a model


class Misfit(EngineError):
    """Names or shapes of a checkpoint's tensors are not those of its model; the message names them."""


@dataclass(frozen=True)
class Fit:
    """How a checkpoint's tensors fit its model, after those that do not fit at all were refused.

    tensors   how many there are
    unused    those that the model has no place for, outside of its layers: heads, other towers
    in_layer  those that it has no place for inside of its layers, which are no part of attention
    removed   what was taken out of their names, as transformers' `key_mapping`; {} if nothing was
    """

    tensors: int
    unused: tuple[str, ...] = ()
    in_layer: tuple[str, ...] = ()
    removed: Mapping[str, str] | None = None

    def named(self, tensors: Mapping[str, T]) -> dict[str, T]:
        """The tensors under the names that they have without what was taken out."""
        names = _renamed(tensors, self.removed or {})
        return dict(zip(names, tensors.values(), strict=True))

    @property
    def prefix(self) -> str | None:
        """What was taken out of the names, in words."""
        return ", ".join(pattern.replace("\\", "").lstrip("^") for pattern in self.removed or {}) or None


def concrete_class(config: PreTrainedConfig) -> tuple[type[PreTrainedModel], PreTrainedConfig]:
    """transformers' class for a configuration, and the part of the configuration that it takes.

    Raises:  Misfit if transformers has none for it
    """
    auto = auto_class(config)
    try:
        found = _get_model_class(config, auto._model_mapping)  # noqa: SLF001  there is no public way to ask
    except KeyError:
        raise Misfit(f"transformers has no {auto.__name__} for the family {config.model_type}") from None
    text = config.sub_configs.get("text_config")
    return found, config.get_text_config() if text is not None and found.config_class == text else config


def options_of(found: type[PreTrainedModel], names: Mapping[str, Any]) -> dict[str, Any]:
    """Options that keep the class from making weights that the file does not have: no pooler where it has none."""
    takes_pooler = "add_pooling_layer" in inspect.signature(found.__init__).parameters
    return {"add_pooling_layer": False} if takes_pooler and not any("pooler" in name for name in names) else {}


def fit_of(config: PreTrainedConfig, stored: Mapping[str, StoredTensor]) -> Fit:
    """Compare a checkpoint's tensors with those of the model that its configuration describes.

    Raises:  Misfit, naming the tensors: missing ones, other shapes, more layers than the configuration has, parts of
             attention without a place, whole numbers where weights should be; whatever transformers raises for a model
             that it cannot build
    """
    known = {rf"{wrapper}\.": "" for wrapper in WRAPPERS if any(f"{wrapper}." in name for name in stored)}
    try:
        return _fit(config, stored, known)
    except Misfit as misfit:
        for leading in _leading(_renamed(stored, known)):
            try:
                return _fit(config, stored, {**known, rf"^{re.escape(leading)}": ""})
            except Misfit:
                continue
        raise misfit from None


def checked(
    info: Mapping[str, Any], model: PreTrainedModel, names: Mapping[str, Any], removed: Mapping[str, str]
) -> Fit:
    """The fit that transformers' report of a loading describes. Raises Misfit."""
    problems = []
    if missing := sorted(info["missing_keys"]):
        problems.append(f"{len(missing)} missing: {_named(missing)}")
    wrong = sorted(
        f"{name} is {tuple(stored)} and should be {tuple(wanted)}" for name, stored, wanted in info["mismatched_keys"]
    )
    if wrong:
        problems.append(f"{len(wrong)} of another shape: {_named(wrong)}")
    base = f"{model.base_model_prefix}."
    own = sorted({*model.state_dict(), *(name.removeprefix(base) for name in model.state_dict())})
    unused = sorted({*info["unexpected_keys"], *_ignored(model, names, own)})
    unused = [name for name in unused if not BOOKKEEPING.search(name)]
    expected = [name for name in unused if name in info["unexpected_keys"]]  # others are left out by design
    if layers := [name for name in expected if _of_another_layer(name, own)]:
        problems.append(f"{len(layers)} of layers that its config.json does not have: {_named(layers)}")
    inside = [name for name in expected if name not in layers and _inside(name, own)]
    if attention := [name for name in inside if ATTENTION.search(name)]:
        problems.append(f"{len(attention)} of attention that the model has no place for: {_named(attention)}")
    if problems:
        raise Misfit(f"its weights are not those of the model that its config.json describes; {'; '.join(problems)}")
    in_layer = tuple(name for name in inside if NUMBERED.search(name))
    return Fit(len(names), tuple(name for name in unused if name not in in_layer), in_layer, dict(removed))


def weights_check(fit: Fit, notes: tuple[str, ...] = ()) -> Check:
    """The card's line: whether the file and the model have the same tensors, and what is to be known beside.

    A tensor without a place inside of a layer fails: the layer computes something else than it was trained to.
    """
    without = (*fit.in_layer, *fit.unused)
    detail = {
        "tensors": fit.tensors,
        "without_place": list(without[:NAMED]),
        "inside_layers": len(fit.in_layer),
        "removed_from_names": fit.prefix,
        "notes": list(notes),
    }
    if fit.in_layer:
        return Check("weights", "fail", len(without), 0, detail)
    said = bool(fit.unused or fit.prefix or notes)
    return Check("weights", "info" if said else "pass", len(without), None if said else 0, detail)


def notes_of(fit: Fit) -> tuple[str, ...]:
    """What a reader of the list of models should know of the fit, in sentences."""
    notes = []
    if without := [*fit.in_layer, *fit.unused]:
        notes.append(f"{len(without)} tensors of its file have no place in the model: {_named(without)}.")
    if fit.prefix:
        notes.append(f"{fit.prefix} was removed from the names of its tensors.")
    return tuple(notes)


def _fit(config: PreTrainedConfig, stored: Mapping[str, StoredTensor], removed: Mapping[str, str]) -> Fit:
    found, config = concrete_class(config)
    _refuse_twice(_renamed(stored, removed), found.base_model_prefix)
    empty = {name: torch.empty(tensor.shape, device="meta") for name, tensor in stored.items()}
    loaded: Any = found
    try:
        model, info = loaded.from_pretrained(
            None,
            config=config,
            state_dict=empty,
            dtype=torch.float32,
            device_map="meta",
            key_mapping=dict(removed) or None,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **options_of(found, stored),
        )
    except RuntimeError as error:
        if "CONVERSION" not in str(error):
            raise
        raise Misfit(CONVERSION) from None
    if not getattr(config, "quantization_config", None):
        _refuse_whole_numbers(stored, model)
    return checked(info, model, stored, removed)


CONVERSION = (
    "its weights are not those of the model that its config.json describes; transformers cannot put them together: "
    "tensors are missing or of another shape"
)


def _refuse_twice(names: list[str], base_prefix: str) -> None:
    seen: set[str] = set()
    for name in names:
        bare = name.removeprefix(f"{base_prefix}.")
        if bare in seen:
            raise Misfit(f"its weights have {bare} twice, under two names, and only one can be right")
        seen.add(bare)


def _refuse_whole_numbers(stored: Mapping[str, StoredTensor], model: PreTrainedModel) -> None:
    # a copy would turn them into weights without a word
    tables = tuple(name for name, tensor in model.state_dict().items() if not tensor.is_floating_point())
    whole = [
        name
        for name, tensor in sorted(stored.items())
        if not tensor.dtype.startswith(("F", "BF", "C")) and len(tensor.shape) >= 2
        if not BOOKKEEPING.search(name) and not name.endswith(tables)
    ]
    if whole:
        raise Misfit(f"{len(whole)} of its tensors hold whole numbers where weights should be: {_named(whole)}")


def _leading(names: list[str]) -> Iterator[str]:
    """What all names begin with, one part longer each time: "module.", "module.model."."""
    parts = [name.split(".") for name in names]
    for depth in range(1, min((len(part) for part in parts), default=0)):
        if depth > DEEPEST or len({tuple(part[:depth]) for part in parts}) != 1:
            return
        yield ".".join(parts[0][:depth]) + "."


def _renamed(names: Mapping[str, Any], removed: Mapping[str, str]) -> list[str]:
    found = list(names)
    for pattern in removed:
        found = [re.sub(pattern, "", name) for name in found]
    return found


def _ignored(model: PreTrainedModel, names: Mapping[str, Any], own: list[str]) -> set[str]:
    # names of the file that transformers leaves out by design and does not report
    patterns = model._keys_to_ignore_on_load_unexpected or ()  # noqa: SLF001  transformers' own list
    base = f"{model.base_model_prefix}."
    left_out = {name for name in names if any(re.search(pattern, name) for pattern in patterns)}
    return {name for name in left_out if name not in own and name.removeprefix(base) not in own}


def _of_another_layer(name: str, own: list[str]) -> bool:
    """Whether the name is of a layer 12 where the model has layers 0 to 11."""
    for match in NUMBERED.finditer(name):
        container = name[: match.start() + 1]
        numbered = f"{container}{match[1]}."
        if any(mine.startswith(container) for mine in own) and not any(mine.startswith(numbered) for mine in own):
            return True
    return False


def _inside(name: str, own: list[str]) -> bool:
    """Whether the name is of a part of the model: of one of its layers, or beside one of its own tensors."""
    numbers = list(NUMBERED.finditer(name))
    place = name[: numbers[-1].end()] if numbers else name[: name.rfind(".", 0, name.rfind(".")) + 1]
    return bool(place) and any(mine.startswith(place) for mine in own)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(name[:100] for name in names[:NAMED]) + more
