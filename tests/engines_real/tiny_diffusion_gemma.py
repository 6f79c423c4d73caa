"""Makes a tiny DiffusionGemma with random weights, in torch's environment: `tiny_diffusion_gemma.py FOLDER`.

What it writes is noise, from a fixed seed: it shows that a server's diffusion path works, never how fast or good a
model is. One token is one printable ASCII character, so that every answer is whole text; heads have the sizes that
vLLM's attention on CPUs knows. It writes visible characters only, and never ends by itself: every answer is as long as
its cap, whatever noise a canvas begins with.
"""

import sys
from pathlib import Path

import torch
from tiny_characters import silent, tokenizer
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, DiffusionGemmaTextConfig
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

CANVAS = 32


def never_writes(made: DiffusionGemmaForBlockDiffusion, tokens: list[int]) -> None:
    """Keep a model from ever writing some tokens: each gets the mean of the other tokens' rows of the embedding.

    That is the output head too (they are tied, and it has no bias), so that such a token's logit is the mean of the
    others' logits. What is committed is the likeliest token of each position, and a mean is never the largest.
    """
    rows = made.get_input_embeddings().weight.data
    written = torch.ones(len(rows), dtype=torch.bool)
    written[tokens] = False
    rows[tokens] = rows[written].mean(dim=0)


def check(made: DiffusionGemmaForBlockDiffusion, tokens: list[int]) -> None:
    """What was built holds: 128 canvases, of 64 prompts, have none of the tokens. Raises `SystemExit`."""
    visible = sorted(set(range(made.config.text_config.vocab_size)) - set(tokens))
    prompts = torch.tensor(visible)[torch.randint(len(visible), (64, 24))]
    answers = made.generate(prompts, max_new_tokens=2 * CANVAS, max_denoising_steps=4).sequences[:, 24:]
    if answers.shape != (64, 2 * CANVAS) or torch.isin(answers, torch.tensor(tokens)).any():
        raise SystemExit("the tiny model ended an answer by itself, or wrote what it must not write")


def model(vocabulary: int) -> DiffusionGemmaForBlockDiffusion:
    """Two layers and a canvas of 32, with the checkpoint's own settings of its sampler."""
    text = DiffusionGemmaTextConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        global_head_dim=64,
        num_global_key_value_heads=1,
        sliding_window=512,
        max_position_embeddings=4096,
        num_experts=4,
        top_k_experts=2,
        moe_intermediate_size=64,
        layer_types=["sliding_attention", "full_attention"],
    )
    vision = {
        "model_type": "gemma4_vision",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "default_output_length": 16,
        "head_dim": 32,
    }
    config = DiffusionGemmaConfig(
        text_config=text, vision_config=vision, canvas_length=CANVAS, image_token_id=3, boi_token_id=3, eoi_token_id=3
    )
    made = DiffusionGemmaForBlockDiffusion(config)
    made.generation_config = DiffusionGemmaGenerationConfig(
        max_new_tokens=256,
        max_denoising_steps=8,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=0.1),
        t_min=0.4,
        t_max=0.8,
        stability_threshold=1,
        confidence_threshold=0.005,
        eos_token_id=1,
        pad_token_id=0,
        bos_token_id=2,
    )
    return made


def main(folder: Path) -> None:
    """Write the model with its tokenizer."""
    torch.manual_seed(20261201)
    words = tokenizer()
    vocabulary = -(-len(words) // 64) * 64
    made = model(vocabulary).eval()
    never_writes(made, silent(words, vocabulary))
    check(made, silent(words, vocabulary))
    made.save_pretrained(folder)
    words.save_pretrained(folder)
    print(sum(parameter.numel() for parameter in made.parameters()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
