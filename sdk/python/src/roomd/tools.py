"""Plain functions that frameworks take as tools of a model: run a command, read a file, write a file.

They import no framework: frameworks derive the schema of a tool from name, type hints and docstring.
"""

import signal
from collections.abc import Callable

from .errors import NotFoundError, RoomdError
from .execution import CommandResult
from .sandbox import Sandbox

HEAD_CHARACTERS = 4096
TAIL_CHARACTERS = 12_288
"""Limits of an answer to a model: characters of its beginning and of its end."""
TIMED_OUT = 124
"""Exit status of timeout(1) for a command that exceeded its time limit."""
BY_SIGNAL = 128

Tool = Callable[..., str]


def sandbox_tools(sandbox: Sandbox) -> list[Tool]:
    """The functions `run`, `read_file` and `write_file` of a sandbox, for the tools of an agent framework.

    A command that fails and a file that is missing are answers for the model, not exceptions. The caller destroys the
    sandbox.
    """

    def run(command: str) -> str:
        """Run a shell command in a Debian virtual machine in which you are root. Returns its exit code and output.

        Args:
            command: The command line.
        """
        done = sandbox.exec(command, kill_on_cancel=True)
        return _shortened(f"exit code {_exit_code(done)}\n{done.stdout}{done.stderr}")

    def read_file(path: str) -> str:
        """Read a text file of the virtual machine.

        Args:
            path: An absolute path. /mnt/drive is shared with other agents.
        """
        try:
            return _shortened(sandbox.files.read(path).decode(errors="replace"))
        except NotFoundError:
            return f"{path} does not exist."
        except (RoomdError, ValueError) as error:
            return f"{path} could not be read: {error}"

    def write_file(path: str, content: str) -> str:
        """Write a text file of the virtual machine. Missing directories are created.

        Args:
            path: An absolute path.
            content: The whole text of the file.
        """
        try:
            sandbox.files.write(path, content)
        except (RoomdError, ValueError) as error:
            return f"{path} could not be written: {error}"
        return f"{path} is written."

    return [run, read_file, write_file]


def _exit_code(done: CommandResult) -> int:
    if done.timed_out:
        return TIMED_OUT
    if done.exit_code is not None:
        return done.exit_code
    return BY_SIGNAL + signal.Signals.__members__.get(done.signal or "", 0)


def _shortened(text: str) -> str:
    left = len(text) - HEAD_CHARACTERS - TAIL_CHARACTERS
    if left <= 0:
        return text
    return f"{text[:HEAD_CHARACTERS]}\n… {left} characters left out …\n{text[-TAIL_CHARACTERS:]}"
