"""The same server on Transformers 4, for models whose own code needs it (`envs/transformers-4/README.md`)."""

from __future__ import annotations

from paribus.engines.adapters.transformers import Transformers

ENGINE = Transformers("transformers-4")
