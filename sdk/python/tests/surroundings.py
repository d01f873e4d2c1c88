"""Environment of the tests: a daemon, a proxy with faults on request, and actions that only the parent process can do."""

import json
import os
import urllib.request
from typing import Any

from roomd import Roomd

PROXY = os.environ.get("ROOMD_TEST_PROXY", "")
TLS_URL = os.environ.get("ROOMD_TEST_TLS_URL", "")
TLS_CERT = os.environ.get("ROOMD_TEST_TLS_CERT", "")


def shaken() -> Roomd:
    """A service behind the proxy."""
    return Roomd(url=PROXY)


def happens(times: int, fault: str | dict[str, int] | None) -> None:
    """Makes this fault happen to the next `times` requests through the proxy."""
    _do("happens", {"times": times, "fault": fault})


def asked() -> list[dict[str, Any]]:
    """The requests to the proxy since the last `happens`."""
    return _do("asked")


def restart() -> None:
    """Kills the daemon, and starts it again."""
    _do("restart")


def url() -> str:
    """Current URL of the daemon."""
    return _do("url")


def _do(deed: str, wanted: Any = None) -> Any:
    address = f"{os.environ['ROOMD_TEST_DOER']}/{deed}"
    with urllib.request.urlopen(address, json.dumps(wanted).encode(), timeout=60) as answer:
        return json.load(answer)
