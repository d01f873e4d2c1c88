"""The functions for agent frameworks, against a scripted service."""

import inspect
import unittest
import unittest.mock
from typing import get_type_hints

from roomd import CommandResult, NotFoundError, Sandbox, sandbox_tools

from .scripted import ScriptedService, problem


def ended(
    stdout: bytes = b"", exit_code: int | None = 0, signal: str | None = None, timed_out: bool = False
) -> CommandResult:
    return CommandResult("exe_1", exit_code, signal, timed_out, 1, stdout, b"")


class DeclarationTest(unittest.TestCase):
    """Frameworks derive the schema of a tool from these alone."""

    def setUp(self) -> None:
        self.tools = sandbox_tools(object.__new__(Sandbox))

    def test_each_is_a_function_with_its_name_and_text_types_only(self) -> None:
        self.assertEqual([tool.__name__ for tool in self.tools], ["run", "read_file", "write_file"])
        for tool in self.tools:
            self.assertTrue(inspect.isfunction(tool))
            self.assertEqual(set(get_type_hints(tool).values()), {str})

    def test_each_docstring_has_a_summary_and_describes_every_argument(self) -> None:
        for tool in self.tools:
            text = inspect.getdoc(tool) or ""
            summary, _, arguments = text.partition("\n\nArgs:\n")
            self.assertNotIn("\n", summary)
            described = [line.strip().split(":")[0] for line in arguments.splitlines()]
            self.assertEqual(described, list(inspect.signature(tool).parameters))


class AnswerTest(ScriptedService):
    def setUp(self) -> None:
        super().setUp()
        self.sandbox = Sandbox(self.client, "a", "b")
        self.run, self.read_file, self.write_file = sandbox_tools(self.sandbox)

    def test_a_command_returns_its_exit_code_and_output(self) -> None:
        for done, answer in (
            (ended(b"42\n"), "exit code 0\n42\n"),
            (ended(exit_code=3), "exit code 3\n"),
            (ended(exit_code=None, signal="SIGKILL"), "exit code 137\n"),
            (ended(exit_code=None, timed_out=True), "exit code 124\n"),
        ):
            with unittest.mock.patch.object(self.sandbox, "exec", return_value=done) as exec:
                self.assertEqual(self.run("make"), answer)
            exec.assert_called_once_with("make", kill_on_cancel=True)

    def test_a_long_answer_is_shortened_in_its_middle(self) -> None:
        self.replies = [(200, {}, "a" * 20_000)]
        answer = self.read_file("/x")
        self.assertRegex(answer, r"\n.*\b3616\b.*\n")
        self.assertLess(len(answer), 16_500)

    def test_a_file_is_read_and_written(self) -> None:
        self.replies = [(200, {}, "text"), (200, {"Content-Type": "application/json"}, '{"path": "/x"}')]
        self.assertEqual(self.read_file("/x"), "text")
        self.assertRegex(self.write_file("/x", "new"), "^/x ")
        self.assertEqual([body for _, _, body in self.asked], [b"", b"new"])

    def test_a_file_call_that_fails_is_an_answer(self) -> None:
        self.replies = [
            problem(404, "path_not_found", False),
            problem(409, "is_a_directory", False),
            problem(409, "is_a_directory", False),
        ]
        self.assertRegex(self.read_file("/x"), "^/x ")
        self.assertRegex(self.read_file("/x"), r"^/x .*\bis_a_directory\b")
        self.assertRegex(self.write_file("/x", "new"), r"^/x .*\bis_a_directory\b")
        self.assertIn("absolute", self.read_file("x"))

    def test_a_sandbox_that_has_ended_is_an_exception(self) -> None:
        self.replies = [problem(404, "sandbox_not_found", False)]
        with self.assertRaises(NotFoundError):
            self.run("true")
