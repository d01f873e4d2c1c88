"""Every shape of the interface. Made by generate.ts from the OpenAPI document: change that instead."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Membership(TypedDict):
    org_id: str
    name: str
    role: Literal["owner", "admin", "member", "viewer"]
    ending_at: str | None
    """Time at which its end was requested; null: active. RFC 3339, in UTC."""


class Account(TypedDict):
    user_id: str
    email: str
    name: str
    created_at: str
    """RFC 3339, in UTC."""
    email_verified: bool
    """Whether the person has shown that the address is theirs."""
    has_password: bool
    org_id: str
    """The session's current organization."""
    role: Literal["owner", "admin", "member", "viewer"]
    organizations: list[Membership]
    session_id: str
    proved_until: str | None
    """Until this time sensitive actions are allowed; null: re-authentication is needed first. RFC 3339, in UTC."""


class AccountDeleteResult(TypedDict):
    user_id: str
    organizations_left: int
    keys_revoked: int


class AccountExportResult(TypedDict):
    user_id: str
    exported_at: str
    """RFC 3339, in UTC."""
    kept: dict[str, list[dict[str, Any]]]


class AccountUpdateRequest(TypedDict):
    name: NotRequired[str]
    org_id: NotRequired[str]


class AgentWaitingOnItem(TypedDict):
    type: Literal["reply", "barrier", "inbox"]
    id: str | None
    """Its name."""


class Agent(TypedDict):
    agent_id: str
    sandbox_state: str | None
    """Null for an agent outside the room's sandboxes."""
    last_seen_at: str | None
    """RFC 3339, in UTC."""
    inbox_depth: int
    waiting_on: list[AgentWaitingOnItem]
    topics: list[str]


class AgentPage(TypedDict):
    items: list[Agent]
    next_cursor: str | None


class AgentSendRequest(TypedDict):
    source: NotRequired[str]
    """The sender; in a guest always the sandbox's own agent."""
    destination: NotRequired[str | None]
    """The recipient; * for all others. Matches * or ^(?!sbx_)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$."""
    destinations: NotRequired[list[str] | None]
    """Several recipients."""
    topic: NotRequired[str | None]
    """Words separated by dots. The message goes to the topic's subscribers. Matches ^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$."""
    kind: NotRequired[Literal["event", "request", "response"]]
    """event if absent; with wait_reply request, with reply_to response."""
    reply_to: NotRequired[str]
    """message_id of the message that this replies to."""
    message_id: NotRequired[str]
    """The message's name, unique in the room."""
    payload: NotRequired[Any]
    """Any JSON, up to 64 KiB as text."""
    payload_b64: NotRequired[str]
    """Bytes, up to 64 KiB."""
    headers: NotRequired[dict[str, str]]
    """Metadata of the message, up to 4 KiB."""
    ack_required: NotRequired[bool]
    """Delivered again after 30 s without an ack, up to 5 times; then it is undeliverable."""
    ttl_ms: NotRequired[int]
    """The message expires unread after this time; never if absent."""
    wait_reply: NotRequired[bool]
    """Wait for the reply of its one recipient."""
    timeout_ms: NotRequired[int]
    """Longest wait for the reply; 5000 if absent."""


class AgentSubscribeRequest(TypedDict):
    topics: list[str]


class AgentSubscribeResult(TypedDict):
    agent_id: str
    topics: list[str]


class Message(TypedDict):
    message_id: str
    """The message's name, unique in the room."""
    seq: int
    """Place in the room's order."""
    source: str
    destination: str | None
    destinations: list[str] | None
    topic: str | None
    kind: Literal["event", "request", "response"]
    payload: Any
    payload_b64: str | None
    size_bytes: int
    headers: dict[str, str]
    reply_to: str | None
    ack_required: bool
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    attempt: int | None
    """In an inbox: how often it has been delivered, this time included."""


class AgentWaitResult(TypedDict):
    items: list[Message]
    next_cursor: str | None
    next_after: int


class ApiKeyCreatedBy(TypedDict):
    type: str
    id: str


class ApiKey(TypedDict):
    key_id: str
    name: str
    key_prefix: str
    """The beginning of the key, to tell keys apart."""
    state: Literal["active", "expired", "revoked"]
    scopes: list[Literal["rooms:read", "rooms:write", "sandboxes:read", "sandboxes:write", "exec", "ports:write", "drive:read", "drive:write", "fabric:read", "fabric:write", "terminal", "templates:write", "audit:read", "usage:read", "keys:write", "org:admin"]]
    room_ids: list[str] | None
    """The only rooms that the key can see; null: all."""
    agent_id: str | None
    """The only agent that the key acts as; null: any."""
    created_at: str
    """RFC 3339, in UTC."""
    created_by: ApiKeyCreatedBy
    expires_at: str | None
    """RFC 3339, in UTC."""
    revoked_at: str | None
    """RFC 3339, in UTC."""
    replaced_by: str | None
    """The key that it was rotated into."""
    last_used_at: str | None
    """RFC 3339, in UTC."""


class ApiKeyPage(TypedDict):
    items: list[ApiKey]
    next_cursor: str | None


class Application(TypedDict):
    grant_id: str
    """The key_id that the application's calls are recorded under."""
    client_id: str
    client_name: str
    """As the application calls itself."""
    redirect_host: str | None
    """Host of the redirect; null for an application with a code."""
    org_id: str
    scopes: list[str]
    room_ids: list[str] | None
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    last_used_at: str | None
    """RFC 3339, in UTC."""
    user_id: str
    """The member that authorized it."""
    user_name: str


class EndedMade(TypedDict):
    webhooks: int
    """Webhooks that are disabled, with the reason `maker_ended`."""
    ports: int
    """Ports that are unexposed on the host that answers; those on other hosts end within a second."""
    ssh_keys: int
    """Public SSH keys that are removed."""
    applications: int
    """Applications that are signed out."""


class ApplicationEndResult(TypedDict):
    grant_id: str
    user_id: str
    ended: EndedMade


class ApplicationPage(TypedDict):
    items: list[Application]
    next_cursor: str | None


class AuditRecordActor(TypedDict):
    type: str
    id: str
    name: str


class AuditRecord(TypedDict):
    audit_id: str
    seq: int
    """Position in the organization's chain."""
    event: str
    outcome: Literal["success", "denied", "error"]
    at: str
    """RFC 3339, in UTC."""
    org_id: str | None
    room_id: str | None
    room_uid: str | None
    agent_id: str | None
    sandbox_id: str | None
    actor: AuditRecordActor
    source: Literal["rest", "mcp", "vsock", "ssh", "web", "cli", "reconciler"]
    request_id: str | None
    ip: str | None
    status: int | None
    error_code: str | None
    duration_ms: float | None
    details: dict[str, Any]
    prev_hash: str
    hash: str


class AuditRecordPage(TypedDict):
    items: list[AuditRecord]
    next_cursor: str | None
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class AuditSummaryOutcomes(TypedDict):
    success: int
    denied: int
    error: int


class AuditSummaryEventsItem(TypedDict):
    event: str
    count: int


class AuditSummaryAgentsItem(TypedDict):
    agent_id: str
    count: int


class AuditSummaryErrorsItem(TypedDict):
    code: str
    count: int


class AuditSummary(TypedDict):
    total: int
    from_at: str | None
    """RFC 3339, in UTC."""
    to_at: str | None
    """RFC 3339, in UTC."""
    outcomes: AuditSummaryOutcomes
    events: list[AuditSummaryEventsItem]
    """The most frequent first."""
    agents: list[AuditSummaryAgentsItem]
    errors: list[AuditSummaryErrorsItem]
    text: str
    """The same as one paragraph of text."""
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class AuditVerdict(TypedDict):
    ok: bool
    from_seq: int
    """The first record that is still kept; 0 if there is none."""
    to_seq: int
    broken_at: int | None
    """The first record that breaks the chain."""


class Barrier(TypedDict):
    barrier_id: str
    """The barrier's name in the room."""
    generation: int
    """1 for the first; each release is followed by the next."""
    state: Literal["waiting", "released", "broken", "cancelled"]
    parties: int
    arrived: list[str]
    missing: list[str]
    participants: list[str] | None
    opened_at: str
    """RFC 3339, in UTC."""
    ended_at: str | None
    """RFC 3339, in UTC."""


class BarrierArriveRequest(TypedDict):
    barrier_id: str
    """The barrier's name in the room."""
    agent_id: NotRequired[str]
    """The arriving agent; in a guest always the sandbox's own."""
    arrivals: NotRequired[list[str]]
    """Several agents that arrive together."""
    arrivals_json: NotRequired[str]
    """The same as a JSON string."""
    parties: NotRequired[int]
    """How many must arrive. If absent: the number of participants, else of arrivals."""
    participants: NotRequired[list[str]]
    """The agents that must arrive. The barrier breaks when one of them is gone."""
    generation: NotRequired[int]
    """The generation to wait for, if it may already be over."""
    timeout_ms: NotRequired[int]
    """Longest wait for the others; 30 000 if absent. 0: do not wait."""


class BarrierArriveResult(TypedDict):
    barrier_id: str
    """The barrier's name in the room."""
    generation: int
    """1 for the first; each release is followed by the next."""
    state: Literal["waiting", "released", "broken", "cancelled"]
    parties: int
    arrived: list[str]
    missing: list[str]
    waited_ms: int
    released_at: str | None
    """RFC 3339, in UTC."""


class BarrierPage(TypedDict):
    items: list[Barrier]
    next_cursor: str | None


class Billing(TypedDict):
    provider: Literal["none", "stripe"]
    """none: plans and credits come from the operator."""
    plan: Literal["free", "starter"]
    status: Literal["none", "active", "past_due", "ended", "pending"]
    period_end: str | None
    """RFC 3339, in UTC."""
    cancels_at_end: bool
    """Whether it ends with its period."""
    plan_until: str | None
    """Currently known end of the plan; null: none. RFC 3339, in UTC."""
    can_buy: bool


class BillingCheckoutResult(TypedDict):
    checkout_id: str
    url: str
    """URL to open in the browser, at the payment service."""


class BillingKeyResult(TypedDict):
    key_id: str
    name: str
    key: str


class BillingPortalResult(TypedDict):
    url: str
    """URL to open in the browser, at the payment service."""


class BillingSuccessResult(TypedDict):
    checkout_id: str
    is_paid: bool
    """false: it is not confirmed yet."""
    plan: Literal["free", "starter"]
    key_prefix: str | None
    """Of the key that it has created; null: none yet."""


class BrowserGetResult(TypedDict):
    cdp_url: str
    """For chromium.connectOverCDP of Playwright, or browserWSEndpoint of Puppeteer."""
    headers: dict[str, str]
    """To send when connecting."""
    expires_at: str | None
    """RFC 3339, in UTC."""


class BuildStartedEvent(TypedDict):
    seq: int
    """The event's position in the stream: the value for `after`."""
    type: Literal["started"]
    build_id: str
    started_at: str
    """RFC 3339, in UTC."""


class BuildStateEvent(TypedDict):
    seq: int
    """The event's position in the stream: the value for `after`."""
    type: Literal["state"]
    state: Literal["queued", "pulling", "building", "booting", "testing", "ready", "failed"]
    at: str
    """RFC 3339, in UTC."""


class BuildOutputEvent(TypedDict):
    seq: int
    """The event's position in the stream: the value for `after`."""
    type: Literal["stdout"]
    data_b64: str


class BuildFailure(TypedDict):
    code: str
    detail: str
    hint: str | None
    details: dict[str, Any]


class BuildExitEvent(TypedDict):
    seq: int
    """The event's position in the stream: the value for `after`."""
    type: Literal["exit"]
    exit_code: int
    """0: the template is ready."""
    state: Literal["ready", "failed"]
    digest: str | None
    failure: BuildFailure | None
    finished_at: str
    """RFC 3339, in UTC."""
    duration_ms: int


class ErrorEvent(TypedDict):
    type: Literal["error"]
    code: str
    detail: str
    retryable: bool

BuildEvent: TypeAlias = BuildStartedEvent | BuildStateEvent | BuildOutputEvent | BuildExitEvent | ErrorEvent


class CheckpointSnapshotsItem(TypedDict):
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    snapshot_id: str


class Checkpoint(TypedDict):
    checkpoint_id: str
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    name: str | None
    snapshots: list[CheckpointSnapshotsItem]
    """One per sandbox; deleted with the checkpoint."""
    drive_bytes: int
    """Size of the drive's files."""
    size_bytes: int
    """Total size on disk: the drive, the snapshots, and data of the database."""
    paused_ms: int
    """Longest pause of a sandbox."""
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""


class CheckpointDeleteResult(TypedDict):
    checkpoint_id: str
    state: Literal["deleted"]


class CheckpointPage(TypedDict):
    items: list[Checkpoint]
    next_cursor: str | None


class CommandLine(TypedDict):
    type: Literal["command"]
    state: Literal["running", "ended"]
    agent_id: str
    exec_id: str
    command: str
    since: str
    """RFC 3339, in UTC."""


class ComputerRequest(TypedDict):
    action: Literal["screenshot", "cursor_position", "mouse_move", "left_click", "right_click", "middle_click", "double_click", "triple_click", "left_click_drag", "left_mouse_down", "left_mouse_up", "scroll", "key", "hold_key", "type", "wait", "zoom"]
    """The action."""
    coordinate: NotRequired[list[int]]
    """Position: [x, y]. Clicks and scroll act at the pointer's position if absent."""
    start_coordinate: NotRequired[list[int]]
    """Start of left_click_drag; the pointer's position if absent."""
    text: NotRequired[str]
    """Text to type, or for key and hold_key the names of the keys."""
    key: NotRequired[str]
    """Keys that are held during a click, a drag or a scroll, such as shift or ctrl+alt."""
    scroll_direction: NotRequired[Literal["up", "down", "left", "right"]]
    """Direction of scroll."""
    scroll_amount: NotRequired[int]
    """Notches of the mouse's wheel; 3 if absent."""
    duration_ms: NotRequired[int]
    """Duration of wait or hold_key."""
    region: NotRequired[list[int]]
    """Region of zoom: [left, top, right, bottom]."""
    width: NotRequired[int]
    """Width of the picture, which keeps its proportions; the screen's own if absent or larger than that."""
    screenshot: NotRequired[bool]
    """Whether the answer has a picture; true if absent, except for cursor_position. screenshot and zoom always have one."""


class ComputerResult(TypedDict):
    action: Literal["screenshot", "cursor_position", "mouse_move", "left_click", "right_click", "middle_click", "double_click", "triple_click", "left_click_drag", "left_mouse_down", "left_mouse_up", "scroll", "key", "hold_key", "type", "wait", "zoom"]
    width: int
    """Of the picture of the whole screen: coordinates are smaller than this."""
    height: int
    cursor: list[int]
    """Position of the pointer: [x, y]."""
    screenshot_b64: str | None
    """The picture, a PNG. null if none was requested. Except for screenshot and zoom it is also null if the action was done and its picture would be larger than 4 MiB, or too many are being taken: then take one with screenshot."""


class PlanRooms(TypedDict):
    soft_cap: int
    hard_cap: int


class PlanSandboxes(TypedDict):
    soft_cap: int
    hard_cap: int


class PlanMemoryMib(TypedDict):
    soft_cap: int
    hard_cap: int


class PlanDiskGib(TypedDict):
    soft_cap: int
    hard_cap: int


class PlanTemplateMib(TypedDict):
    soft_cap: int
    hard_cap: int


class PlanDrive(TypedDict):
    soft_cap_bytes: int
    hard_cap_bytes: int


class Plan(TypedDict):
    rooms: PlanRooms
    sandboxes: PlanSandboxes
    memory_mib: PlanMemoryMib
    disk_gib: PlanDiskGib
    template_mib: PlanTemplateMib
    drive: PlanDrive
    credits: int | None
    """Null: no limit."""


class TemplateSource(TypedDict):
    ref: str
    index_digest: str | None
    manifest_digest: str
    config_digest: str


class Template(TypedDict):
    template_id: str
    digest: str
    description: str
    min_memory_mib: int
    default_memory_mib: int
    tools: list[str]
    created_at: str
    """RFC 3339, in UTC."""
    source: NotRequired[TemplateSource]
    visibility: Literal["host", "org"]


class ConfigGetResultSsh(TypedDict):
    address: str
    """Of the SSH gateway as clients reach it, as host:port."""
    host_key: str
    """The gateway's public key, as in a file known_hosts."""
    fingerprint: str
    """As ssh-keygen -l shows it."""


class ConfigGetResult(TypedDict):
    version: str
    commit: str
    limits: dict[str, float]
    """Every limit, by name."""
    defaults: dict[str, str | float | bool]
    plans: dict[str, Plan]
    """Limits of an organization on each plan."""
    prices: dict[str, float]
    """Credits for each unit; a month is 730 hours."""
    templates: list[Template]
    ssh: ConfigGetResultSsh | None
    api_extensions: list[str]
    """Operations beyond the MCP tools."""
    guarantees: list[str]
    non_guarantees: list[str]


class LedgerEntry(TypedDict):
    entry_id: str
    at: str
    """RFC 3339, in UTC."""
    kind: Literal["grant", "withdrawal", "spend"]
    """spend: by the price table, one entry a day in UTC."""
    amount: float
    """Credits; negative if spent or withdrawn."""
    reason: str


class CreditListResult(TypedDict):
    granted: float | None
    """Granted by the plan and in addition to it; null: no limit."""
    used: float
    remaining: float | None
    items: list[LedgerEntry]
    next_cursor: str | None
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class DeadlockLine(TypedDict):
    type: Literal["deadlock"]
    agents: list[str]
    text: str


class DeviceDecideRequest(TypedDict):
    user_code: str
    """The code that the application shows."""
    allow: bool
    scopes: NotRequired[list[Literal["rooms:read", "rooms:write", "sandboxes:read", "sandboxes:write", "exec", "ports:write", "drive:read", "drive:write", "fabric:read", "fabric:write", "terminal", "templates:write", "audit:read", "usage:read"]]]
    """Granted subset of the requested scopes; all if absent, as far as the role allows."""
    room_ids: NotRequired[list[str]]
    """The rooms that it is bound to; all if absent."""
    expires_in_seconds: NotRequired[int]
    """Lifetime of the grant; if absent, until it is ended."""


class DeviceDecideResult(TypedDict):
    client_name: str
    allowed: bool


class DriveEntry(TypedDict):
    path: str
    path_b64: NotRequired[str]
    """The path's bytes, if they are not UTF-8."""
    name: str
    type: Literal["file", "directory", "symlink", "other"]
    size_bytes: int
    mode: str
    modified_at: str
    """RFC 3339, in UTC."""
    target: NotRequired[str]
    """Target of a symbolic link."""


