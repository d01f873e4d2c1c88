"""Drop-in for programs that were written for the Python SDK of E2B: its names, on sandboxes of roomd.

Replace `from e2b import Sandbox` by `from roomd.compat.e2b import Sandbox`. docs/migration.md has the differences.
"""

from .asynchronous import (
    AsyncCommandHandle,
    AsyncCommands,
    AsyncFilesystem,
    AsyncSandbox,
    AsyncSandboxPaginator,
    AsyncWatchHandle,
)
from .commands import CommandHandle, Commands, ProcessInfo
from .errors import (
    AuthenticationException,
    CommandExitException,
    CommandResult,
    FileNotFoundException,
    InvalidArgumentException,
    NotEnoughSpaceException,
    NotFoundException,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    TimeoutException,
)
from .filesystem import (
    EntryInfo,
    FilesystemEvent,
    FilesystemEventType,
    FileType,
    Filesystem,
    WatchHandle,
    WriteEntry,
    WriteInfo,
)
from .listing import SandboxInfo, SandboxPaginator, SandboxQuery, SandboxState
from .pty import Pty, PtyHandle, PtySize
from .sandbox import Sandbox

__all__ = [
    "AsyncCommandHandle",
    "AsyncCommands",
    "AsyncFilesystem",
    "AsyncSandbox",
    "AsyncSandboxPaginator",
    "AsyncWatchHandle",
    "AuthenticationException",
    "CommandExitException",
    "CommandHandle",
    "CommandResult",
    "Commands",
    "EntryInfo",
    "FileNotFoundException",
    "FileType",
    "Filesystem",
    "FilesystemEvent",
    "FilesystemEventType",
    "InvalidArgumentException",
    "NotEnoughSpaceException",
    "NotFoundException",
    "ProcessInfo",
    "Pty",
    "PtyHandle",
    "PtySize",
    "RateLimitException",
    "Sandbox",
    "SandboxException",
    "SandboxInfo",
    "SandboxNotFoundException",
    "SandboxPaginator",
    "SandboxQuery",
    "SandboxState",
    "TimeoutException",
    "WatchHandle",
    "WriteEntry",
    "WriteInfo",
]
