/** The small set of tools: one sandbox, created on demand, for models with little context. */
import { type TSchema, Type } from "@sinclair/typebox";
import { fields, oneOf } from "../contract.ts";
import { fsList, fsRead, fsWrite } from "../drive.ts";
import { executionGet, SIGNALS, sandboxExec } from "../executions.ts";
import { operations } from "../operations.ts";
import { sandboxFork } from "../snapshots.ts";
import { HINTS, type Tool } from "./tool.ts";
import { MAX_TOOL_WAIT_MS } from "./tools.ts";

const { LOOKS, ADDS, REPEATS, REMOVES } = HINTS;

export const LANGUAGES = ["python", "javascript", "bash"] as const;
export const CHECKPOINT_ACTIONS = ["save", "back", "fork"] as const;

const place = {
  room: Type.Optional(Type.String({ maxLength: 128, description: "Default: a room of your own." })),
  agent: Type.Optional(Type.String({ maxLength: 128, description: "The sandbox's agent. Default: main." })),
};
const path = Type.String({ minLength: 1, maxLength: 4096, description: "Absolute; /mnt/drive is the shared drive." });
const count = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const command = sandboxExec.body.properties;
const kept = {
  cwd: command.cwd,
  env: command.env,
  user: command.user,
  stdin: command.stdin,
  max_output_bytes: command.max_output_bytes,
};

interface Draft {
  name: string;
  title: string;
  operation: Tool["operation"];
  description: string;
  input: Record<string, TSchema>;
  hidden?: readonly string[];
  hints: Tool["hints"];
}

const small = ({ input, hidden = [], ...draft }: Draft): Tool => ({
  ...draft,
  input: fields(input),
  hidden,
  result: fields({}),
});

const wait_ms = Type.Optional(
  Type.Integer({ minimum: 0, maximum: MAX_TOOL_WAIT_MS, description: "Longest wait; default 45000." }),
);

const list: readonly Tool[] = [
  small({
    name: "run",
    title: "Run a command",
    operation: sandboxExec,
    description:
      "Runs a shell command, or code in a language, in a Linux sandbox of your own, as root. Room and sandbox are made when needed and keep files and processes between calls. Answers with exit code and output. A command that takes over 45 s continues: call follow.",
    input: {
      command: Type.Optional(Type.String({ minLength: 1, description: "A line for /bin/sh." })),
      code: Type.Optional(Type.String({ description: "A program, in place of command." })),
      language: Type.Optional(oneOf(LANGUAGES, { description: "Of code; default python." })),
      timeout_ms: command.timeout_ms && {
        ...command.timeout_ms,
        description: "The command is ended after this time.",
      },
      background: Type.Optional(Type.Boolean({ description: "Answer immediately; follow it later." })),
      ...place,
      argv: command.argv,
      exec_id: command.exec_id,
      wait_ms,
      ...kept,
    },
    hidden: ["argv", "exec_id", "wait_ms", ...Object.keys(kept)],
    hints: { ...ADDS, destructiveHint: true, openWorldHint: true },
  }),
  small({
    name: "read_file",
    title: "Read a file",
    operation: fsRead,
    description: "Reads a file of the sandbox or of the drive, 32 KiB at a time.",
    input: {
      path,
      offset: Type.Optional(count("First byte.")),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 * 1024, description: "Most bytes." })),
      ...place,
    },
    hints: LOOKS,
  }),
  small({
    name: "write_file",
    title: "Write a file",
    operation: fsWrite,
    description: "Writes a file and the directories above it; replaces an existing file.",
    input: {
      path,
      content: Type.Optional(Type.String({ description: "Its text." })),
      ...place,
      content_b64: Type.Optional(Type.String({ contentEncoding: "base64", description: "Its bytes." })),
    },
    hidden: ["content_b64"],
    hints: { ...REPEATS, destructiveHint: true },
  }),
  small({
    name: "edit_file",
    title: "Edit a file",
    operation: fsWrite,
    description: "Replaces text in a file. `old` must be in it exactly once, unless all is true.",
    input: {
      path,
      old: Type.String({ minLength: 1, description: "Text that is there, to the letter." }),
      new: Type.String({ description: "Text in its place." }),
      all: Type.Optional(Type.Boolean({ description: "Replace every occurrence." })),
      ...place,
    },
    hints: { ...ADDS, destructiveHint: true },
  }),
  small({
    name: "list_files",
    title: "List files",
    operation: fsList,
    description: "Lists a directory of the sandbox or of the drive.",
    input: {
      path: Type.Optional({ ...path, description: "Default: /root." }),
      recursive: Type.Optional(Type.Boolean({ description: "Also all entries below." })),
      ...place,
    },
    hints: LOOKS,
  }),
  small({
    name: "follow",
    title: "Follow a command",
    operation: executionGet,
    description:
      "Waits for a command that still runs and shows its new output. Also sends it input or a signal. Make the call that `next` names.",
    input: {
      run_id: Type.String({ maxLength: 128, description: "From run." }),
      input: Type.Optional(Type.String({ description: "Text for its standard input." })),
      signal: Type.Optional(oneOf(SIGNALS, { description: "Such as SIGINT or SIGTERM." })),
      wait_ms,
      ...place,
      after: Type.Optional(count("The last piece of output that you have, from `next`.")),
      after_bytes: Type.Optional(count("How much of the next piece you have, from `next`.")),
      eof: Type.Optional(Type.Boolean({ description: "End its standard input." })),
      max_output_bytes: command.max_output_bytes,
    },
    hidden: ["after_bytes", "eof", "max_output_bytes"],
    hints: { ...ADDS, openWorldHint: true },
  }),
  small({
    name: "url",
    title: "Get a URL for a port",
    operation: operations.sandbox_expose_port,
    description: "Makes a server in the sandbox reachable and returns its URL.",
    input: { port: Type.Integer({ minimum: 1, maximum: 65_535, description: "The server's port." }), ...place },
    hints: { ...REPEATS, openWorldHint: true },
  }),
  small({
    name: "checkpoint",
    title: "Save, go back, or fork",
    operation: sandboxFork,
    description:
      "save keeps memory, processes and disk of the sandbox under a name; back returns to it, and loses later changes; fork copies the sandbox for another agent named `name`.",
    input: {
      action: oneOf(CHECKPOINT_ACTIONS),
      name: Type.String({ minLength: 1, maxLength: 128, description: "Of the checkpoint, or of the new agent." }),
      ...place,
    },
    hints: { ...ADDS, destructiveHint: true },
  }),
  small({
    name: "close",
    title: "Close the room",
    operation: operations.room_destroy,
    description: "Ends the room with its sandboxes. The drive of your own room is deleted with it.",
    input: { room: place.room },
    hints: REMOVES,
  }),
];

export const SMALL_TOOLS: ReadonlyMap<string, Tool> = new Map(list.map((each) => [each.name, each]));

export const SMALL_INSTRUCTIONS = `roomd gives you a Linux sandbox, a virtual machine with root. Call run: the sandbox is made when it is needed and keeps its files between calls; it sleeps when idle and wakes on use. Follow the calls that an answer names. Several agents share a room and its drive, /mnt/drive: pass room and agent. close when you are done.`;
