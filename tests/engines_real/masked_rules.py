"""The rules of masked diffusion's loop, checked in torch's environment: `masked_rules.py SERVER_FOLDER`."""

import sys

import torch

sys.path.insert(0, sys.argv[1])

from serving.families.masked_diffusion import choose, kept


def of(*values: float) -> torch.Tensor:
    return torch.tensor(values)


def flags(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bool)


# An even share of what is masked, the surest first: four masked in two steps are two now.
sure = of(0.9, 0.1, 0.8, 0.7, 0.2)
assert kept(sure, flags(0, 1, 1, 1, 1), 2, 0.0).tolist() == [False, False, True, True, False]
# Five in three steps: two, two, one. The last step keeps everything.
assert kept(sure, flags(1, 1, 1, 1, 1), 3, 0.0).sum() == 2
assert kept(sure, flags(0, 1, 0, 1, 1), 1, 0.0).tolist() == [False, True, False, True, True]
# With a threshold: everything at least as sure, and the surest one where nothing is.
assert kept(sure, flags(1, 1, 1, 1, 1), 5, 0.7).tolist() == [True, False, True, True, False]
assert kept(sure, flags(0, 1, 0, 0, 1), 5, 0.7).tolist() == [False, False, False, False, True]
assert kept(sure, flags(0, 1, 0, 0, 1), 1, 0.7).tolist() == [False, True, False, False, True]
# What is no mask any more is never touched, however sure the model is of it.
assert not kept(of(1.0, 0.0), flags(0, 1), 1, 0.5)[0]

generator = torch.Generator().manual_seed(1)
logits = torch.log(torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25]]))
tokens, how_sure = choose(logits, 0.0, "low_confidence", generator)
assert tokens.tolist() == [0, 0]
assert torch.allclose(how_sure, of(0.7, 0.4))
# Less entropy is surer; chance knows nothing.
_, by_entropy = choose(logits, 0.0, "entropy", generator)
assert by_entropy[0] > by_entropy[1]
assert choose(logits, 0.0, "random", generator)[1].tolist() != how_sure.tolist()
# Sampled tokens follow the distribution, and their sureness is their own probability at temperature 1.
many = logits[:1].repeat(4000, 1)
tokens, how_sure = choose(many, 1.0, "low_confidence", generator)
assert abs((tokens == 0).float().mean() - 0.7) < 0.05
assert torch.allclose(how_sure, torch.softmax(many, -1).gather(-1, tokens[:, None])[:, 0])
cold, _ = choose(many, 0.1, "low_confidence", generator)
assert (cold == 0).float().mean() > 0.99
print("holds")