class DriveStat(TypedDict):
    guest_path: str
    path: str
    path_b64: NotRequired[str]
    """The path's bytes, if they are not UTF-8."""
    name: str
    type: Literal["file", "directory", "symlink", "other"]
    size_bytes: int
    mode: str
    modified_at: str
    """RFC 3339, in UTC."""
    target: NotRequired[str]
    """Target of a symbolic link."""


class Egress(TypedDict):
    mode: Literal["none", "allowlist", "public"]
    allowlist: list[str]
    revision: int
    """Number of the list's current version; each change adds one."""
    guest_net: bool
    """false: the sandbox was created with enable_guest_net false and has no network."""
    open_connections: int
    connections: int
    """All connections since the sandbox was created."""
    sent_bytes: int
    received_bytes: int


class EgressExplanation(TypedDict):
    host: str
    """As it is compared: a name in lower case, without the final dot."""
    port: int | None
    verdict: Literal["allowed", "refused", "conditional"]
    """conditional: at some ports only, or for a part of the range only."""
    reason: Literal["not_listed", "blocked_address", "no_address", "no_network"] | None
    """Reason of the refusal. no_address: the name is on the list, but resolves to no reachable address. no_network: the sandbox has no network."""
    entry: str | None
    """The list's entry that matches, whether or not it is sufficient."""
    detail: str
    """The verdict as a sentence."""
    hint: str | None
    """The change that would allow it."""


class EgressSetRequest(TypedDict):
    allowlist: list[str]
    """Allowed destinations: addresses, CIDR, host names, *.example.org, each with optional :port; * is every public address."""
    if_revision: NotRequired[int]
    """Only if the list has this revision; else 412."""


class EvacuatedRoomProblem(TypedDict):
    code: str
    detail: str


class EvacuatedRoom(TypedDict):
    org_id: str
    room_id: str
    room_uid: str
    to: str | None
    """The host that has it now; null: not moved."""
    problem: EvacuatedRoomProblem | None


class SavedOutputStdout(TypedDict):
    path: str
    size_bytes: int
    sha256: str


class SavedOutputStderr(TypedDict):
    path: str
    size_bytes: int
    sha256: str


class SavedOutput(TypedDict):
    path: str
    """The drive directory."""
    state: Literal["saving", "saved", "failed"]
    stdout: SavedOutputStdout | None
    stderr: SavedOutputStderr | None
    error_code: str | None
    """Why the output could not be saved."""


class ExecResult(TypedDict):
    exec_id: str
    state: Literal["exited", "running"]
    """running only in a 202, after wait_ms."""
    exit_code: int | None
    signal: str | None
    timed_out: bool
    oom: NotRequired[bool]
    """Present and true if the kernel ended a process of the command because the sandbox ran out of memory."""
    stdout: str | None
    stderr: str | None
    stdout_b64: str
    stderr_b64: str
    stdout_bytes: int
    stderr_bytes: int
    stdout_truncated: bool
    stderr_truncated: bool
    started_at: str
    """RFC 3339, in UTC."""
    finished_at: str | None
    """RFC 3339, in UTC."""
    duration_ms: int
    """While it runs: so far."""
    last_seq: NotRequired[int]
    """Only while it runs: the last piece of output in this answer, for after of its stream."""
    output: SavedOutput | None


class Execution(TypedDict):
    exec_id: str
    state: Literal["running", "exited"]
    argv: list[str]
    """The command, truncated to 1024 characters."""
    cwd: str
    user: str
    pid: int | None
    """In the guest."""
    timeout_ms: int | None
    """null: no limit."""
    exit_code: int | None
    signal: str | None
    timed_out: bool
    oom: NotRequired[bool]
    """Present and true if the kernel ended a process of the command because the sandbox ran out of memory."""
    stdout_bytes: int
    stderr_bytes: int
    oldest_seq: int
    """The oldest piece of output that is still kept; the very first one is 1."""
    last_seq: int
    """The last piece of output."""
    stdin_bytes: int
    """Bytes of standard input that the command has received."""
    stdin_open: bool
    started_at: str
    """RFC 3339, in UTC."""
    finished_at: str | None
    """RFC 3339, in UTC."""
    duration_ms: int | None
    output: SavedOutput | None


class OutputEvent(TypedDict):
    seq: int
    """The event's position in the stream: the value for `after`."""
    type: Literal["stdout", "stderr"]
    data_b64: str


class StartedEvent(TypedDict):
    seq: int
    """The event's position in the stream: the value for `after`."""
    type: Literal["started"]
    exec_id: str
    started_at: str
    """RFC 3339, in UTC."""


class ExitEvent(TypedDict):
    seq: int
    """The event's position in the stream: the value for `after`."""
    type: Literal["exit"]
    exit_code: int | None
    signal: str | None
    timed_out: bool
    oom: NotRequired[bool]
    """Present and true if the kernel ended a process of the command because the sandbox ran out of memory."""
    stdout_bytes: int
    stderr_bytes: int
    finished_at: str
    """RFC 3339, in UTC."""
    duration_ms: int

ExecutionEvent: TypeAlias = OutputEvent | StartedEvent | ExitEvent | ErrorEvent


class ExecutionPage(TypedDict):
    items: list[Execution]
    next_cursor: str | None


class ExecutionSignalRequest(TypedDict):
    signal: Literal["SIGHUP", "HUP", "SIGINT", "INT", "SIGQUIT", "QUIT", "SIGILL", "ILL", "SIGTRAP", "TRAP", "SIGABRT", "ABRT", "SIGBUS", "BUS", "SIGFPE", "FPE", "SIGKILL", "KILL", "SIGUSR1", "USR1", "SIGSEGV", "SEGV", "SIGUSR2", "USR2", "SIGPIPE", "PIPE", "SIGALRM", "ALRM", "SIGTERM", "TERM", "SIGCHLD", "CHLD", "SIGCONT", "CONT", "SIGSTOP", "STOP", "SIGTSTP", "TSTP", "SIGTTIN", "TTIN", "SIGTTOU", "TTOU", "SIGURG", "URG", "SIGXCPU", "XCPU", "SIGXFSZ", "XFSZ", "SIGVTALRM", "VTALRM", "SIGPROF", "PROF", "SIGWINCH", "WINCH", "SIGIO", "IO", "SIGPWR", "PWR", "SIGSYS", "SYS"]
    """SIGINT or INT, and so on."""


class ExecutionStartRequest(TypedDict):
    argv: NotRequired[list[str]]
    """The command and its arguments, run without a shell."""
    argv_json: NotRequired[str]
    """The same as a JSON string."""
    command: NotRequired[str]
    """A line that /bin/sh -c runs."""
    cwd: NotRequired[str]
    """Working directory in the guest."""
    env: NotRequired[dict[str, str]]
    """Environment variables; ROOMD_ names are reserved."""
    env_json: NotRequired[str]
    """The same as a JSON string. Not together with env."""
    user: NotRequired[str]
    """User name or id; root if absent."""
    stdin: NotRequired[str]
    """Text for standard input."""
    stdin_b64: NotRequired[str]
    """Bytes for standard input."""
    timeout_ms: NotRequired[int]
    """Ends the command after this time: SIGTERM to its process group, SIGKILL 5 s later. 0: no limit. At most 7 days. Default: 600 000 for a command that the call waits for, no limit for a command that it starts."""
    max_output_bytes: NotRequired[int]
    """Most bytes of each stream in the answer; 1 MiB if absent."""
    output_to: NotRequired[str]
    """Drive directory for the full streams, in the files stdout and stderr."""
    exec_id: NotRequired[str]
    """The caller's own name for this run. The same name never runs twice."""
    stdin_open: NotRequired[bool]
    """Whether standard input takes more later; true if absent, unless stdin or stdin_b64 is all there is."""


class ExecutionStdinRequest(TypedDict):
    data_b64: NotRequired[str]
    eof: NotRequired[bool]
    """Whether standard input ends after these bytes."""
    offset: NotRequired[int]
    """Position of the first of these bytes in the standard input; stdin_bytes is the number that has arrived."""


class PortTraffic(TypedDict):
    connections: int
    """Connections to the server: a call by HTTP is one."""
    open_connections: int
    """Connections that are open."""
    sent_bytes: int
    """Bytes sent by the server."""
    received_bytes: int
    """Bytes sent to the server."""
    since: str
    """RFC 3339, in UTC."""


class ExposedPort(TypedDict):
    port: int
    """The port on which the server in the sandbox listens."""
    visibility: Literal["private", "public"]
    url: str
    """https://{label}.{ports.domain} if the operator has set a domain, else path_url."""
    path_url: str
    """Always works; its pages are restricted in browsers."""
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    traffic: PortTraffic
    token: str | None
    """Opens this port and nothing else: header X-Port-Token, or port_token in the query once, which makes it a cookie. null for a public port."""
    listening: bool
    """Whether a server listens on the port in the guest right now."""


class ExposedPortPage(TypedDict):
    items: list[ExposedPort]
    next_cursor: str | None


class FieldError(TypedDict):
    field: str
    code: str
    message: str
    min: NotRequired[float]
    max: NotRequired[float]


class FileWatchingEvent(TypedDict):
    cursor: str
    """The change's place in the stream, for `after`."""
    type: Literal["watching"]
    path: str


FileChanged = TypedDict(
    "FileChanged",
    {
        # The change's place in the stream, for `after`.
        "cursor": str,
        "type": Literal["created", "modified", "deleted", "moved", "overflow"],
        "path": str,
        # The path's bytes, if they are not UTF-8.
        "path_b64": NotRequired[str],
        # The former path of a moved entry.
        "from": NotRequired[str],
        "is_directory": bool,
    },
)

FileChangeEvent: TypeAlias = FileWatchingEvent | FileChanged | ErrorEvent


class SandboxStatus(TypedDict):
    reason: str
    """One word for programs."""
    message: str
    """One sentence for a person."""
    last_transition_at: str
    """RFC 3339, in UTC."""


class SandboxExit(TypedDict):
    cause: Literal["user_requested", "expired", "idle", "oom", "guest_panic", "vmm_crash", "host_restart", "credits_exhausted", "host_evacuated"]
    at: str
    """RFC 3339, in UTC."""


class SandboxEgress(TypedDict):
    mode: Literal["none", "allowlist", "public"]
    allowlist: list[str]
    revision: int


class SandboxDrive(TypedDict):
    state: Literal["ok", "degraded"]
    """degraded: commands that use the drive wait or fail until it is back; others run."""
    message: str | None


class ShownPort(TypedDict):
    port: int
    """The port on which the server in the sandbox listens."""
    visibility: Literal["private", "public"]
    url: str
    """https://{label}.{ports.domain} if the operator has set a domain, else path_url."""
    path_url: str
    """Always works; its pages are restricted in browsers."""
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    traffic: PortTraffic


class SandboxLifecycle(TypedDict):
    idle_after_seconds: int | None
    on_idle: Literal["destroy", "standby", "hibernate"]
    """Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later."""
    wake_on: list[Literal["api", "terminal", "message", "port"]]
    """Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing."""


class SandboxCreatedBy(TypedDict):
    type: str
    id: str


class Sandbox(TypedDict):
    sandbox_id: str
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    guest_cid: int
    template_id: str
    template_digest: str | None
    snapshot_id: str | None
    """The snapshot from which it was created, to which it was rolled back, or which was taken of it last."""
    vcpu_count: int
    memory_mib: int
    state: Literal["creating", "starting", "running", "pausing", "paused", "hibernating", "hibernated", "resuming", "failed", "destroying", "destroyed"]
    status: SandboxStatus
    exit: SandboxExit | None
    env_keys: list[str]
    egress: SandboxEgress
    fabric_attached: bool
    drive_mount: str
    drive: SandboxDrive
    ports: list[ShownPort]
    labels: dict[str, str]
    """Up to 64 labels of the caller's own."""
    lifecycle: SandboxLifecycle
    created_at: str
    """RFC 3339, in UTC."""
    started_at: str | None
    """RFC 3339, in UTC."""
    ready_at: str | None
    """RFC 3339, in UTC."""
    stopped_at: str | None
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    create_wall_ms: int | None
    boot: dict[str, float]
    """Time per stage of create, in fields ending _ms."""
    start_mode: Literal["pool", "snapshot", "cold"] | None
    created_by: SandboxCreatedBy


class ForkProblem(TypedDict):
    code: str
    title: str
    detail: str
    details: NotRequired[dict[str, Any]]


class Fork(TypedDict):
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    sandbox: Sandbox | None
    problem: ForkProblem | None


class FsDeleteResult(TypedDict):
    path: str
    guest_path: str
    state: Literal["deleted"]


class FsListResult(TypedDict):
    path: str
    items: list[DriveEntry]
    next_cursor: str | None


class FsMkdirRequest(TypedDict):
    path: str
    """x, /x and /mnt/drive/x are the same file."""
    mode: NotRequired[str]
    """Permissions in octal; 0644 if absent."""
    owner: NotRequired[str]
    """uid:gid, or root; a drive knows no other user names. Of directories above it that are made too."""


class FsMkdirResult(TypedDict):
    guest_path: str
    path: str
    path_b64: NotRequired[str]
    """The path's bytes, if they are not UTF-8."""
    name: str
    type: Literal["file", "directory", "symlink", "other"]
    size_bytes: int
    mode: str
    modified_at: str
    """RFC 3339, in UTC."""
    target: NotRequired[str]
    """Target of a symbolic link."""
    created: bool


FsMoveRequest = TypedDict(
    "FsMoveRequest",
    {
        # x, /x and /mnt/drive/x are the same file.
        "from": str,
        # x, /x and /mnt/drive/x are the same file.
        "to": str,
        # false if absent: refuse when the target exists.
        "overwrite": NotRequired[bool],
    },
)


class FsReadResult(TypedDict):
    path: str
    guest_path: str
    size_bytes: int
    offset: int
    length: int
    eof: bool
    content: str | None
    """Null when the bytes are not UTF-8."""
    content_b64: str
    sha256: str
    """Of the bytes in this answer."""
    modified_at: str
    """RFC 3339, in UTC."""


class FsWriteRequest(TypedDict):
    path: str
    """x, /x and /mnt/drive/x are the same file."""
    content: NotRequired[str]
    """Text of the file."""
    content_b64: NotRequired[str]
    """Bytes of the file."""
    append: NotRequired[bool]
    """Add to the end of the file instead of replacing it. Readers may see a part of the addition, and a crash before the answer may leave one."""
    mode: NotRequired[str]
    """Permissions in octal; 0644 if absent."""
    owner: NotRequired[str]
    """uid:gid, or root; a drive knows no other user names. Of directories above it that are made too."""
    overwrite: NotRequired[bool]
    """false: refuse when the file exists; true if absent."""
    if_match: NotRequired[str]
    """Only if the file has this sha256; else 412."""


class FsWriteResult(TypedDict):
    path: str
    guest_path: str
    size_bytes: int
    sha256: str | None
    """Of the whole file; null when it was added to and is longer than 64 MiB."""
    mode: str
    modified_at: str
    """RFC 3339, in UTC."""
    created: bool
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class Grant(TypedDict):
    grant_id: str
    """The key_id that the application's calls are recorded under."""
    client_id: str
    client_name: str
    """As the application calls itself."""
    redirect_host: str | None
    """Host of the redirect; null for an application with a code."""
    org_id: str
    scopes: list[str]
    room_ids: list[str] | None
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    last_used_at: str | None
    """RFC 3339, in UTC."""


class GrantCreateRequest(TypedDict):
    request: str
    """The query of /authorize, as the application made it."""
    scopes: NotRequired[list[Literal["rooms:read", "rooms:write", "sandboxes:read", "sandboxes:write", "exec", "ports:write", "drive:read", "drive:write", "fabric:read", "fabric:write", "terminal", "templates:write", "audit:read", "usage:read"]]]
    """Granted subset of the requested scopes; all if absent, as far as the role allows."""
    room_ids: NotRequired[list[str]]
    """The rooms that it is bound to; all if absent."""
    expires_in_seconds: NotRequired[int]
    """Lifetime of the grant; if absent, until it is ended."""


class GrantCreateResult(TypedDict):
    grant_id: str
    location: str


class GrantEndResult(TypedDict):
    grant_id: str


class GrantListResult(TypedDict):
    items: list[Grant]


class HealthCheck(TypedDict):
    id: str
    status: Literal["ok", "warn", "fail"]
    message: NotRequired[str]
    """With a key only."""
    remedy: NotRequired[str | None]
    """With a key only."""


class HealthResultCapacity(TypedDict):
    memory_mib_free: int
    guest_cids_free: int


class HealthResult(TypedDict):
    status: Literal["ok", "degraded", "unavailable"]
    topology: Literal["nested", "bare_metal", "emulated"]
    ready: bool
    version: str
    api_versions: list[str]
    acceleration: Literal["kvm", "tcg"]
    uptime_seconds: int
    time: str
    """RFC 3339, in UTC."""
    checks: list[HealthCheck]
    capacity: NotRequired[HealthResultCapacity]


class HostCapacityMemoryMib(TypedDict):
    promised: int
    total: int


class HostDisk(TypedDict):
    size_bytes: int
    free_bytes: int
    """Free in data_dir."""


class HostCapacity(TypedDict):
    memory_mib: HostCapacityMemoryMib
    disk: HostDisk | None
    cpus: int
    rooms: int
    sandboxes: int
    templates: list[str]
    """Those of the host, by their ids."""


class Host(TypedDict):
    host: str
    """Its name, as X-Roomd-Host of its answers."""
    is_self: bool
    """Whether it is the host that answers."""
    state: Literal["active", "degraded", "draining", "unreachable", "gone"]
    """degraded: its last sandboxes did not start, no rooms are placed on it; draining: no rooms are placed on it; unreachable: no sign of life for 20 seconds; gone: it was removed."""
    since: str | None
    """Start of this state; null if it was in it before the answering host began to observe it. RFC 3339, in UTC."""
    url: str
    """URL of this host itself; every other host routes to it too."""
    labels: dict[str, str]
    version: str | None
    capacity: HostCapacity | None
    joined_at: str | None
    """RFC 3339, in UTC."""


class HostChain(TypedDict):
    host: str
    ok: bool
    from_seq: int
    """The first record that is still kept; 0 if there is none."""
    to_seq: int
    broken_at: int | None
    """The first record that breaks the chain."""


class HostEvacuateRequest(TypedDict):
    skip: NotRequired[list[str]]
    """Rooms to leave on the host, by room_uid: rooms that could not be moved."""
    force: NotRequired[bool]
    """Move rooms also if the memory of snapshots is unusable there, or a sandbox that cannot be saved now is ended."""


