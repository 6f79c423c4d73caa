"""Makes tiny models with random weights, for tests only: `tiny_transformers.py <kind> <folder>`, in torch's environment.

What they write is noise, from a fixed seed: they show that a server's path works, never how fast or good a model is.
Kinds: `diffusion-gemma` (block diffusion, canvas of 32), `masked` (a bidirectional model that fills masks), `causal`.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    DiffusionGemmaConfig,
    DiffusionGemmaForBlockDiffusion,
    DiffusionGemmaTextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedTokenizerFast,
)

SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<think>", "</think>", "<turn>"]
TEMPLATE = (
    "{% for m in messages %}<turn>{{ m.role }}\n{{ m.content }}\n{% endfor %}"
    "{% if tools %}<turn>tools {{ tools | length }}\n{% endif %}"
    "{% if add_generation_prompt %}<turn>assistant\n{% if enable_thinking is defined and enable_thinking %}<think>"
    "{% endif %}{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte, after the special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *alphabet])}
    inner = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="<eos>",
        bos_token="<bos>",
        unk_token="<unk>",
        mask_token="<mask>",
        additional_special_tokens=["<think>", "</think>", "<turn>"],
    )
    made.chat_template = TEMPLATE
    return made


def diffusion_gemma(size: int) -> DiffusionGemmaForBlockDiffusion:
    """Two layers and a canvas of 32."""
    text = DiffusionGemmaTextConfig(
        vocab_size=size,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        global_head_dim=32,
        num_global_key_value_heads=1,
        sliding_window=64,
        max_position_embeddings=4096,
        num_experts=4,
        top_k_experts=2,
        moe_intermediate_size=32,
        layer_types=["sliding_attention", "full_attention"],
    )
    vision = {
        "model_type": "gemma4_vision",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
    }
    config = DiffusionGemmaConfig(
        text_config=text,
        vision_config=vision,
        canvas_length=32,
        image_token_id=3,
        boi_token_id=3,
        eoi_token_id=3,
    )
    return DiffusionGemmaForBlockDiffusion(config)


def masked(size: int) -> ModernBertForMaskedLM:
    """Two layers of a bidirectional model."""
    config = ModernBertConfig(
        vocab_size=size,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=4096,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
        cls_token_id=2,
        sep_token_id=1,
    )
    config.mask_token_id = SPECIAL.index("<mask>")
    return ModernBertForMaskedLM(config)


def causal(size: int) -> LlamaForCausalLM:
    """Two layers of a causal model."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=size,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=2,
        )
    )


KINDS = {"diffusion-gemma": diffusion_gemma, "masked": masked, "causal": causal}


def main(kind: str, folder: Path) -> None:
    """Write one model with its tokenizer."""
    torch.manual_seed(20261201)
    words = tokenizer()
    model = KINDS[kind](len(words))
    if kind == "diffusion-gemma":
        with torch.no_grad():  # sharper than noise: the sampler's rules for stopping have something to decide
            model.model.decoder.embed_tokens.weight *= 3
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    print(sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
