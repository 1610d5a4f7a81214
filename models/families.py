"""What is peculiar about single families of transformers models, in one place; and which of them cannot be shown.

One row for each peculiarity, with its reason. `refusal` says in words why a model cannot be shown, from its
configuration alone, so that it is refused where models are listed and not in the middle of a run. That a model which
passes here can be shown is tried once it is loaded (`models/trial.py`). This module loads no weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import transformers
from transformers import PreTrainedConfig
from transformers.models.auto import modeling_auto as auto

Kind = Literal["decoder", "encoder", "encoder-decoder"]

# Classes of one stack by the end of their name. The first write text and have an output layer to compare.
WRITE_TEXT = ("ForCausalLM", "LMHeadModel", "DoubleHeadsModel", "ForConditionalGeneration")
ENCODERS_ONLY = ("EncoderModel", "ForTextEncoding")  # of T5 and its kin: the encoder of an encoder–decoder by itself

# Families whose masks say otherwise than the tables that their classes are in.
KINDS: dict[str, Kind] = {
    "molmo2_text": "decoder",  # in the tables of encoders only; its mask is causal
    "clip_text_model": "decoder",  # called an encoder in its own code; its mask is causal
    "openai_privacy_filter": "encoder",  # made from a decoder; its mask is full
}

EITHER = ("bert-generation",)  # in the tables of decoders only, and an encoder unless its is_decoder says otherwise

# Families that pass through transformers' attention interface and still cannot be shown.
REFUSED: dict[str, str] = {
    "bigbird_pegasus": "its encoder computes attention between blocks in its own code",
    "blt": "it reads bytes in patches whose borders another model inside it sets, so there is no one set of tokens",
    "diffllama": "each of its heads subtracts one attention pattern from another, and what is left are no weights",
    "fnet": "it mixes tokens by a Fourier transform and has no attention",
    "git": "it computes attention over pictures and text together in its own code",
    "longt5": "its encoder computes attention in blocks in its own code",
    "lxmert": "it reads a picture beside the text",
    "mllama": "it reads pictures through layers between those of the text, which have no text to read",
    "pegasus_x": "its encoder computes attention between blocks in its own code",
    "perceiver": "its attention is between the text and a fixed set of learned vectors, which are no tokens",
    "seamless_m4t": "it joins parts for speech and for text, and they cannot be told apart by their names",
    "seamless_m4t_v2": "it joins parts for speech and for text, and they cannot be told apart by their names",
    "t5gemma2": "its decoder attends to both texts in one softmax, so that neither picture would be whole",
    "xlstm": "it is a recurrent network and has no attention",
}

# Kinds of layers, as configurations name them, that are softmax attention from tokens to tokens; why others are not.
SHOWN_LAYERS = ("full_attention", "sliding_attention", "chunked_attention", "window_attention", "indexed_attention")
OTHER_LAYERS: dict[str, str] = {
    "linear_attention": "{layers} linear attention or a state-space part, which makes no weights",
    "conv": "{layers} a convolution in place of attention, which makes no weights",
    "moe": "{layers} a feed-forward part alone",
    "mlp": "{layers} a feed-forward part alone",
    "hybrid": "{layers} attention and a recurrent part together, and its picture would be half of the layer",
    "hybrid_sliding": "{layers} attention and a recurrent part together, and its picture would be half of the layer",
    "compressed_sparse_attention": "{layers} keys that each stand for several tokens, so columns would be no tokens",
    "heavily_compressed_attention": "{layers} keys that each stand for several tokens, so columns would be no tokens",
    "minimax_m3_sparse": "{layers} attention to chosen blocks of keys, in its own code",
}


def kind_of(config: PreTrainedConfig) -> Kind:
    """Which of the three designs a configuration stands for, as its masks will show."""
    architectures = config.architectures or []
    if config.is_encoder_decoder:
        return "encoder" if any(name.endswith(ENCODERS_ONLY) for name in architectures) else "encoder-decoder"
    text, family = text_config(config), config.model_type
    if _sees_both_ways(text):
        return "encoder"
    if family in KINDS:
        return KINDS[family]
    if family in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES or family in EITHER:
        return "decoder" if getattr(config, "is_decoder", False) else "encoder"
    writes = {**auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, **auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
    return "decoder" if family in writes or _ends(architectures, WRITE_TEXT) else "encoder"


def auto_class(config: PreTrainedConfig) -> Any:  # noqa: ANN401  transformers' Auto classes share no useful type
    """Choose transformers' class for a configuration: with its output layer where the checkpoint has one."""
    if kind_of(config) == "encoder-decoder":
        return transformers.AutoModelForSeq2SeqLM
    architectures = config.architectures or []
    if _ends(architectures, ENCODERS_ONLY) and config.model_type in auto.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES:
        return transformers.AutoModelForTextEncoding
    if _ends(architectures, WRITE_TEXT) and _class_in(transformers.AutoModelForCausalLM, config) is not None:
        return transformers.AutoModelForCausalLM
    return transformers.AutoModel


