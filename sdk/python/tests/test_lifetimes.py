"""Lifetimes of sandboxes and time limits of commands, against a scripted service."""

from typing import Any

from roomd import ForkError, ProblemError, Sandbox, TemplateBuildError, TimeoutError
from roomd.service import Templates

from .scripted import Reply, ScriptedService, lines, ok, problem

RECORD = {"room_id": "a", "sandbox_id": "sbx_1", "agent_id": "main", "state": "running", "status": {"message": ""}}
END = {
    **{"seq": 1, "type": "exit", "exit_code": 0, "signal": None, "timed_out": False, "duration_ms": 1},
    **{"stdout_bytes": 0, "stderr_bytes": 0, "finished_at": ""},
}

CONNECTED = "   1: 0100007F:0BB8 0100007F:9C40 01 00000000:00000000\n"
LISTENS = "   0: 00000000000000000000000000000000:0BB8 00000000000000000000000000000000:0000 0A 00000000\n"


def text(content: str) -> Reply:
    return 200, {"Content-Type": "text/plain"}, f"  sl  local_address rem_address   st tx_queue\n{content}"


class LifetimesTest(ScriptedService):
    def create(self, **options: Any) -> Sandbox:
        self.replies = [ok({"room_id": "a"}), ok(RECORD), *[ok(RECORD)] * 4]
        return Sandbox.create(url=self.client.url, api_key="key-1", **options)

    def test_a_single_sandbox_hibernates_and_its_room_ends(self) -> None:
        with self.create() as made:
            self.assertEqual((made.sandbox_id, made.state), ("sbx_1", "running"))
        self.assertEqual(self.sent()[0]["ttl_seconds"], 86_400)
        self.assertEqual(self.sent()[1]["lifecycle"], {"idle_after_seconds": 900, "on_idle": "hibernate"})
        self.assertEqual(self.methods[-1], "DELETE")

    def test_a_reused_key_leaves_the_room_of_the_earlier_call(self) -> None:
        self.replies = [ok({"room_id": "a"}), problem(409, "idempotency_key_reused", False)]
        with self.assertRaises(ProblemError):
            Sandbox.create(url=self.client.url, api_key="key-1", idempotency_key="k")
        self.assertEqual(self.methods, ["POST", "POST"])

    def test_its_end_can_be_set_from_now(self) -> None:
        with self.create() as made:
            made.set_timeout(90_500)
            self.assertEqual([each["expires_in_seconds"] for each in self.sent()[-2:]], [91, 91])
            self.assertEqual(self.methods[-2:], ["PATCH", "PATCH"])

    def test_an_existing_sandbox_is_found_and_ended_with_its_room(self) -> None:
        self.replies = [ok({"room_id": "a", "agent_id": "main"}), ok(RECORD), ok({"labels": {"roomd-sdk/own": "true"}})]
        found = Sandbox.connect("sbx_1", url=self.client.url, api_key="key-1")
        self.assertEqual(found.sandbox_id, "sbx_1")
        self.replies = [problem(404, "room_not_found", False)]
        found.destroy()

    def test_a_fork_leaves_the_room_of_its_source(self) -> None:
        copy = {**RECORD, "agent_id": "b"}
        self.replies = [ok({"room_id": "a", "agent_id": "b"}), ok(copy), ok({"labels": {"roomd-sdk/own": "true"}})]
        found = Sandbox.connect("sbx_2", url=self.client.url, api_key="key-1")
        self.replies = [ok({})]
        found.destroy()
        self.assertTrue(self.asked[-1][0].endswith("/v1/rooms/a/sandboxes/b"))

    def test_sandboxes_are_listed_over_all_rooms(self) -> None:
        self.replies = [ok({"items": [RECORD], "next_cursor": None})]
        found = list(Sandbox.list(label=("team", "a"), url=self.client.url, api_key="key-1"))
        self.assertEqual([each["sandbox_id"] for each in found], ["sbx_1"])

    def test_the_time_limit_is_that_of_the_command(self) -> None:
        sandbox = Sandbox(self.client, "a", "main")
        limits = (({}, 600_000), ({"timeout_ms": 5}, 5), ({"command_timeout_ms": 5}, 5), ({"timeout_ms": 0}, 0))
        for options, limit in limits:
            self.asked.clear()
            self.replies = [ok({}), lines(END)]
            sandbox.exec("true", **options)  # type: ignore[arg-type]
            self.assertEqual(self.sent()[0]["timeout_ms"], limit)
        self.asked.clear()
        self.replies = [ok({})]
        sandbox.start("true")
        self.assertEqual(self.sent()[0]["timeout_ms"], 0)

    def test_a_fork_returns_sandboxes_or_raises_with_the_successful_ones(self) -> None:
        item = {"agent_id": "b", "sandbox": {**RECORD, "agent_id": "b"}, "problem": None}
        failed = {"agent_id": "c", "sandbox": None, "problem": {"code": "disk_full", "title": "", "detail": "Full."}}
        sandbox = Sandbox(self.client, "a", "main")
        self.replies = [ok({"items": [item]}), ok({"items": [item, failed]})]
        self.assertEqual([each.agent_id for each in sandbox.fork(["b"])], ["b"])
        with self.assertRaises(ForkError) as raised:
            sandbox.fork(["b", "c"])
        self.assertEqual([each.agent_id for each in raised.exception.sandboxes], ["b"])
        self.assertEqual([(each.agent_id, each.code) for each in raised.exception.problems], [("c", "disk_full")])
        self.assertIn("c: Full.", str(raised.exception))

    def test_a_server_is_awaited_by_reading_the_kernels_tables_only(self) -> None:
        sandbox = Sandbox(self.client, "a", "main")
        none = problem(404, "path_not_found", False)
        self.replies = [text(CONNECTED), none, text(CONNECTED), text(LISTENS)]
        sandbox.wait_for_port(3000)
        tables = ["/proc/net/tcp", "/proc/net/tcp6"]
        self.assertEqual([path.partition("/files/raw")[2] for path, _, _ in self.asked], tables * 2)
        self.replies = [text(CONNECTED)] * 4
        with self.assertRaises(TimeoutError) as raised:
            sandbox.wait_for_port(3000, wait_ms=50)
        self.assertRegex(str(raised.exception), r"\b3000\b.*\b50 ms\b")

    def test_a_path_exists_or_does_not(self) -> None:
        sandbox = Sandbox(self.client, "a", "main")
        self.replies = [ok({"type": "file"}), problem(404, "path_not_found", False)]
        self.assertEqual([sandbox.exists("/x"), sandbox.exists("/x")], [True, False])

    def test_a_failed_build_raises_with_the_last_lines(self) -> None:
        said = {"seq": 1, "type": "stdout", "data_b64": "bm8gc3VjaCBob3N0Cg=="}
        build = {"template_id": "t", "build_id": "bld_1", "state": "failed", "failure": {"detail": "A step failed."}}
        self.replies = [ok(build), lines(said, {**END, "seq": 2}), ok(build)]
        with self.assertRaises(TemplateBuildError) as raised:
            Templates(self.client).build({"template_id": "t"})
        self.assertRegex(str(raised.exception), r"\bt\b.*: A step failed\.\nno such host$")
