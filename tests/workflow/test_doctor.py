"""What doctor says about each thing that a plan needs; what is lacking stops a run before anything is fetched."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
import yaml

from paribus.catalog import Catalog, Surroundings, resolve
from paribus.catalog.fit import fit
from paribus.catalog.hardware import FoundCard
from paribus.catalog.offline import HUB_OFFLINE, OFFLINE
from paribus.catalog.simulator import URL_VARIABLE
from paribus.cli import _needs
from paribus.cli._items import LocalItems
from paribus.cli._options import look_around
from paribus.cli._planning import announcement
from paribus.cli.doctor import examine, fitting_profiles, look_at, record
from paribus.machine.proof import found_card, prove

OURS = Path(__file__).resolve().parents[2]
CPU = {"card": "a CPU", "cpu": "a CPU", "card_count": 1, "cpu_count": 2, "memory_gb": 16.0}
A100 = {
    "card": "NVIDIA A100-SXM4-40GB", "card_count": 1, "pci_device_id": "20b0:10de", "cuda_cores": 6912,
    "card_memory_gb": 42.9, "driver": "580.95.05", "memory_gb": 500.0, "cpu": "a CPU", "cpu_count": 64,
}  # fmt: skip


@pytest.fixture
def catalog(small):
    return Catalog(small)


def states(findings):
    return {finding.subject: (finding.state, finding.text) for finding in findings}


def test_a_plan_that_needs_more_memory_than_the_card_has_is_stopped_first(small, around):
    profile = yaml.safe_load((small / "hardware/small/hardware.yaml").read_text())
    variant = {"title": "Big 80 GB", "pci_device_ids": ["20b0:10de"]}
    profile["card"] = {"kind": "nvidia", "title": "Big", "memory_gb": 600, "variants": [variant]}
    (small / "hardware/small/hardware.yaml").write_text(yaml.safe_dump(profile))
    plan = resolve(small, "small", {"systems": "giant--*,alpha--*"}, around)
    found = states(examine(Catalog(small), plan, A100))
    assert found["card"][0] == "good"
    assert found["memory"][0] == "lacks"
    assert "giant--" in found["memory"][1]
    assert "needs 500 GB and there are 43 GB" in found["memory"][1]


def test_a_plan_made_where_the_card_is_counts_with_that_variants_memory():
    card = Catalog(OURS).hardware("a100").card
    assert found_card(card, A100) == FoundCard(40)
    assert found_card(card, CPU) is None
    chip = {"card": "Apple M3 Max", "chip": "Apple M3 Max", "gpu_cores": 40, "memory_gb": 128.0}
    assert found_card(Catalog(OURS).hardware("m3-max").card, chip) == FoundCard(96)
    whole = Catalog(OURS).hardware("a100")
    assert whole.with_found(FoundCard(40)).card.memory_gb == 40
    assert whole.with_found(None) == whole


def test_any_card_is_planned_for_as_what_it_turned_out_to_be():
    ours = Catalog(OURS)
    profile = ours.hardware("any")
    able = (s for s in ours.systems.values() if fit(s, profile).can_run)
    system = next(s for s in able if s.use.needs.cards == ["apple"])
    assert found_card(profile.card, A100 | {"compute_capability": "8.0"}) == FoundCard(
        42.9, "nvidia", 8.0, A100["card"]
    )
    assert found_card(profile.card, CPU) == FoundCard(16.0, "cpu", title="a CPU")
    chip = {"card": "Apple M9", "chip": "Apple M9", "memory_gb": 64.0}
    assert found_card(profile.card, chip) == FoundCard(48, "apple", title="Apple M9")
    assert "NVIDIA A100-SXM4-40GB is nvidia" in fit(system, profile.with_found(found_card(profile.card, A100))).reason
    assert fit(system, profile.with_found(FoundCard(1000, "apple"))).can_run


def test_the_machine_is_described_and_the_profile_that_fits_is_named(plan_of):
    ours = Catalog(OURS)
    assert fitting_profiles(ours, A100) == ["a100"]
    assert fitting_profiles(ours, CPU) == []
    plan = plan_of()
    found = states(look_at(ours, plan, A100))
    assert found["profile"] == ("note", "this machine is what these profiles name: a100")
    assert "driver 580.95.05" in found["machine"][1]
    chosen = states(look_at(ours, plan.model_copy(update={"hardware": "a100"}), A100))
    assert chosen["profile"][0] == "good"


def test_the_proof_is_a_file_with_the_variant_and_everything_that_was_looked_at(plan_of, catalog):
    plan, card = plan_of(), Catalog(OURS).hardware("a100").card
    proof = prove("a100", card, A100)
    told = record(plan, A100, proof, examine(catalog, plan, A100, proof), None)
    assert told["variant"] == "A100 SXM 40 GB"
    assert told["machine"]["card_variant"] == "A100 SXM 40 GB"
    assert {finding["subject"] for finding in told["findings"]} >= {"card", "disk", "sandbox", "systems"}


def test_a_card_without_its_driver_is_told_from_no_card(tmp_path, monkeypatch):
    h100 = Catalog(OURS).hardware("h100").card
    monkeypatch.setattr(_needs, "nvidia_devices", lambda: [])
    assert _needs.driver(h100, CPU)[0].state == "note"
    monkeypatch.undo()
    device = tmp_path / "0000:01:00.0"
    device.mkdir()
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030200\n")
    other = tmp_path / "0000:02:00.0"
    other.mkdir()
    (other / "vendor").write_text("0x8086\n")
    (other / "class").write_text("0x030000\n")
    assert _needs.nvidia_devices(tmp_path) == ["0000:01:00.0"]
    monkeypatch.setattr(_needs, "nvidia_devices", lambda: ["0000:01:00.0"])
    [finding] = _needs.driver(h100, CPU)
    assert (finding.state, "install NVIDIA's driver" in finding.text) == ("lacks", True)
    assert _needs.driver(Catalog(OURS).hardware("cpu").card, CPU) == []


class Web(BaseHTTPRequestHandler):
    """Answers every request with 401, as a server that wants a key."""

    def do_HEAD(self):
        self.send_response(401)
        self.end_headers()

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture
def web():
    server = HTTPServer(("127.0.0.1", 0), Web)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def from_hub(small, plan_of, monkeypatch):
    """The small catalog with its weights on the hub, and a hub's client that is played."""
    path = small / "systems/alpha.yaml"
    model = yaml.safe_load(path.read_text())
    weights = {"source": "hub", "repository": "maker/alpha", "revision": "1" * 40, "bytes": 1}
    model["precisions"]["q8"]["weights"] = weights
    path.write_text(yaml.safe_dump(model))
    client = SimpleNamespace(
        get_token=lambda: "hf_secret_value", constants=SimpleNamespace(ENDPOINT="http://127.0.0.1:9")
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    for name in (OFFLINE, HUB_OFFLINE):
        monkeypatch.delenv(name, raising=False)
    return client


def test_the_hub_is_asked_only_when_weights_are_to_come_from_it(plan_of, catalog, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert _needs.hub(catalog, plan_of()) == []


def test_hub_and_token_are_looked_at_and_the_token_is_never_told(from_hub, plan_of, small, web, monkeypatch):
    plan = plan_of()
    unreachable = states(_needs.hub(Catalog(small), plan))
    assert unreachable["hub"][0] == "lacks"
    assert "can't be reached" in unreachable["hub"][1]
    from_hub.constants.ENDPOINT = web
    found = states(_needs.hub(Catalog(small), plan))
    assert (found["hub"][0], found["hub token"]) == ("good", ("good", "a token is there"))
    assert "hf_secret_value" not in str(found)
    from_hub.get_token = lambda: None
    assert states(_needs.hub(Catalog(small), plan))["hub token"][0] == "note"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    forbidden = states(_needs.hub(Catalog(small), plan))["hub"]
    assert forbidden[0] == "lacks"
    assert "HF_HUB_OFFLINE forbids it" in forbidden[1]
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "client isn't here" in states(_needs.hub(Catalog(small), plan))["hub"][1]


def test_a_scripted_user_is_no_server_that_does_not_answer(plan_of, catalog, monkeypatch):
    monkeypatch.setenv(URL_VARIABLE, "scripted")
    [finding] = _needs.user_simulator(catalog, plan_of())
    assert (finding.state, "never ranked" in finding.text) == ("note", True)


def test_the_memory_that_a_plan_counts_with_is_the_containers_in_gigabytes(catalog, monkeypatch):
    """Systems tell their needs in 10^9 bytes; 2^30 made a machine look 7% smaller, and a container its whole host."""
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=16_000_000_000))
    assert Surroundings.observe(catalog, "m-test").memory_gb == 16
    monkeypatch.setattr("paribus.cli._options.memory_gb", lambda: 7.5)
    assert look_around(catalog.root, catalog, "small", LocalItems(catalog)).memory_gb == 7.5


