"""Conditions: every fact that could change a number. One table: how it is known, what it gates, how it reads.

A condition is *declared* (known before: from the catalog, the tasks, the configuration) or *observed* (read from the
machine or the running engine). `gates` says what a difference does to a comparison (PROTOCOL section 5):

- `always`: two runs that differ in it are never compared;
- `subject`: compared only when it is declared the subject, and then named in the sentence;
- `shown`: printed, never gating;
- `limit`: may differ, but a side below requests at once - 1 is compared with nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

How = Literal["declared", "observed"]
Gate = Literal["always", "subject", "shown", "limit"]
Strip = Literal[
    "card", "model", "engine", "decoder", "requests", "answers", "prompts", "sampling", "date", "trials", "flags", ""
]


@dataclass(frozen=True)
class Condition:
    """One condition: its name (a key of a manifest), unit, gate, and the words in the conditions strip."""

    name: str
    how: How
    gates: Gate
    strip: Strip
    label: str
    unit: str = ""

    def reads(self, value: Any) -> str:
        """How the value reads in a sentence; an unknown value says so."""
        if value is None:
            return f"{self.label}: not disclosed"
        if isinstance(value, bool):
            return f"{self.label} {'on' if value else 'off'}"
        text = f"{value:,}" if isinstance(value, int) else str(value)
        return f"{self.label} {text}{' ' + self.unit if self.unit else ''}".strip()


def _table(*conditions: Condition) -> dict[str, Condition]:
    return {condition.name: condition for condition in conditions}


CONDITIONS = _table(
    # What was run: declared by the catalog.
    Condition("edition", "declared", "always", "", "edition"),
    Condition("protocol", "declared", "always", "", "protocol version"),
    Condition("hardware", "declared", "always", "card", "hardware profile"),
    Condition("model", "declared", "subject", "model", "model"),
    Condition("weights", "declared", "subject", "model", "weights"),
    Condition("precision", "declared", "always", "model", "precision"),
    Condition("thinking", "declared", "always", "model", "thinking"),
    Condition("kind", "declared", "subject", "model", "kind of model"),
    Condition("engine", "declared", "subject", "engine", "engine"),
    Condition("engine_build", "declared", "subject", "engine", "engine build"),
    Condition("decoder", "declared", "subject", "decoder", "decoder"),
    Condition("decoder_parameters", "declared", "subject", "decoder", "decoder parameters"),
    Condition("acceptance_method", "declared", "always", "decoder", "acceptance method"),
    Condition("lossy", "declared", "subject", "decoder", "denoising and other lossy settings"),
    Condition("launch", "declared", "subject", "", "launch settings"),
    Condition("prefix_caching", "declared", "subject", "", "prefix caching"),
    Condition("track", "declared", "always", "", "track"),
    Condition("drafter", "declared", "subject", "", "drafter"),
    Condition("effort", "declared", "always", "", "effort level"),
    Condition("trust_remote_code", "declared", "shown", "", "code of the model's repository runs"),
    Condition("weights_artifact", "declared", "subject", "", "download of the weights"),
    Condition("number_types", "declared", "shown", "", "types of numbers that its file says"),
    Condition("model_sampling", "declared", "shown", "", "sampling that the model's card says"),
    Condition("lossy_drafter", "declared", "subject", "", "drafter with which the answers differ"),
    Condition("hosted", "declared", "subject", "", "service and the model's name there"),
    Condition("scenario", "declared", "always", "requests", "scenario"),
    Condition("requests_at_once", "declared", "always", "requests", "requests at once"),
    Condition("cap", "declared", "always", "answers", "answers up to", "tokens"),
    Condition("prompts", "declared", "always", "prompts", "prompt set"),
    Condition("prompts_hash", "declared", "always", "prompts", "prompts"),
    Condition("sampling_profile", "declared", "always", "sampling", "sampling"),
    Condition("sampling", "declared", "shown", "sampling", "sampling values"),
    Condition("scale", "declared", "always", "trials", "scale"),
    Condition("starts", "declared", "shown", "trials", "starts"),
    Condition("window", "declared", "always", "trials", "steady window of at least", "s"),
    Condition("task", "declared", "always", "prompts", "task"),
    Condition("repeats", "declared", "always", "trials", "repeats"),
    Condition("items_hash", "declared", "always", "prompts", "items"),
    Condition("scorer", "declared", "always", "", "scorer"),
    Condition("user_simulator", "declared", "always", "", "user simulator"),
    # What was found: observed on the machine and the running engine.
    Condition("card", "observed", "always", "card", "card"),
    Condition("card_variant", "observed", "always", "card", "card variant"),
    Condition("card_count", "observed", "always", "card", "cards"),
    Condition("power_limit_w", "observed", "always", "card", "power limit", "W"),
    Condition("clock_state", "observed", "always", "card", "clocks"),
    Condition("cpu", "observed", "subject", "card", "CPU"),
    Condition("cpu_count", "observed", "subject", "card", "CPU cores"),
    Condition("memory_gb", "observed", "subject", "card", "memory", "GB"),
    Condition("driver", "observed", "subject", "engine", "driver"),
    Condition("os", "observed", "shown", "", "operating system"),
    Condition("kernel", "observed", "shown", "", "kernel"),
    Condition("python", "observed", "shown", "", "Python"),
    Condition("cpu_flags", "observed", "shown", "", "CPU instructions"),
    Condition("container", "observed", "shown", "", "container"),
    Condition("pci_device_id", "observed", "shown", "", "PCI device"),
    Condition("pcie", "observed", "shown", "", "PCIe"),
    Condition("card_memory_gb", "observed", "shown", "", "card memory", "GB"),
    Condition("power_default_w", "observed", "shown", "", "default power limit", "W"),
    Condition("cuda_cores", "observed", "shown", "", "CUDA cores"),
    Condition("gpu_cores", "observed", "shown", "", "GPU cores"),
    Condition("compute_capability", "observed", "shown", "", "compute capability"),
    Condition("ecc", "observed", "shown", "", "ECC"),
    Condition("mig", "observed", "shown", "", "MIG"),
    Condition("virtualization", "observed", "shown", "", "virtualization"),
    Condition("persistence", "observed", "shown", "", "persistence mode"),
    Condition("engine_version", "observed", "subject", "engine", "engine version"),
    Condition("attention_backend", "observed", "subject", "engine", "attention backend"),
    Condition("kv_cache", "observed", "subject", "engine", "cache of keys and values in"),
    Condition("quantization", "observed", "subject", "engine", "quantisation"),
    Condition("dtype", "observed", "subject", "engine", "computed in"),
    Condition("state_cache", "observed", "subject", "engine", "state of recurrent layers in"),
    Condition("kernels", "observed", "subject", "engine", "kernels of quantised weights"),
    Condition("local_variables", "observed", "shown", "", "variables of this machine that the engine was given"),
    Condition("weights_revision", "observed", "subject", "model", "revision of the weights that was fetched"),
    Condition("weights_sha256", "observed", "shown", "", "hash of the weights that were fetched"),
    Condition("effective_settings", "observed", "shown", "", "settings that the server tells"),
    Condition("model_runner", "observed", "shown", "", "the engine's model runner"),
    Condition("kv_cache_tokens", "observed", "shown", "", "cache of keys and values", "tokens"),
    Condition("weights_gb", "observed", "shown", "", "memory of the weights", "GB"),
    Condition("speculation", "observed", "shown", "", "speculation that the server tells"),
    Condition("server_memory_gb", "observed", "shown", "", "memory that the server tells", "GB"),
    Condition("settings_differ", "observed", "shown", "", "settings that read back differently"),
    Condition("sampling_defaults", "observed", "always", "sampling", "the server's own sampling"),
    Condition("context_per_slot", "observed", "shown", "", "context of a request", "tokens"),
    Condition("weights_format", "observed", "shown", "", "format of the weights"),
    Condition("rendered_prompt", "observed", "shown", "", "a prompt as the template renders it"),
    Condition("thinking_switch", "observed", "shown", "", "the switch for thinking"),
    Condition("research_implementation", "observed", "always", "", "research implementation"),
    Condition("not_started", "observed", "shown", "", "why its server did not start"),
    Condition("died", "observed", "shown", "", "why its server died while it was measured"),
    Condition("load_s", "observed", "shown", "", "loading", "s"),
    Condition("compile_s", "observed", "shown", "", "compiling and capturing while loading", "s"),
    Condition("compiled_in_window", "observed", "shown", "", "compiled while it was measured"),
    Condition("engine_memory_gb", "observed", "shown", "", "peak memory of the engine's processes", "GB"),
    Condition("admitted", "observed", "limit", "requests", "requests admitted"),
    Condition("drafting_seen", "observed", "shown", "", "drafting seen in the engine's counters"),
    Condition("items_source", "observed", "shown", "", "items from"),
    Condition("cached_tokens", "observed", "always", "", "cached prompt tokens"),
    Condition("streaming_interval", "observed", "always", "", "tokens a streamed piece"),
    Condition("sampling_accepted", "observed", "always", "sampling", "sampling fields sent"),
    Condition("tokens_method", "observed", "shown", "", "tokens counted by"),
    Condition("sampler_fingerprint", "observed", "always", "", "sampler fingerprint"),
    Condition("sampler_readings", "observed", "shown", "", "denoising passes and first token of each canvas read"),
    Condition("sampler_note", "observed", "shown", "", "what its fingerprint says of the sampler"),
    Condition("tool_form", "observed", "always", "", "tools given to the model"),
    Condition("harness", "observed", "always", "", "build of the harness"),
    Condition("user_simulator_on", "observed", "shown", "", "user simulator on"),
    Condition("left_out_domains", "observed", "always", "prompts", "without the domains"),
    Condition("energy_scope", "observed", "always", "", "energy scope"),
    Condition("started_at", "observed", "shown", "date", "measured"),
    Condition("contributor", "observed", "shown", "", "contributor"),
    Condition("temperature_c", "observed", "shown", "", "temperature", "C"),
)


def differences(left: dict[str, Any], right: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Names of registered conditions in which two sets differ, with both values. Unknown names are ignored."""
    return {name: (left.get(name), right.get(name)) for name in CONDITIONS if left.get(name) != right.get(name)}
