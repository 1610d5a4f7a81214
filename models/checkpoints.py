"""What a folder with a transformers checkpoint holds, read without loading a weight; and whether it may be used at all.

Only safetensors, only code that transformers has itself, and no link that leads out of the folder. Knows nothing of
where the folder came from, nor how a model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PretrainedConfig

from models.errors import EngineError
from models.families import Kind, kind_of, refusal, text_config
from models.headers import NotSafetensors, read_header, stored_tensors

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
ADAPTER = "adapter_config.json"
SHARDS_OF_TRAINING = re.compile(
    r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors"
)  # transformers would load them instead
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model")
DEFAULT_MAX_TOKENS = 2048  # for models with relative positions only, whose tokenizer states no limit either
SANE_MAX_TOKENS = 10_000_000  # tokenizers without a limit say 10^30
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "roberta-prelayernorm", "data2vec-text")
LONGEST_REASON = 200  # characters of another library's message; the rest is for its own developers
DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I8": "int8", "U8": "uint8"}


class UnusableCheckpoint(EngineError):
    """The folder cannot be used as a model. The message is the reason, fit to be shown."""


class IncompleteCheckpoint(UnusableCheckpoint):
    """Files are missing; the others may be fine."""


@dataclass(frozen=True)
class Checkpoint:
    """What is known of a checkpoint from its configuration and the headers of its weights.

    weight_precision  dtypes in which most values are stored, e.g. "bfloat16"
    revision          changes whenever weights, configuration or tokenizer do
    notes             sentences that people should know: an adapter that is not applied, tensors without a place
    """

    folder: Path
    family: str
    kind: Kind
    n_layers: int | None
    n_heads: int | None
    n_kv_heads: int | None
    max_tokens: int
    weight_precision: str
    revision: str
    takes_pair: bool = False
    notes: tuple[str, ...] = ()


def one_line(error: Exception, limit: int = LONGEST_REASON) -> str:
    """An error's text on one line, cut where it is long; its type's name if it has none."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


def read_checkpoint(folder: Path, *, within: Path) -> Checkpoint:
    """Describe the checkpoint in `folder`, whose files must all lie, links followed, under `within`.

    Raises:  UnusableCheckpoint with the reason
    """
    try:
        _require_inside(folder, within.resolve())
        settings = read_json(folder / "config.json")
        if "auto_map" in settings or "auto_map" in read_json(folder / "tokenizer_config.json", default={}):
            raise UnusableCheckpoint("it needs Python code that comes with the checkpoint, which is never run")
        weights = weight_files(folder)
        headers = {file.name: read_header(file) for file in weights}
        config = _config(folder)
        if (reason := refusal(config, folder)) is not None:
            raise UnusableCheckpoint(reason)
        if not any((folder / name).is_file() for name in TOKENIZERS):
            raise IncompleteCheckpoint("it has no tokenizer")
        if settings.get("transformers_weights") not in (None, WEIGHTS):
            raise UnusableCheckpoint("its config.json names other weights (transformers_weights) than those beside it")
        return _known(_described(folder, config, headers), headers)
    except NotSafetensors as error:
        raise UnusableCheckpoint(str(error)) from error
    except OSError as error:
        raise UnusableCheckpoint(f"its files cannot be read ({error.strerror or type(error).__name__})") from error


def adapters_in(folder: Path) -> tuple[str, ...]:
    """A sentence for an adapter that lies beside a whole model: it is named, since it is not applied."""
    if not (folder / ADAPTER).is_file():
        return ()
    kind = read_json(folder / ADAPTER, default={}).get("peft_type") or "PEFT"
    beside = f"A {str(kind)[:20]} adapter lies beside the weights ({ADAPTER}) and is not applied"
    return (f"{beside}: this is the model without it.",)


def types_of(config: PretrainedConfig) -> int:
    """How many kinds of text the model tells apart: BERT's two are the two texts of a pair."""
    return getattr(config, "type_vocab_size", None) or 0


def max_tokens_of(config: PretrainedConfig, folder: Path) -> int:
    """How many tokens the model reads: the smaller of its positions and its tokenizer's limit, where they are known.

    RoBERTa and its kin number positions from pad_token_id + 1, so that the start of their table is never used.
    """
    text = text_config(config)
    unused = (text.pad_token_id or 0) + 1 if text.model_type in OFFSET_POSITIONS else 0
    names = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
    positions = next(
        (limit for name in names if isinstance(limit := getattr(text, name, None), int) and limit > 0), None
    )
    stated = read_json(folder / "tokenizer_config.json", default={}).get("model_max_length")
    limits = [positions - unused] if positions else []
    if isinstance(stated, int) and 0 < stated < SANE_MAX_TOKENS:
        limits.append(stated)
    return min(limits, default=DEFAULT_MAX_TOKENS)


