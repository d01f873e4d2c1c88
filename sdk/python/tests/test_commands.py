"""Commands in sandboxes, with real guests: test/vm/clients/sdk-python.test.ts runs this."""

import asyncio
import hashlib
import os
import threading
import time
import unittest
from datetime import UTC, datetime

from roomd import (
    AsyncRoomd,
    AsyncSandbox,
    Cancel,
    Cancelled,
    CommandResult,
    InvalidRequestError,
    NotFoundError,
    ProblemError,
    Roomd,
    Sandbox,
    sandbox_tools,
)

from .surroundings import PROXY, happens, restart, shaken, url
from .test_readme import blocks_of, said_by

ROOM = "py-commands"


class CommandsTest(unittest.TestCase):
    roomd: Roomd
    sandbox: Sandbox

    @classmethod
    def setUpClass(cls) -> None:
        cls.roomd = cls.enterClassContext(shaken())
        room = cls.enterClassContext(cls.roomd.rooms.create(ROOM))
        cls.sandbox = room.create_sandbox("it", memory_mib=256, env={"FROM": "sandbox"}, labels={"of": "tests"})

    def setUp(self) -> None:
        happens(0, None)

    def test_a_command_ends_with_its_result(self) -> None:
        done = self.sandbox.exec("echo $FROM $MORE; echo wrong >&2; exit 3", env={"MORE": "ü"}, cwd="/tmp")
        self.assertEqual((done.exit_code, done.signal, done.timed_out), (3, None, False))
        self.assertEqual((done.stdout, done.stderr), ("sandbox ü\n", "wrong\n"))
        self.assertEqual(self.sandbox.exec(["printf", "%s|", "a b", "$HOME"]).stdout, "a b|$HOME|")
        self.assertEqual(self.sandbox.exec("cat", stdin="typed").stdout, "typed")
        self.assertEqual(self.sandbox.exec("cat").stdout, "")
        self.assertEqual(self.sandbox.exec("cat", stdin=bytes(range(256))).stdout_bytes, bytes(range(256)))
        self.assertEqual(self.sandbox.exec("kill -9 $$").signal, "SIGKILL")
        self.assertTrue(self.sandbox.exec("sleep 60", command_timeout_ms=300).timed_out)
        self.assertEqual(self.sandbox.get()["labels"], {"of": "tests"})

    def test_the_functions_for_frameworks_work_in_it(self) -> None:
        run, read_file, write_file = sandbox_tools(self.sandbox)
        self.assertRegex(write_file("/root/tools/a.py", "print(6 * 7)\n"), "^/root/tools/a.py ")
        self.assertEqual(run("python3 /root/tools/a.py"), "exit code 0\n42\n")
        self.assertEqual(run("echo wrong >&2; exit 3"), "exit code 3\nwrong\n")
        self.assertEqual(read_file("/root/tools/a.py"), "print(6 * 7)\n")
        self.assertRegex(read_file("/root/none"), "^/root/none ")

    def test_output_is_passed_on_as_it_arrives(self) -> None:
        heard: list[tuple[float, str]] = []
        line = "for i in 1 2 3; do printf 'ü%s' $i; sleep 0.3; done"
        done = self.sandbox.exec(line, on_stdout=lambda text: heard.append((time.monotonic(), text)))
        self.assertEqual(done.stdout, "ü1ü2ü3")
        self.assertEqual("".join(text for _, text in heard), done.stdout)
        self.assertGreater(heard[-1][0] - heard[0][0], 0.4)

    def test_a_command_gets_input_is_followed_and_ended(self) -> None:
        execution = self.sandbox.start("cat")
        execution.write("one\n")
        execution.write(b"two\n")
        execution.end()
        parts = list(execution.output())
        self.assertEqual(b"".join(part.data for part in parts), b"one\ntwo\n")
        self.assertEqual({part.stream for part in parts}, {"stdout"})
        self.assertEqual(self.sandbox.execution(execution.id).get()["exit_code"], 0)
        asleep = self.sandbox.start("sleep 300")
        asleep.signal("SIGTERM")
        self.assertEqual(asleep.wait().signal, "SIGTERM")
        asleep = self.sandbox.start("sleep 300")
        asleep.kill()
        self.assertIsNotNone(asleep.wait().signal)

    def test_a_command_runs_once_and_its_output_arrives_once_despite_faults(self) -> None:
        for fault in ("refused", "answer_lost"):
            happens(2, fault)
            self.assertEqual(self.sandbox.exec(f"echo x >> /tmp/{fault}; cat /tmp/{fault}").stdout, "x\n")
        for at in (0, 60, 200, 500):
            execution = self.sandbox.start("seq 1 200")
            happens(3, {"cutAfterBytes": at})
            self.assertEqual(execution.wait().stdout, "".join(f"{number}\n" for number in range(1, 201)))

    def test_a_daemon_that_is_killed_is_awaited(self) -> None:
        results: list[CommandResult] = []
        line = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done"
        running = threading.Thread(target=lambda: results.append(self.sandbox.exec(line)))
        running.start()
        time.sleep(1)
        restart()
        running.join(60)
        [done] = results
        self.assertEqual((done.exit_code, done.stdout), (0, "".join(f"{number}\n" for number in range(1, 9))))

    def test_cancelling_ends_the_wait_and_on_request_the_command(self) -> None:
        for kills in (False, True):
            cancel = Cancel()
            threading.Timer(0.7, cancel.cancel).start()
            name = f"cancelled-{kills}"
            with cancel, self.assertRaises(Cancelled):
                self.sandbox.exec("sleep 300", exec_id=name, kill_on_cancel=kills)
            state = self.sandbox.execution(name).get()["state"]
            self.assertEqual(state == "running", not kills, state)
        self.sandbox.execution("cancelled-False").kill()

    def test_its_own_files_are_read_and_written(self) -> None:
        files = self.sandbox.files
        data = os.urandom(5_000_000)
        files.write("/root/a b/ü.bin", data)
        self.assertEqual(files.read("/root/a b/ü.bin"), data)
        files.write("/root/a b/empty", b"")
        self.assertEqual(files.read("/root/a b/empty"), b"")
        files.write("/root/a b/text", iter([b"one\n", b"two\n"]))
        self.assertEqual(files.read_text("/root/a b/text"), "one\ntwo\n")
        listed = list(files.list("/root/a b"))
        self.assertEqual([(each["name"], each["type"], each["size_bytes"]) for each in listed],
                         [("empty", "file", 0), ("text", "file", 8), ("ü.bin", "file", len(data))])
        made = datetime.fromisoformat(listed[0]["modified_at"])
        self.assertAlmostEqual((datetime.now(UTC) - made).total_seconds(), 0, delta=300)
        self.assertEqual(files.stat("/root")["type"], "directory")
        files.mkdir("/root/made/deep")
        with self.assertRaises(ProblemError):
            files.delete("/root/made")
        self.assertTrue(files.delete("/root/made", recursive=True))
        self.assertFalse(files.delete("/root/made"))
        files.move("/root/a b/text", "/root/-x")
        self.assertEqual((files.read_text("/root/-x"), files.exists("/root/a b/text")), ("one\ntwo\n", False))
        with self.assertRaises(NotFoundError):
            files.read("/none")
        with self.assertRaises(ProblemError):
            files.write("/proc/none", data)

    def test_its_input_arrives_once_despite_faults(self) -> None:
        execution = self.sandbox.start("sha256sum")
        data = os.urandom(2_500_000)
        happens(2, "answer_lost")
        execution.write(data)
        happens(1, "answer_lost")
        execution.end()
        self.assertEqual(execution.wait().stdout.split()[0], hashlib.sha256(data).hexdigest())

    def test_a_terminal_is_watched(self) -> None:
        terminal = self.sandbox.open_terminal(command="echo shown; exit 4")
        self.assertEqual(list(terminal.watch())[-1]["type"], "exit")
        self.assertTrue(terminal.token()["token"])

    def test_a_terminal_is_typed_into(self) -> None:
        # The proxy does not support WebSockets.
        with Roomd(url=url()) as direct:
            sandbox = direct.rooms.open(ROOM).sandbox("it")
            terminal = sandbox.open_terminal(command="read line; stty size; echo got $line")
            with terminal.attach() as attached:
                attached.resize(30, 100)
                attached.write("typed\n")
                shown = b"".join(attached.output())
            self.assertIn(b"30 100", shown)
            self.assertIn(b"got typed", shown)

            async def type_it() -> bytes:
                async with AsyncRoomd(url=direct.client.url) as roomd:
                    sandbox = roomd.rooms.open(ROOM).sandbox("it")
                    terminal = await sandbox.open_terminal(command="cat")
                    async with await terminal.attach() as attached:
                        await attached.write("typed\n")
                        shown = b""
                        async for part in attached.output():
                            shown += part
                            # Echoed by the terminal, and printed by cat.
                            if shown.count(b"typed") == 2:
                                break
                    self.assertEqual((await terminal.end())["state"], "ended")
                    return shown

            self.assertIn(b"typed", asyncio.run(type_it()))

    def test_of_asyncio(self) -> None:
        async def run() -> None:
            async with AsyncRoomd(url=PROXY) as roomd:
                sandbox = roomd.rooms.open(ROOM).sandbox("it")
                heard: list[tuple[str, bool]] = []
                here = threading.current_thread()

                def hear(text: str) -> None:
                    heard.append((text, here is threading.current_thread()))

                done = await sandbox.exec("echo out", on_stdout=hear)
                self.assertEqual((done.stdout, heard), ("out\n", [("out\n", True)]))
                both = await asyncio.gather(*(sandbox.exec(f"sleep 0.{each}; echo {each}") for each in range(1, 6)))
                self.assertEqual([each.stdout for each in both], [f"{each}\n" for each in range(1, 6)])
                asleep = asyncio.create_task(sandbox.exec("sleep 300", exec_id="task", kill_on_cancel=True))
                await asyncio.sleep(0.7)
                asleep.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await asleep
                ended = await sandbox.execution("task").wait()
                self.assertIsNotNone(ended.signal)
                execution = await sandbox.start("echo a; echo b")
                self.assertEqual(b"".join([part.data async for part in execution.output()]), b"a\nb\n")

        asyncio.run(run())


