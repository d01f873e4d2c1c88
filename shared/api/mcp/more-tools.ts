/**
 * Additional tools, served with the usual ones to clients that request all: more than most models need in every tool list that they pay
 * for.
 */
import { Type } from "@sinclair/typebox";
import { fields } from "../contract.ts";
import { operations } from "../operations.ts";
import { templateCreate } from "../template-builds.ts";
import { SMALL_TOOLS } from "./small-tools.ts";
import { continued, HINTS, type Tool, tool } from "./tool.ts";
import { MAX_TOOL_WAIT_MS, TOOLS } from "./tools.ts";

const { LOOKS, ADDS, REPEATS, REMOVES } = HINTS;

const { screenshot_b64: _, ...used } = operations.computer.output.properties;
const wait_ms = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: MAX_TOOL_WAIT_MS,
    description: "Longest wait for its end; 45 000 if absent.",
  }),
);

const list: readonly Tool[] = [
  tool({
    operation: operations.computer,
    title: "Use a screen",
    about:
      "Performs one action on a sandbox's screen, with its keyboard or mouse, and returns a picture of the result, as an image next to the answer. Sandboxes of the template desktop have a screen. Coordinates are those of the picture that you see: send the same width with every call.",
    next: "look at the picture, then the same tool for the next step.",
    example: { room_id: "build-42", sandbox: "worker-1", action: "left_click", coordinate: [640, 400], width: 1280 },
    result: fields(used),
    hints: { ...ADDS, destructiveHint: true, openWorldHint: true },
  }),
  tool({
    name: "browser",
    operation: operations.browser_get,
    title: "Reach a browser",
    about:
      "Returns the URL and headers with which Playwright and Puppeteer connect to the Chromium of a sandbox. Sandboxes of the template browser have one. Both together give full control of it: pass them to your own program only.",
    next: "connect with chromium.connectOverCDP(cdp_url, {headers}), in a sandbox or locally.",
    example: { room_id: "build-42", sandbox: "worker-1" },
    hints: { ...REPEATS, openWorldHint: true },
  }),
  tool({
    operation: operations.message_send_many,
    title: "Send many messages",
    about:
      "Sends messages of the room in order: all are kept, or none if one is refused. Each message names its sender and recipients, as with agent_send.",
    next: "agent_wait as the recipients, or for their replies.",
    example: {
      room_id: "build-42",
      messages: [
        { source: "planner", destination: "worker-1", payload: { task: "/tasks/1.md" } },
        { source: "planner", destination: "worker-1", payload: { task: "/tasks/2.md" } },
      ],
    },
    hints: ADDS,
  }),
  tool({
    operation: operations.template_list,
    title: "List templates",
    about: "Lists the templates of sandboxes: the host's, and those of the organization.",
    next: "sandbox_create with template_id.",
    example: {},
    hints: LOOKS,
  }),
  tool({
    name: "template_build",
    operation: operations.template_create,
    title: "Build a template",
    about:
      "Builds a template for the organization: from an image, a recipe with steps, or a Dockerfile, and waits for its end. Steps reach only hosts of egress_allowlist. After 45 s the answer is the build's state, with its output so far. If it fails, failure has the step and its last lines.",
    next: "if `next` is there, make that call: it continues with the output of this build, never another. Then sandbox_create with template_id.",
    example: {
      template_id: "pytest",
      from: { recipe: { from: "docker://registry.example.com/python:3.13-slim", steps: ["pip install pytest"] } },
      egress_allowlist: ["packages.example.com:443"],
    },
    also: {
      from: Type.Optional({
        ...templateCreate.body.properties.from,
        description: "Its source: one of image, recipe and dockerfile.",
      }),
      build_id: Type.Optional(
        Type.String({ maxLength: 64, description: "The build to continue with. Only template_id may accompany it." }),
      ),
      after: Type.Optional(
        Type.Integer({
          minimum: -1,
          maximum: Number.MAX_SAFE_INTEGER,
          description: "The last event that you have, from `next`.",
        }),
      ),
      wait_ms,
    },
    result: continued(
      fields({
        ...templateCreate.output.properties,
        told: Type.Array(Type.String(), { description: "Output since `after`, the last lines of it." }),
      }),
    ),
    hints: { ...ADDS, openWorldHint: true },
  }),
  tool({
    operation: operations.sandbox_snapshot,
    title: "Take a snapshot",
    about:
      "Saves a sandbox: memory, processes and disk, but not the room's drive. Take one before a step that may break something. The sandbox pauses for a moment, and its connections are closed. Secrets in its memory are in the snapshot.",
    next: "the risky step. If it goes wrong, sandbox_rollback with this snapshot_id; sandbox_create with snapshot_id makes another sandbox from it.",
    example: { room_id: "build-42", sandbox: "worker-1", name: "before the upgrade", expires_in_seconds: 3600 },
    hints: ADDS,
  }),
  tool({
    operation: operations.sandbox_fork,
    title: "Copy a sandbox",
    about:
      "Makes copies of a sandbox, one for each agent in agents: the same memory, processes and disk, and the same drive. Use it to try several ways from one prepared state and keep the best. The copies are independent. A copy that could not be made has a problem in its item; the others exist.",
    next: "sandbox_exec in each copy, with its agent_id as sandbox; sandbox_destroy for copies that you do not keep.",
    example: { room_id: "build-42", sandbox: "worker-1", agents: [{ agent_id: "try-1" }, { agent_id: "try-2" }] },
    hints: ADDS,
  }),
  tool({
    operation: operations.sandbox_rollback,
    title: "Roll back a sandbox",
    about:
      "Restores a sandbox to a snapshot. Later changes are lost, and running commands end. It keeps its name, guest_cid and ports. The room's drive is not rolled back.",
    next: "sandbox_exec, to check it and to try another way.",
    example: { room_id: "build-42", sandbox: "worker-1", snapshot_id: "snap_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2" },
    hints: REMOVES,
  }),
  tool({
    operation: operations.snapshot_list,
    title: "List snapshots",
    about:
      "Lists a room's snapshots, the oldest first, with their size and when they end. parent makes a tree of them.",
    next: "sandbox_rollback, or sandbox_create with a snapshot_id; the same call with cursor = next_cursor for the next page.",
    example: { room_id: "build-42", agent_id: "worker-1" },
    hints: LOOKS,
  }),
  tool({
    operation: operations.sandbox_hibernate,
    title: "Hibernate a sandbox",
    about:
      "Saves a sandbox to disk and frees its memory. Use it when a sandbox is idle for long and is needed again. Its processes are paused, its connections are closed, and it keeps its name, guest_cid, ports and files.",
    next: "sandbox_resume, when it is needed again.",
    example: { room_id: "build-42", sandbox: "worker-1" },
    hints: REPEATS,
  }),
  tool({
    operation: operations.sandbox_resume,
    title: "Resume a sandbox",
    about:
      "Resumes a paused or hibernated sandbox. Its processes continue where they were, and its clock is corrected.",
    next: "sandbox_exec.",
    example: { room_id: "build-42", sandbox: "worker-1" },
    hints: REPEATS,
  }),
  tool({
    operation: operations.egress_explain,
    title: "Explain an egress decision",
    about:
      "Reports whether a sandbox may connect to a host, and which setting allows or would allow it, without connecting.",
    next: "the connection, if it is allowed; else report hint to the person: list and configuration are theirs to change.",
    example: { room_id: "build-42", sandbox: "worker-1", host: "example.org", port: 443 },
    hints: LOOKS,
  }),
  tool({
    operation: operations.room_checkpoint,
    title: "Take a checkpoint of a room",
    about:
      "Saves a room at one instant: memory, processes and disks of all its sandboxes, its drive, messages, inboxes and barriers. Take one before a step of several agents that may go wrong. All sandboxes pause together for a moment, and their connections are closed. Secrets in their memory are in the checkpoint.",
    next: "the risky step. If it goes wrong, room_restore with this checkpoint_id; room_fork with checkpoint_id makes another room from it.",
    example: { room_id: "build-42", name: "before the merge", expires_in_seconds: 3600 },
    hints: ADDS,
  }),
  tool({
    operation: operations.room_fork,
    title: "Fork a room",
    about:
      "Makes another room from a checkpoint, or from the room's present state: all its sandboxes, its own drive, the same messages and barriers. Use it to try several ways with the same agents and keep the best. From then on the two rooms share nothing, and each sandbox costs as usual.",
    next: "sandbox_exec and agent_send with the new room_id. If an item has a problem, that sandbox is missing: room_destroy, and retry. room_destroy for rooms that you do not keep.",
    example: { source_room_id: "build-42", room_id: "build-42-try-1", checkpoint_id: "chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2" },
    without: ["cids"],
    hints: ADDS,
  }),
  tool({
    operation: operations.room_restore,
    title: "Restore a room",
    about:
      "Restores a room to a checkpoint: its sandboxes, drive, messages and barriers. Later changes of all its agents are lost. Sandboxes created since are destroyed, those destroyed since are recreated.",
    next: "sandbox_exec or fs_read, to check it and to try another way.",
    example: { room_id: "build-42", checkpoint_id: "chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2" },
    hints: REMOVES,
  }),
  tool({
    operation: operations.checkpoint_list,
    title: "List checkpoints",
    about: "Lists a room's checkpoints, the oldest first, with their size, how long they paused it, and when they end.",
    next: "room_restore or room_fork with a checkpoint_id; the same call with cursor = next_cursor for the next page.",
    example: { room_id: "build-42" },
    hints: LOOKS,
  }),
];

const usual = TOOLS;
const all: ReadonlyMap<string, Tool> = new Map([...usual, ...list.map((each) => [each.name, each] as const)]);

/** The tools served at each path. */
export const TOOL_SETS = {
  usual: { path: "/mcp", tools: usual },
  small: { path: "/mcp/small", tools: SMALL_TOOLS },
  all: { path: "/mcp/all", tools: all },
} as const;
export type ToolSet = keyof typeof TOOL_SETS;
