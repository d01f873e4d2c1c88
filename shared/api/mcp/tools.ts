/**
 * The list of MCP tools: the whole interface for models, once. Input and output of a tool are derived from its operation; this file has
 * descriptions and differences.
 */
import { Type } from "@sinclair/typebox";
import { auditRecord } from "../audit.ts";
import { fields, nullable, oneOf } from "../contract.ts";
import { SIGNALS, sandboxExec } from "../executions.ts";
import { agentName } from "../fabric.ts";
import { operations } from "../operations.ts";
import { sandboxCreate } from "../sandboxes.ts";
import { continued, HINTS, nextCall, type Tool, tool } from "./tool.ts";

const { LOOKS, ADDS, REPEATS, REMOVES } = HINTS;

/** A tool answers within this time; longer work is continued by another call. */
export const MAX_TOOL_WAIT_MS = 45_000;
export const DEFAULT_INBOX_WAIT_MS = 30_000;
/** Default number of records that an audit tool shows. */
export const SHOWN_RECORDS = 20;

/** In a guest it is the sandbox's own agent; over MCP the model specifies it. */
const sender = {
  source: Type.Optional(agentName("The sending agent. Leave it out only with a key that is bound to one agent.")),
};
const ownOrg = Type.Optional(Type.String({ maxLength: 64, description: "The organization; your own if absent." }));

const audited = Type.Object({
  summary: Type.Optional(operations.audit_summary.output),
  items: Type.Optional(Type.Array(auditRecord)),
  next_cursor: nullable(Type.String()),
});
const summarized = {
  raw: Type.Optional(
    Type.Boolean({
      description: "true: the records, up to limit. Else a summary.",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: `With raw: most records; ${SHOWN_RECORDS} if absent.`,
    }),
  ),
};

const execution = fields({
  exec_id: nullable(Type.String()),
  state: oneOf(["starting", "running", "exited"], { description: "starting: the sandbox is not ready yet." }),
  exit_code: nullable(Type.Integer({ description: "Null while it runs, and when a signal or its timeout ended it." })),
  signal: nullable(Type.String()),
  timed_out: Type.Boolean(),
  oom: sandboxExec.output.properties.oom,
  stdout_bytes: Type.Integer({ description: "All that it has written so far." }),
  stderr_bytes: Type.Integer(),
  left_out_bytes: Type.Integer({ description: "In the middle of the text; `rest` reads them." }),
  shown_bytes: Type.Object(
    { stdout: Type.Integer(), stderr: Type.Integer() },
    { description: "Bytes of each stream that the text has; absent: all." },
  ),
  duration_ms: nullable(Type.Integer()),
  output: sandboxExec.output.properties.output,
  rest: Type.Optional(nextCall),
  next: Type.Optional(nextCall),
});

