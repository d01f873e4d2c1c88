"""The code of README.md runs unchanged. test_commands runs the blocks that need guests."""

import contextlib
import io
import re
import unittest
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def blocks_of(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def said_by(block: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block, str(README), "exec"), {"__name__": "__main__"})
    return said.getvalue()


class ReadmeTest(unittest.TestCase):
    def test_its_code_runs(self) -> None:
        talk, call, error, together = map(said_by, blocks_of("python"))
        self.assertEqual(talk, "first measure, then cut\n")
        self.assertRegex(call, r"^\w+\n")
        self.assertTrue(error.startswith("room_not_found"))
        self.assertEqual(together, "['released', 'released', 'released']\n")
