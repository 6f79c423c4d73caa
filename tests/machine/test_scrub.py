"""Scrubbing: nothing that identifies the owner survives, and ordinary text does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.machine import Owner, scrub, scrub_value

ADMIN = "/" + "root"
"""The administrator's home folder."""

OWNER = Owner(
    hosts=("gandalf.lan", "gandalf"),
    users=("frodo",),
    folders=(("/srv/people/frodo", "<home>"),),
    secrets=("correct-horse-battery",),
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("frodo at gandalf.lan", "<user> at <host>"),
        ("listening on 192.168.1.4:8080", "listening on <address>:8080"),
        ("listening on http://127.0.0.1:8080", "listening on http://127.0.0.1:8080"),
        ("from fe80::1%eth0 to 2001:db8::1", "from <address> to <address>"),
        ("eth0 aa:bb:cc:dd:ee:0f", "eth0 <address>"),
        ("loading /srv/people/frodo/m.gguf", "loading <home>/m.gguf"),
        ("loading /home/samwise/m.gguf", "loading <home>/m.gguf"),
        (f"loading /Users/sam/m.gguf and {ADMIN}/x", "loading <home>/m.gguf and <home>/x"),
        ("GPU-8d6f2c1e-1234-4abc-9def-0123456789ab", "<serial>"),
        ("Serial Number: 1650923004711", "Serial Number: <serial>"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer <key>"),
        ("hf_abcdefghijklmnopqrstuv and sk-proj-abcdefghijklmnop", "<key> and <key>"),
        ("key is correct-horse-battery.", "key is <key>."),
        ('{"api_key": "s3cretvalue"}', '{"api_key": "<key>"}'),
        ("clone https://frodo:pw123456@example.org/x", "clone https://<user>@example.org/x"),
        ("write to frodo.b@shire.example", "write to <mail>"),
    ],
)
def test_what_identifies_is_replaced(before, after):
    assert scrub(before, OWNER) == after


@pytest.mark.parametrize(
    "text",
    [
        "0.00.005.074 I srv init: loading model, n_ctx_slot = 4096",
        "prompt eval time = 76.07 ms / 32 tokens (2.38 ms per token, 420.68 tokens per second)",
        "the square root of 2 at 12:34:56 on 2026-12-01T10:00:00+00:00",
        "std::vector a::b, driver 570.124.06, llama.cpp build b11549",
        f"frodology isn't a name; {ADMIN}less isn't a home",
        "tokens: 128, token_count=12",
    ],
)
def test_ordinary_text_stays(text):
    assert scrub(text, OWNER) == text


def test_common_names_are_replaced_only_inside_paths():
    owner = Owner(hosts=("vm",), users=("root",))
    assert scrub(f"the root of the vm in {ADMIN}/x", owner) == "the root of the vm in <home>/x"


def test_the_repository_reads_as_a_dot(tmp_path):
    text = f"loading {tmp_path}/build/weights/m.gguf, not {tmp_path}-other/x"
    assert scrub(text, OWNER, root=tmp_path) == f"loading ./build/weights/m.gguf, not {tmp_path}-other/x"


def test_secrets_of_the_environment_are_known_and_never_shown():
    owner = Owner.here({"MY_API_KEY": "zzzz-yyyy-xxxx", "PATH": "/usr/bin", "HF_TOKEN": "short"})
    assert owner.secrets == ("zzzz-yyyy-xxxx",)
    assert "zzzz" not in repr(owner)
    assert scrub("zzzz-yyyy-xxxx", owner) == "<key>"


def test_values_are_scrubbed_throughout():
    value = {"a": ["on gandalf", 1, None, {"b": "by frodo"}], "n": 2.5, "flag": True}
    assert scrub_value(value, OWNER) == {"a": ["on <host>", 1, None, {"b": "by <user>"}], "n": 2.5, "flag": True}


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_name_address_or_secret_survives_any_surroundings(left, right):
    text = f"{left} gandalf.lan /srv/people/frodo/x 10.20.30.40 correct-horse-battery frodo {right}"
    cleaned = scrub(text, OWNER)
    assert "gandalf.lan " not in cleaned
    assert "/srv/people/frodo/" not in cleaned
    assert " 10.20.30.40 " not in cleaned
    assert "correct-horse-battery" not in cleaned


@given(st.text(max_size=200))
def test_scrubbing_twice_changes_nothing_more(text):
    once = scrub(text, OWNER)
    assert scrub(once, OWNER) == once