class OwnRoomTest(unittest.TestCase):
    def test_a_single_sandbox_has_a_room_that_ends_with_it(self) -> None:
        with Sandbox.create(url=PROXY, memory_mib=256) as sandbox:
            self.assertEqual(sandbox.exec("echo alone").stdout, "alone\n")
        with shaken() as roomd, self.assertRaises(NotFoundError):
            roomd.rooms.open(sandbox.room_id).get()

    def test_one_that_cannot_be_created_leaves_no_room(self) -> None:
        with shaken() as roomd:
            before = [each["room_id"] for each in roomd.rooms.list()]
            with self.assertRaises(InvalidRequestError):
                Sandbox.create(url=PROXY, template="no-such-template")
            self.assertEqual([each["room_id"] for each in roomd.rooms.list()], before)

    def test_of_asyncio(self) -> None:
        async def run() -> str:
            async with await AsyncSandbox.create(url=PROXY, memory_mib=256) as sandbox:
                return (await sandbox.exec("echo alone")).stdout

        self.assertEqual(asyncio.run(run()), "alone\n")


class ReadmeTest(unittest.TestCase):
    def test_its_code_runs(self) -> None:
        group, alone = map(said_by, blocks_of("python guests"))
        self.assertEqual(group, "0 written\n\nLinux\n\n")
        self.assertEqual(alone, "42\n\n")