class HostEvacuated(TypedDict):
    room: EvacuatedRoom | None
    left: int
    """Rooms that remain on it, without those in skip."""


class HostListResult(TypedDict):
    items: list[Host]
    directory_age_seconds: float
    """Time since the answering host last read the shared database; 0 for a standalone host. After 20 seconds it is unknown whether the others run."""


class HostLoopOwnersItem(TypedDict):
    owner: str
    """org:ID, net for clients without a key, host for the service itself."""
    busy_seconds: float


class LoopPiece(TypedDict):
    label: str
    """Operation or kind of work."""
    owner: str
    ms: float


class HostLoop(TypedDict):
    busy_seconds: float
    """Of the service's event loop."""
    owners: list[HostLoopOwnersItem]
    """The owners with the highest usage."""
    waiting: int
    """Pieces of work that wait for it."""
    longest: LoopPiece | None


class HostMemory(TypedDict):
    size_bytes: int
    available_bytes: int
    promised_bytes: int
    """To sandboxes."""
    resident_bytes: int
    """In use by sandboxes."""


class Identity(TypedDict):
    identity_id: str
    issuer: str
    """The identity provider."""
    label: str
    """Its name at the provider when it was linked."""
    is_usable: bool
    """False: the service now uses another issuer, or none."""
    created_at: str
    """RFC 3339, in UTC."""
    last_used_at: str | None
    """RFC 3339, in UTC."""


class IdentityBeginResult(TypedDict):
    url: str


class IdentityListResult(TypedDict):
    items: list[Identity]


class IdentityRemoveResult(TypedDict):
    identity_id: str
    removed: bool


class Invitation(TypedDict):
    invitation_id: str
    email: str | None
    """The address it is for; null: anyone with the link."""
    role: Literal["owner", "admin", "member", "viewer"]
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str
    """RFC 3339, in UTC."""


class InvitationCreateRequest(TypedDict):
    role: Literal["owner", "admin", "member", "viewer"]
    email: NotRequired[str]
    """Only this address can accept it; its ownership is not verified."""


class InvitationCreateResult(TypedDict):
    invitation_id: str
    email: str | None
    """The address it is for; null: anyone with the link."""
    role: Literal["owner", "admin", "member", "viewer"]
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str
    """RFC 3339, in UTC."""
    url: str
    """The link to hand over."""
    is_mailed: bool
    """Whether an e-mail with the link is on its way."""


class InvitationDeleteResult(TypedDict):
    invitation_id: str


class InvitationListResult(TypedDict):
    items: list[Invitation]


class KeyCreateRequest(TypedDict):
    name: str
    scopes: NotRequired[list[Literal["rooms:read", "rooms:write", "sandboxes:read", "sandboxes:write", "exec", "ports:write", "drive:read", "drive:write", "fabric:read", "fabric:write", "terminal", "templates:write", "audit:read", "usage:read", "keys:write", "org:admin"]]]
    room_ids: NotRequired[list[str]]
    """The key cannot tell whether any other room exists."""
    agent_id: NotRequired[str]
    """The key acts only as this agent, and only on its sandboxes."""
    expires_in_seconds: NotRequired[int]


class KeyRotateRequest(TypedDict):
    grace_seconds: NotRequired[int]
    """3600 if absent."""


class KeyRotateResultCreatedBy(TypedDict):
    type: str
    id: str


class KeyRotateResult(TypedDict):
    key_id: str
    name: str
    key_prefix: str
    """The beginning of the key, to tell keys apart."""
    state: Literal["active", "expired", "revoked"]
    scopes: list[Literal["rooms:read", "rooms:write", "sandboxes:read", "sandboxes:write", "exec", "ports:write", "drive:read", "drive:write", "fabric:read", "fabric:write", "terminal", "templates:write", "audit:read", "usage:read", "keys:write", "org:admin"]]
    room_ids: list[str] | None
    """The only rooms that the key can see; null: all."""
    agent_id: str | None
    """The only agent that the key acts as; null: any."""
    created_at: str
    """RFC 3339, in UTC."""
    created_by: KeyRotateResultCreatedBy
    expires_at: str | None
    """RFC 3339, in UTC."""
    revoked_at: str | None
    """RFC 3339, in UTC."""
    replaced_by: str | None
    """The key that it was rotated into."""
    last_used_at: str | None
    """RFC 3339, in UTC."""
    key: str
    """The key itself, shown only once."""
    replaces: ApiKey


class LeftOut(TypedDict):
    sandboxes: int
    snapshots: int
    checkpoints: int
    """Checkpoints that come without their sandboxes."""
    recordings: int


class LocateResult(TypedDict):
    id: str
    """Its public name: of a room its room_id, of an agent its agent_id."""
    type: Literal["room", "sandbox", "agent", "execution", "message", "barrier", "terminal", "recording", "snapshot", "checkpoint", "port", "audit", "request", "key", "org", "template", "template_build", "account", "member", "invitation", "session", "passkey", "identity", "application", "credit", "ssh_key", "ssh_access", "webhook"]
    path: str
    """Path of its page, relative to the URL of the web pages."""
    room_id: str | None
    agent_id: str | None


class MadeSandboxDirectory(TypedDict):
    path: str
    path_b64: NotRequired[str]
    """The path's bytes, if they are not UTF-8."""
    name: str
    type: Literal["file", "directory", "symlink", "other"]
    size_bytes: int
    mode: str
    uid: int
    gid: int
    modified_at: str
    """RFC 3339, in UTC."""
    target: NotRequired[str]
    """Target of a symbolic link."""
    created: bool


class MeGetResult(TypedDict):
    org_id: str
    plan: str
    key_id: str
    name: str
    scopes: list[str]
    room_ids: list[str] | None
    agent_id: str | None
    expires_at: str | None
    """RFC 3339, in UTC."""


class Member(TypedDict):
    user_id: str
    email: str
    name: str
    role: Literal["owner", "admin", "member", "viewer"]
    created_at: str
    """RFC 3339, in UTC."""
    disabled_at: str | None
    """RFC 3339, in UTC."""


class MemberListResult(TypedDict):
    items: list[Member]


class MemberRemoveResult(TypedDict):
    user_id: str
    keys_revoked: int
    """Those of applications are among them."""
    sessions_ended: int
    ended: EndedMade


class MemberUpdateRequest(TypedDict):
    role: Literal["owner", "admin", "member", "viewer"]


class MessageAckRequest(TypedDict):
    agent_id: NotRequired[str]
    """The recipient that has it."""


class MessageAckResult(TypedDict):
    message_id: str
    """The message's name, unique in the room."""
    seq: int
    agent_id: str
    state: Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]


class MessageGetResultDeliveriesItem(TypedDict):
    agent_id: str
    state: Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]


class MessageGetResult(TypedDict):
    message_id: str
    """The message's name, unique in the room."""
    seq: int
    """Place in the room's order."""
    source: str
    destination: str | None
    destinations: list[str] | None
    topic: str | None
    kind: Literal["event", "request", "response"]
    payload: Any
    payload_b64: str | None
    size_bytes: int
    headers: dict[str, str]
    reply_to: str | None
    ack_required: bool
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    attempt: int | None
    """In an inbox: how often it has been delivered, this time included."""
    state: Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]
    deliveries: list[MessageGetResultDeliveriesItem]
    recipient_count: int


class MessageReceiptDeliveriesItem(TypedDict):
    agent_id: str
    state: Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]


class MessageReceipt(TypedDict):
    message_id: str
    """The message's name, unique in the room."""
    seq: int
    state: Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]
    """The state at the recipient that is furthest behind."""
    deliveries: list[MessageReceiptDeliveriesItem]
    recipient_count: int


class MessageReplyRequest(TypedDict):
    source: NotRequired[str]
    """The sender; in a guest always the sandbox's own agent."""
    reply_message_id: NotRequired[str]
    """The message_id of the reply."""
    payload: NotRequired[Any]
    """Any JSON, up to 64 KiB as text."""
    payload_b64: NotRequired[str]
    """Bytes, up to 64 KiB."""
    headers: NotRequired[dict[str, str]]
    """Metadata of the message, up to 4 KiB."""
    ack_required: NotRequired[bool]
    """Delivered again after 30 s without an ack, up to 5 times; then it is undeliverable."""
    ttl_ms: NotRequired[int]
    """The message expires unread after this time; never if absent."""


class MessageReplyResultDeliveriesItem(TypedDict):
    agent_id: str
    state: Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]


class MessageReplyResult(TypedDict):
    message_id: str
    """The message's name, unique in the room."""
    seq: int
    state: Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]
    """The state at the recipient that is furthest behind."""
    deliveries: list[MessageReplyResultDeliveriesItem]
    recipient_count: int


class MessageToSend(TypedDict):
    source: NotRequired[str]
    """The sender; in a guest always the sandbox's own agent."""
    destination: NotRequired[str | None]
    """The recipient; * for all others. Matches * or ^(?!sbx_)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$."""
    destinations: NotRequired[list[str] | None]
    """Several recipients."""
    topic: NotRequired[str | None]
    """Words separated by dots. The message goes to the topic's subscribers. Matches ^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$."""
    kind: NotRequired[Literal["event", "request", "response"]]
    """event if absent; with reply_to response."""
    reply_to: NotRequired[str]
    """message_id of the message that this replies to."""
    message_id: NotRequired[str]
    """The message's name, unique in the room."""
    payload: NotRequired[Any]
    """Any JSON, up to 64 KiB as text."""
    payload_b64: NotRequired[str]
    """Bytes, up to 64 KiB."""
    headers: NotRequired[dict[str, str]]
    """Metadata of the message, up to 4 KiB."""
    ack_required: NotRequired[bool]
    """Delivered again after 30 s without an ack, up to 5 times; then it is undeliverable."""
    ttl_ms: NotRequired[int]
    """The message expires unread after this time; never if absent."""


class MessageSendManyRequest(TypedDict):
    messages: list[MessageToSend]
    """In the order of delivery."""


class MessageSendManyResult(TypedDict):
    messages: list[MessageReceipt]
    """In the same order."""


class NetworkPlace(TypedDict):
    host: str | None
    """The requested name; null for an address."""
    ip: str | None
    """The last address; null when it was refused before it was resolved."""
    port: int | None
    """null if only the name was looked up."""
    allowed: bool
    reason: Literal["not_listed", "blocked_address", "sni_mismatch", "sni_missing", "host_mismatch", "bad_request", "other"] | None
    """Reason of the refusal."""
    connections: int
    """Number of connections and attempts."""
    sent_bytes: int
    received_bytes: int
    first_at: str
    """RFC 3339, in UTC."""
    last_at: str
    """RFC 3339, in UTC."""


class NewApiKeyCreatedBy(TypedDict):
    type: str
    id: str


class NewApiKey(TypedDict):
    key_id: str
    name: str
    key_prefix: str
    """The beginning of the key, to tell keys apart."""
    state: Literal["active", "expired", "revoked"]
    scopes: list[Literal["rooms:read", "rooms:write", "sandboxes:read", "sandboxes:write", "exec", "ports:write", "drive:read", "drive:write", "fabric:read", "fabric:write", "terminal", "templates:write", "audit:read", "usage:read", "keys:write", "org:admin"]]
    room_ids: list[str] | None
    """The only rooms that the key can see; null: all."""
    agent_id: str | None
    """The only agent that the key acts as; null: any."""
    created_at: str
    """RFC 3339, in UTC."""
    created_by: NewApiKeyCreatedBy
    expires_at: str | None
    """RFC 3339, in UTC."""
    revoked_at: str | None
    """RFC 3339, in UTC."""
    replaced_by: str | None
    """The key that it was rotated into."""
    last_used_at: str | None
    """RFC 3339, in UTC."""
    key: str
    """The key itself, shown only once."""


class NewWebhookCreatedBy(TypedDict):
    type: str
    id: str


class NewWebhook(TypedDict):
    webhook_id: str
    url: str
    """Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges)."""
    types: list[str]
    """Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent."""
    room_ids: list[str] | None
    """Only events of rooms with these names, including rooms made later; null: of all, and events of no room."""
    enabled: bool
    """Whether events are sent. Events that occur while it is disabled are sent once it is enabled again."""
    disabled_reason: Literal["by_request", "gone", "failing", "maker_ended"] | None
    """Why it is disabled: by request; its receiver answered 410; its receiver accepted nothing for 5 days; its maker's access ended (a person or a key). The caller that enables it becomes its maker."""
    disabled_at: str | None
    """RFC 3339, in UTC."""
    created_at: str
    """RFC 3339, in UTC."""
    created_by: NewWebhookCreatedBy
    updated_at: str
    """RFC 3339, in UTC."""
    former_secret_until: str | None
    """Until then the previous secret signs too. RFC 3339, in UTC."""
    sent_count: int
    """Events that the receiver has accepted."""
    waiting_count: int
    """Events that it did not accept and that will be retried."""
    behind_count: int
    """Audit records that are not processed yet."""
    missed_count: int
    """Audit records that retention deleted before they were processed or sent. Whether the unprocessed records would have been sent is unknown."""
    failed_count: int
    """Events abandoned after 17 attempts, each time it happened. The receiver accepted others in that time: a webhook whose receiver accepts none is disabled first, and no event is abandoned."""
    last_sent_at: str | None
    """When the receiver last accepted an event. RFC 3339, in UTC."""
    failing_since: str | None
    """Since when it has accepted none. RFC 3339, in UTC."""
    secret: str
    """Signs the events; shown only once."""


class OrgAuditVerdict(TypedDict):
    ok: bool
    from_seq: int
    """The first record that is still kept; 0 if there is none."""
    to_seq: int
    broken_at: int | None
    """The first record that breaks the chain."""
    hosts: NotRequired[list[HostChain]]
    """With several hosts: the chain of each host that answered. ok is then true if all of these are intact, and the numbers are those of the first broken chain, or else of the host that was called."""
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class OrgCreateRequest(TypedDict):
    name: str
    plan: NotRequired[Literal["free", "starter"]]
    """free if absent."""


class OrgCreateResult(TypedDict):
    org_id: str
    name: str
    plan: Literal["free", "starter"]
    created_at: str
    """RFC 3339, in UTC."""
    key_id: str
    api_key: str
    """The key itself, shown only once."""


class OrgDeleteResult(TypedDict):
    org_id: str
    state: Literal["ending"]
    rooms_left: int
    """Rooms that have not ended yet."""
    keys_revoked: int
    members_removed: int


class OrgEventActor(TypedDict):
    type: str
    id: str
    name: str


class OrgEvent(TypedDict):
    audit_id: str
    seq: int
    """Position in the organization's chain."""
    event: str
    outcome: Literal["success", "denied", "error"]
    at: str
    """RFC 3339, in UTC."""
    org_id: str | None
    room_id: str | None
    room_uid: str | None
    agent_id: str | None
    sandbox_id: str | None
    actor: OrgEventActor
    source: Literal["rest", "mcp", "vsock", "ssh", "web", "cli", "reconciler"]
    request_id: str | None
    ip: str | None
    status: int | None
    error_code: str | None
    duration_ms: float | None
    details: dict[str, Any]
    prev_hash: str
    hash: str
    cursor: str
    """Position after this event, to continue from; also its id. Opaque."""


class OrgSandboxListResult(TypedDict):
    items: list[Sandbox]
    next_cursor: str | None
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class Passkey(TypedDict):
    passkey_id: str
    name: str
    rp_id: str
    """The name of the service for which it was made and is valid."""
    is_usable: bool
    """False: the service has another name now."""
    is_synced: bool
    """Whether its provider has a copy elsewhere; else it is on one device."""
    created_at: str
    """RFC 3339, in UTC."""
    last_used_at: str | None
    """RFC 3339, in UTC."""


class PasskeyAddRequest(TypedDict):
    name: NotRequired[str]
    response: dict[str, Any]
    """Result of `navigator.credentials.create`, as returned by its `toJSON`."""


class PasskeyListResult(TypedDict):
    items: list[Passkey]


class PasskeyOptionsResult(TypedDict):
    options: dict[str, Any]


class PasskeyRemoveResult(TypedDict):
    passkey_id: str
    removed: bool


class PingEvent(TypedDict):
    """A sign that the stream is alive."""

    type: Literal["ping"]
    warnings: NotRequired[list[str]]
    """Parts that are currently missing."""


class Problem(TypedDict):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    code: Literal["invalid_json", "invalid_body", "invalid_query", "invalid_cursor", "missing_credentials", "invalid_api_key", "api_key_expired", "session_ended", "sign_in_failed", "insufficient_scope", "scope_escalation", "hub_is_read_only", "sign_up_closed", "proof_required", "foreign_request", "source_mismatch", "path_escapes_drive", "room_not_found", "sandbox_not_found", "execution_not_found", "path_not_found", "port_not_exposed", "agent_not_found", "message_not_found", "barrier_not_found", "snapshot_not_found", "checkpoint_not_found", "recording_not_found", "template_build_not_found", "org_not_found", "key_not_found", "webhook_not_found", "delivery_not_found", "member_not_found", "invitation_not_found", "session_not_found", "grant_not_found", "device_not_found", "passkey_not_found", "identity_not_found", "checkout_not_found", "link_not_found", "id_not_found", "route_not_found", "method_not_allowed", "body_too_large", "payload_too_large", "file_too_large", "unsupported_media_type", "room_id_in_use", "agent_id_in_use", "guest_cid_in_use", "last_owner", "last_way_in", "invalid_state", "room_destroying", "snapshot_incompatible", "snapshot_in_use", "exec_id_in_use", "billing_off", "mail_off", "already_exists", "is_directory", "not_empty", "agent_unavailable", "deadlock_detected", "barrier_timeout", "barrier_broken", "barrier_cancelled", "barrier_parties_mismatch", "idempotency_in_progress", "history_gone", "precondition_failed", "validation_failed", "unknown_field", "conflicting_fields", "guest_cid_out_of_range", "memory_mib_out_of_range", "memory_below_template_minimum", "template_not_found", "invalid_env_json", "reserved_env_key", "invalid_egress_entry", "invalid_command", "cwd_not_found", "timeout_out_of_range", "port_out_of_range", "invalid_path", "build_failed", "misdirected", "image_not_found", "image_unauthorized", "image_too_large", "image_invalid", "idempotency_key_reused", "rate_limited", "registry_rate_limited", "quota_exceeded", "inbox_full", "too_many_executions", "too_many_ports", "caller_left", "range_not_satisfiable", "internal", "billing_failed", "upstream_failed", "guest_unreachable", "port_not_listening", "not_ready", "insufficient_capacity", "cluster_unavailable", "not_a_member", "host_unreachable", "room_moving", "shutting_down", "reply_timeout", "drive_full", "disk_full"]
    retryable: bool
    request_id: str
    details: dict[str, Any]
    errors: list[FieldError]
    hint: str | None


