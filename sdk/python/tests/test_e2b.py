"""The drop-in for E2B's SDK: its calls and its errors, against a scripted service."""

import asyncio
import unittest
from typing import Any

from roomd.compat import e2b

from .scripted import ScriptedService, lines, ok, out, problem

RECORD: dict[str, Any] = {
    "room_id": "a", "sandbox_id": "sbx_1", "agent_id": "main", "state": "running", "status": {"message": ""},
    "template_id": "default", "labels": {"team": "a"}, "created_at": "2026-11-29T10:00:00.000Z", "expires_at": None,
    "vcpu_count": 2, "memory_mib": 512,
}
HIBERNATED = {**RECORD, "state": "hibernated"}
FILE = {"path": "/home/user/x", "name": "x", "type": "file", "size_bytes": 3, "mode": "0640", "uid": 1, "gid": 2,
        "modified_at": "2026-11-29T10:00:00.000Z"}
OWN_ROOM = ok({"labels": {"roomd-sdk/own": "true"}})


def ended(code: int | None = 0, **more: Any) -> Any:
    return ok({"exit_code": code, "signal": None, "timed_out": False, "pid": 7, "state": "exited", **more})


def exits() -> dict[str, Any]:
    return {"seq": 9, "type": "exit", "exit_code": 0, "signal": None, "timed_out": False, "duration_ms": 1}


