"""Verification of webhooks: signed events are returned, all other requests are rejected."""

import base64
import hashlib
import hmac
import json
import time
import unittest
import unittest.mock

from roomd import RoomdError, WebhookError, verify_webhook

KEY, OTHER = bytes([7]) * 32, bytes([8]) * 32
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
BODY = json.dumps({"type": "room.created", "timestamp": "2026-01-31T12:00:00.000Z", "data": {"text": "ü"}}).encode()


def sent(key: bytes, at: float | None = None) -> dict[str, str]:
    timestamp = str(int(time.time() if at is None else at))
    signed = hmac.new(key, f"evt_1.{timestamp}.".encode() + BODY, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(signed).decode()}"
    return {"Webhook-Id": "evt_1", "webhook-timestamp": timestamp, "webhook-signature": signature}


class WebhookTest(unittest.TestCase):
    def test_a_signed_event_is_returned(self) -> None:
        self.assertEqual(verify_webhook(BODY, sent(KEY), SECRET)["type"], "room.created")
        self.assertEqual(verify_webhook(BODY.decode(), sent(KEY), SECRET)["type"], "room.created")

    def test_one_of_two_signatures_suffices_during_a_rotation(self) -> None:
        both = f"{sent(OTHER)['webhook-signature']} {sent(KEY)['webhook-signature']} v2,x"
        self.assertEqual(verify_webhook(BODY, {**sent(KEY), "webhook-signature": both}, SECRET)["type"], "room.created")

    def test_a_known_signature_of_the_standard_is_accepted(self) -> None:
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        headers = {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        }
        with unittest.mock.patch("time.time", lambda: 1614265330.0):
            self.assertEqual(verify_webhook('{"test": 2432232314}', headers, secret), {"test": 2432232314})

    def test_all_other_requests_are_rejected(self) -> None:
        for body, headers in [
            (BODY, sent(OTHER)),
            (BODY.replace(b"room", b"Room"), sent(KEY)),
            (BODY, {**sent(KEY), "Webhook-Id": "evt_2"}),
            (BODY, sent(KEY, time.time() - 301)),
            (BODY, {**sent(KEY), "webhook-timestamp": "soon"}),
            (BODY, {**sent(KEY), "webhook-signature": ""}),
            (BODY, {**sent(KEY), "webhook-signature": "v1,AAAA"}),
        ]:
            with self.assertRaises(WebhookError):
                verify_webhook(body, headers, SECRET)

    def test_an_invalid_secret_is_rejected_for_any_signature(self) -> None:
        short = KEY[:15]
        none = [(text, b"") for text in ("", "whsec_", "!!!", "whsec_!!!", "whsec_abc", "whsec_schlüssel")]
        for secret, key in [*none, (base64.b64encode(short).decode(), short), (f"{SECRET}!", KEY)]:
            with self.assertRaises(RoomdError) as refused:
                verify_webhook(BODY, sent(key), secret)
            self.assertNotIsInstance(refused.exception, WebhookError)
