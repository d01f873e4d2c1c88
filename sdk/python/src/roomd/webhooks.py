"""Verification of webhooks by Standard Webhooks 1.0.0."""

import base64
import hashlib
import hmac
import json
import math
import time
from collections.abc import Mapping

from ._generated.schemas import WebhookEvent
from .errors import RoomdError

_PREFIX = "whsec_"
_TOLERANCE_SECONDS = 300
_LEAST_KEY_BYTES = 16
"""Secrets of the service have 32. An empty key would accept signatures of any sender."""


class WebhookError(RoomdError):
    """The signature does not match the secret, or the request is too old."""


def verify_webhook(body: bytes | str, headers: Mapping[str, str], secret: str) -> WebhookEvent:
    """Verifies a request and returns its event. `body` must be the received bytes, unchanged.

    During the rotation of a secret both secrets are valid. The same `event_id` may arrive more than once. Raises
    WebhookError, or another RoomdError if the secret is malformed.
    """
    key = _key_of(secret)
    given = {name.lower(): value for name, value in headers.items()}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if not given.get(name):
            raise WebhookError(f"The request has no header {name}.")
    sent = _number(given["webhook-timestamp"])
    if not abs(time.time() - sent) <= _TOLERANCE_SECONDS:
        raise WebhookError("The request is too old, or this host's clock is wrong.")
    raw = body.encode() if isinstance(body, str) else bytes(body)
    text = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + raw
    signed = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest())
    told = (each.removeprefix("v1,") for each in given["webhook-signature"].split(" ") if each.startswith("v1,"))
    if not any([hmac.compare_digest(each.encode(), signed) for each in told]):
        raise WebhookError("The request was not signed with this secret.")
    return json.loads(raw)


def _key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        key = b""
    if len(key) < _LEAST_KEY_BYTES:
        raise RoomdError("Invalid webhook secret: expected whsec_ and base64, as returned when the webhook was created.")
    return key


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