def test_the_user_simulator_is_looked_for_and_its_address_is_not_told(plan_of, catalog, web, monkeypatch):
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    [finding] = _needs.user_simulator(catalog, plan_of())
    assert (finding.state, URL_VARIABLE in finding.text) == ("note", True)
    monkeypatch.setenv(URL_VARIABLE, web)
    [finding] = _needs.user_simulator(catalog, plan_of())
    assert (finding.state, web in finding.text) == ("good", False)
    monkeypatch.setenv(URL_VARIABLE, "file:///etc/passwd")
    [finding] = _needs.user_simulator(catalog, plan_of())
    assert finding.state == "note"


def test_nothing_that_can_run_is_lacking_and_each_reason_is_given(plan_of):
    found = _needs.systems(plan_of(systems="giant--*"))
    assert [finding.state for finding in found[:2]] == ["lacks", "note"]
    assert any(f.text.startswith("giant--") and "it needs 500 GB" in f.text for f in found[1:])
    assert _needs.systems(plan_of())[0].state == "good"


def test_a_plan_bounds_its_energy_from_above_where_the_cards_limit_is_known(small, around):
    assert resolve(small, "small", {}, around).totals.energy_kwh is None
    assert "kWh" not in announcement(resolve(small, "small", {}, around))
    profile = yaml.safe_load((small / "hardware/small/hardware.yaml").read_text())
    variant = {"title": "A 80 GB", "power_limit_w": 400}
    profile["card"] = {"kind": "nvidia", "title": "A", "count": 2, "variants": [variant]}
    (small / "hardware/small/hardware.yaml").write_text(yaml.safe_dump(profile))
    plan = resolve(small, "small", {}, around)
    assert plan.totals.energy_kwh == pytest.approx(plan.totals.hours * 0.8)
    assert "800 W; an upper bound, not a measurement" in announcement(plan)