def text_config(config: PreTrainedConfig, *, decoder: bool = False) -> PreTrainedConfig:
    """The part of a configuration that is about text: itself, or one inside; of two stacks the encoder's by default."""
    part = getattr(config, "decoder" if decoder else "encoder", None)
    if config.is_encoder_decoder and isinstance(part, PreTrainedConfig):
        return text_config(part)
    try:
        found: PreTrainedConfig = config.get_text_config()
    except ValueError:  # several of them
        return config
    return found


def layers_of(config: PreTrainedConfig) -> dict[str, int]:
    """How many attention modules each site calls, from the configuration alone: the order is the order of the sites."""
    kind = kind_of(config)
    if kind == "encoder-decoder":
        one, other = text_config(config), text_config(config, decoder=True)
        encoder = _first(one, ("encoder_layers", "num_hidden_layers"))
        decoder = _first(other, ("decoder_layers", "num_decoder_layers", "num_hidden_layers"))
        return {"encoder.self": encoder, "decoder.self": decoder, "decoder.cross": decoder}
    text = text_config(config)
    own = ("decoder_layers",) if kind == "decoder" and getattr(config, "is_decoder", False) else ()  # BART's decoder
    return {f"{kind}.self": _calls(text, _first(text, (*own, "num_hidden_layers")))}


def refusal(config: PreTrainedConfig, folder: Path | None = None) -> str | None:
    """Why a model of this configuration cannot be shown; None where nothing speaks against it.

    folder: of the checkpoint, for what a configuration leaves to generation_config.json
    """
    for part in {config.model_type, text_config(config).model_type}:
        if part in REFUSED or part.removesuffix("_text_model") in REFUSED:
            return REFUSED.get(part) or REFUSED[part.removesuffix("_text_model")]
    return _other_input(config) or _other_layers(config) or _own_code(config) or _no_start(config, folder)


def listed(numbers: Iterable[int], most: int = 8) -> str:
    """Numbers of layers in words, a few of them where there are many."""
    every = list(numbers)
    shown = ", ".join(str(number) for number in every[:most])
    return f"layer {shown}" if len(every) == 1 else f"layers {shown}{' …' if len(every) > most else ''}"


def _other_input(config: PreTrainedConfig) -> str | None:
    """Whether the model reads something else than text, or other things beside it."""
    family = config.model_type
    kind, found = kind_of(config), _class_of(config)
    anything = found or _class_in(transformers.AutoModel, config)
    reads = getattr(anything, "main_input_name", "input_ids")
    if reads != "input_ids":
        what = {"pixel_values": "pictures", "input_features": "sound", "input_values": "sound"}.get(reads, reads)
        return f"it reads {what}, not text"
    if found is None:
        what = {"encoder-decoder": "an encoder–decoder of texts", "decoder": "a model of texts"}.get(kind, "a model")
        return f"transformers has no class that loads {family} as {what}"
    tables = (
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    )
    reads_text_alone = any(family in table for table in tables)
    if not reads_text_alone and {"text_config", "vision_config"} <= set(config.sub_configs or ()):
        return "it compares pictures with texts and needs both; a checkpoint of its text part alone can be shown"
    return None