class Recording(TypedDict):
    recording_id: str
    room_id: str
    agent_id: str
    sandbox_id: str
    state: Literal["recording", "ended"]
    end_reason: Literal["stopped", "time_up", "too_large", "disk_full", "sandbox_stopped", "screen_lost", "service_restarted"] | None
    """Reason of its end; null while in progress."""
    started_at: str
    """RFC 3339, in UTC."""
    ended_at: str | None
    """RFC 3339, in UTC."""
    duration_ms: int
    """So far, while in progress."""
    size_bytes: int
    width: int
    """Of the widest picture in it."""
    height: int


class RecordingDeleteResult(TypedDict):
    recording_id: str
    state: Literal["deleted"]


class RecordingListResult(TypedDict):
    items: list[Recording]


class RecordingStartRequest(TypedDict):
    max_seconds: NotRequired[int]
    """Time limit; 3600 if absent."""


class RevokedApiKeyCreatedBy(TypedDict):
    type: str
    id: str


class RevokedApiKey(TypedDict):
    key_id: str
    name: str
    key_prefix: str
    """The beginning of the key, to tell keys apart."""
    state: Literal["active", "expired", "revoked"]
    scopes: list[Literal["rooms:read", "rooms:write", "sandboxes:read", "sandboxes:write", "exec", "ports:write", "drive:read", "drive:write", "fabric:read", "fabric:write", "terminal", "templates:write", "audit:read", "usage:read", "keys:write", "org:admin"]]
    room_ids: list[str] | None
    """The only rooms that the key can see; null: all."""
    agent_id: str | None
    """The only agent that the key acts as; null: any."""
    created_at: str
    """RFC 3339, in UTC."""
    created_by: RevokedApiKeyCreatedBy
    expires_at: str | None
    """RFC 3339, in UTC."""
    revoked_at: str | None
    """RFC 3339, in UTC."""
    replaced_by: str | None
    """The key that it was rotated into."""
    last_used_at: str | None
    """RFC 3339, in UTC."""
    ended: EndedMade


class RoomStatus(TypedDict):
    reason: str
    """One word for programs."""
    message: str
    """One sentence for a person."""
    last_transition_at: str
    """RFC 3339, in UTC."""


class RoomDrive(TypedDict):
    used_bytes: int
    limit_bytes: int
    file_count: int
    """Number of files. If the kernel enforces the quota (defaults.drive_quota): entries of any kind."""


class RoomCreatedBy(TypedDict):
    type: str
    id: str


