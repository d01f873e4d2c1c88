/** Arguments as models spell them: obvious synonyms and forms are accepted for the tool's own, and the answer names them. */

import type { TSchema } from "@sinclair/typebox";
import type { Tool } from "../../../shared/api/mcp/tool.ts";
import { MAX_FORKS } from "../../../shared/api/snapshots.ts";
import { parseJson } from "../../core/json.ts";
import type { Arguments } from "./call.ts";

/** Longest list of names in a note. */
const MAX_NOTED = 200;

export interface Understood {
  given: Arguments;
  /** The replacements made, such as `cmd as command`. */
  taken: string[];
}

const AGENT = ["sandbox", "agent_id", "agent"];
const SANDBOX = [...AGENT, "agent_name", "sandbox_id", "sandbox_name", "agentId", "sandboxId"];
const MESSAGE = ["payload", "message", "text", "body", "content", "data"];
/** Synonyms: a tool has at most one name of each row. */
const ROWS: readonly (readonly string[])[] = [
  ["room_id", "room", "room_name", "roomId"],
  SANDBOX,
  ["command", "cmd", "shell", "script", "bash"],
  ["argv", "args", "arguments"],
  ["code", "source_code", "python"],
  ["template_id", "template", "image"],
  ["memory_mib", "memory", "memory_mb", "mem_mib", "ram_mb"],
  ["vcpu_count", "vcpus", "cpus", "cpu"],
  ["egress_allowlist", "egress", "allowlist", "network_allowlist"],
  ["cwd", "workdir", "working_dir", "working_directory", "dir"],
  ["env", "environment", "envs", "env_vars"],
  ["user", "username", "as_user"],
  ["stdin", "input"],
  ["exec_id", "execution_id", "run_id", "execution"],
  ["background", "detach", "detached", "run_in_background", "async"],
  ["path", "file", "filename", "file_path", "filepath", "file_name", "directory"],
  ["content", "contents", "text", "data", "body", "file_content"],
  ["old", "old_string", "old_str", "old_text", "search", "find"],
  ["new", "new_string", "new_str", "new_text", "replace", "replacement"],
  ["offset", "start", "from_byte"],
  ["length", "size", "max_bytes"],
  ["destination", "to", "recipient", "target", "dest"],
  ["destinations", "recipients", "to", "targets"],
  ["source", "from", "sender", "as"],
  MESSAGE,
  ["barrier_id", "barrier", "name"],
  ["parties", "party_count", "count"],
  ["port", "port_number"],
  ["labels", "metadata", "tags"],
  ["ttl_seconds", "ttl"],
  ["action", "command"],
  ["limit", "max_results", "page_size"],
  ["agents", "names", "agent_ids", "copies", "forks", "count"],
  ["snapshot_id", "snapshot"],
  ["checkpoint_id", "checkpoint"],
  ["language", "lang"],
];
/** Aliases of an argument in one tool only. */
const OWN: Record<string, Record<string, string>> = {
  room_create: { name: "room_id", id: "room_id" },
  room_get: { name: "room_id", id: "room_id" },
  room_destroy: { name: "room_id", id: "room_id" },
  sandbox_create: { name: "agent_id", id: "agent_id" },
  sandbox_exec: { timeout: "timeout_ms" },
  agent_send: { agent_id: "destination", agent: "destination" },
  agent_request: { agent_id: "destination", agent: "destination" },
};
/** Synonyms for values of an argument, by tool. */
const VALUES: Record<string, { argument: string; words: Record<string, string> }> = {
  run: {
    argument: "language",
    words: { ...spell("python", "py python3"), ...spell("javascript", "js node nodejs"), ...spell("bash", "sh shell") },
  },
  checkpoint: {
    argument: "action",
    words: {
      ...spell("save", "create make new take snapshot"),
      ...spell("back", "restore rollback revert undo load"),
      ...spell("fork", "copy clone branch"),
    },
  },
};
const SECONDS = ["timeout", "timeout_s", "timeout_seconds", "timeout_sec", "wait", "wait_s", "wait_seconds"];
const MILLISECONDS = ["timeout_ms", "wait_ms", "timeoutMs", "waitMs"];
/** Tools with an argument that limits waiting. */
const WAITS = ["agent_wait"];

/** More arguments than any tool has: each is compared with all synonyms, and a message may have a quarter of a million. */
const MAX_ARGUMENTS = 200;

/** Whether an argument of this name identifies a sandbox. */
export const namesSandbox = (name: string): boolean => SANDBOX.includes(name);

export function understand(tool: Tool, sent: Arguments): Understood {
  if (Object.keys(sent).length > MAX_ARGUMENTS) return { given: { ...sent }, taken: [] };
  const given: Arguments = {};
  const taken: string[] = [];
  const known = tool.input.properties;
  const has = (name: string) => Object.hasOwn(known, name);
  const take = (name: string, as: string, value: unknown, how = `${name} as ${as}`) => {
    given[as] = value;
    taken.push(how);
  };
  for (const [name, value] of Object.entries(sent)) if (has(name)) given[name] = value;
  for (const [name, value] of Object.entries(sent)) {
    if (has(name)) continue;
    const as = ownName(tool, name, (own) => has(own) && !Object.hasOwn(given, own));
    if (as !== null) take(name, as, value);
    else if (SECONDS.includes(name) && Number.isFinite(Number(value)) && timeOf(tool, name) !== null) {
      const own = String(timeOf(tool, name));
      if (!Object.hasOwn(given, own)) take(name, own, Math.round(Number(value) * 1000), `${name} (seconds) as ${own}`);
    } else if (MILLISECONDS.includes(name) && timeOf(tool, name) !== null) {
      const own = String(timeOf(tool, name));
      if (!Object.hasOwn(given, own)) take(name, own, value);
    } else given[name] = value;
  }
  reshape(tool, given, taken);
  return { given, taken };
}