def _other_layers(config: PreTrainedConfig) -> str | None:
    """Which layers are something else than softmax attention from tokens to tokens, and what."""
    both = (text_config(config), text_config(config, decoder=True))
    for part in both:
        kinds = list(getattr(part, "layer_types", None) or [])
        other = {kind: [i for i, own in enumerate(kinds) if own == kind] for kind in kinds if not _is_shown(kind)}
        if other:
            return _layers_in_words(other, len(kinds))
    return None


def _is_shown(kind: str) -> bool:
    return kind in SHOWN_LAYERS or (kind not in OTHER_LAYERS and "attention" in kind and "linear" not in kind)


def _layers_in_words(other: dict[str, list[int]], count: int) -> str:
    parts = []
    for kind, layers in other.items():
        has = "has" if len(layers) == 1 else "have"
        where = "all of its layers have" if len(layers) == count else f"its {listed(layers)} {has}"
        parts.append(OTHER_LAYERS.get(kind, "{layers} " + f"{kind} in place of attention").format(layers=where))
    rest = count - sum(len(layers) for layers in other.values())
    hybrid = f"; a picture of the other {rest} alone would leave the rest out" if rest else ""
    return f"{'; '.join(parts)}{hybrid}"


def _own_code(config: PreTrainedConfig) -> str | None:
    found = _class_of(config)
    if found is None or found._can_set_attn_implementation():  # noqa: SLF001  transformers' own test, the only one
        return None
    return f"{found.__name__} computes attention in its own code, not through transformers' attention interface"


def _no_start(config: PreTrainedConfig, folder: Path | None) -> str | None:
    if folder is None or kind_of(config) != "encoder-decoder":
        return None
    try:
        generation = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        generation = {}
    known = generation if isinstance(generation, dict) else {}
    starts = (known.get("decoder_start_token_id"), getattr(config, "decoder_start_token_id", None))
    return None if any(start is not None for start in starts) else NO_START


def _calls(text: PreTrainedConfig, layers: int) -> int:
    """How many calls of attention modules so many layers make: one each, but for models that go through some again."""
    match text.model_type:
        case "albert":  # several modules in each layer
            return layers * int(text.inner_group_num)
        case "dory":
            return layers + int(text.n_recurrent_layers) * (int(text.n_recurrent_loops) - 1)
        case "inkling2_loop_text":
            looped = int(text.loop_layer_index_end) - int(text.loop_layer_index_start)
            return layers + looped * (int(text.loop_num_passes) - 1)
    return layers


NO_START = "this model's configuration names no token with which its decoder begins"


def _sees_both_ways(text: PreTrainedConfig) -> bool:
    """Whether a switch of a decoder's family takes its causal mask away."""
    asked = getattr(text, "use_bidirectional_attention", None)
    return asked is True or asked == "all" or getattr(text, "is_causal", None) is False


def _first(config: PreTrainedConfig, names: Iterable[str]) -> int:
    return next((int(found) for name in names if isinstance(found := getattr(config, name, None), int)), 0)


def _ends(architectures: Iterable[str], ends: tuple[str, ...]) -> bool:
    return any(name.endswith(ends) for name in list(architectures)[:1])


def _class_of(config: PreTrainedConfig) -> Any:  # noqa: ANN401  see auto_class
    return _class_in(auto_class(config), config)


def _class_in(table: Any, config: PreTrainedConfig) -> Any:  # noqa: ANN401  see auto_class
    """The class that one of transformers' tables has for a configuration; None where it has none."""
    mapping = table._model_mapping  # noqa: SLF001  what its from_config looks in
    try:
        found = mapping[type(config)]
    except (KeyError, ImportError):
        return None
    return found[0] if isinstance(found, tuple) else found
