"""Which key goes to which server: a file can't send one host's key, or any other secret, to another host.

A file of a catalog may come from anybody, and it names both an address and the environment variable of its key.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

KNOWN = {
    "api.inceptionlabs.ai": "INCEPTION_API_KEY",
    "integrate.api.nvidia.com": "NVIDIA_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Services by their host, with the variable that their own documentation names for the key."""
_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]")
"""A name with a top-level domain, in small letters: no number in any notation, no bare name of a local network."""
_INSIDE = ("internal", "local", "localhost", "localdomain", "lan", "intranet", "corp", "home", "home.arpa")
"""Ends of names that mean something else on each network."""


def key_name(host: str) -> str:
    """The variable that holds the key of a public host: a known service's own, else made of the host's whole name.

    `api.my-lab.org` has `PARIBUS_API_MY__LAB_ORG_API_KEY`; a hyphen is two underscores, so that no two hosts share one.
    """
    made = host.upper().replace("-", "__").replace(".", "_")
    return KNOWN.get(host, f"PARIBUS_{made}_API_KEY")


def own_key_name(url_env: str) -> str | None:
    """The variable of the key that goes to the address in `NAME_URL`: `NAME_API_KEY`; None for another name."""
    return f"{url_env.removesuffix('_URL')}_API_KEY" if len(url_env) > 4 and url_env.endswith("_URL") else None


def public_fault(url: str, key: str | None) -> str | None:
    """What is wrong with a public address (`https://.../v1`) and its key's variable, in words; None: nothing is."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"{url} is no address"
    if port == 0 or any(c.isspace() for c in url):
        return f"{url} is no address"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return f"{url}: an address has a host and a path, and neither user, question nor fragment"
    if not _DOMAIN.fullmatch(host) or host.endswith(tuple(f".{end}" for end in _INSIDE)):
        return f"{host or url} is no public host: a server of one's own has its address in the environment (url_env)"
    if key is None:
        return f"hosted at a public address needs api_key_env: {key_name(host)}"
    if key != key_name(host):
        return f"{key} is not the key of {host}: what is sent there is {key_name(host)}"
    if parts.scheme != "https":
        return f"{url}: a key is sent to a public address that begins with https://, never where it could be read"
    return None


def own_fault(url_env: str, key: str | None) -> str | None:
    """What is wrong with the variables of an address and a key of one's own, in words; None: nothing is."""
    wanted = own_key_name(url_env)
    if wanted is None:
        return f"url_env must end with _URL, as MY_SERVER_URL does, not {url_env}"
    return None if key in (None, wanted) else f"{key} is not the key that belongs to {url_env}: that is {wanted}"
