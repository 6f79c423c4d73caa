"""Makes tiny models with random weights, in torch's environment: `tiny_transformers.py KIND FOLDER`.

What they write is noise, from a fixed seed: they show that a server's path works, never how fast or good a model is.
Kinds: `masked` (a bidirectional model that fills masks), `causal` (one that writes token by token). Both write visible
characters only and never end by themselves, sampled too: an architecture whose output head has a bias was chosen.
"""

import sys
from pathlib import Path

import torch
from tiny_characters import silent
from tiny_characters import tokenizer as characters
from transformers import ModernBertConfig, ModernBertForMaskedLM, PhiConfig, PhiForCausalLM, PreTrainedTokenizerFast

NEVER = -1e4
"""A logit's bias: at any temperature that a request may ask for, the token has no chance."""


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a character, and one that is a mask."""
    made = characters()
    made.add_special_tokens({"mask_token": "<mask>"})
    return made


def masked(words: PreTrainedTokenizerFast) -> ModernBertForMaskedLM:
    """Two layers of a bidirectional model."""
    config = ModernBertConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=8192,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
        cls_token_id=2,
        sep_token_id=1,
        initializer_range=0.3,
    )
    config.mask_token_id = words.mask_token_id
    made = ModernBertForMaskedLM(config)
    made.decoder.bias.data[silent(words, len(words))] = NEVER
    return made


def causal(words: PreTrainedTokenizerFast) -> PhiForCausalLM:
    """Two layers of a causal model."""
    made = PhiForCausalLM(
        PhiConfig(
            vocab_size=len(words),
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=8192,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=2,
            initializer_range=0.3,
        )
    )
    made.lm_head.bias.data[silent(words, len(words))] = NEVER
    return made


KINDS = {"masked": masked, "causal": causal}


def main(kind: str, folder: Path) -> None:
    """Write one model with its tokenizer."""
    torch.manual_seed(20261201)
    words = tokenizer()
    KINDS[kind](words).save_pretrained(folder)
    words.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
