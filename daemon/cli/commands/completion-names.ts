/**
 * Completion of arguments with names from the service: rooms, agents, executions, checkpoints and others. The scripts of `roomd completion`
 * run this command with the words of the command line. It prints nothing if the service does not answer in time.
 */
import { type Argument, Command } from "commander";
import { barrierList } from "../../../shared/api/barriers.ts";
import { checkpointList } from "../../../shared/api/checkpoints.ts";
import { executionList } from "../../../shared/api/executions.ts";
import { recordingList } from "../../../shared/api/recordings.ts";
import { roomList } from "../../../shared/api/rooms.ts";
import { sandboxList } from "../../../shared/api/sandboxes.ts";
import { snapshotList } from "../../../shared/api/snapshots.ts";
import { templateList } from "../../../shared/api/templates.ts";
import { terminalList } from "../../../shared/api/terminals.ts";
import { call } from "../kit/client.ts";
import { command } from "../kit/command.ts";
import { print } from "../kit/output.ts";
import { silence } from "../kit/progress.ts";

export const NAMES_COMMAND = "complete-names";
/** Time that a user waits after pressing Tab. */
const DEADLINE_MS = 1500;
const MAX_NAMES = 200;
/** Names passed to shells: only characters without a special meaning in any shell. */
const SAFE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(?:\/[A-Za-z0-9][A-Za-z0-9._-]{0,127})?(?:\/|:\/)?$/;

/** Values of the arguments before the cursor, by argument name. */
type Before = Record<string, string>;

const LIMIT = { limit: MAX_NAMES };

/** Sources of completions, by argument name. */
const SOURCES: Record<string, (before: Before, current: string) => Promise<string[]>> = {
  room: rooms,
  "room-or-file": rooms,
  agent: agents,
  agents,
  to: agents,
  "exec-id": async (before) => {
    const { value } = await call(executionList, sandboxOf(before));
    return value.items.map(({ exec_id }) => exec_id);
  },
  terminal: async (before) => {
    const { value } = await call(terminalList, sandboxOf(before));
    return value.items.map(({ terminal_id }) => terminal_id);
  },
  recording: async (before) => {
    const { value } = await call(recordingList, sandboxOf(before));
    return value.items.map(({ recording_id }) => recording_id);
  },
  snapshot: async ({ room = "" }) => {
    const { value } = await call(snapshotList, { room_id: room, ...LIMIT });
    return value.items.map(({ snapshot_id }) => snapshot_id);
  },
  checkpoint: async (before) => {
    const { value } = await call(checkpointList, { room_id: before.room ?? before["room-or-file"] ?? "", ...LIMIT });
    return value.items.map(({ checkpoint_id }) => checkpoint_id);
  },
  barrier: async ({ room = "" }) => {
    const { value } = await call(barrierList, { room_id: room, ...LIMIT });
    return value.items.map(({ barrier_id }) => barrier_id);
  },
  template: async () => (await call(templateList, {})).value.items.map(({ template_id }) => template_id),
  target: (_, current) => places(current, ["", "/"], [""]),
  sandbox: (_, current) => places(current, ["/"], [""]),
  place: (_, current) => places(current, [":/"], [":/"]),
  src: (_, current) => places(current, [":/", "/"], [":/"]),
  dst: (_, current) => places(current, [":/", "/"], [":/"]),
};

/** Commands with an argument that names an object to be created: nothing is completed for it. */
const NEW: Record<string, string> = {
  "room create": "room",
  "sandbox create": "agent",
  "sandbox fork": "agents",
  "template build": "template",
  "template import": "template",
};

/** The arguments of a command for which the service can list names. */
export function namedArguments(words: string, args: readonly Argument[]): Argument[] {
  return args.filter((each) => each.name() in SOURCES && NEW[words] !== each.name());
}

export function completionNamesCommand(): Command {
  const made = command(`${NAMES_COMMAND} [words...]`, {
    summary: "print the names that complete the last of these words",
    examples: [`roomd ${NAMES_COMMAND} -- exec build-42 w`],
  });
  return made.action(async (words: string[]) => {
    silence();
    const late = new Promise<string[]>((resolve) => setTimeout(resolve, DEADLINE_MS, []).unref());
    const found = namesFor(made.parent ?? new Command(), words).catch(() => []);
    const names = await Promise.race([found, late]);
    await print(...new Set(names));
  });
}

/** Rejoins words that bash splits at `:` and `=`, such as `build-42:/src` and `--state=active`. */
function joined(words: readonly string[]): string[] {
  const whole: string[] = [];
  let isOpen = false;
  for (const word of words) {
    const joins = /^[:=]+$/.test(word);
    if ((joins || isOpen) && whole.length > 0) whole.push((whole.pop() ?? "") + word);
    else whole.push(word);
    isOpen = joins;
  }
  return whole;
}

/** Completions of the last word of a command line. Throws CliError. */
export async function namesFor(program: Command, line: readonly string[]): Promise<string[]> {
  const words = joined(line);
  const current = words.at(-1) ?? "";
  let at: Command = program;
  const given: string[] = [];
  for (let index = 0; index < words.length - 1; index++) {
    const word = words[index] ?? "";
    const below = given.length === 0 ? at.commands.find((each) => each.name() === word) : undefined;
    if (below) at = below;
    else if (!word.startsWith("-") || word === "-") given.push(word);
    else if (at.options.some(({ long, short, required }) => required && (word === long || word === short))) index++;
  }
  const args = at.registeredArguments;
  const argument = args[given.length] ?? (args.at(-1)?.variadic ? args.at(-1) : undefined);
  if (!argument || namedArguments(pathOf(at), [argument]).length === 0) return [];
  const before = Object.fromEntries(given.map((value, index) => [args[index]?.name() ?? "", value]));
  const names = (await SOURCES[argument.name()]?.(before, current)) ?? [];
  return names.filter((name) => SAFE.test(name) && name.startsWith(current) && !given.includes(name));
}

/** The words of a command, without the program's name. */
function pathOf(at: Command): string {
  return at.parent ? [pathOf(at.parent), at.name()].filter(Boolean).join(" ") : "";
}

async function rooms(): Promise<string[]> {
  const { value } = await call(roomList, { state: "active", ...LIMIT });
  return value.items.map(({ room_id }) => room_id);
}

async function agents(before: Before): Promise<string[]> {
  const { value } = await call(sandboxList, { room_id: before.room ?? "", ...LIMIT });
  return value.items.filter(({ state }) => state !== "destroyed").map(({ agent_id }) => agent_id);
}

const sandboxOf = ({ room = "", agent = "" }: Before) => ({ room_id: room, sandbox: agent });

/** Completions `ROOM` with each suffix of `ends`; after a slash, `ROOM/AGENT` with each suffix of `agentEnds`. */
async function places(current: string, ends: readonly string[], agentEnds: readonly string[]): Promise<string[]> {
  if (current.includes(":")) return [];
  const slash = current.indexOf("/");
  if (slash < 0) return (await rooms()).flatMap((room) => ends.map((end) => room + end));
  const room = current.slice(0, slash);
  const found = await agents({ room });
  return found.flatMap((agent) => agentEnds.map((end) => `${room}/${agent}${end}`));
}
