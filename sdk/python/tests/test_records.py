"""Records: dicts with typed attributes, with the fields of the OpenAPI document and a short repr."""

import copy
import json
import pickle
import typing
import unittest
from typing import Any

from roomd import Room, Sandbox, records
from roomd._generated import schemas
from roomd.record import REPR_CHARACTERS, Record

from .scripted import ScriptedService, ok

KINDS: list[type[Record]] = [each for each in vars(records).values() if isinstance(each, type) and each.__bases__[0] in
                             (Record, records.MessageReceipt)]
SCHEMAS = {
    "Delivery": schemas.MessageReceiptDeliveriesItem,
    "CheckpointSnapshot": schemas.CheckpointSnapshotsItem,
    "ForkProblem": schemas.ForkProblem,
}
MESSAGE: dict[str, Any] = {
    "message_id": "m1", "seq": 3, "source": "planner", "kind": "event", "payload": {"do": "it" * 500},
    "headers": {}, "later": 1,
}
PORT: dict[str, Any] = {
    "port": 80, "url": "http://127.0.0.1:8080/p/web-1/", "visibility": "private", "token": "secret-1",
    "listening": True, "traffic": {"connections": 2, "open_connections": 0},
}


class RecordTest(unittest.TestCase):
    def test_has_the_fields_of_the_document(self) -> None:
        self.assertGreater(len(KINDS), 8)
        for kind in KINDS:
            said = typing.get_type_hints(SCHEMAS.get(kind.__name__) or getattr(schemas, kind.__name__))
            has = {name: hint for each in reversed(kind.__mro__[:-2]) for name, hint in typing.get_type_hints(each).items()
                   if not name.startswith("_")}
            added = {"agent_id"} if kind is records.ForkProblem else set()
            self.assertEqual(set(has) - added, set(said) - {"details"}, kind.__name__)
            for name, hint in said.items():
                if name in has and "schemas" not in str(hint) and not hasattr(hint, "__required_keys__"):
                    self.assertEqual(has[name], hint, f"{kind.__name__}.{name}")

    def test_a_field_is_an_attribute_and_a_key(self) -> None:
        message = records.Message(MESSAGE)
        self.assertEqual((message.source, message["source"], message.payload), ("planner", "planner", MESSAGE["payload"]))
        self.assertEqual(message, MESSAGE)
        self.assertEqual(json.loads(json.dumps(message)), MESSAGE)
        self.assertEqual(message["later"], 1)
        self.assertIn("payload", dir(message))
        with self.assertRaisesRegex(AttributeError, r"\bMessage\b.*\bsender$"):
            message.sender  # type: ignore[attr-defined]
        with self.assertRaises(AttributeError):
            message.source = "other"

    def test_records_within_records_are_records(self) -> None:
        port = records.ExposedPort(PORT)
        self.assertEqual(port.traffic.connections, 2)
        self.assertEqual(PORT["traffic"], {"connections": 2, "open_connections": 0})
        for same in (copy.deepcopy(port), pickle.loads(pickle.dumps(port))):
            self.assertEqual((same, same.traffic.connections), (port, 2))
        sent = records.SentMessage({"deliveries": [{"agent_id": "a", "state": "queued"}], "reply": MESSAGE})
        assert sent.reply is not None
        self.assertEqual((sent.deliveries[0].state, sent.reply.seq), ("queued", 3))

    def test_is_printed_on_a_line_without_secrets(self) -> None:
        text = repr(records.Message(MESSAGE))
        self.assertRegex(text, r"^Message\(source='planner', kind='event', payload=.*\)$")
        self.assertLessEqual(len(text), REPR_CHARACTERS)
        lines = records.Message({**MESSAGE, "payload": "one\ntwo\n" * 100, "message_id": "m" * 200})
        self.assertLessEqual(len(repr(lines)), REPR_CHARACTERS)
        self.assertNotIn("\n", repr(lines))
        url = "http://127.0.0.1:8080/p/web-1/"
        self.assertEqual(
            repr(records.ExposedPort(PORT)), f"ExposedPort(port=80, url='{url}', visibility='private', listening=True)"
        )


class AnswersTest(ScriptedService):
    def test_calls_return_records(self) -> None:
        room, sandbox = Room(self.client, "a"), Sandbox(self.client, "a", "b")
        page = ok({"items": [MESSAGE], "next_after": 3})
        receipt = {"message_id": "m1", "state": "queued", "deliveries": []}
        self.replies = [page, ok(receipt), ok({"messages": [receipt]}), ok(PORT), ok(PORT)]
        message = room.agent("b").wait()
        assert message is not None
        self.assertEqual((type(message), message.source), (records.Message, "planner"))
        self.assertEqual(type(room.send("b", 1)), records.SentMessage)
        self.assertEqual([type(each) for each in room.send_many([])], [records.MessageReceipt])
        for options in ({}, {"wait": True}):
            self.assertEqual(sandbox.expose_port(80, **options).traffic.connections, 2)  # type: ignore[arg-type]
        taken = {"snapshot_id": "snap_1", "snapshots": [{"agent_id": "b", "snapshot_id": "snap_1"}]}
        arrived = {"state": "released", "generation": 1}
        self.replies = [ok(taken), ok(taken), ok(arrived)]
        self.assertEqual(sandbox.snapshot().snapshot_id, "snap_1")
        self.assertEqual(room.checkpoint().snapshots[0].agent_id, "b")
        self.assertEqual(room.agent("b").barrier("c").state, "released")

    def test_every_object_of_an_answer_has_its_fields_as_attributes(self) -> None:
        self.replies = [ok({"items": [{"agent_id": "b", "resources": {"vcpus": 2}}], "next_cursor": None})]
        found: Any = next(Room(self.client, "a").sandboxes())
        self.assertEqual((found.agent_id, found["agent_id"], found.resources.vcpus), ("b", "b", 2))
        self.assertEqual(json.loads(json.dumps(found)), {"agent_id": "b", "resources": {"vcpus": 2}})
        with self.assertRaisesRegex(AttributeError, r"\bagent$"):
            found.agent
