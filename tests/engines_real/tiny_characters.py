"""The tokenizer of the tiny models: one token a character. Works with every Transformers from 4.57 on."""

import string

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<turn>", "<think>"]
TEMPLATE = (
    "{% for m in messages %}<turn>{{ m.role }}\n{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<turn>model\n{% if enable_thinking is defined and enable_thinking %}<think>"
    "{% endif %}{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a character; what isn't ASCII is unknown."""
    characters = [*SPECIAL, *string.digits, *string.ascii_letters, *string.punctuation, " ", "\n"]
    inner = Tokenizer(models.WordLevel({token: i for i, token in enumerate(characters)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    inner.decoder = decoders.Fuse()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", bos_token="<bos>", unk_token="<unk>"
    )
    made.add_special_tokens({"additional_special_tokens": ["<turn>", "<think>"]})
    made.chat_template = TEMPLATE
    return made


def silent(words: PreTrainedTokenizerFast, vocabulary: int) -> list[int]:
    """Tokens that a tiny model must not write: special ones (the end is one), white space, and ids without a token.

    `vocabulary`: rows of its embedding, which may be more than there are tokens.
    """
    special = set(words.all_special_ids)
    return [i for i in range(vocabulary) if i in special or i >= len(words) or words.convert_ids_to_tokens(i).isspace()]