class Room(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    room_uid: str
    org_id: str
    host: str
    """Name of the host that it is on, as X-Roomd-Host of its answers."""
    state: Literal["active", "destroying", "destroyed"]
    status: RoomStatus
    labels: dict[str, str]
    """Up to 64 labels of the caller's own."""
    sandbox_count: int
    drive: RoomDrive
    created_at: str
    """RFC 3339, in UTC."""
    updated_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    created_by: RoomCreatedBy
    warnings: list[str]
    """Sentences for a person."""


class RoomCheckpointRequest(TypedDict):
    name: NotRequired[str]
    """For people."""
    expires_in_seconds: NotRequired[int]
    """Lifetime, after which it is deleted; 604800 (7 days) if absent."""


class RoomCreateRequest(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    labels: NotRequired[dict[str, str]]
    """Up to 64 labels of the caller's own."""
    ttl_seconds: NotRequired[int]
    """The room is destroyed after this time."""
    host: NotRequired[str]
    """Target host, if there are several; else a host with free memory."""
    host_labels: NotRequired[dict[str, str]]
    """Only a host that has all of these labels."""


class RoomDestroyResultDrive(TypedDict):
    state: Literal["retained", "deleted"]
    until_at: str | None
    """RFC 3339, in UTC."""


class RoomDestroyResult(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    room_uid: str
    state: Literal["destroying", "destroyed"]
    sandboxes_destroyed: list[str]
    drive: RoomDestroyResultDrive
    duration_ms: int


class RoomForkRequest(TypedDict):
    room_id: str
    """Name of the new room, unique among the organization's active rooms."""
    checkpoint_id: NotRequired[str]
    """Checkpoint of the source; one is taken now if absent."""
    cids: NotRequired[Literal["suggest"]]
    """Source of guest_cids: free ones are assigned, also if absent."""


class RoomForkResult(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    room: Room
    checkpoint_id: str
    items: list[Fork]
    """One per sandbox of the checkpoint: the sandbox, or the problem that prevented it."""


class RoomFromBackup(TypedDict):
    room: Room
    of_room: str
    """Name of the room that was backed up."""
    backed_up_at: str
    """RFC 3339, in UTC."""
    left_out: LeftOut


class RoomGlanceDrive(TypedDict):
    used_bytes: int
    """0 if the drive cannot be read now."""
    limit_bytes: int


class RoomGlanceCost(TypedDict):
    """Since the room was made, in its last 366 days. On a day with very many rooms and agents, not all cost is attributed to rooms. Null for a key without usage:read, and for a key that is bound to an agent."""

    sandbox_seconds: float
    """Time in which its sandboxes were running."""
    credits: float
    """By the current price table; 0 if nothing has a price."""


class RoomGlance(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    room_uid: str
    host: str
    """Name of the host that it is on, as X-Roomd-Host of its answers."""
    state: Literal["active", "destroying", "destroyed"]
    labels: dict[str, str]
    """Up to 64 labels of the caller's own."""
    agents: int
    """Agents that are not gone, with or without a sandbox."""
    running: int
    """Running sandboxes."""
    blocked: int
    """Agents that wait for a reply or at a barrier now, as listed by room_waits."""
    in_circle: bool
    """Whether some of them wait for each other, so that none can continue alone."""
    truncated: bool
    """Whether there are more waits than were examined: then more can be blocked."""
    messages_last_minute: int
    """Messages that were accepted in the last 60 s, on this host."""
    drive: RoomGlanceDrive
    cost: RoomGlanceCost | None
    """Since the room was made, in its last 366 days. On a day with very many rooms and agents, not all cost is attributed to rooms. Null for a key without usage:read, and for a key that is bound to an agent."""
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class RoomListResult(TypedDict):
    items: list[Room]
    next_cursor: str | None
    org_id: str
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class RoomMoveRequest(TypedDict):
    host: str
    """Name of the target host."""
    force: NotRequired[bool]
    """Move it also if the memory of snapshots is unusable there, or a sandbox that cannot be saved now is ended."""


class RoomMovedLost(TypedDict):
    snapshots: int
    checkpoints: int
    recordings: int


RoomMoved = TypedDict(
    "RoomMoved",
    {
        # Name of the room, unique among the organization's active rooms.
        "room_id": str,
        "room_uid": str,
        # Name of the previous host.
        "from": str,
        # Name of the present host.
        "to": str,
        # Counter of the room's hosts: 1 when it was created.
        "epoch": int,
        # Size of its drive's files.
        "drive_bytes": int,
        # The agents whose sandboxes were ended by the move.
        "sandboxes_ended": list[str],
        "lost": RoomMovedLost,
        # How long the room was unreachable.
        "away_ms": int,
    },
)


class Wait(TypedDict):
    agent_id: str
    """The waiting agent."""
    type: Literal["reply", "barrier", "inbox", "command"]
    id: str | None
    """The message, the barrier or the execution; null for an inbox."""
    on: list[str]
    """Agents that it waits for, 100 of them at most; empty for an inbox and a command."""
    since: str
    """RFC 3339, in UTC."""
    held: bool
    """Whether a call of the agent is waiting for it at this moment."""
    about: str
    """Short description: a topic, a kind, a command."""


class RunningCommand(TypedDict):
    agent_id: str
    exec_id: str
    command: str
    """One line; credentials are redacted."""
    since: str
    """RFC 3339, in UTC."""


class RoomNowDeadlocksItem(TypedDict):
    agents: list[str]
    """Each waits for the next, the last for the first."""
    text: str
    """The same as a sentence."""


class RoomNow(TypedDict):
    type: Literal["now"]
    at: str
    """RFC 3339, in UTC."""
    waits: list[Wait]
    """As of room_waits, the oldest first, each for at most 100 agents; without commands."""
    commands: list[RunningCommand]
    """Commands that are running, the oldest first."""
    deadlocks: list[RoomNowDeadlocksItem]
    truncated: bool
    """Whether there are more waits."""

RoomNowLine: TypeAlias = RoomNow | CommandLine | DeadlockLine


class RoomOverviewResult(TypedDict):
    items: list[RoomGlance]
    next_cursor: str | None
    org_id: str
    at: str
    """RFC 3339, in UTC."""
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class RoomRestoreResult(TypedDict):
    room: Room
    items: list[Fork]
    """One per sandbox of the checkpoint: the sandbox, or the problem that prevented it."""


class TimelineItemRef(TypedDict):
    type: str
    id: str


class TimelineItem(TypedDict):
    seq: int | None
    """Of the audit record; null while in progress."""
    lane: Literal["agent", "room", "egress", "ports"]
    """Lane in which it is drawn: its agent's, or a shared resource's."""
    agent_id: str | None
    kind: Literal["span", "mark"]
    type: Literal["command", "wait", "standby", "message", "barrier", "refusal", "sandbox", "terminal", "drive", "port", "room"]
    at: str
    """RFC 3339, in UTC."""
    until: str | None
    """The end of a span; null for a mark and while in progress. RFC 3339, in UTC."""
    outcome: Literal["success", "denied", "error"]
    title: str
    """One line."""
    to: list[str]
    """Its recipients, 16 agents at most."""
    ref: TimelineItemRef | None
    exit_code: int | None
    trace_id: str | None
    """The trace that it is a part of, if any."""


class RoomTimelineResult(TypedDict):
    room_id: str
    at: str
    """RFC 3339, in UTC."""
    items: list[TimelineItem]
    open: list[TimelineItem]
    """On the first page: running commands, waits of agents, also between their calls, and sandboxes in standby."""
    next_cursor: str | None
    trace_url: str | None
    """URL of the page that shows a trace, with {trace_id} for its id, if the service has one."""


class RoomUpdateRequest(TypedDict):
    labels: NotRequired[dict[str, str]]
    """Up to 64 labels of the caller's own."""
    expires_in_seconds: NotRequired[int | None]
    """Destroys the room this long after now; null: never."""


class RoomWaitsResultCyclesItem(TypedDict):
    agents: list[str]
    """Each waits for the next, the last for the first."""
    text: str
    """The same as a sentence."""


class RoomWaitsResult(TypedDict):
    room_id: str
    at: str
    """RFC 3339, in UTC."""
    waits: list[Wait]
    """The oldest first."""
    cycles: list[RoomWaitsResultCyclesItem]
    """One of the shortest rings of each deadlocked group."""
    truncated: bool
    """Whether there are more waits than are listed."""
    text: str
    """The same as one paragraph of text."""


class SandboxCreateRequestLifecycle(TypedDict):
    """When it is idle, the action then, and the triggers that wake it."""

    idle_after_seconds: NotRequired[int | None]
    """A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock."""
    on_idle: NotRequired[Literal["destroy", "standby", "hibernate"]]
    """Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later."""
    wake_on: NotRequired[list[Literal["api", "terminal", "message", "port"]]]
    """Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing."""


class SandboxCreateRequest(TypedDict):
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    guest_cid: NotRequired[int]
    """Address of the guest, unique on the host. Default: a free one."""
    memory_mib: NotRequired[int]
    """Memory in MiB; /v1/config has the host's limit. Default: the template's default_memory_mib, or the snapshot's."""
    vcpu_count: NotRequired[int]
    """1 if absent, at most the host's cores."""
    template_id: NotRequired[str]
    """Which template; "default" if absent."""
    snapshot_id: NotRequired[str]
    """Snapshot of the room, in place of a template. memory_mib and vcpu_count are then those of the snapshot; env is added to that of its sandbox, and absent fields are as they were in it."""
    env: NotRequired[dict[str, str]]
    """Environment variables; ROOMD_ names are reserved."""
    env_json: NotRequired[str]
    """The same as a JSON string. Not together with env."""
    egress_allowlist: NotRequired[list[str]]
    """Allowed destinations: addresses, CIDR, host names, *.example.org, each with optional :port; * is every public address."""
    egress_allowlist_json: NotRequired[str]
    """The same as a JSON string."""
    labels: NotRequired[dict[str, str]]
    """Up to 64 labels of the caller's own."""
    idle_timeout_seconds: NotRequired[int]
    """A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock."""
    max_duration_seconds: NotRequired[int]
    """Ends the sandbox this long after its creation, whatever it does, also in standby."""
    lifecycle: NotRequired[SandboxCreateRequestLifecycle]
    """When it is idle, the action then, and the triggers that wake it."""
    attach_fabric: NotRequired[bool]
    """Whether the guest reaches its room; true if absent."""
    enable_guest_net: NotRequired[bool]
    """false: no egress at all; true if absent."""


class SandboxCreateResultStatus(TypedDict):
    reason: str
    """One word for programs."""
    message: str
    """One sentence for a person."""
    last_transition_at: str
    """RFC 3339, in UTC."""


class SandboxCreateResultExit(TypedDict):
    cause: Literal["user_requested", "expired", "idle", "oom", "guest_panic", "vmm_crash", "host_restart", "credits_exhausted", "host_evacuated"]
    at: str
    """RFC 3339, in UTC."""


class SandboxCreateResultEgress(TypedDict):
    mode: Literal["none", "allowlist", "public"]
    allowlist: list[str]
    revision: int


class SandboxCreateResultDrive(TypedDict):
    state: Literal["ok", "degraded"]
    """degraded: commands that use the drive wait or fail until it is back; others run."""
    message: str | None


class SandboxCreateResultLifecycle(TypedDict):
    idle_after_seconds: int | None
    on_idle: Literal["destroy", "standby", "hibernate"]
    """Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later."""
    wake_on: list[Literal["api", "terminal", "message", "port"]]
    """Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing."""


class SandboxCreateResultCreatedBy(TypedDict):
    type: str
    id: str


class SandboxCreateResult(TypedDict):
    sandbox_id: str
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    guest_cid: int
    template_id: str
    template_digest: str | None
    snapshot_id: str | None
    """The snapshot from which it was created, to which it was rolled back, or which was taken of it last."""
    vcpu_count: int
    memory_mib: int
    state: Literal["creating", "starting", "running", "pausing", "paused", "hibernating", "hibernated", "resuming", "failed", "destroying", "destroyed"]
    status: SandboxCreateResultStatus
    exit: SandboxCreateResultExit | None
    env_keys: list[str]
    egress: SandboxCreateResultEgress
    fabric_attached: bool
    drive_mount: str
    drive: SandboxCreateResultDrive
    ports: list[ShownPort]
    labels: dict[str, str]
    """Up to 64 labels of the caller's own."""
    lifecycle: SandboxCreateResultLifecycle
    created_at: str
    """RFC 3339, in UTC."""
    started_at: str | None
    """RFC 3339, in UTC."""
    ready_at: str | None
    """RFC 3339, in UTC."""
    stopped_at: str | None
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    create_wall_ms: int | None
    boot: dict[str, float]
    """Time per stage of create, in fields ending _ms."""
    start_mode: Literal["pool", "snapshot", "cold"] | None
    created_by: SandboxCreateResultCreatedBy
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class SandboxDestroyResult(TypedDict):
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    sandbox_id: str
    guest_cid: int
    state: Literal["destroyed"]


class SandboxExecRequest(TypedDict):
    argv: NotRequired[list[str]]
    """The command and its arguments, run without a shell."""
    argv_json: NotRequired[str]
    """The same as a JSON string."""
    command: NotRequired[str]
    """A line that /bin/sh -c runs."""
    cwd: NotRequired[str]
    """Working directory in the guest."""
    env: NotRequired[dict[str, str]]
    """Environment variables; ROOMD_ names are reserved."""
    env_json: NotRequired[str]
    """The same as a JSON string. Not together with env."""
    user: NotRequired[str]
    """User name or id; root if absent."""
    stdin: NotRequired[str]
    """Text for standard input."""
    stdin_b64: NotRequired[str]
    """Bytes for standard input."""
    timeout_ms: NotRequired[int]
    """Ends the command after this time: SIGTERM to its process group, SIGKILL 5 s later. 0: no limit. At most 7 days. Default: 600 000 for a command that the call waits for, no limit for a command that it starts."""
    max_output_bytes: NotRequired[int]
    """Most bytes of each stream in the answer; 1 MiB if absent."""
    output_to: NotRequired[str]
    """Drive directory for the full streams, in the files stdout and stderr."""
    exec_id: NotRequired[str]
    """The caller's own name for this run. The same name never runs twice."""
    wait_ms: NotRequired[int]
    """Longest wait for the command's end. After it the answer is 202 with state running and the output so far; the command continues under its exec_id. By default the call waits until the end."""


class SandboxExposePortRequest(TypedDict):
    port: int
    """The port on which the server in the sandbox listens."""
    visibility: NotRequired[Literal["private", "public"]]
    """private (the default): only with the port's own token."""
    label: NotRequired[str]
    """Prefix of the URL's label; unguessable characters follow."""
    expires_in_seconds: NotRequired[int]
    """The port is unexposed after this time; if absent, when its sandbox ends."""
    wait_ms: NotRequired[int]
    """How long to wait until a server listens on the port, if none does; 0 if absent. `listening` has the result."""


class SandboxFileDeleteResult(TypedDict):
    path: str
    state: Literal["deleted"]


class SandboxFileEntry(TypedDict):
    path: str
    path_b64: NotRequired[str]
    """The path's bytes, if they are not UTF-8."""
    name: str
    type: Literal["file", "directory", "symlink", "other"]
    size_bytes: int
    mode: str
    uid: int
    gid: int
    modified_at: str
    """RFC 3339, in UTC."""
    target: NotRequired[str]
    """Target of a symbolic link."""


class SandboxFileListResult(TypedDict):
    path: str
    items: list[SandboxFileEntry]
    next_cursor: str | None


class SandboxFileMkdirRequest(TypedDict):
    path: str
    """Absolute path in the sandbox."""
    mode: NotRequired[str]
    """Permissions in octal; 0755 if absent."""
    owner: NotRequired[str]
    """User of the sandbox, user:group or uid:gid; the user that commands run as if absent."""


SandboxFileMoveRequest = TypedDict(
    "SandboxFileMoveRequest",
    {
        # Absolute path in the sandbox.
        "from": str,
        # Absolute path in the sandbox.
        "to": str,
        # false if absent: refuse when the target exists.
        "overwrite": NotRequired[bool],
    },
)


class SandboxForkRequestAgentsItem(TypedDict):
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    guest_cid: NotRequired[int]
    """Address of the guest, unique on the host."""
    env: NotRequired[dict[str, str]]
    """Environment variables; ROOMD_ names are reserved."""


class SandboxForkRequest(TypedDict):
    agents: list[SandboxForkRequestAgentsItem]
    """One for each forked sandbox: the agent that it serves."""
    expires_in_seconds: NotRequired[int]
    """Lifetime, after which it is deleted; 604800 (7 days) if absent."""


class SandboxForkResult(TypedDict):
    snapshot_id: str
    items: list[Fork]
    """One for each agent, in their order: its sandbox, or the problem that prevented it."""


class SandboxLogsResultItemsItem(TypedDict):
    offset: int
    line: str
    """Its first 8 KiB."""


class SandboxLogsResult(TypedDict):
    source: Literal["console", "agent"]
    items: list[SandboxLogsResultItemsItem]
    next_after: int


class SandboxMetricsResultCpu(TypedDict):
    vcpu_count: int
    used_seconds: float


class SandboxMetricsResultMemory(TypedDict):
    memory_mib: int
    resident_bytes: int


class SandboxMetricsResultDisk(TypedDict):
    used_bytes: int


class SandboxMetricsResult(TypedDict):
    cpu: SandboxMetricsResultCpu
    memory: SandboxMetricsResultMemory
    disk: SandboxMetricsResultDisk
    clock_skew_ms: float | None
    at: str
    """RFC 3339, in UTC."""


class SandboxNetworkOther(TypedDict):
    allowed: int
    """Connections to destinations that are no longer listed, in favor of later ones."""
    refused: int


class SandboxNetwork(TypedDict):
    sandbox_id: str
    agent_id: str
    since: str
    """RFC 3339, in UTC."""
    items: list[NetworkPlace]
    """Newest first; at most 250 allowed and 250 refused."""
    other: SandboxNetworkOther


class SandboxPage(TypedDict):
    items: list[Sandbox]
    next_cursor: str | None


class SandboxRollbackRequest(TypedDict):
    snapshot_id: str
    """Snapshot of the room; of the same template, memory and processors as the sandbox."""


class SandboxSnapshotRequest(TypedDict):
    name: NotRequired[str]
    """For people."""
    mode: NotRequired[Literal["full", "disk"]]
    """full if absent."""
    expires_in_seconds: NotRequired[int]
    """Lifetime, after which it is deleted; 604800 (7 days) if absent."""


class SandboxUnexposePortResult(TypedDict):
    port: int
    """The port on which the server in the sandbox listens."""
    state: Literal["unexposed"]


class SandboxUpdateRequestLifecycle(TypedDict):
    """When it is idle, the action then, and the triggers that wake it."""

    idle_after_seconds: NotRequired[int | None]
    """A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock."""
    on_idle: NotRequired[Literal["destroy", "standby", "hibernate"]]
    """Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later."""
    wake_on: NotRequired[list[Literal["api", "terminal", "message", "port"]]]
    """Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing."""


class SandboxUpdateRequest(TypedDict):
    labels: NotRequired[dict[str, str]]
    """Up to 64 labels of the caller's own."""
    idle_timeout_seconds: NotRequired[int | None]
    """A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock."""
    max_duration_seconds: NotRequired[int | None]
    """Ends the sandbox this long after its creation, whatever it does, also in standby."""
    expires_in_seconds: NotRequired[int | None]
    """Ends the sandbox this long after now, in place of max_duration_seconds; null: never."""
    lifecycle: NotRequired[SandboxUpdateRequestLifecycle]
    """When it is idle, the action then, and the triggers that wake it."""


class ScreenTicketRequest(TypedDict):
    drive: NotRequired[bool]
    """Whether keys, pointer and clipboard reach the screen; false if absent: view only."""


class ScreenTicketResult(TypedDict):
    ws_path: str
    """URL to connect to, with the ticket in its query."""
    ticket: str
    """Opens this screen and nothing else until expires_at, as often as needed. Its connections continue after that, while the key that made it is valid."""
    drives: bool
    expires_at: str
    """RFC 3339, in UTC."""


class SentMessageDeliveriesItem(TypedDict):
    agent_id: str
    state: Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]


class SentMessage(TypedDict):
    message_id: str
    """The message's name, unique in the room."""
    seq: int
    state: Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]
    """The state at the recipient that is furthest behind."""
    deliveries: list[SentMessageDeliveriesItem]
    recipient_count: int
    reply: NotRequired[Message | None]


class Session(TypedDict):
    session_id: str
    created_at: str
    """RFC 3339, in UTC."""
    seen_at: str
    """RFC 3339, in UTC."""
    expires_at: str
    """RFC 3339, in UTC."""
    ip: str | None
    user_agent: str | None
    is_this: bool


class SessionEndResult(TypedDict):
    sessions_ended: int


class SessionListResult(TypedDict):
    items: list[Session]


class Snapshot(TypedDict):
    snapshot_id: str
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    sandbox_id: str
    """The sandbox of which it was taken."""
    name: str | None
    parent: str | None
    """The snapshot from which its sandbox came, or the last one taken of it before."""
    mode: Literal["full", "disk"]
    """full: memory, processes and disk. disk: its own disk alone, from which sandboxes boot."""
    memory_mib: int
    vcpu_count: int
    template_id: str
    size_bytes: int
    """Size on disk in addition to its parent."""
    paused_ms: int
    """How long its sandbox was paused."""
    digest: str
    checkpoint_id: str | None
    """The checkpoint that it is part of, and is deleted with."""
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""


class SnapshotDeleteResult(TypedDict):
    snapshot_id: str
    state: Literal["deleted"]


class SnapshotPage(TypedDict):
    items: list[Snapshot]
    next_cursor: str | None


class SshAccess(TypedDict):
    access_id: str
    host: str
    port: int
    username: str
    ssh_command: str
    """Command line to paste; its password is the token."""
    host_key_fingerprint: str
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str
    """RFC 3339, in UTC."""
    sessions: int
    """Open sessions."""


class SshAccessCreateRequest(TypedDict):
    expires_in_seconds: NotRequired[int]
    """3600 if absent."""


class SshAccessCreateResult(TypedDict):
    access_id: str
    host: str
    port: int
    username: str
    ssh_command: str
    """Command line to paste; its password is the token."""
    host_key_fingerprint: str
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str
    """RFC 3339, in UTC."""
    token: str


class SshAccessDeleteResult(TypedDict):
    access_id: str
    state: Literal["deleted"]


class SshAccessListResult(TypedDict):
    items: list[SshAccess]
    next_cursor: None


class SshKeyCreatedBy(TypedDict):
    type: str
    id: str


class SshKey(TypedDict):
    ssh_key_id: str
    name: str
    algorithm: str
    fingerprint: str
    """As ssh-keygen -l shows it."""
    public_key: str
    created_at: str
    """RFC 3339, in UTC."""
    expires_at: str | None
    """RFC 3339, in UTC."""
    created_by: SshKeyCreatedBy


class SshKeyAddRequest(TypedDict):
    public_key: str
    """One line, as in a .pub file or in authorized_keys without options."""
    name: NotRequired[str]
    """The key's comment if absent."""
    expires_in_seconds: NotRequired[int]


class SshKeyListResult(TypedDict):
    items: list[SshKey]
    next_cursor: None


class SshKeyRemoveResult(TypedDict):
    ssh_key_id: str
    fingerprint: str
    state: Literal["removed"]


class TemplateBuild(TypedDict):
    template_id: str
    build_id: str
    state: Literal["queued", "pulling", "building", "booting", "testing", "ready", "failed"]
    created_at: str
    """RFC 3339, in UTC."""
    started_at: str | None
    """RFC 3339, in UTC."""
    finished_at: str | None
    """RFC 3339, in UTC."""
    last_seq: int
    """The last event of its stream."""
    digest: str | None
    """Of the template, once it is ready."""
    failure: BuildFailure | None


TemplateFromRecipe = TypedDict(
    "TemplateFromRecipe",
    {
        # The image that the steps begin with.
        "from": str,
        "steps": list[str],
    },
)


class TemplateFrom(TypedDict):
    image: NotRequired[str]
    """An image of a registry, as docker://…"""
    recipe: NotRequired[TemplateFromRecipe]
    dockerfile: NotRequired[str]
    """The text of a Dockerfile."""
    context: NotRequired[str]
    """The build context as a tar, optionally compressed with gzip: 10 MiB at most, 128 MiB unpacked."""


TemplateCreateRequest = TypedDict(
    "TemplateCreateRequest",
    {
        # Name for sandboxes to use. The organization's template of that name is replaced once this one is ready.
        "template_id": str,
        "from": TemplateFrom,
        # Description in lists of templates.
        "description": NotRequired[str],
        # A shell script whose programs run in every sandbox of it from the start; "image": its entry point.
        "start": NotRequired[str],
        # A shell script that exits with 0 once the programs of start can be used.
        "ready": NotRequired[str],
        # Memory with which it is saved; 256 if absent.
        "min_memory_mib": NotRequired[int],
        # Default for sandboxes; 512 if absent, or min_memory_mib if that is more.
        "default_memory_mib": NotRequired[int],
        # Maximum disk size of a sandbox; 8192 if absent.
        "disk_mib": NotRequired[int],
        # Allowed destinations: addresses, CIDR, host names, *.example.org, each with optional :port; * is every public address.
        "egress_allowlist": NotRequired[list[str]],
        # Secrets for steps, in the files /run/secrets/NAME.
        "secrets": NotRequired[dict[str, str]],
        # For ARG of the Dockerfile.
        "build_args": NotRequired[dict[str, str]],
        # Unpack the image and run every step again, without results of earlier builds.
        "no_cache": NotRequired[bool],
        # Credentials for the registry, as the text of docker's config.json.
        "registry_auth": NotRequired[str],
    },
)


class TemplateCreateResult(TypedDict):
    template_id: str
    build_id: str
    state: Literal["queued", "pulling", "building", "booting", "testing", "ready", "failed"]
    created_at: str
    """RFC 3339, in UTC."""
    started_at: str | None
    """RFC 3339, in UTC."""
    finished_at: str | None
    """RFC 3339, in UTC."""
    last_seq: int
    """The last event of its stream."""
    digest: str | None
    """Of the template, once it is ready."""
    failure: BuildFailure | None
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class TemplateListResult(TypedDict):
    items: list[Template]
    next_cursor: None


class TemplateRemoveResult(TypedDict):
    template_id: str
    state: Literal["removed"]


class Terminal(TypedDict):
    terminal_id: str
    state: Literal["running", "ended"]
    command: str
    """The command, truncated to 256 characters."""
    user: str
    rows: int
    cols: int
    attached: bool
    offset: int
    """How many bytes it has shown so far."""
    exit_code: int | None
    signal: str | None
    end_reason: Literal["exited", "detached", "closed"] | None
    """Why it ended: the command exited, no client was attached for too long, or it was closed. Null while it runs."""
    created_at: str
    """RFC 3339, in UTC."""
    ended_at: str | None
    """RFC 3339, in UTC."""


class TerminalCloseResult(TypedDict):
    terminal_id: str
    state: Literal["ended"]
    exit_code: int | None
    signal: str | None


class TerminalCreateRequest(TypedDict):
    rows: int
    cols: int
    command: NotRequired[str]
    """A line that /bin/sh -c runs; the login shell if absent."""
    argv: NotRequired[list[str]]
    """Instead of command: the command and its arguments, run without a shell."""
    cwd: NotRequired[str]
    """Working directory; the user's home if absent."""
    user: NotRequired[str]
    """User name or id; root if absent."""
    term: NotRequired[str]
    """TERM of the command; xterm-256color if absent."""


class WatchingEventTypist(TypedDict):
    name: str
    """Name of the key, or of the person, by which the client attached."""
    since: str
    """RFC 3339, in UTC."""


class WatchingEvent(TypedDict):
    type: Literal["watching"]
    offset: int
    """Position of the first byte that follows, in the terminal's whole output."""
    rows: int
    cols: int
    gap: int
    """Bytes before it that are no longer kept."""
    typist: WatchingEventTypist | None


class TerminalEventOutput(TypedDict):
    type: Literal["output"]
    offset: int
    """Position of its first byte; `after` is this and its length."""
    data_b64: str


class TerminalEventResized(TypedDict):
    type: Literal["resized"]
    rows: int
    cols: int


class TerminalEventTypistTypist(TypedDict):
    name: str
    """Name of the key, or of the person, by which the client attached."""
    since: str
    """RFC 3339, in UTC."""


class TerminalEventTypist(TypedDict):
    type: Literal["typist"]
    typist: TerminalEventTypistTypist | None


class TerminalEventLost(TypedDict):
    type: Literal["lost"]
    offset: int
    """Position of the first byte that follows, in the terminal's whole output."""
    gap: int
    """Bytes that were left out."""


class TerminalEventExit(TypedDict):
    type: Literal["exit"]
    exit_code: int | None
    signal: str | None

TerminalEvent: TypeAlias = WatchingEvent | TerminalEventOutput | TerminalEventResized | TerminalEventTypist | TerminalEventLost | TerminalEventExit | ErrorEvent


class TerminalPage(TypedDict):
    items: list[Terminal]
    next_cursor: str | None


class TerminalTicket(TypedDict):
    terminal_id: str
    ws_path: str
    """URL to attach to; since and takeover can be added to its query."""
    token: str
    """Opens this terminal and nothing else until expires_at, as often as needed, while the key that made it is valid: offer the subprotocols roomd.terminal and roomd.token.TOKEN."""
    expires_at: str
    """RFC 3339, in UTC."""


class TopItemCpu(TypedDict):
    vcpu_count: int
    used_seconds: float | None
    """Since it was started. Null while it has no virtual machine."""


class TopItemMemory(TypedDict):
    memory_mib: int
    resident_bytes: int | None
    """Of the host's memory. Null while it has no virtual machine."""


class TopItemDisk(TypedDict):
    used_bytes: int


class TopItemEgress(TypedDict):
    sent_bytes: int
    received_bytes: int
    open_connections: int


class TopItem(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    sandbox_id: str
    state: Literal["creating", "starting", "running", "pausing", "paused", "hibernating", "hibernated", "resuming", "failed", "destroying", "destroyed"]
    ready_at: str | None
    """RFC 3339, in UTC."""
    cpu: TopItemCpu
    memory: TopItemMemory
    disk: TopItemDisk
    egress: TopItemEgress


class TopHostCpu(TypedDict):
    cores: int
    busy_seconds: float
    idle_seconds: float


class TopHostDisk(TypedDict):
    size_bytes: int
    free_bytes: int


class TopHost(TypedDict):
    uptime_seconds: int
    """Of the service."""
    rooms: int
    sandboxes: dict[str, int]
    """Of all organizations, by state."""
    requests: int
    """Answered since the service started."""
    cpu: TopHostCpu
    memory: HostMemory
    disk: TopHostDisk
    loop: HostLoop


class TopGetResult(TypedDict):
    items: list[TopItem]
    not_shown: int
    """Sandboxes beyond 1000."""
    host: TopHost | None
    at: str
    """RFC 3339, in UTC."""
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class UsageResultPeriod(TypedDict):
    start_at: str
    """RFC 3339, in UTC."""
    end_at: str
    """RFC 3339, in UTC."""


class UsageResultRooms(TypedDict):
    active: int
    soft_cap: int
    hard_cap: int


class UsageResultSandboxes(TypedDict):
    active: int
    soft_cap: int
    hard_cap: int


class UsageResultMemoryMib(TypedDict):
    allocated: int
    soft_cap: int
    hard_cap: int


class UsageResultDiskGib(TypedDict):
    allocated: float
    """Maximum size of the disks of its sandboxes."""
    soft_cap: int
    hard_cap: int


class UsageResultTemplateMib(TypedDict):
    used: int
    """Size of its own templates on the host's disk, rounded up."""
    soft_cap: int
    hard_cap: int


class UsageResultDrive(TypedDict):
    used_bytes: int
    """Of all its drives, including drives kept after their room's end."""
    soft_cap_bytes: int
    hard_cap_bytes: int


class UsageResultGuestCids(TypedDict):
    in_use: int
    """By the organization's sandboxes."""
    total: int
    """On the host, for all organizations."""


class UsageTotals(TypedDict):
    sandbox_seconds: float
    """Time in which sandboxes were running; standby is not counted, to the millisecond."""
    vcpu_seconds: float
    """The same for each vCPU, to the millisecond."""
    memory_mib_seconds: float
    """The same for each MiB of memory, to the millisecond."""
    exec_count: int
    """Commands run by sandbox_exec and execution_start."""
    messages: int
    """Accepted messages, regardless of the recipients."""
    egress_bytes: int
    """Bytes that sandboxes sent to the outside."""
    drive_byte_hours: int
    """Bytes stored on the drives of existing rooms, times hours."""
    build_seconds: float
    """Build time of its own templates, including failed builds, to the millisecond."""


class UsageResultGroupsItem(TypedDict):
    id: str | None
    """room_uid, agent_id, key_id or day; null for usage without one, such as a drive without an agent, and for usage beyond the number of groups that a day distinguishes."""
    name: str | None
    """room_id, agent_id, the key's name or the day."""
    totals: UsageTotals


class UsageResultOthers(TypedDict):
    group_count: int
    totals: UsageTotals


class UsageResultCredits(TypedDict):
    granted: float | None
    """Granted by the plan and the operator; null: no limit."""
    used: float
    """At the prices of the time, since the organization was made."""
    remaining: float | None


class UsageResultCanCreate(TypedDict):
    room: bool
    sandbox: bool


class UsageResult(TypedDict):
    org_id: str
    plan: str
    entitled: bool
    """Whether the plan allows anything at all."""
    period: UsageResultPeriod
    rooms: UsageResultRooms
    sandboxes: UsageResultSandboxes
    memory_mib: UsageResultMemoryMib
    disk_gib: UsageResultDiskGib
    template_mib: UsageResultTemplateMib
    drive: UsageResultDrive
    guest_cids: UsageResultGuestCids
    totals: UsageTotals
    groups: NotRequired[list[UsageResultGroupsItem]]
    """Ordered by sandbox time, largest first; days in order of date."""
    others: NotRequired[UsageResultOthers | None]
    credits: UsageResultCredits
    can_create: UsageResultCanCreate
    warnings: list[str]
    """Sentences for a person."""
    as_of: str
    """RFC 3339, in UTC."""


class WebhookCreatedBy(TypedDict):
    type: str
    id: str


class Webhook(TypedDict):
    webhook_id: str
    url: str
    """Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges)."""
    types: list[str]
    """Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent."""
    room_ids: list[str] | None
    """Only events of rooms with these names, including rooms made later; null: of all, and events of no room."""
    enabled: bool
    """Whether events are sent. Events that occur while it is disabled are sent once it is enabled again."""
    disabled_reason: Literal["by_request", "gone", "failing", "maker_ended"] | None
    """Why it is disabled: by request; its receiver answered 410; its receiver accepted nothing for 5 days; its maker's access ended (a person or a key). The caller that enables it becomes its maker."""
    disabled_at: str | None
    """RFC 3339, in UTC."""
    created_at: str
    """RFC 3339, in UTC."""
    created_by: WebhookCreatedBy
    updated_at: str
    """RFC 3339, in UTC."""
    former_secret_until: str | None
    """Until then the previous secret signs too. RFC 3339, in UTC."""
    sent_count: int
    """Events that the receiver has accepted."""
    waiting_count: int
    """Events that it did not accept and that will be retried."""
    behind_count: int
    """Audit records that are not processed yet."""
    missed_count: int
    """Audit records that retention deleted before they were processed or sent. Whether the unprocessed records would have been sent is unknown."""
    failed_count: int
    """Events abandoned after 17 attempts, each time it happened. The receiver accepted others in that time: a webhook whose receiver accepts none is disabled first, and no event is abandoned."""
    last_sent_at: str | None
    """When the receiver last accepted an event. RFC 3339, in UTC."""
    failing_since: str | None
    """Since when it has accepted none. RFC 3339, in UTC."""
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class WebhookCreateRequest(TypedDict):
    url: str
    """Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges)."""
    types: list[str]
    """Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent."""
    room_ids: NotRequired[list[str] | None]
    """Only events of rooms with these names, including rooms made later; null: of all, and events of no room."""
    enabled: NotRequired[bool]
    """true if absent."""


class WebhookDeleteResult(TypedDict):
    webhook_id: str
    state: Literal["deleted"]


class WebhookDelivery(TypedDict):
    delivery_id: str
    """The event's id: its record in the audit has it as audit_id."""
    webhook_id: str
    type: str
    """The event's name."""
    event_at: str
    """RFC 3339, in UTC."""
    state: Literal["waiting", "delivered", "failed", "lost"]
    """waiting: it is retried at next_at. delivered: it was accepted. failed: it was abandoned after 17 attempts. lost: the audit's retention deleted it first."""
    attempts: int
    """Number of attempts."""
    last_attempt_at: str | None
    """RFC 3339, in UTC."""
    next_at: str | None
    """Time of the next attempt. RFC 3339, in UTC."""
    status: int | None
    """The receiver's last HTTP status; null: no response."""
    error: str | None
    """Why the last attempt failed, in words."""


class WebhookDeliveryPage(TypedDict):
    items: list[WebhookDelivery]
    next_cursor: str | None
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class WebhookEventDataActor(TypedDict):
    type: str
    id: str


class WebhookEventData(TypedDict):
    event_id: str
    """The record's audit_id, and the header webhook-id."""
    org_id: str
    room_id: str | None
    room_uid: str | None
    agent_id: str | None
    sandbox_id: str | None
    actor: WebhookEventDataActor
    outcome: Literal["success", "denied", "error"]
    error_code: str | None
    request_id: str | None
    details: dict[str, Any]
    """Ids and reasons of the record's details. The whole record is GET /v1/orgs/self/audit?audit_id=EVENT_ID."""


class WebhookEvent(TypedDict):
    type: str
    """The event's name, as the audit has it."""
    timestamp: str
    """When it happened. RFC 3339, in UTC."""
    data: WebhookEventData


class WebhookPage(TypedDict):
    items: list[Webhook]
    next_cursor: str | None
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class WebhookRotateRequest(TypedDict):
    grace_seconds: NotRequired[int]
    """How long the previous secret also signs; 86400 if absent."""


class WebhookTest(TypedDict):
    event_id: str
    """The header webhook-id."""
    delivered: bool
    """Whether the receiver accepted it."""
    status: int | None
    """The receiver's HTTP status; null: no response."""
    error: str | None
    """Why it was not accepted, in words."""
    duration_ms: int
    """How long it took."""


class WebhookUpdateRequest(TypedDict):
    url: NotRequired[str]
    """Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges)."""
    types: NotRequired[list[str]]
    """Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent."""
    room_ids: NotRequired[list[str] | None]
    """Only events of rooms with these names, including rooms made later; null: of all, and events of no room."""
    enabled: NotRequired[bool]
    """Whether events are sent. Events that occur while it is disabled are sent once it is enabled again."""


class WrittenFile(TypedDict):
    path: str
    guest_path: str
    size_bytes: int
    sha256: str
    mode: str
    modified_at: str
    """RFC 3339, in UTC."""
    created: bool
    warnings: NotRequired[list[str]]
    """Sentences for a person."""


class WrittenSandboxFile(TypedDict):
    path: str
    size_bytes: int
    sha256: str
    mode: str
    uid: int
    gid: int
    modified_at: str
    """RFC 3339, in UTC."""
    created: bool


class HealthInput(TypedDict):
    pass

HealthAnswer: TypeAlias = HealthResult


class MetricsInput(TypedDict):
    pass


class ConfigGetInput(TypedDict):
    pass

ConfigGetAnswer: TypeAlias = ConfigGetResult


class MeGetInput(TypedDict):
    pass

MeGetAnswer: TypeAlias = MeGetResult


class LocateInput(TypedDict):
    id: str
    """Any id; a slash in it is written %2F."""

LocateAnswer: TypeAlias = LocateResult


class HostListInput(TypedDict):
    pass

HostListAnswer: TypeAlias = HostListResult


class HostEvacuateInput(TypedDict):
    skip: NotRequired[list[str]]
    """Rooms to leave on the host, by room_uid: rooms that could not be moved."""
    force: NotRequired[bool]
    """Move rooms also if the memory of snapshots is unusable there, or a sandbox that cannot be saved now is ended."""
    host: str
    """Name of the host."""

HostEvacuateAnswer: TypeAlias = HostEvacuated


class OpenapiGetInput(TypedDict):
    pass

OpenapiGetAnswer: TypeAlias = dict[str, Any]

OrgCreateInput: TypeAlias = OrgCreateRequest

OrgCreateAnswer: TypeAlias = OrgCreateResult


class OrgDeleteInput(TypedDict):
    org_id: str
    """The organization, or self."""
    org_name: str
    """The organization's name, as confirmation."""

OrgDeleteAnswer: TypeAlias = OrgDeleteResult


class KeyCreateInput(TypedDict):
    name: str
    scopes: NotRequired[list[Literal["rooms:read", "rooms:write", "sandboxes:read", "sandboxes:write", "exec", "ports:write", "drive:read", "drive:write", "fabric:read", "fabric:write", "terminal", "templates:write", "audit:read", "usage:read", "keys:write", "org:admin"]]]
    room_ids: NotRequired[list[str]]
    """The key cannot tell whether any other room exists."""
    agent_id: NotRequired[str]
    """The key acts only as this agent, and only on its sandboxes."""
    expires_in_seconds: NotRequired[int]
    org_id: str
    """The organization, or self."""

KeyCreateAnswer: TypeAlias = NewApiKey


class KeyListInput(TypedDict):
    org_id: str
    """The organization, or self."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

KeyListAnswer: TypeAlias = ApiKeyPage


class KeyRotateInput(TypedDict):
    grace_seconds: NotRequired[int]
    """3600 if absent."""
    org_id: str
    """The organization, or self."""
    key_id: str

KeyRotateAnswer: TypeAlias = KeyRotateResult


class KeyRevokeInput(TypedDict):
    org_id: str
    """The organization, or self."""
    key_id: str

KeyRevokeAnswer: TypeAlias = RevokedApiKey


class WebhookCreateInput(TypedDict):
    url: str
    """Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges)."""
    types: list[str]
    """Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent."""
    room_ids: NotRequired[list[str] | None]
    """Only events of rooms with these names, including rooms made later; null: of all, and events of no room."""
    enabled: NotRequired[bool]
    """true if absent."""
    org_id: str
    """The organization, or self."""

WebhookCreateAnswer: TypeAlias = NewWebhook


class WebhookListInput(TypedDict):
    org_id: str
    """The organization, or self."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

WebhookListAnswer: TypeAlias = WebhookPage


class WebhookGetInput(TypedDict):
    org_id: str
    """The organization, or self."""
    webhook_id: str
    """Which webhook of the organization."""

WebhookGetAnswer: TypeAlias = Webhook


class WebhookUpdateInput(TypedDict):
    url: NotRequired[str]
    """Target of the events: an https URL, at port 443 or one above 1023. Private addresses require the operator's permission (webhooks.private_ranges)."""
    types: NotRequired[list[str]]
    """Events to send, by prefix of their name, such as `sandbox.` or `message.sent`. Calls that only read are never sent."""
    room_ids: NotRequired[list[str] | None]
    """Only events of rooms with these names, including rooms made later; null: of all, and events of no room."""
    enabled: NotRequired[bool]
    """Whether events are sent. Events that occur while it is disabled are sent once it is enabled again."""
    org_id: str
    """The organization, or self."""
    webhook_id: str
    """Which webhook of the organization."""

WebhookUpdateAnswer: TypeAlias = Webhook


class WebhookDeleteInput(TypedDict):
    org_id: str
    """The organization, or self."""
    webhook_id: str
    """Which webhook of the organization."""

WebhookDeleteAnswer: TypeAlias = WebhookDeleteResult


class WebhookRotateInput(TypedDict):
    grace_seconds: NotRequired[int]
    """How long the previous secret also signs; 86400 if absent."""
    org_id: str
    """The organization, or self."""
    webhook_id: str
    """Which webhook of the organization."""

WebhookRotateAnswer: TypeAlias = NewWebhook


class WebhookDeliveriesInput(TypedDict):
    org_id: str
    """The organization, or self."""
    webhook_id: str
    """Which webhook of the organization."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

WebhookDeliveriesAnswer: TypeAlias = WebhookDeliveryPage


class WebhookRedeliverInput(TypedDict):
    org_id: str
    """The organization, or self."""
    webhook_id: str
    """Which webhook of the organization."""
    delivery_id: str
    """The event's id, sent to the receiver as webhook-id; any event that the audit still has."""

WebhookRedeliverAnswer: TypeAlias = WebhookDelivery


class WebhookTestInput(TypedDict):
    org_id: str
    """The organization, or self."""
    webhook_id: str
    """Which webhook of the organization."""

WebhookTestAnswer: TypeAlias = WebhookTest


class BillingGetInput(TypedDict):
    org_id: str
    """The organization, or self."""

BillingGetAnswer: TypeAlias = Billing


class BillingCheckoutInput(TypedDict):
    org_id: str
    """The organization, or self."""

BillingCheckoutAnswer: TypeAlias = BillingCheckoutResult


class BillingPortalInput(TypedDict):
    org_id: str
    """The organization, or self."""

BillingPortalAnswer: TypeAlias = BillingPortalResult


class BillingSuccessInput(TypedDict):
    org_id: str
    """The organization, or self."""
    checkout_id: str

BillingSuccessAnswer: TypeAlias = BillingSuccessResult


class BillingKeyInput(TypedDict):
    org_id: str
    """The organization, or self."""
    checkout_id: str

BillingKeyAnswer: TypeAlias = BillingKeyResult


class AccountGetInput(TypedDict):
    pass

AccountGetAnswer: TypeAlias = Account

AccountUpdateInput: TypeAlias = AccountUpdateRequest

AccountUpdateAnswer: TypeAlias = Account


class AccountDeleteInput(TypedDict):
    email: str
    """The account's address, as confirmation."""

AccountDeleteAnswer: TypeAlias = AccountDeleteResult


class AccountExportInput(TypedDict):
    pass

AccountExportAnswer: TypeAlias = AccountExportResult


class SessionListInput(TypedDict):
    pass

SessionListAnswer: TypeAlias = SessionListResult


class SessionEndInput(TypedDict):
    session_id: str

SessionEndAnswer: TypeAlias = SessionEndResult


class GrantListInput(TypedDict):
    pass

GrantListAnswer: TypeAlias = GrantListResult

GrantCreateInput: TypeAlias = GrantCreateRequest

GrantCreateAnswer: TypeAlias = GrantCreateResult

DeviceDecideInput: TypeAlias = DeviceDecideRequest

DeviceDecideAnswer: TypeAlias = DeviceDecideResult


class GrantEndInput(TypedDict):
    grant_id: str

GrantEndAnswer: TypeAlias = GrantEndResult


class ApplicationListInput(TypedDict):
    org_id: str
    """The organization, or self."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

ApplicationListAnswer: TypeAlias = ApplicationPage


class ApplicationEndInput(TypedDict):
    org_id: str
    """The organization, or self."""
    grant_id: str

ApplicationEndAnswer: TypeAlias = ApplicationEndResult


class IdentityListInput(TypedDict):
    pass

IdentityListAnswer: TypeAlias = IdentityListResult


class IdentityBeginInput(TypedDict):
    pass

IdentityBeginAnswer: TypeAlias = IdentityBeginResult


class IdentityRemoveInput(TypedDict):
    identity_id: str

IdentityRemoveAnswer: TypeAlias = IdentityRemoveResult


class PasskeyListInput(TypedDict):
    pass

PasskeyListAnswer: TypeAlias = PasskeyListResult

PasskeyAddInput: TypeAlias = PasskeyAddRequest

PasskeyAddAnswer: TypeAlias = Passkey


class PasskeyOptionsInput(TypedDict):
    pass

PasskeyOptionsAnswer: TypeAlias = PasskeyOptionsResult


class PasskeyRemoveInput(TypedDict):
    passkey_id: str

PasskeyRemoveAnswer: TypeAlias = PasskeyRemoveResult


class MemberListInput(TypedDict):
    org_id: str
    """The organization, or self."""

MemberListAnswer: TypeAlias = MemberListResult


class MemberUpdateInput(TypedDict):
    role: Literal["owner", "admin", "member", "viewer"]
    org_id: str
    """The organization, or self."""
    user_id: str

MemberUpdateAnswer: TypeAlias = Member


class MemberRemoveInput(TypedDict):
    org_id: str
    """The organization, or self."""
    user_id: str

MemberRemoveAnswer: TypeAlias = MemberRemoveResult


class InvitationCreateInput(TypedDict):
    role: Literal["owner", "admin", "member", "viewer"]
    email: NotRequired[str]
    """Only this address can accept it; its ownership is not verified."""
    org_id: str
    """The organization, or self."""

InvitationCreateAnswer: TypeAlias = InvitationCreateResult


class InvitationListInput(TypedDict):
    org_id: str
    """The organization, or self."""

InvitationListAnswer: TypeAlias = InvitationListResult


class InvitationDeleteInput(TypedDict):
    org_id: str
    """The organization, or self."""
    invitation_id: str

InvitationDeleteAnswer: TypeAlias = InvitationDeleteResult


class UsageInput(TypedDict):
    org_id: str
    """The organization, or self."""
    group_by: NotRequired[Literal["room", "agent", "key", "day"]]
    """Adds groups, which add up to the totals."""
    month: NotRequired[str]
    """As 2026-01; the current one if absent."""

UsageAnswer: TypeAlias = UsageResult


class CreditListInput(TypedDict):
    org_id: str
    """The organization, or self."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

CreditListAnswer: TypeAlias = CreditListResult


class TopGetInput(TypedDict):
    room_id: NotRequired[str]
    """Only the sandboxes of this room."""

TopGetAnswer: TypeAlias = TopGetResult

RoomCreateInput: TypeAlias = RoomCreateRequest

RoomCreateAnswer: TypeAlias = Room


class RoomListInput(TypedDict):
    state: NotRequired[Literal["active", "destroying", "destroyed"]]
    """Only those in this state."""
    label: NotRequired[str]
    """Only those with this label, as key:value."""
    host: NotRequired[str]
    """Only those on this one of several hosts."""
    order: NotRequired[Literal["asc", "desc"]]
    """By creation. asc, the oldest first, if absent."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

RoomListAnswer: TypeAlias = RoomListResult


class RoomGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

RoomGetAnswer: TypeAlias = Room


class RoomUpdateInput(TypedDict):
    labels: NotRequired[dict[str, str]]
    """Up to 64 labels of the caller's own."""
    expires_in_seconds: NotRequired[int | None]
    """Destroys the room this long after now; null: never."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

RoomUpdateAnswer: TypeAlias = Room


class RoomDestroyInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    drive: NotRequired[Literal["retain", "delete"]]
    """Keep or delete the drive."""

RoomDestroyAnswer: TypeAlias = RoomDestroyResult


class SandboxCreateInputLifecycle(TypedDict):
    """When it is idle, the action then, and the triggers that wake it."""

    idle_after_seconds: NotRequired[int | None]
    """A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock."""
    on_idle: NotRequired[Literal["destroy", "standby", "hibernate"]]
    """Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later."""
    wake_on: NotRequired[list[Literal["api", "terminal", "message", "port"]]]
    """Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing."""


class SandboxCreateInput(TypedDict):
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    guest_cid: NotRequired[int]
    """Address of the guest, unique on the host. Default: a free one."""
    memory_mib: NotRequired[int]
    """Memory in MiB; /v1/config has the host's limit. Default: the template's default_memory_mib, or the snapshot's."""
    vcpu_count: NotRequired[int]
    """1 if absent, at most the host's cores."""
    template_id: NotRequired[str]
    """Which template; "default" if absent."""
    snapshot_id: NotRequired[str]
    """Snapshot of the room, in place of a template. memory_mib and vcpu_count are then those of the snapshot; env is added to that of its sandbox, and absent fields are as they were in it."""
    env: NotRequired[dict[str, str]]
    """Environment variables; ROOMD_ names are reserved."""
    env_json: NotRequired[str]
    """The same as a JSON string. Not together with env."""
    egress_allowlist: NotRequired[list[str]]
    """Allowed destinations: addresses, CIDR, host names, *.example.org, each with optional :port; * is every public address."""
    egress_allowlist_json: NotRequired[str]
    """The same as a JSON string."""
    labels: NotRequired[dict[str, str]]
    """Up to 64 labels of the caller's own."""
    idle_timeout_seconds: NotRequired[int]
    """A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock."""
    max_duration_seconds: NotRequired[int]
    """Ends the sandbox this long after its creation, whatever it does, also in standby."""
    lifecycle: NotRequired[SandboxCreateInputLifecycle]
    """When it is idle, the action then, and the triggers that wake it."""
    attach_fabric: NotRequired[bool]
    """Whether the guest reaches its room; true if absent."""
    enable_guest_net: NotRequired[bool]
    """false: no egress at all; true if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    wait: NotRequired[Literal["ready", "none"]]
    """ready (the default): answer when it can run commands. none: answer immediately."""
    wait_timeout_ms: NotRequired[int]
    """Longest wait; 60 000 if absent."""

SandboxCreateAnswer: TypeAlias = SandboxCreateResult


class SandboxListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    state: NotRequired[Literal["creating", "starting", "running", "pausing", "paused", "hibernating", "hibernated", "resuming", "failed", "destroying", "destroyed"]]
    label: NotRequired[str]
    """Only those with this label, as key:value."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

SandboxListAnswer: TypeAlias = SandboxPage


class OrgSandboxListInput(TypedDict):
    room_id: NotRequired[str]
    """Only the sandboxes of this room."""
    state: NotRequired[Literal["creating", "starting", "running", "pausing", "paused", "hibernating", "hibernated", "resuming", "failed", "destroying", "destroyed"]]
    label: NotRequired[str]
    """Only those with this label, as key:value."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

OrgSandboxListAnswer: TypeAlias = OrgSandboxListResult


class SandboxGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    wait_ms: NotRequired[int]
    """How long to wait while it is starting."""

SandboxGetAnswer: TypeAlias = Sandbox


class SandboxUpdateInputLifecycle(TypedDict):
    """When it is idle, the action then, and the triggers that wake it."""

    idle_after_seconds: NotRequired[int | None]
    """A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock."""
    on_idle: NotRequired[Literal["destroy", "standby", "hibernate"]]
    """Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later."""
    wake_on: NotRequired[list[Literal["api", "terminal", "message", "port"]]]
    """Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing."""


class SandboxUpdateInput(TypedDict):
    labels: NotRequired[dict[str, str]]
    """Up to 64 labels of the caller's own."""
    idle_timeout_seconds: NotRequired[int | None]
    """A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock."""
    max_duration_seconds: NotRequired[int | None]
    """Ends the sandbox this long after its creation, whatever it does, also in standby."""
    expires_in_seconds: NotRequired[int | None]
    """Ends the sandbox this long after now, in place of max_duration_seconds; null: never."""
    lifecycle: NotRequired[SandboxUpdateInputLifecycle]
    """When it is idle, the action then, and the triggers that wake it."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxUpdateAnswer: TypeAlias = Sandbox


class SandboxDestroyInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxDestroyAnswer: TypeAlias = SandboxDestroyResult


class SandboxStandbyInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxStandbyAnswer: TypeAlias = Sandbox


class SandboxHibernateInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxHibernateAnswer: TypeAlias = Sandbox


class SandboxSnapshotInput(TypedDict):
    name: NotRequired[str]
    """For people."""
    mode: NotRequired[Literal["full", "disk"]]
    """full if absent."""
    expires_in_seconds: NotRequired[int]
    """Lifetime, after which it is deleted; 604800 (7 days) if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxSnapshotAnswer: TypeAlias = Snapshot


class SandboxForkInputAgentsItem(TypedDict):
    agent_id: str
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    guest_cid: NotRequired[int]
    """Address of the guest, unique on the host."""
    env: NotRequired[dict[str, str]]
    """Environment variables; ROOMD_ names are reserved."""


class SandboxForkInput(TypedDict):
    agents: list[SandboxForkInputAgentsItem]
    """One for each forked sandbox: the agent that it serves."""
    expires_in_seconds: NotRequired[int]
    """Lifetime, after which it is deleted; 604800 (7 days) if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxForkAnswer: TypeAlias = SandboxForkResult


class SandboxRollbackInput(TypedDict):
    snapshot_id: str
    """Snapshot of the room; of the same template, memory and processors as the sandbox."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxRollbackAnswer: TypeAlias = Sandbox


class SnapshotListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    agent_id: NotRequired[str]
    """The agent that the sandbox serves; unique among the room's live sandboxes."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

SnapshotListAnswer: TypeAlias = SnapshotPage


class SnapshotGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    snapshot_id: str

SnapshotGetAnswer: TypeAlias = Snapshot


class SnapshotDeleteInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    snapshot_id: str

SnapshotDeleteAnswer: TypeAlias = SnapshotDeleteResult


class RoomCheckpointInput(TypedDict):
    name: NotRequired[str]
    """For people."""
    expires_in_seconds: NotRequired[int]
    """Lifetime, after which it is deleted; 604800 (7 days) if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

RoomCheckpointAnswer: TypeAlias = Checkpoint


class CheckpointListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

CheckpointListAnswer: TypeAlias = CheckpointPage


class CheckpointGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    checkpoint_id: str
    """Id of a checkpoint of the room."""

CheckpointGetAnswer: TypeAlias = Checkpoint


class CheckpointDeleteInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    checkpoint_id: str
    """Id of a checkpoint of the room."""

CheckpointDeleteAnswer: TypeAlias = CheckpointDeleteResult


class RoomForkInput(TypedDict):
    room_id: str
    """Name of the new room, unique among the organization's active rooms."""
    checkpoint_id: NotRequired[str]
    """Checkpoint of the source; one is taken now if absent."""
    cids: NotRequired[Literal["suggest"]]
    """Source of guest_cids: free ones are assigned, also if absent."""
    source_room_id: str
    """The source room."""

RoomForkAnswer: TypeAlias = RoomForkResult


class RoomRestoreInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    checkpoint_id: str
    """Id of a checkpoint of the room."""

RoomRestoreAnswer: TypeAlias = RoomRestoreResult


class RoomMoveInput(TypedDict):
    host: str
    """Name of the target host."""
    force: NotRequired[bool]
    """Move it also if the memory of snapshots is unusable there, or a sandbox that cannot be saved now is ended."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

RoomMoveAnswer: TypeAlias = RoomMoved


class RoomBackupInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""


class RoomFromBackupInput(TypedDict):
    room_id: str
    """Name of the new room."""
    host: NotRequired[str]
    """Target host, if there are several; else a host with memory."""

RoomFromBackupAnswer: TypeAlias = RoomFromBackup


class SandboxResumeInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxResumeAnswer: TypeAlias = Sandbox


class SandboxLogsInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    source: NotRequired[Literal["console", "agent"]]
    """console if absent."""
    after: NotRequired[int]
    """Byte offset: next_after of the previous answer."""
    limit: NotRequired[int]
    """Most lines; 1000 if absent. An answer ends after 256 KiB."""

SandboxLogsAnswer: TypeAlias = SandboxLogsResult


class SandboxMetricsInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxMetricsAnswer: TypeAlias = SandboxMetricsResult


class EgressGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

EgressGetAnswer: TypeAlias = Egress


class EgressSetInput(TypedDict):
    allowlist: list[str]
    """Allowed destinations: addresses, CIDR, host names, *.example.org, each with optional :port; * is every public address."""
    if_revision: NotRequired[int]
    """Only if the list has this revision; else 412."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

EgressSetAnswer: TypeAlias = Egress


class EgressExplainInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    host: str
    """A host name, an address or a CIDR."""
    port: NotRequired[int]
    """Absent: whether any port is allowed, and which."""

EgressExplainAnswer: TypeAlias = EgressExplanation


class SandboxNetworkInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxNetworkAnswer: TypeAlias = SandboxNetwork


class SandboxExecInput(TypedDict):
    argv: NotRequired[list[str]]
    """The command and its arguments, run without a shell."""
    argv_json: NotRequired[str]
    """The same as a JSON string."""
    command: NotRequired[str]
    """A line that /bin/sh -c runs."""
    cwd: NotRequired[str]
    """Working directory in the guest."""
    env: NotRequired[dict[str, str]]
    """Environment variables; ROOMD_ names are reserved."""
    env_json: NotRequired[str]
    """The same as a JSON string. Not together with env."""
    user: NotRequired[str]
    """User name or id; root if absent."""
    stdin: NotRequired[str]
    """Text for standard input."""
    stdin_b64: NotRequired[str]
    """Bytes for standard input."""
    timeout_ms: NotRequired[int]
    """Ends the command after this time: SIGTERM to its process group, SIGKILL 5 s later. 0: no limit. At most 7 days. Default: 600 000 for a command that the call waits for, no limit for a command that it starts."""
    max_output_bytes: NotRequired[int]
    """Most bytes of each stream in the answer; 1 MiB if absent."""
    output_to: NotRequired[str]
    """Drive directory for the full streams, in the files stdout and stderr."""
    exec_id: NotRequired[str]
    """The caller's own name for this run. The same name never runs twice."""
    wait_ms: NotRequired[int]
    """Longest wait for the command's end. After it the answer is 202 with state running and the output so far; the command continues under its exec_id. By default the call waits until the end."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxExecAnswer: TypeAlias = ExecResult


class SandboxFilePutInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    path: str
    """Absolute path in the sandbox."""
    mode: NotRequired[str]
    """Permissions in octal; if absent, those of the file that is replaced, else 0644."""
    owner: NotRequired[str]
    """User of the sandbox, user:group or uid:gid; if absent, that of the file that is replaced, else the user that commands run as."""
    overwrite: NotRequired[bool]
    """false: refuse when the file exists; true if absent."""

SandboxFilePutAnswer: TypeAlias = WrittenSandboxFile


class SandboxFileGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    path: str
    """Absolute path in the sandbox."""


class SandboxFileListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    path: str
    """Absolute path in the sandbox."""
    recursive: NotRequired[bool]
    """false if absent."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

SandboxFileListAnswer: TypeAlias = SandboxFileListResult


class SandboxFileDeleteInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    path: str
    """Absolute path in the sandbox."""
    recursive: NotRequired[bool]

SandboxFileDeleteAnswer: TypeAlias = SandboxFileDeleteResult


class SandboxFileStatInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    path: str
    """Absolute path in the sandbox."""
    follow: NotRequired[bool]
    """true: the target of a symbolic link; false if absent."""

SandboxFileStatAnswer: TypeAlias = SandboxFileEntry


class SandboxFileMkdirInput(TypedDict):
    path: str
    """Absolute path in the sandbox."""
    mode: NotRequired[str]
    """Permissions in octal; 0755 if absent."""
    owner: NotRequired[str]
    """User of the sandbox, user:group or uid:gid; the user that commands run as if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxFileMkdirAnswer: TypeAlias = MadeSandboxDirectory


SandboxFileMoveInput = TypedDict(
    "SandboxFileMoveInput",
    {
        # Absolute path in the sandbox.
        "from": str,
        # Absolute path in the sandbox.
        "to": str,
        # false if absent: refuse when the target exists.
        "overwrite": NotRequired[bool],
        # Name of the room, unique among the organization's active rooms.
        "room_id": str,
        # agent_id of a live sandbox of the room, or its sandbox_id.
        "sandbox": str,
    },
)

SandboxFileMoveAnswer: TypeAlias = SandboxFileEntry


class SandboxFileWatchInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    path: str
    """Absolute path in the sandbox."""
    recursive: NotRequired[bool]
    """Directories below it too; false if absent."""
    after: NotRequired[str]
    """cursor of the last event you have."""

SandboxFileWatchAnswer: TypeAlias = FileChangeEvent | PingEvent


class TerminalCreateInput(TypedDict):
    rows: int
    cols: int
    command: NotRequired[str]
    """A line that /bin/sh -c runs; the login shell if absent."""
    argv: NotRequired[list[str]]
    """Instead of command: the command and its arguments, run without a shell."""
    cwd: NotRequired[str]
    """Working directory; the user's home if absent."""
    user: NotRequired[str]
    """User name or id; root if absent."""
    term: NotRequired[str]
    """TERM of the command; xterm-256color if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

TerminalCreateAnswer: TypeAlias = TerminalTicket


class TerminalListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

TerminalListAnswer: TypeAlias = TerminalPage


class TerminalGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    terminal_id: str

TerminalGetAnswer: TypeAlias = Terminal


class TerminalCloseInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    terminal_id: str

TerminalCloseAnswer: TypeAlias = TerminalCloseResult


class TerminalWatchInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    terminal_id: str
    after: NotRequired[int]
    """How many bytes you have seen; all that is kept is sent if absent."""

TerminalWatchAnswer: TypeAlias = TerminalEvent | PingEvent


class TerminalTokenInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    terminal_id: str

TerminalTokenAnswer: TypeAlias = TerminalTicket


class TerminalAttachInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    terminal_id: str
    since: NotRequired[int]
    """Offset of the first byte wanted; all that is kept if absent."""
    takeover: NotRequired[bool]
    """Whether to disconnect the client that is attached; otherwise a second client gets 409."""


class ScreenGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    width: NotRequired[int]
    """Width of the picture, which keeps its proportions; the screen's own if absent or larger than that."""


class ComputerInput(TypedDict):
    action: Literal["screenshot", "cursor_position", "mouse_move", "left_click", "right_click", "middle_click", "double_click", "triple_click", "left_click_drag", "left_mouse_down", "left_mouse_up", "scroll", "key", "hold_key", "type", "wait", "zoom"]
    """The action."""
    coordinate: NotRequired[list[int]]
    """Position: [x, y]. Clicks and scroll act at the pointer's position if absent."""
    start_coordinate: NotRequired[list[int]]
    """Start of left_click_drag; the pointer's position if absent."""
    text: NotRequired[str]
    """Text to type, or for key and hold_key the names of the keys."""
    key: NotRequired[str]
    """Keys that are held during a click, a drag or a scroll, such as shift or ctrl+alt."""
    scroll_direction: NotRequired[Literal["up", "down", "left", "right"]]
    """Direction of scroll."""
    scroll_amount: NotRequired[int]
    """Notches of the mouse's wheel; 3 if absent."""
    duration_ms: NotRequired[int]
    """Duration of wait or hold_key."""
    region: NotRequired[list[int]]
    """Region of zoom: [left, top, right, bottom]."""
    width: NotRequired[int]
    """Width of the picture, which keeps its proportions; the screen's own if absent or larger than that."""
    screenshot: NotRequired[bool]
    """Whether the answer has a picture; true if absent, except for cursor_position. screenshot and zoom always have one."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

ComputerAnswer: TypeAlias = ComputerResult


class ScreenTicketInput(TypedDict):
    drive: NotRequired[bool]
    """Whether keys, pointer and clipboard reach the screen; false if absent: view only."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

ScreenTicketAnswer: TypeAlias = ScreenTicketResult


class ScreenViewInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    ticket: NotRequired[str]
    """From screen_ticket."""


class RecordingStartInput(TypedDict):
    max_seconds: NotRequired[int]
    """Time limit; 3600 if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

RecordingStartAnswer: TypeAlias = Recording


class RecordingListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

RecordingListAnswer: TypeAlias = RecordingListResult


class RecordingGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    recording_id: str

RecordingGetAnswer: TypeAlias = Recording


class RecordingDeleteInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    recording_id: str

RecordingDeleteAnswer: TypeAlias = RecordingDeleteResult


class RecordingStopInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    recording_id: str

RecordingStopAnswer: TypeAlias = Recording


class RecordingDataInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    recording_id: str


class RecordingFilmInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    recording_id: str


class SshAccessCreateInput(TypedDict):
    expires_in_seconds: NotRequired[int]
    """3600 if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SshAccessCreateAnswer: TypeAlias = SshAccessCreateResult


class SshAccessListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SshAccessListAnswer: TypeAlias = SshAccessListResult


class SshAccessDeleteInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    access_id: str

SshAccessDeleteAnswer: TypeAlias = SshAccessDeleteResult


class SshKeyAddInput(TypedDict):
    public_key: str
    """One line, as in a .pub file or in authorized_keys without options."""
    name: NotRequired[str]
    """The key's comment if absent."""
    expires_in_seconds: NotRequired[int]
    org_id: str
    """The organization, or self."""

SshKeyAddAnswer: TypeAlias = SshKey


class SshKeyListInput(TypedDict):
    org_id: str
    """The organization, or self."""

SshKeyListAnswer: TypeAlias = SshKeyListResult


class SshKeyRemoveInput(TypedDict):
    org_id: str
    """The organization, or self."""
    ssh_key_id: str

SshKeyRemoveAnswer: TypeAlias = SshKeyRemoveResult


class SandboxExposePortInput(TypedDict):
    port: int
    """The port on which the server in the sandbox listens."""
    visibility: NotRequired[Literal["private", "public"]]
    """private (the default): only with the port's own token."""
    label: NotRequired[str]
    """Prefix of the URL's label; unguessable characters follow."""
    expires_in_seconds: NotRequired[int]
    """The port is unexposed after this time; if absent, when its sandbox ends."""
    wait_ms: NotRequired[int]
    """How long to wait until a server listens on the port, if none does; 0 if absent. `listening` has the result."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

SandboxExposePortAnswer: TypeAlias = ExposedPort


class PortListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

PortListAnswer: TypeAlias = ExposedPortPage


class SandboxUnexposePortInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    port: int
    """The port on which the server in the sandbox listens."""

SandboxUnexposePortAnswer: TypeAlias = SandboxUnexposePortResult


class BrowserGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

BrowserGetAnswer: TypeAlias = BrowserGetResult


class ExecutionStartInput(TypedDict):
    argv: NotRequired[list[str]]
    """The command and its arguments, run without a shell."""
    argv_json: NotRequired[str]
    """The same as a JSON string."""
    command: NotRequired[str]
    """A line that /bin/sh -c runs."""
    cwd: NotRequired[str]
    """Working directory in the guest."""
    env: NotRequired[dict[str, str]]
    """Environment variables; ROOMD_ names are reserved."""
    env_json: NotRequired[str]
    """The same as a JSON string. Not together with env."""
    user: NotRequired[str]
    """User name or id; root if absent."""
    stdin: NotRequired[str]
    """Text for standard input."""
    stdin_b64: NotRequired[str]
    """Bytes for standard input."""
    timeout_ms: NotRequired[int]
    """Ends the command after this time: SIGTERM to its process group, SIGKILL 5 s later. 0: no limit. At most 7 days. Default: 600 000 for a command that the call waits for, no limit for a command that it starts."""
    max_output_bytes: NotRequired[int]
    """Most bytes of each stream in the answer; 1 MiB if absent."""
    output_to: NotRequired[str]
    """Drive directory for the full streams, in the files stdout and stderr."""
    exec_id: NotRequired[str]
    """The caller's own name for this run. The same name never runs twice."""
    stdin_open: NotRequired[bool]
    """Whether standard input takes more later; true if absent, unless stdin or stdin_b64 is all there is."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""

ExecutionStartAnswer: TypeAlias = Execution


class ExecutionListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

ExecutionListAnswer: TypeAlias = ExecutionPage


class ExecutionGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    exec_id: str
    """The execution, by its exec_id."""

ExecutionGetAnswer: TypeAlias = Execution


class ExecutionEndInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    exec_id: str
    """The execution, by its exec_id."""

ExecutionEndAnswer: TypeAlias = Execution


class ExecutionStreamInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    exec_id: str
    """The execution, by its exec_id."""
    after: NotRequired[int]
    """seq of the last event you have; from the beginning if absent."""
    follow: NotRequired[bool]
    """Whether to wait for further output; true if absent."""

ExecutionStreamAnswer: TypeAlias = ExecutionEvent | PingEvent


class ExecutionStdinInput(TypedDict):
    data_b64: NotRequired[str]
    eof: NotRequired[bool]
    """Whether standard input ends after these bytes."""
    offset: NotRequired[int]
    """Position of the first of these bytes in the standard input; stdin_bytes is the number that has arrived."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    exec_id: str
    """The execution, by its exec_id."""

ExecutionStdinAnswer: TypeAlias = Execution


class ExecutionSignalInput(TypedDict):
    signal: Literal["SIGHUP", "HUP", "SIGINT", "INT", "SIGQUIT", "QUIT", "SIGILL", "ILL", "SIGTRAP", "TRAP", "SIGABRT", "ABRT", "SIGBUS", "BUS", "SIGFPE", "FPE", "SIGKILL", "KILL", "SIGUSR1", "USR1", "SIGSEGV", "SEGV", "SIGUSR2", "USR2", "SIGPIPE", "PIPE", "SIGALRM", "ALRM", "SIGTERM", "TERM", "SIGCHLD", "CHLD", "SIGCONT", "CONT", "SIGSTOP", "STOP", "SIGTSTP", "TSTP", "SIGTTIN", "TTIN", "SIGTTOU", "TTOU", "SIGURG", "URG", "SIGXCPU", "XCPU", "SIGXFSZ", "XFSZ", "SIGVTALRM", "VTALRM", "SIGPROF", "PROF", "SIGWINCH", "WINCH", "SIGIO", "IO", "SIGPWR", "PWR", "SIGSYS", "SYS"]
    """SIGINT or INT, and so on."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    sandbox: str
    """agent_id of a live sandbox of the room, or its sandbox_id."""
    exec_id: str
    """The execution, by its exec_id."""

ExecutionSignalAnswer: TypeAlias = Execution


class FsWriteInput(TypedDict):
    path: str
    """x, /x and /mnt/drive/x are the same file."""
    content: NotRequired[str]
    """Text of the file."""
    content_b64: NotRequired[str]
    """Bytes of the file."""
    append: NotRequired[bool]
    """Add to the end of the file instead of replacing it. Readers may see a part of the addition, and a crash before the answer may leave one."""
    mode: NotRequired[str]
    """Permissions in octal; 0644 if absent."""
    owner: NotRequired[str]
    """uid:gid, or root; a drive knows no other user names. Of directories above it that are made too."""
    overwrite: NotRequired[bool]
    """false: refuse when the file exists; true if absent."""
    if_match: NotRequired[str]
    """Only if the file has this sha256; else 412."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

FsWriteAnswer: TypeAlias = FsWriteResult


class FsListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    path: NotRequired[str]
    """x, /x and /mnt/drive/x are the same file."""
    recursive: NotRequired[bool]
    """If absent: true without a path, else false."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

FsListAnswer: TypeAlias = FsListResult


class FsReadInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    path: str
    """x, /x and /mnt/drive/x are the same file."""
    offset: NotRequired[int]
    """The first byte to read; 0 if absent."""
    length: NotRequired[int]
    """16 MiB if absent."""
    format: NotRequired[Literal["json", "raw"]]
    """json if absent. raw: the bytes themselves; the headers for files apply to these only."""

FsReadAnswer: TypeAlias = FsReadResult


class FsStatInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    path: str
    """x, /x and /mnt/drive/x are the same file."""

FsStatAnswer: TypeAlias = DriveStat


class FsMkdirInput(TypedDict):
    path: str
    """x, /x and /mnt/drive/x are the same file."""
    mode: NotRequired[str]
    """Permissions in octal; 0644 if absent."""
    owner: NotRequired[str]
    """uid:gid, or root; a drive knows no other user names. Of directories above it that are made too."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

FsMkdirAnswer: TypeAlias = FsMkdirResult


FsMoveInput = TypedDict(
    "FsMoveInput",
    {
        # x, /x and /mnt/drive/x are the same file.
        "from": str,
        # x, /x and /mnt/drive/x are the same file.
        "to": str,
        # false if absent: refuse when the target exists.
        "overwrite": NotRequired[bool],
        # Name of the room, unique among the organization's active rooms.
        "room_id": str,
    },
)

FsMoveAnswer: TypeAlias = DriveStat


class FsDeleteInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    path: str
    """x, /x and /mnt/drive/x are the same file."""
    recursive: NotRequired[bool]

FsDeleteAnswer: TypeAlias = FsDeleteResult


class FilePutInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    path: str
    """x, /x and /mnt/drive/x are the same file."""
    mode: NotRequired[str]
    """Permissions in octal; 0644 if absent."""
    owner: NotRequired[str]
    """uid:gid, or root; a drive knows no other user names. Of directories above it that are made too."""
    overwrite: NotRequired[bool]

FilePutAnswer: TypeAlias = WrittenFile


class FileGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    path: str
    """x, /x and /mnt/drive/x are the same file."""


class AgentSendInput(TypedDict):
    source: NotRequired[str]
    """The sender; in a guest always the sandbox's own agent."""
    destination: NotRequired[str | None]
    """The recipient; * for all others. Matches * or ^(?!sbx_)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$."""
    destinations: NotRequired[list[str] | None]
    """Several recipients."""
    topic: NotRequired[str | None]
    """Words separated by dots. The message goes to the topic's subscribers. Matches ^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$."""
    kind: NotRequired[Literal["event", "request", "response"]]
    """event if absent; with wait_reply request, with reply_to response."""
    reply_to: NotRequired[str]
    """message_id of the message that this replies to."""
    message_id: NotRequired[str]
    """The message's name, unique in the room."""
    payload: NotRequired[Any]
    """Any JSON, up to 64 KiB as text."""
    payload_b64: NotRequired[str]
    """Bytes, up to 64 KiB."""
    headers: NotRequired[dict[str, str]]
    """Metadata of the message, up to 4 KiB."""
    ack_required: NotRequired[bool]
    """Delivered again after 30 s without an ack, up to 5 times; then it is undeliverable."""
    ttl_ms: NotRequired[int]
    """The message expires unread after this time; never if absent."""
    wait_reply: NotRequired[bool]
    """Wait for the reply of its one recipient."""
    timeout_ms: NotRequired[int]
    """Longest wait for the reply; 5000 if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

AgentSendAnswer: TypeAlias = SentMessage


class AgentWaitInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    agent_id: NotRequired[str]
    """Whose inbox."""
    topic: NotRequired[str]
    """A topic, or a pattern as for subscriptions."""
    kind: NotRequired[Literal["event", "request", "response"]]
    """Only messages of this kind."""
    source: NotRequired[str]
    """Only messages from this agent."""
    after: NotRequired[int]
    """next_after of the previous answer."""
    limit: NotRequired[int]
    """100 if absent."""
    wait_ms: NotRequired[int]
    """How long to wait for the first; 0 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, instead of after."""

AgentWaitAnswer: TypeAlias = AgentWaitResult


class MessageSendManyInput(TypedDict):
    messages: list[MessageToSend]
    """In the order of delivery."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

MessageSendManyAnswer: TypeAlias = MessageSendManyResult


class MessageGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    message_id: str
    """The message's name, unique in the room."""

MessageGetAnswer: TypeAlias = MessageGetResult


class MessageAckInput(TypedDict):
    agent_id: NotRequired[str]
    """The recipient that has it."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    message_id: str
    """The message's name, unique in the room."""

MessageAckAnswer: TypeAlias = MessageAckResult


class MessageReplyInput(TypedDict):
    source: NotRequired[str]
    """The sender; in a guest always the sandbox's own agent."""
    reply_message_id: NotRequired[str]
    """The message_id of the reply."""
    payload: NotRequired[Any]
    """Any JSON, up to 64 KiB as text."""
    payload_b64: NotRequired[str]
    """Bytes, up to 64 KiB."""
    headers: NotRequired[dict[str, str]]
    """Metadata of the message, up to 4 KiB."""
    ack_required: NotRequired[bool]
    """Delivered again after 30 s without an ack, up to 5 times; then it is undeliverable."""
    ttl_ms: NotRequired[int]
    """The message expires unread after this time; never if absent."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    message_id: str
    """The message's name, unique in the room."""

MessageReplyAnswer: TypeAlias = MessageReplyResult


class AgentSubscribeInput(TypedDict):
    topics: list[str]
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    agent_id: str
    """The agent."""

AgentSubscribeAnswer: TypeAlias = AgentSubscribeResult


class AgentListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

AgentListAnswer: TypeAlias = AgentPage


class BarrierArriveInput(TypedDict):
    barrier_id: str
    """The barrier's name in the room."""
    agent_id: NotRequired[str]
    """The arriving agent; in a guest always the sandbox's own."""
    arrivals: NotRequired[list[str]]
    """Several agents that arrive together."""
    arrivals_json: NotRequired[str]
    """The same as a JSON string."""
    parties: NotRequired[int]
    """How many must arrive. If absent: the number of participants, else of arrivals."""
    participants: NotRequired[list[str]]
    """The agents that must arrive. The barrier breaks when one of them is gone."""
    generation: NotRequired[int]
    """The generation to wait for, if it may already be over."""
    timeout_ms: NotRequired[int]
    """Longest wait for the others; 30 000 if absent. 0: do not wait."""
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

BarrierArriveAnswer: TypeAlias = BarrierArriveResult


class BarrierListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

BarrierListAnswer: TypeAlias = BarrierPage


class BarrierGetInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    barrier_id: str
    """The barrier's name in the room."""

BarrierGetAnswer: TypeAlias = Barrier


class BarrierCancelInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    barrier_id: str
    """The barrier's name in the room."""

BarrierCancelAnswer: TypeAlias = Barrier


class RoomOverviewInput(TypedDict):
    state: NotRequired[Literal["active", "destroying", "destroyed"]]
    """Only those in this state."""
    label: NotRequired[str]
    """Only those with this label, as key:value."""
    host: NotRequired[str]
    """Only those on this one of several hosts."""
    order: NotRequired[Literal["asc", "desc"]]
    """By creation. asc, the oldest first, if absent."""
    limit: NotRequired[int]
    """Most items to return; 100 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""

RoomOverviewAnswer: TypeAlias = RoomOverviewResult


class RoomWaitsInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

RoomWaitsAnswer: TypeAlias = RoomWaitsResult


class RoomTimelineInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    since: NotRequired[str]
    """RFC 3339 or unix seconds."""
    until: NotRequired[str]
    """RFC 3339 or unix seconds."""
    agent_id: NotRequired[str]
    """Only actions of this agent, or on it."""
    types: NotRequired[str]
    """Only these types, separated by commas."""
    limit: NotRequired[int]
    """200 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""
    order: NotRequired[Literal["asc", "desc"]]
    """desc, the newest first, if absent."""

RoomTimelineAnswer: TypeAlias = RoomTimelineResult


class RoomNowInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    follow: NotRequired[bool]
    """Whether to wait for changes; true if absent."""

RoomNowAnswer: TypeAlias = RoomNowLine | PingEvent


class LiveSocketInput(TypedDict):
    pass


class TemplateListInput(TypedDict):
    pass

TemplateListAnswer: TypeAlias = TemplateListResult

TemplateCreateInput: TypeAlias = TemplateCreateRequest

TemplateCreateAnswer: TypeAlias = TemplateCreateResult


class TemplateGetInput(TypedDict):
    template_id: str

TemplateGetAnswer: TypeAlias = Template


class TemplateRemoveInput(TypedDict):
    template_id: str

TemplateRemoveAnswer: TypeAlias = TemplateRemoveResult


class TemplateBuildGetInput(TypedDict):
    template_id: str
    build_id: str
    """The build, by its build_id."""

TemplateBuildGetAnswer: TypeAlias = TemplateBuild


class TemplateBuildEndInput(TypedDict):
    template_id: str
    build_id: str
    """The build, by its build_id."""

TemplateBuildEndAnswer: TypeAlias = TemplateBuild


class TemplateBuildStreamInput(TypedDict):
    template_id: str
    build_id: str
    """The build, by its build_id."""
    after: NotRequired[int]
    """seq of the last event you have; from the beginning if absent."""
    follow: NotRequired[bool]
    """Whether to wait for further events; true if absent."""

TemplateBuildStreamAnswer: TypeAlias = BuildEvent | PingEvent


class AuditListInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    since: NotRequired[str]
    """RFC 3339 or unix seconds."""
    until: NotRequired[str]
    """RFC 3339 or unix seconds."""
    event: NotRequired[str]
    """Prefix of the event's name."""
    agent_id: NotRequired[str]
    """Only actions of this agent, or on it."""
    outcome: NotRequired[Literal["success", "denied", "error"]]
    """Only records with this outcome."""
    source: NotRequired[Literal["rest", "mcp", "vsock", "ssh", "web", "cli", "reconciler"]]
    """Only records from this source."""
    actor_id: NotRequired[str]
    """Only actions of this key, person or sandbox, by actor.id."""
    request_id: NotRequired[str]
    """Only records of this request."""
    trace_id: NotRequired[str]
    """Only records of this trace."""
    audit_id: NotRequired[str]
    """Only this record."""
    reads: NotRequired[bool]
    """false: without calls that only read, unless they were refused or failed; true if absent."""
    limit: NotRequired[int]
    """200 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""
    order: NotRequired[Literal["asc", "desc"]]
    """desc, the newest first, if absent."""

AuditListAnswer: TypeAlias = AuditRecordPage


class OrgAuditListInput(TypedDict):
    org_id: str
    """The organization, or self."""
    since: NotRequired[str]
    """RFC 3339 or unix seconds."""
    until: NotRequired[str]
    """RFC 3339 or unix seconds."""
    event: NotRequired[str]
    """Prefix of the event's name."""
    agent_id: NotRequired[str]
    """Only actions of this agent, or on it."""
    outcome: NotRequired[Literal["success", "denied", "error"]]
    """Only records with this outcome."""
    source: NotRequired[Literal["rest", "mcp", "vsock", "ssh", "web", "cli", "reconciler"]]
    """Only records from this source."""
    actor_id: NotRequired[str]
    """Only actions of this key, person or sandbox, by actor.id."""
    request_id: NotRequired[str]
    """Only records of this request."""
    trace_id: NotRequired[str]
    """Only records of this trace."""
    audit_id: NotRequired[str]
    """Only this record."""
    reads: NotRequired[bool]
    """false: without calls that only read, unless they were refused or failed; true if absent."""
    limit: NotRequired[int]
    """200 if absent."""
    cursor: NotRequired[str]
    """next_cursor of the previous page, unchanged."""
    order: NotRequired[Literal["asc", "desc"]]
    """desc, the newest first, if absent."""
    room_id: NotRequired[str]
    """Only rooms of this name, destroyed ones too."""

OrgAuditListAnswer: TypeAlias = AuditRecordPage


class AuditSummaryInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    since: NotRequired[str]
    """RFC 3339 or unix seconds."""
    until: NotRequired[str]
    """RFC 3339 or unix seconds."""
    event: NotRequired[str]
    """Prefix of the event's name."""
    agent_id: NotRequired[str]
    """Only actions of this agent, or on it."""
    outcome: NotRequired[Literal["success", "denied", "error"]]
    """Only records with this outcome."""
    source: NotRequired[Literal["rest", "mcp", "vsock", "ssh", "web", "cli", "reconciler"]]
    """Only records from this source."""
    actor_id: NotRequired[str]
    """Only actions of this key, person or sandbox, by actor.id."""
    request_id: NotRequired[str]
    """Only records of this request."""
    trace_id: NotRequired[str]
    """Only records of this trace."""
    audit_id: NotRequired[str]
    """Only this record."""
    reads: NotRequired[bool]
    """false: without calls that only read, unless they were refused or failed; true if absent."""

AuditSummaryAnswer: TypeAlias = AuditSummary


class OrgAuditSummaryInput(TypedDict):
    org_id: str
    """The organization, or self."""
    since: NotRequired[str]
    """RFC 3339 or unix seconds."""
    until: NotRequired[str]
    """RFC 3339 or unix seconds."""
    event: NotRequired[str]
    """Prefix of the event's name."""
    agent_id: NotRequired[str]
    """Only actions of this agent, or on it."""
    outcome: NotRequired[Literal["success", "denied", "error"]]
    """Only records with this outcome."""
    source: NotRequired[Literal["rest", "mcp", "vsock", "ssh", "web", "cli", "reconciler"]]
    """Only records from this source."""
    actor_id: NotRequired[str]
    """Only actions of this key, person or sandbox, by actor.id."""
    request_id: NotRequired[str]
    """Only records of this request."""
    trace_id: NotRequired[str]
    """Only records of this trace."""
    audit_id: NotRequired[str]
    """Only this record."""
    reads: NotRequired[bool]
    """false: without calls that only read, unless they were refused or failed; true if absent."""
    room_id: NotRequired[str]
    """Only rooms of this name, destroyed ones too."""

OrgAuditSummaryAnswer: TypeAlias = AuditSummary


class AuditVerifyInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""

AuditVerifyAnswer: TypeAlias = AuditVerdict


class OrgAuditVerifyInput(TypedDict):
    org_id: str
    """The organization, or self."""

OrgAuditVerifyAnswer: TypeAlias = OrgAuditVerdict


class RoomEventsInput(TypedDict):
    room_id: str
    """Name of the room, unique among the organization's active rooms."""
    after: NotRequired[int]
    """seq of the last event you have; if absent, only new events are sent."""
    follow: NotRequired[bool]
    """Whether to wait for new events; true if absent."""

RoomEventsAnswer: TypeAlias = AuditRecord | PingEvent


class OrgEventsInput(TypedDict):
    org_id: str
    """The organization, or self."""
    after: NotRequired[str]
    """Cursor of the last event received, unchanged; 0: from the first that is kept; absent: from now on."""
    follow: NotRequired[bool]
    """Whether to wait for new events; true if absent."""

OrgEventsAnswer: TypeAlias = OrgEvent | PingEvent
