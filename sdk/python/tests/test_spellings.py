"""Options and members of other sandbox SDKs, and unknown ones: errors that name the valid ones."""

import asyncio
import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

import roomd
from roomd import AsyncSandbox, CommandResult, Roomd, Sandbox

from .scripted import ScriptedService, lines, ok, out


def takers() -> Iterator[tuple[str, Any]]:
    """The public methods of the package whose signature ends with `**options: Unpack[…]`."""
    for exported in roomd.__all__:
        kind = getattr(roomd, exported)
        for name in vars(kind) if inspect.isclass(kind) and "roomd" in kind.__module__ else ():
            value = getattr(kind, name)
            if name.startswith("_") or not callable(value) or exported.startswith("Async"):
                continue
            if any(get_args(each.annotation) for each in inspect.signature(value).parameters.values() if each.kind == 4):
                yield f"{exported}.{name}", value


class SpellingsTest(ScriptedService):
    def sandbox(self) -> Any:
        return Roomd(self.client.url, "key-1").rooms.open("a").sandbox("main")

    def test_every_method_rejects_unknown_options(self) -> None:
        found = dict(takers())
        self.assertGreater(len(found), 60)
        for name, method in found.items():
            with self.subTest(name), self.assertRaisesRegex(TypeError, r"\bno_such_option\.$"):
                method(no_such_option=1)

    def test_options_by_other_names_are_errors_with_the_valid_name(self) -> None:
        made = self.sandbox()
        for method, option, there in (
            ("exec", "timeout", "timeout_ms, in ms"),
            ("exec", "envs", "env"),
            ("exec", "background", r"start\(command\), which leaves it running"),
            ("start", "workdir", "cwd"),
            ("exec", "max_output_byte", "max_output_bytes"),
        ):
            with self.subTest(option), self.assertRaisesRegex(TypeError, rf"{method}\(\).* {option}: .*{there}\.$"):
                getattr(made, method)("true", **{option: 1})
        for option, there in (("timeout", "max_duration_seconds"), ("metadata", "labels"), ("envs", "env"), ("memory", "memory_mib")):
            with self.subTest(option), self.assertRaisesRegex(TypeError, rf"create\(\).* {option}: .*{there}"):
                Sandbox.create(**{option: 1})  # type: ignore[arg-type]
        self.assertEqual(self.asked, [])

    def test_members_by_other_names_are_errors_with_the_valid_name(self) -> None:
        made = self.sandbox()
        for of, name, there in (
            (made, "commands", "exec(command)"),
            (made, "kill", "destroy()"),
            (made, "pause", "hibernate()"),
            (made, "is_runing", "is_running"),
            (made.files, "make_dir", "mkdir(path)"),
            (CommandResult("x", 0, None, False, 1, b"", b""), "returncode", "exit_code"),
        ):
            with self.subTest(name), self.assertRaises(AttributeError) as raised:
                getattr(of, name)
            self.assertRegex(str(raised.exception), f"'{name}': .*{re.escape(there)}")
        self.assertFalse(hasattr(made, "no_such_thing"))

    def test_asyncio_rejects_them_too(self) -> None:
        async def run() -> None:
            async with roomd.AsyncRoomd(self.client.url, "key-1") as service:
                made: Any = service.rooms.open("a").sandbox("main")
                with self.assertRaisesRegex(TypeError, " timeout: .*timeout_ms"):
                    await made.exec("true", timeout=1)
                with self.assertRaisesRegex(AttributeError, r"'AsyncSandbox'.*'kill': .*destroy\(\)"):
                    made.kill  # noqa: B018
                with self.assertRaisesRegex(TypeError, " envs: .*env"):
                    await AsyncSandbox.create(envs={})  # type: ignore[call-arg]

        asyncio.run(run())

    def test_a_string_is_rejected_as_a_list_of_names(self) -> None:
        made = self.sandbox()
        for call in (
            lambda: made.fork("left"),
            lambda: made.fork(2),
            lambda: made.set_egress("pypi.org"),
            lambda: made.agent.subscribe("news"),
        ):
            with self.assertRaisesRegex(TypeError, r"\blist\b"):
                call()
        self.assertEqual(self.asked, [])

    def test_a_lifetime_is_in_milliseconds(self) -> None:
        with self.assertRaisesRegex(ValueError, r"\b600000\b"):
            self.sandbox().set_timeout(600)
        self.assertEqual(self.asked, [])

    def test_sandboxes_and_results_have_a_readable_repr(self) -> None:
        made = self.sandbox()
        self.assertEqual(repr(made), "Sandbox(room_id='a', agent_id='main')")
        self.replies = [ok({}), lines(out(1, "aGkK"), {"seq": 2, "type": "exit", "exit_code": 0, "signal": None,
                                                     "timed_out": False, "duration_ms": 1})]
        self.assertEqual(repr(made.exec("echo hi")), "CommandResult(exit_code=0, stdout='hi\\n', stderr='')")
        killed = CommandResult("x", None, "SIGKILL", False, 1, b"y" * 2000, b"")
        self.assertRegex(repr(killed), r"^CommandResult\(exit_code=None, stdout='y{1000}…', stderr='', signal='SIGKILL'\)$")