const list: readonly Tool[] = [
  tool({
    operation: operations.health,
    title: "Service health",
    about: "Reports whether the service is ready, its platform, and how much memory and how many guest_cids are free.",
    next: "usage, then room_create or room_list.",
    example: {},
    hints: LOOKS,
  }),
  tool({
    operation: operations.usage,
    title: "Usage and quotas",
    about:
      "Reports the organization's usage and remaining quotas, and whether a room or a sandbox can be created. Check before creating many.",
    next: "room_create when can_create.room is true.",
    example: {},
    also: { org_id: ownOrg },
    hints: LOOKS,
  }),
  tool({
    operation: operations.room_list,
    title: "List rooms",
    about: "Lists the organization's rooms, a page at a time.",
    next: "room_get for one of them; the same call with cursor = next_cursor for the next page.",
    example: { state: "active", limit: 20 },
    hints: LOOKS,
  }),
  tool({
    operation: operations.room_create,
    title: "Create a room",
    about:
      "Creates a room: the container of one run, with its sandboxes, the messages between their agents, and a drive that they share. It must exist before a sandbox is created in it.",
    next: "sandbox_create for each agent.",
    example: { room_id: "build-42", labels: { purpose: "review" } },
    hints: ADDS,
  }),
  tool({
    operation: operations.room_get,
    title: "Get a room",
    about: "Shows a room: its state, how many sandboxes it has, and how full its drive is.",
    next: "sandbox_create, fs_list or audit_list in it.",
    example: { room_id: "build-42" },
    hints: LOOKS,
  }),
  tool({
    operation: operations.room_destroy,
    title: "Destroy a room",
    about:
      "Destroys a room with all of its sandboxes. Its drive is kept for a day unless drive is delete; its audit is kept.",
    next: "nothing; state destroying means that it takes longer, and room_get is room_not_found when it is done.",
    example: { room_id: "build-42" },
    hints: REMOVES,
  }),
  tool({
    operation: operations.sandbox_create,
    title: "Create a sandbox",
    about:
      "Starts a sandbox, a virtual machine with root inside, for one agent of a room, and waits until it is ready. The room's drive is at /mnt/drive.",
    next: "sandbox_exec. State starting means that it is not ready yet: make the call in `next`, which waits for it.",
    example: { room_id: "build-42", agent_id: "worker-1" },
    result: continued(sandboxCreate.output),
    hints: ADDS,
  }),
  tool({
    operation: operations.sandbox_exec,
    title: "Run a command",
    about:
      "Runs a command in a sandbox and waits for its end: either argv, without a shell, or command, a line for /bin/sh. A command that fails is a success of this tool: look at exit_code. After 45 s the answer is state running with the output so far. Cancelling the call does not end the command; signal does. For large outputs use output_to, and read the files with fs_read.",
    next: "if `next` is there, make that call: it continues with the output after this answer, and never runs the command again. Add signal or stdin_b64 to send it to the command.",
    example: { room_id: "build-42", sandbox: "worker-1", command: "make -j2 test", timeout_ms: 600_000 },
    also: {
      exec_id: Type.Optional(
        Type.String({
          ...sandboxExec.body.properties.exec_id,
          description: "Your own name for this run. Without argv and command: the run to continue.",
        }),
      ),
      background: Type.Optional(
        Type.Boolean({
          description:
            "true: answer immediately, with the output so far. A command started this way keeps its standard input open; it too is ended after timeout_ms.",
        }),
      ),
      wait_ms: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: MAX_TOOL_WAIT_MS,
          description: "Longest wait for its end; 45 000 if absent.",
        }),
      ),
      after: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description: "The last piece of output that you have, from `next`; absent: from the beginning.",
        }),
      ),
      after_bytes: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description: "How much of the piece after that you have, from `next`.",
        }),
      ),
      signal: Type.Optional(
        oneOf(SIGNALS, { description: "A signal for the run that exec_id names, as SIGINT or SIGTERM." }),
      ),
      eof: Type.Optional(
        Type.Boolean({
          description: "Whether its standard input ends after stdin or stdin_b64, for a running command.",
        }),
      ),
    },
    result: execution,
    hints: { ...ADDS, destructiveHint: true, openWorldHint: true },
  }),
  tool({
    operation: operations.sandbox_destroy,
    title: "Destroy a sandbox",
    about: "Destroys a sandbox and everything that runs in it. Its files on the drive stay.",
    next: "its guest_cid and agent_id can be used for another sandbox_create.",
    example: { room_id: "build-42", sandbox: "worker-1" },
    hints: REMOVES,
  }),
  tool({
    operation: operations.sandbox_expose_port,
    title: "Expose a port",
    about:
      "Makes a server that listens in a sandbox reachable by URL. A private port requires its token, in the header X-Port-Token or once as ?port_token=. The same port again is the same record.",
    next: "start the server with sandbox_exec and background, if listening is false; pass url and token to their users.",
    example: { room_id: "build-42", sandbox: "worker-1", port: 8000, visibility: "private" },
    hints: { ...REPEATS, openWorldHint: true },
  }),
  tool({
    operation: operations.sandbox_unexpose_port,
    title: "Unexpose a port",
    about: "Permanently removes a port's URL, and closes its connections.",
    next: "sandbox_expose_port makes another URL.",
    example: { room_id: "build-42", sandbox: "worker-1", port: 8000 },
    hints: REMOVES,
  }),
  tool({
    operation: operations.agent_send,
    title: "Send a message",
    about:
      "Sends a message to one agent of the room. It is stored before acceptance, and waits in the agent's inbox. For more than 64 KiB write a file with fs_write and send its path.",
    next: "agent_wait as the recipient reads it; agent_request waits for a reply, agent_fanout sends to several.",
    example: { room_id: "build-42", source: "planner", destination: "worker-1", payload: { task: "/tasks/1.md" } },
    without: ["destinations", "topic", "wait_reply", "timeout_ms"],
    also: sender,
    hints: ADDS,
  }),
  tool({
    name: "agent_request",
    operation: operations.agent_send,
    title: "Send a request and await its reply",
    about:
      "Sends a request to one agent and waits for its reply, which is a message by agent_send with kind response and reply_to = this message_id. On reply_timeout the request stays in the agent's inbox.",
    next: "when `next` is there, make that call: it waits on, and sends nothing twice.",
    example: {
      room_id: "build-42",
      source: "planner",
      destination: "worker-1",
      payload: { question: "ready?" },
      timeout_ms: 20_000,
    },
    without: ["destinations", "topic", "kind", "wait_reply"],
    also: sender,
    result: continued(operations.agent_send.output),
    hints: ADDS,
  }),
  tool({
    name: "agent_fanout",
    operation: operations.agent_send,
    title: "Send a message to several agents",
    about:
      "Sends one message to several agents: those in destinations, the subscribers of topic, or with destination * all others of the room.",
    next: "agent_wait for their replies.",
    example: {
      room_id: "build-42",
      source: "planner",
      destinations: ["worker-1", "worker-2"],
      payload: { start: true },
    },
    without: ["wait_reply", "timeout_ms"],
    also: sender,
    hints: ADDS,
  }),
  tool({
    operation: operations.agent_wait,
    title: "Wait for messages or a barrier",
    about:
      "Waits for messages in an agent's inbox, oldest first; after marks all up to there as read. With barrier_id it waits at the barrier instead, and agent_id arrives at it if it has not.",
    next: "the call in `next`: it marks these messages as read and waits for more, or waits on at the barrier.",
    example: { room_id: "build-42", agent_id: "worker-1", wait_ms: 20_000 },
    also: {
      barrier_id: Type.Optional(operations.barrier_arrive.body.properties.barrier_id),
      generation: operations.barrier_arrive.body.properties.generation,
      wait_ms: Type.Optional(
        Type.Integer({
          ...operations.agent_wait.query.properties.wait_ms,
          description: "Longest wait, of which one call waits 45 000 at most; 30 000 if absent, 0: none.",
        }),
      ),
    },
    result: Type.Union([continued(operations.agent_wait.output), continued(operations.barrier_arrive.output)]),
    hints: ADDS,
  }),
  tool({
    operation: operations.barrier_arrive,
    title: "Arrive at a barrier",
    about:
      "Arrives at a barrier as an agent, or as several, and waits until all parties have. The first arrival opens it and sets the number of parties. Arriving again is the same arrival; a timeout does not withdraw it.",
    next: "when `next` is there, make that call: it waits on. On barrier_timeout arrive again with details.generation.",
    example: { room_id: "build-42", barrier_id: "merged", agent_id: "worker-1", parties: 2, timeout_ms: 30_000 },
    result: continued(operations.barrier_arrive.output),
    hints: REPEATS,
  }),
  tool({
    operation: operations.fs_write,
    title: "Write a file on the drive",
    about:
      "Writes a file on the room's drive, whole or not at all, up to 16 MiB: text as content, bytes as content_b64. In the sandboxes it is below /mnt/drive.",
    next: "send its path by agent_send; large results belong here, not into messages.",
    example: { room_id: "build-42", path: "/tasks/1.md", content: "# Review the parser\n" },
    hints: { ...ADDS, destructiveHint: true },
  }),
  tool({
    operation: operations.fs_list,
    title: "List the drive",
    about: "Lists entries of the room's drive; without path all of it.",
    next: "fs_read for a file; the same call with cursor = next_cursor for the next page.",
    example: { room_id: "build-42", path: "/results", recursive: true },
    hints: LOOKS,
  }),
  tool({
    operation: operations.fs_read,
    title: "Read a file of the drive",
    about: "Reads a file of the room's drive, or the part of it that offset and length name.",
    next: "when eof is false, the same call with offset = offset + length.",
    example: { room_id: "build-42", path: "/results/report.txt", length: 65_536 },
    without: ["format"],
    hints: LOOKS,
  }),
  tool({
    operation: operations.audit_list,
    title: "Summarize a room's audit",
    about: "Summarizes the audit of a room: actors, actions, times and outcomes. Give people the summary.",
    next: "raw and event, agent_id, outcome, since or until for the records of interest.",
    example: { room_id: "build-42" },
    also: summarized,
    result: audited,
    hints: LOOKS,
  }),
  tool({
    operation: operations.org_audit_list,
    title: "Summarize the organization's audit",
    about: "Summarizes the audit of the organization, including destroyed rooms. Give people the summary.",
    next: "raw and event, agent_id, outcome, since or until for the records of interest.",
    example: { outcome: "denied" },
    also: { org_id: ownOrg, ...summarized },
    result: audited,
    hints: LOOKS,
  }),
];

export const TOOLS: ReadonlyMap<string, Tool> = new Map(list.map((each) => [each.name, each]));

/** The rules for clients, in every server's instructions. */
export const INSTRUCTIONS = `roomd runs isolated sandboxes (virtual machines) for groups of agents. A room is the container of one run: create it first, then one sandbox for each agent in it; all share the room's drive at /mnt/drive, exchange messages, and meet at barriers.

1. Before any change, check health and usage: the service must be ready; check quotas before creating many rooms or sandboxes. If you skip this, the service does it and adds the results as preflight to the first call's answer.
2. Report the audit to people in a few sentences, from the summary that audit_list and org_audit_list return. Show single records (raw) only on request.
3. The service's web page is a place to find prompts. Create rooms and run commands with these tools; never ask a person to press Create or Exec there.

Every answer is {"ok":true,"result":…} or {"ok":false,"status","code","detail","hint","retryable"}; follow hint. No call takes longer than 50 seconds: if an answer has "next", that call continues unfinished work. Large outputs belong on the drive, messages carry their paths. Programs in a sandbox send, receive and meet as its own agent with the command room (room --help). Destroy the room when the run is over.`;