def test_keys_of_hosted_systems_are_looked_for_and_never_told(small, around, monkeypatch):
    path = small / "systems/alpha.yaml"
    model = yaml.safe_load(path.read_text())
    model["precisions"]["q8"]["weights"] = {"source": "hosted", "repository": "maker"}
    hosted = {
        "url": "https://example.org/v1",
        "model": "alpha",
        "api_key_env": "PARIBUS_EXAMPLE_ORG_API_KEY",
        "source": "a test",
    }
    for use in model["engines"].values():
        use["hosted"] = hosted
    path.write_text(yaml.safe_dump(model))
    profile = yaml.safe_load((small / "hardware/small/hardware.yaml").read_text())
    profile["card"] = {"kind": "hosted", "title": "somebody else's"}
    (small / "hardware/small/hardware.yaml").write_text(yaml.safe_dump(profile))
    plan = resolve(small, "small", {"quality": False}, around)
    monkeypatch.delenv("PARIBUS_EXAMPLE_ORG_API_KEY", raising=False)
    [finding] = _needs.keys(Catalog(small), plan)
    assert (finding.state, "PARIBUS_EXAMPLE_ORG_API_KEY" in finding.text) == ("lacks", True)
    monkeypatch.setenv("PARIBUS_EXAMPLE_ORG_API_KEY", "sk-a-secret-value")
    [finding] = _needs.keys(Catalog(small), plan)
    assert (finding.state, "secret" in finding.text) == ("good", False)
