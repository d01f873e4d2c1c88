/**
 * The names that complete an argument (rooms, agents, executions, checkpoints and the like), from the service. The scripts of
 * `roomd completion` run it with the words of the line. It prints nothing if the service does not answer in time.
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
/** How long a person waits after the tab key. */
const DEADLINE_MS = 1500;
const MAX_NAMES = 200;
/** Shells get no other names: none of these characters means anything to them. */
const SAFE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(?:\/[A-Za-z0-9][A-Za-z0-9._-]{0,127})?(?:\/|:\/)?$/;

/** The values of the arguments before the one at the cursor, by the names of those arguments. */
type Before = Record<string, string>;

const LIMIT = { limit: MAX_NAMES };

/** Names for an argument, by its own name. */
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

/** Commands with an argument of this name that names a new object. */
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

/** bash makes three words of `build-42:/src` and of `--state=active`. */
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

/** The names that complete the last word of a line. Throws CliError. */
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

/** The words of a command after the program's name. */
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

/** `ROOM` with these ends, or after a slash `ROOM/AGENT` with those. */
async function places(current: string, ends: readonly string[], agentEnds: readonly string[]): Promise<string[]> {
  if (current.includes(":")) return [];
  const slash = current.indexOf("/");
  if (slash < 0) return (await rooms()).flatMap((room) => ends.map((end) => room + end));
  const room = current.slice(0, slash);
  const found = await agents({ room });
  return found.flatMap((agent) => agentEnds.map((end) => `${room}/${agent}${end}`));
}