class E2bTest(ScriptedService):
    def setUp(self) -> None:
        super().setUp()
        self.to: Any = {"api_url": self.client.url, "api_key": "key-1"}

    def create(self, *args: Any, **options: Any) -> e2b.Sandbox:
        self.replies = [ok({"room_id": "a"}), ok(RECORD), ok({})]
        made = e2b.Sandbox.create(*args, **options, **self.to)
        self.addCleanup(made._close)
        return made

    def test_create_translates_its_options(self) -> None:
        made = self.create("py", timeout=90, metadata={"team": "a"}, envs={"X": "1"}, allow_internet_access=False)
        self.assertEqual(made.sandbox_id, "sbx_1")
        _, sandbox, home = self.sent()
        self.assertEqual(home["path"], "/home/user")
        wanted = {"template_id": "py", "max_duration_seconds": 90, "labels": {"team": "a"}, "env": {"X": "1"}}
        self.assertEqual({name: sandbox[name] for name in wanted}, wanted)
        self.assertEqual(sandbox["egress_allowlist"], [])
        self.asked.clear()
        self.create(network={"allow_out": ["a.example:443"]}, lifecycle={"on_timeout": "pause"})
        self.assertEqual(self.sent()[1]["egress_allowlist"], ["a.example:443"])
        self.assertEqual(self.sent()[1]["lifecycle"], {"idle_after_seconds": 300, "on_idle": "hibernate"})

    def test_a_command_returns_a_result_or_raises_for_its_exit_code(self) -> None:
        made = self.create()
        self.asked.clear()
        heard: list[str] = []
        streamed = [out(1, "w7w="), {**out(2, "IQ=="), "type": "stderr"}, out(3, "Cg=="), exits()]
        self.replies = [ok({}), ended(None), lines(*streamed), ended()]
        done = made.commands.run("true", envs={"A": "1"}, user="user", timeout=5, on_stdout=heard.append)
        self.assertEqual(done, e2b.CommandResult(stderr="!", stdout="ü\n", exit_code=0))
        self.assertEqual("".join(heard), "ü\n")
        start = self.sent()[0]
        self.assertEqual((start["cwd"], start["timeout_ms"], start["env"]), ("/home/user", 5000, {"A": "1"}))
        self.assertNotIn("user", start)
        for end, code in ((ended(3), 3), (ended(None, signal="SIGKILL"), 137)):
            self.replies = [ok({}), ended(None), lines(out(1, "eA=="), exits()), end]
            with self.assertRaises(e2b.CommandExitException) as raised:
                made.commands.run("false")
            self.assertEqual((raised.exception.exit_code, raised.exception.stdout), (code, "x"))
        self.replies = [ok({}), ended(None), lines(exits()), ended(None, timed_out=True)]
        with self.assertRaises(e2b.TimeoutException):
            made.commands.run("sleep 9")

    def test_errors_have_the_names_of_e2b(self) -> None:
        made = self.create()
        kinds = [
            (404, "path_not_found", e2b.FileNotFoundException),
            (404, "sandbox_not_found", e2b.SandboxNotFoundException),
            (507, "disk_full", e2b.NotEnoughSpaceException),
            (422, "invalid_request", e2b.InvalidArgumentException),
            (401, "unauthenticated", e2b.AuthenticationException),
            (429, "quota_exceeded", e2b.RateLimitException),
            (409, "invalid_state", e2b.SandboxException),
        ]
        for status, code, kind in kinds:
            self.replies = [problem(status, code, False)]
            with self.assertRaises(kind) as raised:
                made.files.read("x")
            self.assertIs(type(raised.exception), kind)
            self.assertEqual(raised.exception.__cause__.code, code)  # type: ignore[union-attr]

    def test_files_are_below_home_and_described(self) -> None:
        made = self.create()
        self.asked.clear()
        self.replies = [ok({"items": [FILE, {**FILE, "path": "/home/user/d/y", "name": "y"}], "next_cursor": None})]
        [entry] = made.files.list(".")
        self.assertEqual((entry.type, entry.permissions, entry.owner, entry.size), (e2b.FileType.FILE, "-rw-r-----", "1", 3))
        self.replies = [problem(404, "path_not_found", False), ok({}), ok(FILE)]
        self.assertEqual((made.files.make_dir("d"), made.files.make_dir("x")), (True, False))
        with self.assertRaises(e2b.InvalidArgumentException):
            made.files.list("/", depth=0)

    def test_a_sandbox_is_called_by_its_object_or_its_id(self) -> None:
        made = self.create()
        found = [ok({"room_id": "a", "agent_id": "main"}), ok(RECORD), OWN_ROOM]
        self.replies = [ok(RECORD), *found, ok(RECORD)]
        for info in (made.get_info(), e2b.Sandbox.get_info("sbx_1", **self.to)):
            self.assertEqual((info.state, info.cpu_count, info.metadata), (e2b.SandboxState.RUNNING, 2, {"team": "a"}))
        self.asked.clear()
        self.methods.clear()
        self.replies = [*found, ok(HIBERNATED), ok(RECORD), ok(RECORD), ok({})]
        again = e2b.Sandbox.connect("sbx_1", timeout=60, **self.to)
        self.addCleanup(again._close)
        self.assertIn("/resume", self.asked[4][0])
        self.assertEqual([each["expires_in_seconds"] for each in self.sent()[-2:]], [60, 60])
        self.replies = [ok(RECORD), ok({}), problem(404, "sandbox_not_found", False), ok({})]
        self.assertEqual((made.kill(), made.kill()), (True, False))
        self.replies = [problem(404, "sandbox_not_found", False)]
        self.assertFalse(e2b.Sandbox.kill("sbx_1", **self.to))

    def test_a_host_is_that_of_a_public_port(self) -> None:
        made = self.create()
        self.replies = [ok({"url": "https://web-1.ports.example/", "listening": False})]
        self.assertEqual(made.get_host(3000), "web-1.ports.example")
        self.assertEqual(self.sent()[-1], {"port": 3000, "visibility": "public"})
        self.assertEqual(made.get_host(3000), "web-1.ports.example")

    def test_pages_omit_ended_sandboxes_and_those_outside_the_filter(self) -> None:
        others = [{**RECORD, "state": "destroyed"}, {**RECORD, "labels": {}}, HIBERNATED]
        self.replies = [ok({"items": [RECORD, *others, RECORD], "next_cursor": None})]
        query = e2b.SandboxQuery(metadata={"team": "a"}, state=[e2b.SandboxState.RUNNING])
        pages = e2b.Sandbox.list(query, limit=1, **self.to)
        sizes = []
        while pages.has_next:
            sizes.append(len(pages.next_items()))
        self.assertEqual(sizes, [1, 1, 0])
        with self.assertRaises(e2b.SandboxException):
            pages.next_items()

    def test_of_asyncio(self) -> None:
        async def run() -> tuple[Any, list[str], bool]:
            heard: list[str] = []

            async def hear(text: str) -> None:
                heard.append(text)

            self.replies = [ok({"room_id": "a"}), ok(RECORD), ok({})]
            async with await e2b.AsyncSandbox.create(timeout=60, **self.to) as made:
                self.replies = [ok({}), ended(None), lines(out(1, "eA=="), exits()), ended()]
                done = await made.commands.run("true", on_stdout=hear)
                self.replies = [problem(404, "path_not_found", False)]
                exists = await made.files.exists("/none")
                self.replies = [ok(RECORD), ok({})]
            return done, heard, exists

        done, heard, exists = asyncio.run(run())
        self.assertEqual((done.stdout, heard, exists), ("x", ["x"], False))


if __name__ == "__main__":
    unittest.main()