/** The tool's own name for an argument, among the arguments not given yet. */
function ownName(tool: Tool, name: string, isFree: (own: string) => boolean): string | null {
  const own = OWN[tool.name]?.[name];
  if (own !== undefined && !SECONDS.includes(name) && isFree(own)) return own;
  for (const row of ROWS) {
    if (!row.includes(name)) continue;
    const found = row.find(isFree);
    if (found !== undefined) return found;
  }
  return null;
}

function timeOf({ name, input }: Tool, sent: string): string | null {
  const has = (own: string) => Object.hasOwn(input.properties, own);
  const order = WAITS.includes(name) || sent.startsWith("wait") ? ["wait_ms", "timeout_ms"] : ["timeout_ms", "wait_ms"];
  return order.find(has) ?? null;
}

/** Converts a command given as a list, and numbers and lists given as text. */
function reshape({ name: tool, input }: Tool, given: Arguments, taken: string[]): void {
  const has = (name: string) => Object.hasOwn(input.properties, name);
  if (Array.isArray(given.command) && has("argv") && given.argv === undefined) {
    given.argv = given.command.map(String);
    delete given.command;
    taken.push("command (a list) as argv");
  } else if (typeof given.command === "string" && Array.isArray(given.argv)) {
    given.argv = [given.command, ...given.argv.map(String)];
    delete given.command;
    taken.push("command and args as argv");
  } else if (typeof given.argv === "string" && has("command") && given.command === undefined) {
    given.command = given.argv;
    delete given.argv;
    taken.push("argv (text) as command");
  }
  if (typeof given.destination !== "string" && Array.isArray(given.destination) && has("destinations")) {
    given.destinations = given.destination;
    delete given.destination;
    taken.push("destination (a list) as destinations");
  }
  if (typeof given.destinations === "string" && has("destination") && given.destination === undefined) {
    given.destination = given.destinations;
    delete given.destinations;
    taken.push("destinations (text) as destination");
  }
  if (tool === "fs_write" && typeof given.content === "object" && given.content !== null) {
    given.content = JSON.stringify(given.content, null, 2);
    taken.push("content (JSON) as text");
  }
  if (tool === "room_fork" && given.source_room_id === undefined && given.name !== undefined) {
    given.source_room_id = given.room_id;
    given.room_id = given.name;
    delete given.name;
    taken.push("room_id as source_room_id", "name as room_id");
  }
  if (tool === "message_send_many" && Array.isArray(given.messages))
    spellMessages(input.properties.messages, given, taken);
  const { argument = "", words = {} } = VALUES[tool] ?? {};
  const word = String(given[argument]).toLowerCase();
  if (Object.hasOwn(words, word)) {
    given[argument] = words[word];
    taken.push(`${argument} ${word} as ${words[word]}`);
  }
  for (const [name, value] of Object.entries(given)) {
    const schema: TSchema | undefined = has(name) ? input.properties[name] : undefined;
    const read = schema && typeof value === "string" ? readAs(schema, value) : undefined;
    if (read === undefined) continue;
    given[name] = read;
    taken.push(`${name} (text) as ${schema?.type}`);
  }
  if (tool === "sandbox_fork") copyNames(given, taken);
}

/** One meaning for several words. */
function spell(meaning: string, words: string): Record<string, string> {
  return Object.fromEntries(words.split(" ").map((word) => [word, meaning]));
}

/** Converts copies given as a number or by their names alone. */
function copyNames(given: Arguments, taken: string[]): void {
  const { agents, sandbox } = given;
  const count = Number(agents);
  const names =
    Number.isInteger(count) && count > 0 && count <= MAX_FORKS && !Array.isArray(agents)
      ? Array.from({ length: count }, (_, at) => `${sandbox}-${at + 1}`)
      : agents;
  if (!Array.isArray(names) || names.length > MAX_FORKS || !names.every((name) => typeof name === "string")) return;
  given.agents = names.map((agent_id) => ({ agent_id }));
  taken.push(`agents (names) as agent_id: ${names.join(", ").slice(0, MAX_NOTED)}`);
}

/** Replaces synonyms in the fields of each message. */
function spellMessages(schema: TSchema | undefined, given: Arguments, taken: string[]): void {
  const fields: Record<string, TSchema> = schema?.items?.properties ?? {};
  const item = { name: "agent_send", input: { properties: fields } } as unknown as Tool;
  const messages = given.messages as unknown[];
  // The service refuses longer lists without reading each item.
  if (messages.length > Number(schema?.maxItems ?? 0)) return;
  given.messages = messages.map((message) => {
    if (typeof message !== "object" || message === null) return message;
    const understood = understand(item, message as Arguments);
    for (const each of understood.taken) if (!taken.includes(each)) taken.push(each);
    return understood.given;
  });
}

/** Parses text as the schema's type; undefined if it remains text. */
function readAs({ type }: TSchema, text: string): unknown {
  if (type === "integer" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  if (type !== "array" && type !== "object") return undefined;
  if (text.length > 100_000) return undefined;
  try {
    const value: unknown = parseJson(text);
    return Array.isArray(value) === (type === "array") && typeof value === "object" && value !== null
      ? value
      : undefined;
  } catch {
    return undefined;
  }
}

/** `agent_wait` with arrivals means `barrier_arrive`. */
export function meantTool(name: string, sent: Arguments): string {
  const arrives = sent.arrivals !== undefined || sent.arrivals_json !== undefined || sent.parties !== undefined;
  return name === "agent_wait" && arrives ? "barrier_arrive" : name;
}
