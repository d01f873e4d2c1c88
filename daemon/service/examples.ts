/**
 * Owns the examples of answers in the OpenAPI document: made from the schemas, so that each answer has one that fits it. Names and
 * numbers are the same everywhere, as those of one room at work.
 */
import { ERRORS, type ErrorCode, errorKind, type Problem } from "../../shared/api/errors.ts";

type Schema = Record<string, unknown>;

const ULID = "01KAN1SNDX3W5Y8PZ4T7Q2M6RC";
const LATER = "2026-01-31T13:00:00.000Z";
const SHA256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

/** What fields are called that mean the same wherever they stand. */
const BY_NAME: Record<string, unknown> = {
  org_id: `org_${ULID}`,
  room_id: "review",
  room_uid: `rom_${ULID}`,
  sandbox_id: `sbx_${ULID}`,
  agent_id: "planner",
  sandbox: "worker-1",
  terminal_id: `ter_${ULID}`,
  access_id: `ssa_${ULID}`,
  ssh_key_id: `ssk_${ULID}`,
  month: "2026-01",
  exec_id: "build-1",
  message_id: `msg_${ULID}`,
  audit_id: `evt_${ULID}`,
  key_id: `kid_${ULID}`,
  request_id: `req_${ULID}`,
  barrier_id: "merged",
  template_id: "default",
  guest_cid: 9100,
  memory_mib: 512,
  vcpus: 1,
  source: "planner",
  destination: "reviewer",
  path: "/notes.txt",
  guest_path: "/mnt/drive/notes.txt",
  mode: "0644",
  size_bytes: 6,
  length: 6,
  content: "hello\n",
  content_b64: "aGVsbG8K",
  stdout: "hello\n",
  stdout_b64: "aGVsbG8K",
  stdout_bytes: 6,
  stderr: "",
  stderr_b64: "",
  exit_code: 0,
  port: 8000,
  sha256: SHA256,
  hash: SHA256,
  prev_hash: SHA256,
  version: "0.1.0",
  api_versions: ["v1"],
  expires_at: LATER,
  "actor.id": `kid_${ULID}`,
  "actor.name": "ci",
  "actor.type": "key",
  "created_by.id": `kid_${ULID}`,
  "created_by.type": "key",
  "check.id": "acceleration",
  "check.message": "KVM is there, and opens.",
  "check.remedy": null,
  "status.reason": "running",
  "status.message": "It is as it should be.",
  "drive.message": "The drive is mounted.",
  "error.code": "room_not_found",
  "group.id": "review",
  "waiting_on.id": "merged",
  algorithm: "ssh-ed25519",
  api_extensions: [],
  arrived: ["planner"],
  participants: ["planner", "reviewer"],
  missing: ["reviewer"],
  argv: ["uname", "-a"],
  command: "uname -a",
  cwd: "/root",
  user: "root",
  username: "worker-1",
  commit: "0a1b2c3",
  description: "Debian with Git and Python",
  digest: `sha256:${SHA256}`,
  template_digest: `sha256:${SHA256}`,
  drive_mount: "/mnt/drive",
  env_keys: ["LANG"],
  allowlist: ["deb.debian.org:443"],
  error_code: null,
  event: "room.created",
  fingerprint: "SHA256:wIyc2FVmSV8z4bbgsJQw0ls6xDPFQvJz8S5wVqzXQvU",
  host_key_fingerprint: "SHA256:wIyc2FVmSV8z4bbgsJQw0ls6xDPFQvJz8S5wVqzXQvU",
  host: "127.0.0.1",
  ip: "127.0.0.1",
  key_prefix: "key-Ab",
  labels: { team: "search" },
  limit_bytes: 10_737_418_240,
  line: "Linux version 6.12",
  name: "ci",
  offset: 0,
  payload: { path: "/plan.md" },
  payload_b64: null,
  public_key: "ssh-ed25519 AAAA… laptop",
  replaced_by: null,
  reply_to: null,
  sandbox_state: "running",
  sandboxes_destroyed: ["worker-1"],
  scopes: ["rooms:read"],
  signal: null,
  ssh_command: "ssh -p 2222 worker-1@127.0.0.1",
  tools: ["git", "python3"],
  topic: null,
  topics: ["build.*"],
  warnings: [],
  plan: "free",
  next_cursor: null,
  status: 200,
  key: "key-…",
  token: "…",
};

/** A value that the schema takes. `name` is the field's, `parent` that of the field around it. */
export function exampleOf(schema: Schema, name = "", parent = ""): unknown {
  const { examples, enum: words, anyOf, type } = schema;
  const known = [`${parent}.${name}`, name].find((each) => Object.hasOwn(BY_NAME, each));
  const own = known === undefined ? undefined : BY_NAME[known];
  if (own !== undefined && fits(schema, own)) return own;
  if (Array.isArray(words)) return words[0];
  if (Array.isArray(examples)) return examples[0];
  // Of "something or null" the something.
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0] as Schema, name, parent);
  switch (type) {
    case "object":
      return objectOf(schema, name);
    case "array":
      return [exampleOf(schema.items as Schema, name.replace(/s$/, ""))];
    case "string":
      return "text";
    case "integer":
    case "number":
      return Math.max(1, Number(schema.minimum ?? 1));
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return {};
  }
}

function objectOf({ properties, patternProperties }: Schema, parent: string): Schema {
  const fields = Object.entries((properties ?? {}) as Record<string, Schema>);
  const [values] = Object.values((patternProperties ?? {}) as Record<string, Schema>);
  if (values) return { name: exampleOf(values) };
  return Object.fromEntries(fields.map(([name, schema]) => [name, exampleOf(schema, name, parent)]));
}

/** Only by type and words: it is the same few values that are asked about. */
function fits({ type, anyOf, enum: words }: Schema, value: unknown): boolean {
  if (Array.isArray(anyOf)) return anyOf.some((each: Schema) => fits(each, value));
  if (Array.isArray(words)) return words.includes(value);
  const own = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return type === undefined || type === own || (type === "integer" && own === "number");
}

/** One for each code, by its name. */
export function problemExamples(): Record<string, { summary: string; value: Problem }> {
  const codes = Object.keys(ERRORS) as ErrorCode[];
  return Object.fromEntries(codes.map((code) => [code, { summary: ERRORS[code].title, value: problemOf(code) }]));
}

function problemOf(code: ErrorCode): Problem {
  const { status, title, retryable, hint } = errorKind(code);
  return {
    type: `urn:roomd:problem:${code}`,
    title,
    status,
    detail: `${title}.`,
    code,
    retryable: retryable ?? false,
    request_id: `req_${ULID}`,
    details: {},
    errors: [],
    hint: hint ?? null,
  };
}
