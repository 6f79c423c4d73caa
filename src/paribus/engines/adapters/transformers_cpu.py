"""The same server on a CPU: another environment, so another engine build, that is compared only as such."""

from __future__ import annotations

from paribus.engines.adapters.transformers import Transformers

ENGINE = Transformers("transformers-cpu")
