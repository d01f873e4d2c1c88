/**
 * Hints in the client's terms. A hint names a call as `{{operation field=value}}`; each transport translates it for its client: a method
 * and a path, a tool of the set, a command line, or a method of an SDK.
 */
import type { Operation } from "./contract.ts";
import { operations } from "./operations.ts";

export type Terms =
  | { kind: "http" }
  | { kind: "cli" }
  | { kind: "sdk" }
  | { kind: "mcp"; tools: ReadonlyMap<string, unknown> };

interface Spelling {
  cli: string;
  sdk: string;
  /** Tools with the same effect; the hint names the first that the client has. By default the operation's own tool. */
  tools?: readonly string[];
}

/** The calls that hints name. `{field}` is the value of a field, or its name in capitals. */
export const SPELLINGS = {
  room_create: { cli: "roomd room create {room_id}", sdk: "rooms.create()", tools: ["room_create", "run"] },
  room_list: { cli: "roomd room list", sdk: "rooms.list()" },
  sandbox_create: {
    cli: "roomd sandbox create {room_id} {agent_id}",
    sdk: "room.createSandbox()",
    tools: ["sandbox_create", "run"],
  },
  sandbox_resume: { cli: "roomd sandbox resume {room_id} {sandbox}", sdk: "sandbox.resume()" },
  sandbox_logs: { cli: "roomd logs {room_id} {sandbox}", sdk: "sandbox.logs()" },
  sandbox_exec: {
    cli: "roomd exec {room_id} {sandbox} -- COMMAND",
    sdk: "sandbox.exec()",
    tools: ["sandbox_exec", "run"],
  },
  fs_delete: { cli: "roomd drive rm {room_id}:{path}", sdk: "drive.delete()" },
  file_get: { cli: "roomd drive get {room_id}:{path}", sdk: "drive.open()", tools: ["fs_read", "read_file"] },
  host_list: { cli: "roomd cluster list", sdk: "GET /v1/hosts" },
  room_backup: { cli: "roomd room backup {room_id}", sdk: "GET /v1/rooms/{room_id}/backup" },
  template_list: { cli: "roomd template list --org", sdk: "templates.list()" },
} as const satisfies Record<string, Spelling>;
export type Spelled = keyof typeof SPELLINGS;

const CALL = /\{\{(\w+)((?: \w+=[^\s{}]+)*)\}\}/g;
/** Terms of HTTP and of the command line, which are useless to a tool's client. */
const OTHER_TERMS = /\b(GET|POST|PUT|PATCH|DELETE) |`roomd |\bheader\b|…\//;

export function spelled(hint: string, terms: Terms): string | null {
  if (!hint.includes("{{") && terms.kind !== "mcp") return hint;
  const sentences = hint.split(/(?<=[.!])\s+/).map((sentence) => inTerms(sentence, terms));
  const kept = sentences.filter((sentence) => sentence !== null).join(" ");
  return kept === "" ? null : kept;
}

/** Null if the client has no such call. */
function inTerms(sentence: string, terms: Terms): string | null {
  let isMissing = false;
  const text = sentence.replaceAll(CALL, (_, name: string, fields: string) => {
    const call = spell(name, valuesOf(fields), terms);
    isMissing ||= call === null;
    return call ?? "";
  });
  return isMissing || (terms.kind === "mcp" && OTHER_TERMS.test(text)) ? null : text;
}

function spell(name: string, values: Record<string, string>, terms: Terms): string | null {
  const spelling: Spelling | undefined = SPELLINGS[name as Spelled];
  const filled = (text: string) =>
    text.replaceAll(/\{(\w+)\*?\}/g, (_, field: string) => values[field] ?? field.toUpperCase());
  if (!spelling) return null;
  if (terms.kind === "cli") return `\`${filled(spelling.cli)}\``;
  if (terms.kind === "sdk") return filled(spelling.sdk);
  if (terms.kind === "mcp") return (spelling.tools ?? [name]).find((tool) => terms.tools.has(tool)) ?? null;
  const { method, path } = operations[name as Spelled] as Operation;
  const short = path
    .replace("/v1/rooms/{room_id}/", "…/")
    .replaceAll(/\{(\w+)\*?\}/g, (whole, field: string) => values[field] ?? whole);
  return `${method} ${short}`;
}

function valuesOf(fields: string): Record<string, string> {
  return Object.fromEntries(
    fields
      .trim()
      .split(" ")
      .filter(Boolean)
      .map((each) => each.split("=") as [string, string]),
  );
}

/** Determines the terms from the User-Agent header of a request. */
export function termsOf(userAgent: string | null): Terms {
  if (userAgent?.startsWith("roomd-cli/")) return { kind: "cli" };
  return { kind: userAgent?.startsWith("roomd-sdk") ? "sdk" : "http" };
}
