"""A program that was written for E2B's Python SDK, with only its import changed, on real guests."""

import asyncio
import os
import time
import unittest

from roomd.compat.e2b import (
    AsyncSandbox,
    CommandExitException,
    FileNotFoundException,
    FilesystemEventType,
    NotFoundException,
    PtySize,
    Sandbox,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)

from .surroundings import url


class E2bGuestTest(unittest.TestCase):
    sandbox: Sandbox

    @classmethod
    def setUpClass(cls) -> None:
        # WebSockets do not pass through the proxy.
        os.environ["ROOMD_URL"] = url()
        cls.sandbox = Sandbox.create(timeout=600, metadata={"purpose": "e2b-test"}, envs={"CI": "1"})
        cls.addClassCleanup(cls.sandbox.kill)

    def test_a_program_runs_and_its_files_are_there(self) -> None:
        self.sandbox.files.write("main.py", "import os; print(6 * 7, os.environ['CI'])\n")
        done = self.sandbox.commands.run("python3 main.py")
        self.assertEqual((done.exit_code, done.stdout), (0, "42 1\n"))
        [entry] = [each for each in self.sandbox.files.list("/home/user") if each.name == "main.py"]
        self.assertEqual((entry.permissions, entry.size), ("-rw-r--r--", 42))
        self.assertEqual(self.sandbox.files.read("/home/user/main.py", format="bytes")[:6], b"import")
        self.assertEqual(b"".join(self.sandbox.files.read("main.py", format="stream"))[:6], b"import")
        self.sandbox.files.rename("main.py", "other.py")
        self.assertFalse(self.sandbox.files.exists("main.py"))
        self.sandbox.files.remove("other.py")
        with self.assertRaises(FileNotFoundException):
            self.sandbox.files.read("other.py")

    def test_a_command_that_fails_or_times_out_raises(self) -> None:
        with self.assertRaises(CommandExitException) as raised:
            self.sandbox.commands.run("echo out; echo err >&2; exit 3")
        self.assertEqual((raised.exception.exit_code, raised.exception.stderr), (3, "err\n"))
        with self.assertRaises(TimeoutException):
            self.sandbox.commands.run("sleep 60", timeout=0.5)

    def test_a_command_in_the_background_is_followed_found_and_ended(self) -> None:
        handle = self.sandbox.commands.run("read line; echo got $line; sleep 300", background=True, timeout=0)
        self.assertIn(handle.pid, [each.pid for each in self.sandbox.commands.list()])
        self.sandbox.commands.send_stdin(handle.pid, "typed\n")
        self.assertEqual(next(iter(handle)), ("got typed\n", None, None))
        handle.disconnect()
        again = self.sandbox.commands.connect(handle.pid)
        self.assertTrue(self.sandbox.commands.kill(handle.pid))
        with self.assertRaises(CommandExitException):
            again.wait()
        self.assertEqual(again.stdout, "got typed\n")
        with self.assertRaises(NotFoundException):
            self.sandbox.commands.connect(handle.pid)

    def test_a_directory_is_watched(self) -> None:
        self.sandbox.files.make_dir("watched")
        watch = self.sandbox.files.watch_dir("watched")
        self.sandbox.files.write("watched/x", "1")
        found = []
        deadline = time.monotonic() + 30
        while not found and time.monotonic() < deadline:
            found = [each for each in watch.get_new_events() if each.name == "x"]
            time.sleep(0.05)
        watch.stop()
        self.assertIn(found[0].type, (FilesystemEventType.CREATE, FilesystemEventType.RENAME))

    def test_a_terminal_is_typed_into(self) -> None:
        handle = self.sandbox.pty.create(PtySize(rows=24, cols=80))
        self.sandbox.pty.send_stdin(handle.pid, b"echo $((6 * 7)); exit\n")
        shown: list[bytes] = []
        handle.wait(shown.append)
        self.assertIn(b"42", b"".join(shown))

    def test_it_is_listed_found_paused_and_resumed(self) -> None:
        pages = Sandbox.list(SandboxQuery(metadata={"purpose": "e2b-test"}))
        self.assertIn(self.sandbox.sandbox_id, [each.sandbox_id for each in pages.next_items()])
        self.assertTrue(self.sandbox.pause())
        self.assertEqual(Sandbox.get_info(self.sandbox.sandbox_id).state, SandboxState.PAUSED)
        again = Sandbox.connect(self.sandbox.sandbox_id, timeout=600)
        self.assertTrue(again.is_running())
        self.assertEqual(again.commands.run("echo awake").stdout, "awake\n")

    def test_a_port_has_a_host_and_is_awaited(self) -> None:
        self.sandbox.commands.run("python3 -m http.server 3000", background=True, timeout=0)
        self.sandbox.native.wait_for_port(3000)
        self.assertNotIn("://", self.sandbox.get_host(3000))
        self.assertTrue(self.sandbox.native.expose_port(3000, visibility="public").listening)

    def test_of_asyncio(self) -> None:
        async def run() -> tuple[str, list[str]]:
            heard: list[str] = []
            found = await AsyncSandbox.connect(self.sandbox.sandbox_id)
            done = await found.commands.run("cat; echo $CI", on_stdout=heard.append)
            await found.files.write("async.txt", "a")
            return done.stdout + await found.files.read("async.txt"), heard

        self.assertEqual(asyncio.run(run()), ("1\na", ["1\n"]))

    def test_it_ends_once(self) -> None:
        with Sandbox.create(timeout=60) as other:
            self.assertEqual(other.commands.run("echo x").stdout, "x\n")
        self.assertFalse(other.is_running())
        self.assertFalse(Sandbox.kill(other.sandbox_id))
