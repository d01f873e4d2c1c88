"""Owns what the tests run against: a daemon, a proxy that fails when it is told to, and what only their parent does."""

import json
import os
import urllib.request
from typing import Any

from roomd import Roomd

PROXY = os.environ.get("ROOMD_TEST_PROXY", "")
TLS_URL = os.environ.get("ROOMD_TEST_TLS_URL", "")
TLS_CERT = os.environ.get("ROOMD_TEST_TLS_CERT", "")


def shaken() -> Roomd:
    """By way of the proxy."""
    return Roomd(url=PROXY)


def happens(times: int, fault: str | dict[str, int] | None) -> None:
    """Lets this happen to the first so many requests that are asked for through the proxy."""
    _do("happens", {"times": times, "fault": fault})


def asked() -> list[dict[str, Any]]:
    """What the proxy was asked since."""
    return _do("asked")


def restart() -> None:
    """Kills the daemon, and starts it again."""
    _do("restart")


def url() -> str:
    """Where the daemon is now."""
    return _do("url")


def _do(deed: str, wanted: Any = None) -> Any:
    address = f"{os.environ['ROOMD_TEST_DOER']}/{deed}"
    with urllib.request.urlopen(address, json.dumps(wanted).encode(), timeout=60) as answer:
        return json.load(answer)
