"""What single families need beyond the general shrinking."""

from __future__ import annotations

from typing import Any

_tiny_bert = {
    "model_type": "bert",
    "vocab_size": 97,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "intermediate_size": 64,
}
_tiny_vision = {
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 16,
}
_tiny_text = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
OVERRIDES: dict[str, dict[str, Any]] = {
    "bamba": {"mamba_n_heads": 6, "mamba_d_head": 16},
    "codegen": {"rotary_dim": 8},
    "cohere_compass_text": {"num_hidden_layers": 4},  # every fourth layer has no window
    "cpmant": {"dim_ff": 64, "position_bias_num_buckets": 32, "dim_head": 8},
    "dots3_note": {"num_key_value_heads": 6},
    "dots3_note_text": {"num_key_value_heads": 6},
    "dory": {"n_input_layers": 1, "n_output_layers": 0},
    "encoder-decoder": {
        "encoder": _tiny_bert,
        "decoder": {**_tiny_bert, "num_hidden_layers": 3, "is_decoder": True, "add_cross_attention": True},
    },
    "inkling2_loop_text": {
        "loop_layer_index_start": 1,
        "loop_layer_index_end": 2,
        "n_layers_per_attn_res_block": 1,
        "unpadded_vocab_size": 97,
        "swa_num_attention_heads": 6,
        "swa_num_key_value_heads": 2,
        "swa_head_dim": 8,
    },
    "inkling2_text": {
        "unpadded_vocab_size": 97,
        "n_layers_per_attn_res_block": 1,
        "swa_num_attention_heads": 6,
        "swa_num_key_value_heads": 2,
        "swa_head_dim": 8,
    },
    "esmc": {"num_key_value_heads": 6},
    "gemma3": {"vision_config": _tiny_vision, "mm_tokens_per_image": 4},
    "gemma3n_text": {"num_kv_shared_layers": 0, "num_hidden_layers": 3, "layer_types": ["full_attention"] * 3},
    "gpt_neo": {"attention_types": [[["global", "local", "global"], 1]]},
    "gptj": {"rotary_dim": 8},
    "granitemoehybrid": {"mamba_n_heads": 6, "mamba_d_head": 16},
    "layoutlmv3": {"coordinate_size": 8, "shape_size": 8, "input_size": 32},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"]},
    "longcat_flash": {
        "head_dim": 4,
        "num_layers": 2,
        "expert_ffn_hidden_size": 32,
        "n_routed_experts": 4,
        "zero_expert_num": 2,
    },
    "luke": {"entity_vocab_size": 97, "entity_emb_size": 16},
    "mamba2": {"num_heads": 12, "head_dim": 8},
    "mimo_v2_flash": {"num_attention_heads": 4, "num_key_value_heads": 1},  # layers with windows have twice the keys
    "mobilebert": {"embedding_size": 48, "intra_bottleneck_size": 48, "true_hidden_size": 48},
    "neomme": {"head_dim": 16},
    "roc_bert": {"shape_vocab_size": 97, "pronunciation_vocab_size": 97, "shape_embed_dim": 16},
    "t5gemma2": {"encoder": {"vision_config": _tiny_vision, "text_config": _tiny_text}, "decoder": _tiny_text},
    "xmod": {"default_language": "en_XX"},
    "zamba2": {
        "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
    },
    "zaya": {"num_experts_per_tok": 1},
}
WITHOUT: dict[str, tuple[str, ...]] = {}

# Other members of a family: name -> the family, the class that is saved ("" for the usual one), what else is set.
VARIANTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "albert, two layers in a group": ("albert", "", {"inner_group_num": 2, "num_hidden_groups": 3}),
    "bart, its decoder": ("bart", "BartForCausalLM", {"encoder_layers": 2}),
    "bert, causal": ("bert", "BertLMHeadModel", {"is_decoder": True}),
    "encoder-decoder, BERT to GPT-2": (
        "encoder-decoder",
        "",
        {
            "decoder": {
                "model_type": "gpt2",
                "vocab_size": 97,
                "n_embd": 48,
                "n_layer": 3,
                "n_head": 6,
                "is_decoder": True,
                "add_cross_attention": True,
            }
        },
    ),
    "gemma3_text, both ways": ("gemma3_text", "Gemma3TextModel", {"use_bidirectional_attention": True}),
    "llama, both ways": ("llama", "LlamaModel", {"is_causal": False}),
    "t5, its encoder": ("t5", "T5EncoderModel", {}),
    "t5, two layers and three": ("t5", "", {"num_layers": 2, "num_decoder_layers": 3}),
    "umt5, its encoder": ("umt5", "UMT5EncoderModel", {}),
}
