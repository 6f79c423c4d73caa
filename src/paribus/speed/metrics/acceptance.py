"""What an engine's counters say about its decoder."""

from __future__ import annotations

from collections.abc import Mapping

from paribus.speed.metrics.registry import metric
from paribus.speed.summary import Acceptance


@metric(
    "acceptance_length",
    title="Acceptance length, tokens a pass that drafted",
    unit="tokens",
    better="higher",
    across="no",
)
def acceptance(counters: Mapping[str, float]) -> Acceptance | None:
    """From the engine's own counters, after minus before the measured part.

    `acceptance_length` = 1 + accepted / passes that drafted. `tokens_per_pass` = tokens / (tokens - accepted), over
    all passes (at least those that drafted), those without a draft too; for diffusion committed tokens / forward
    passes, all counted.
    1 <= tokens_per_pass <= acceptance_length <= draft + 1. Null where an engine doesn't count.
    """
    if not counters:
        return None
    generated, accepted, drafts = (counters.get(n) for n in ("generated_tokens", "accepted_tokens", "drafts"))
    passes = counters.get("forward_passes") or counters.get("denoising_steps")
    committed = counters.get("committed_tokens")
    per_pass = None
    if committed and passes:
        per_pass = committed / passes
    elif generated and accepted is not None:
        # A cap cuts tokens off that an engine has counted as accepted: there were never fewer passes than drafts.
        passes = max(generated - accepted, drafts or 0.0)
        per_pass = generated / passes if passes > 0 else None
    return Acceptance(
        acceptance_length=1 + accepted / drafts if drafts and accepted is not None else None,
        tokens_per_pass=per_pass,
        counted_tokens=committed if generated is None else generated,
    )
