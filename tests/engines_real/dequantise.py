"""Write the weights of a GGUF file as a folder that vLLM reads: configuration, tokenizer, safetensors in bfloat16.

Usage: dequantise.py FILE.gguf FOLDER. What was lost when the file was quantised stays lost: the numbers are those of
the GGUF file, only stored wider.
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def main() -> None:
    """Read the file, write the folder."""
    file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)


if __name__ == "__main__":
    main()
