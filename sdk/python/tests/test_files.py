"""The files of a sandbox's disk: what is asked of it, done by this machine in its place."""

import base64
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roomd import Cancel, Cancelled, RoomdError, TimeoutError
from roomd.files import Files


class Machine:
    """A client of which one directory of this machine is the sandbox."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.options: list[Any] = []
        self.fails: BaseException | None = None

    def call(self, name: str, options: Any = None, /, **input: Any) -> Any:
        self.options.append(options)
        exec_id = input["exec_id"]
        if name == "execution_start":
            pipe = subprocess.PIPE
            self.running[exec_id] = subprocess.Popen(
                input["argv"], cwd=self.directory, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
            if input.get("stdin_open") is False:
                self.end(exec_id)
        running = self.running[exec_id]
        if name == "execution_stdin":
            if self.fails is not None:
                raise self.fails
            running.stdin.write(base64.b64decode(input["data_b64"]))
            running.stdin.flush()
            if input["eof"]:
                self.end(exec_id)
        if name == "execution_end" and running.poll() is None:
            os.killpg(running.pid, signal.SIGTERM)
            running.wait()
        return {"stdin_bytes": 0, "state": "running" if running.poll() is None else "exited"}

    def events(self, name: str, options: Any = None, /, **input: Any) -> Iterator[dict[str, Any]]:
        running = self.running[input["exec_id"]]
        out, wrong = (each.read() for each in (running.stdout, running.stderr))
        code = running.wait()
        for stream, data in (("stdout", out), ("stderr", wrong)):
            yield {"type": stream, "seq": 1, "data_b64": base64.b64encode(data).decode()}
        ending = {"exit_code": None if code < 0 else code, "signal": signal.Signals(-code).name if code < 0 else None}
        yield {"type": "exit", "seq": 2, "timed_out": False, "duration_ms": 1, **ending}

    def end(self, exec_id: str) -> None:
        self.running[exec_id].stdin.close()
        self.running[exec_id].stdin = None

    def close(self) -> None:
        for each in self.running.values():
            each.kill()
            each.communicate()


class FilesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.machine = Machine(self.directory)
        self.addCleanup(self.machine.close)
        client: Any = self.machine
        self.files = Files(client, {"room_id": "a", "sandbox": "b"})

    def left(self) -> list[int]:
        return [each.pid for each in self.machine.running.values() if each.poll() is None]

    def test_names_that_look_like_options_or_conditions_are_names(self) -> None:
        for name in ("-x", "-delete", "(", "!", "--help", "-d/-x"):
            self.files.write(name, "told")
            self.assertEqual(self.files.read_text(name), "told")
            entry = self.files.stat(name)
            self.assertEqual((getattr(entry, "name"), getattr(entry, "size")), (os.path.basename(name), 4))
        self.assertEqual([each.name for each in self.files.list("-d") or []], ["-x"])
        self.files.mkdir("-made/-deep")
        self.assertEqual([each.kind for each in self.files.list("-made") or []], ["directory"])
        self.assertTrue(self.files.delete("-made", recursive=True))
        self.assertTrue(self.files.delete("-x"))
        self.assertEqual((self.files.stat("-x"), self.files.list("-x"), self.files.read("-x")), (None, None, None))

    def test_nothing_waits_for_input_that_never_comes(self) -> None:
        self.files.write("x", "told")
        self.files.read("x")
        self.assertEqual(self.left(), [])

    def test_what_a_source_raises_is_raised_and_nothing_is_left(self) -> None:
        error = OSError("of the source")

        def source() -> Iterator[bytes]:
            yield b"one"
            raise error

        with self.assertRaises(OSError) as raised:
            self.files.write("x", source())
        self.assertIs(raised.exception, error)
        self.assertEqual(self.left(), [])

    def test_a_write_that_is_cancelled_is_told_so_and_nothing_is_left(self) -> None:
        cancel = Cancel()

        def source() -> Iterator[bytes]:
            yield b"one"
            cancel.cancel()
            cancel.check()

        with cancel, self.assertRaises(Cancelled):
            self.files.write("x", source())
        self.machine.fails = TimeoutError("too late")
        with self.assertRaises(TimeoutError):
            self.files.write("x", b"one")
        self.assertEqual(self.left(), [])

    def test_a_command_that_has_ended_before_says_why(self) -> None:
        Path(self.directory, "there").mkdir()

        def source() -> Iterator[bytes]:
            [running] = self.machine.running.values()
            running.wait(10)
            raise OSError("of the source")
            yield b""

        with self.assertRaises(RoomdError) as refused:
            self.files.write("there", source())
        self.assertIn("there", str(refused.exception))

    def test_each_of_its_calls_has_a_key_of_its_own(self) -> None:
        self.files.write("x", "told", idempotency_key="mine", timeout_ms=60_000)
        keys = [options["idempotency_key"] for options in self.machine.options if "idempotency_key" in options]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertTrue(all(key.startswith("mine-") for key in keys))
        self.assertTrue(all(0 < options["timeout_ms"] <= 60_000 for options in self.machine.options))
