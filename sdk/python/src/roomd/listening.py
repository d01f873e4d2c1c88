"""Wait for a server in a sandbox: reads the kernel's socket tables as files, which works in any image."""

from .coroutines import aio
from .errors import NotFoundError
from .files import Files
from .transport import Calls

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LISTEN = "0A"
"""State of a listening socket in these tables."""
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.2, 1.0


async def wait_until_listening(files: Files, port: int, calls: Calls) -> None:
    """Returns once a socket listens on the port. Raises a TimeoutError once the time limit of the calls has expired."""
    pause = FIRST_PAUSE_SECONDS
    while not any([is_listening(await _read(files, table, calls), port) for table in TABLES]):
        left = calls.left_ms
        await files._client._network.pause(pause if left is None else min(pause, left / 1000))
        pause = min(pause * 2, MAX_PAUSE_SECONDS)


def is_listening(table: str, port: int) -> bool:
    """Whether a line such as `  0: 0100007F:1F90 00000000:0000 0A …` has this local port, and the state LISTEN."""
    for line in table.splitlines():
        _, local, _, state, *_ = [*line.split(), "", "", "", ""]
        if state == LISTEN and local.endswith(f":{port:04X}"):
            return True
    return False


async def _read(files: Files, table: str, calls: Calls) -> str:
    try:
        return await aio(files.read_text)(table, **calls.next())
    except NotFoundError as error:
        # A kernel without IPv6 has only the first table.
        if error.code != "path_not_found":
            raise
        return ""
