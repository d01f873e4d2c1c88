"""Rooms of sandboxes for groups of AI agents."""

from ._generated import schemas
from .agent import Agent, Destination, Outgoing, Topic
from .aio import (
    AsyncAgent,
    AsyncAttachedTerminal,
    AsyncClient,
    AsyncDownload,
    AsyncDrive,
    AsyncExecution,
    AsyncFiles,
    AsyncRoom,
    AsyncRoomd,
    AsyncSandbox,
    AsyncTerminal,
)
from .cancel import Cancel
from .client import Client, Download
from .drive import Drive
from .errors import (
    AuthenticationError,
    Cancelled,
    ConflictError,
    ConnectionError,
    ConnectionFault,
    ForkError,
    GoneError,
    InvalidRequestError,
    LimitError,
    NotFoundError,
    PermissionError,
    PreconditionError,
    ProblemError,
    RoomdError,
    StreamError,
    TemplateBuildError,
    TimeoutError,
    UnavailableError,
)
from .execution import Command, CommandOptions, CommandResult, Execution, OutputPart
from .files import Files
from .http1 import FileBody
from .record import Record
from .records import (
    BarrierArriveResult,
    Checkpoint,
    CheckpointSnapshot,
    Delivery,
    ExposedPort,
    ForkProblem,
    Message,
    MessageReceipt,
    PortTraffic,
    SentMessage,
    Snapshot,
)
from .room import Room
from .sandbox import Sandbox, SandboxOptions
from .service import Roomd
from .terminal import AttachedTerminal, Terminal
from .tools import Tool, sandbox_tools
from .trace import TracePlace, continuing
from .transport import CallOptions
from .version import VERSION
from .webhooks import WebhookError, verify_webhook

__version__ = VERSION
__all__ = [
    "Agent",
    "AsyncAgent",
    "AsyncAttachedTerminal",
    "AsyncClient",
    "AsyncDownload",
    "AsyncDrive",
    "AsyncExecution",
    "AsyncFiles",
    "AsyncRoom",
    "AsyncRoomd",
    "AsyncSandbox",
    "AsyncTerminal",
    "AttachedTerminal",
    "AuthenticationError",
    "BarrierArriveResult",
    "CallOptions",
    "Cancel",
    "Cancelled",
    "Checkpoint",
    "CheckpointSnapshot",
    "Client",
    "Command",
    "CommandOptions",
    "CommandResult",
    "ConflictError",
    "ConnectionError",
    "ConnectionFault",
    "Delivery",
    "Destination",
    "Download",
    "Drive",
    "Execution",
    "ExposedPort",
    "FileBody",
    "Files",
    "ForkError",
    "ForkProblem",
    "GoneError",
    "InvalidRequestError",
    "LimitError",
    "Message",
    "MessageReceipt",
    "NotFoundError",
    "Outgoing",
    "OutputPart",
    "PermissionError",
    "PortTraffic",
    "PreconditionError",
    "ProblemError",
    "Record",
    "Room",
    "Roomd",
    "RoomdError",
    "Sandbox",
    "SandboxOptions",
    "SentMessage",
    "Snapshot",
    "StreamError",
    "TemplateBuildError",
    "Terminal",
    "TimeoutError",
    "Tool",
    "Topic",
    "TracePlace",
    "UnavailableError",
    "VERSION",
    "WebhookError",
    "continuing",
    "sandbox_tools",
    "schemas",
    "verify_webhook",
]