def _known(checkpoint: Checkpoint, headers: dict[str, bytes]) -> Checkpoint:
    """The checkpoint with what is to be known of its weights and tokenizer. Raises UnusableCheckpoint."""
    from models.examined import examined  # here: it needs the code of the family, and this module's readers may not

    found = examined(checkpoint.folder, checkpoint.revision, headers)
    if found.refusal is not None:
        raise UnusableCheckpoint(found.refusal)
    return replace(checkpoint, notes=(*found.notes, *adapters_in(checkpoint.folder)))


def _require_inside(folder: Path, root: Path) -> None:
    """Refuse links out of `root`, in the folder and below it."""
    for path in (folder, *folder.rglob("*")):
        try:
            inside = path.resolve().is_relative_to(root)
        except RuntimeError:  # a link to itself
            inside = False
        if not inside:
            raise UnusableCheckpoint("it has a link that leads out of its folder, or nowhere")


def read_json(path: Path, default: dict[str, Any] | None = None) -> dict[str, Any]:
    """The object in a JSON file; `default` if there is no such file and a default is given."""
    if default is not None and not path.is_file():
        return default
    if not path.is_file():
        raise IncompleteCheckpoint(f"it has no {path.name}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UnusableCheckpoint(f"its {path.name} is not JSON") from error
    if not isinstance(content, dict):
        raise UnusableCheckpoint(f"its {path.name} is not a JSON object")
    return content


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that make up the weights, all present. Raises UnusableCheckpoint."""
    if any(SHARDS_OF_TRAINING.fullmatch(file.name) for file in folder.iterdir()):
        raise UnusableCheckpoint("it has the shards of a distributed training; save it as one checkpoint")
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        table = read_json(folder / INDEX).get("weight_map")
        names = sorted({str(name) for name in table.values()}) if isinstance(table, dict) else []
        if not names or any(Path(name).name != name for name in names):
            raise UnusableCheckpoint(f"its {INDEX} does not name the weight files beside it")
        if missing := [name for name in names if not (folder / name).is_file()]:
            raise IncompleteCheckpoint(f"{len(missing)} of its {len(names)} weight files are missing")
        return [folder / name for name in names]
    if any(file.suffix in PICKLED for file in folder.iterdir()):
        raise IncompleteCheckpoint("its weights are pickled, which is never loaded; save it as safetensors")
    raise IncompleteCheckpoint(f"it has no {WEIGHTS}")


def _config(folder: Path) -> PretrainedConfig:
    """The configuration, by transformers' own class for this family."""
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except OSError:
        raise
    except Exception as error:  # transformers' checks of the fields raise types of their own
        words = one_line(error).replace(str(folder), folder.name)
        raise UnusableCheckpoint(
            f"transformers does not know this kind of model, or its config.json is wrong: {words}"
        ) from error
    if not isinstance(config, PretrainedConfig):
        raise UnusableCheckpoint("its config.json describes no model")
    names: Any = config.architectures
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise UnusableCheckpoint(f"its config.json is wrong: architectures should be names, got {str(names)[:80]}")
    return config


def _count(config: PretrainedConfig, name: str) -> int | None:
    """A number of layers or heads, where the configuration has it; few families check theirs."""
    value = getattr(config, name, None)
    if value is not None and not (isinstance(value, int) and not isinstance(value, bool)):
        raise UnusableCheckpoint(f"its config.json is wrong: {name} should be a whole number, got {str(value)[:80]}")
    return value


def _described(folder: Path, config: PretrainedConfig, headers: dict[str, bytes]) -> Checkpoint:
    text = text_config(config)
    n_heads = _count(text, "num_attention_heads")
    return Checkpoint(
        folder=folder,
        family=config.model_type,
        kind=kind_of(config),
        n_layers=_count(text, "num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=_count(text, "num_key_value_heads") or n_heads,
        max_tokens=max_tokens_of(config, folder),
        weight_precision=_precision(headers),
        revision=_revision(folder, headers),
        takes_pair=kind_of(config) == "encoder" and types_of(config) >= 2,
    )


def _precision(headers: dict[str, bytes]) -> str:
    """The dtype of most values, and others that hold more than a hundredth of them."""
    values: Counter[str] = Counter()
    for header in headers.values():
        for tensor in stored_tensors(header).values():
            values[DTYPES.get(tensor.dtype, tensor.dtype.lower())] += tensor.n_bytes
    total = values.total()
    return ", ".join(name for name, count in values.most_common() if count * 100 >= total) or "float32"


def _revision(folder: Path, headers: dict[str, bytes]) -> str:
    """A hash of names, sizes, times and headers of the weights, and of everything else that shapes the result."""
    digest = hashlib.blake2b(digest_size=12)
    for name, header in sorted(headers.items()):
        state = (folder / name).stat()
        digest.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
        digest.update(header)
    for file in sorted(folder.glob("*")):
        if file.is_file() and file.suffix in {".json", ".txt", ".model"}:
            digest.update(f"\0{file.name}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()
