/**
 * A daemon's responses to random requests generated from its own document: only documented responses, in the documented shape, and never a
 * 500. The seed is printed and can be set by ROOMD_TEST_SEED; ROOMD_TEST_LONG=1 sends 10,000 requests with a new seed.
 */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Described,
  type GeneratedRequest,
  generatedRequests,
  isRecord,
  KNOWABLE,
  Known,
  operationsOf,
} from "../../harness/clients/generated-requests.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { headerFaults } from "../../harness/documented.ts";
import { Chance } from "../../harness/random.ts";
import { resolved } from "../../harness/resolved.ts";
import { makeKey, makeOrg } from "../calls.ts";
import { OF_KEYS } from "../requests.ts";
import { describeTemplate } from "../sandboxes/described-template.ts";

const IS_LONG = process.env.ROOMD_TEST_LONG === "1";
const REQUESTS = IS_LONG ? 10_000 : 3000;
const SHORT_SEED = 20_261_122;
const AT_ONCE = 4;
/** Longer than any generated request waits. */
const ANSWER_MS = 15_000;
const DEADLINE_MS = 15 * 60_000;

/** No encoding of text. */
const BROKEN = "%ff";

let daemon: TestDaemon;
let document: Json;
let keys: string[];
const known = new Map<string, string[]>();

beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0", ROOMD_TEMPLATE_REGISTRIES: "127.0.0.1:1" },
    prepare: (made) => void describeTemplate(made),
  });
  document = resolved(await daemon.ok("GET", "/v1/openapi.json"));
  const reader = await makeKey(daemon, { scopes: ["rooms:read", "drive:read"] });
  const other = await makeOrg(daemon, "other");
  keys = [daemon.apiKey, reader.key, other.api_key, daemon.operatorKey].map((key) => `Bearer ${key}`);
  for (const room of ["main", "second"]) await daemon.room(room);
  await daemon.ok("POST", "/v1/rooms/main/drive/write", { path: "/notes.txt", content: "hello\n" });
  await daemon.ok("POST", "/v1/rooms/main/drive/mkdir", { path: "/a/b" });
  // No server listens there: the build fails.
  const from = { image: "docker://127.0.0.1:1/none" };
  const build = await daemon.ok("POST", "/v1/templates", { template_id: "default", from });
  // It is sent nothing: no event is called so.
  const webhook = await daemon.ok("POST", "/v1/orgs/self/webhooks", {
    url: "https://127.0.0.1.example/",
    types: ["none."],
  });
  const { host } = await daemon.ok("GET", "/v1/rooms/main");
  for (const [name, values] of Object.entries({
    source_room_id: ["main", "none"],
    room_id: ["main", "main", "main", "main", "second", "none"],
    org_id: [daemon.orgId, "self", other.org_id, "org_none"],
    agent: ["planner", "reviewer", "worker-1"],
    sandbox: ["worker-1", "sbx_none", BROKEN],
    path: ["/notes.txt", "/a", "/a/b", "notes.txt", "/mnt/drive/notes.txt", "/none", "/a/new.txt"],
    topic: ["build", "build.done"],
    port: ["8000", "22"],
    template_id: ["default", "none", BROKEN],
    build_id: [String(build.build_id)],
    exec_id: ["build-1"],
    terminal_id: ["ter_none"],
    recording_id: ["rec_none"],
    snapshot_id: ["snap_none"],
    checkpoint_id: ["chk_none"],
    webhook_id: [webhook.webhook_id, "whk_none"],
    delivery_id: ["evt_none"],
    host: [host, "none"],
    message_id: ["m-1"],
    barrier_id: ["b-1", "b-2"],
    public_key: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUoB5TV0m0d6mFwC0ZfL0nX2bq3mJm1xJdJ0rYt7yQh laptop"],
    key_id: [reader.key_id],
  })) {
    known.set(name, values);
  }
});
afterAll(() => daemon.stop());

test(`${REQUESTS} generated requests are answered as documented`, { timeout: DEADLINE_MS }, async () => {
  const { seed } = IS_LONG || process.env.ROOMD_TEST_SEED ? new Chance() : new Chance(SHORT_SEED);
  console.log(`seed ${seed}: ROOMD_TEST_SEED=${seed} repeats these requests`);
  const operations = operationsOf(document);
  const requests = fc.sample(generatedRequests(operations, keys), { seed, numRuns: REQUESTS });
  const faults = new Map<string, string>();
  const seen = new Map<string, Set<number>>();
  let next = 0;
  const send = async () => {
    for (let at = next++; at < requests.length; at = next++) {
      const request = requests[at] as GeneratedRequest;
      const sent = resolve(request);
      const { status, fault } = await answerTo(request.operation, sent);
      const { operationId } = request.operation;
      seen.set(operationId, (seen.get(operationId) ?? new Set()).add(status));
      if (fault) faults.set(`${operationId}: ${fault}`.slice(0, 600), shown(request.operation, sent));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, send));
  expect(Object.fromEntries(faults)).toEqual({});
  expect([...seen.keys()].sort()).toEqual(operations.map(({ operationId }) => operationId).sort());
  const done = [...seen.values()].filter((statuses) => [...statuses].some((status) => status < 400)).length;
  // There is no sandbox in which an operation could succeed. Nor is a room created from an invalid file.
  const possible = OF_KEYS.filter(({ path, name }) => !path.includes("{sandbox}") && name !== "room_from_backup");
  expect(done, "operations of which something was carried out").toBeGreaterThan(possible.length / 2);

  expect(daemon.runs).toBe(true);
  expect(daemon.log.split("\n").filter((line) => line.includes('"level":"error"'))).toEqual([]);
  expect((await daemon.api("GET", "/v1/orgs/self/audit/verify")).body).toMatchObject({ ok: true });
  await daemon.room("afterwards");
});

interface Sent {
  url: string;
  init: RequestInit;
}

/** A request as it is sent now: with the names that are known by now. */
function resolve({ operation, params, query, more, body, headers }: GeneratedRequest): Sent {
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    segment(textOf(settled(operation, params[name]))),
  );
  const search = Object.entries(query).map(([name, value]) => `${name}=${encode(textOf(settled(operation, value)))}`);
  if (more) search.push(more);
  const hasBody = body !== undefined;
  const bytes = body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(settled(operation, body));
  return {
    url: `${daemon.url}${path}${search.length === 0 ? "" : `?${search.join("&")}`}`,
    init: {
      method: operation.method,
      headers: { ...(hasBody ? { "content-type": "application/json" } : {}), ...headers },
      ...(hasBody ? { body: bytes } : {}),
    },
  };
}

function settled(operation: Described, value: unknown): unknown {
  if (value instanceof Known) {
    // The room that most of it happens in is to stay.
    if (operation.operationId === "room_destroy") return value.nth % 2 ? "second" : "none";
    const pool = known.get(poolOf(value.name)) ?? [];
    return value.name === "port" ? Number(pool[value.nth % pool.length]) : (pool[value.nth % pool.length] ?? "none");
  }
  if (Array.isArray(value)) return value.map((each) => settled(operation, each));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, settled(operation, each)]));
}

const SAME: Record<string, string> = {
  agent_id: "agent",
  source: "agent",
  destination: "agent",
  reply_to: "message_id",
  from: "path",
  to: "path",
  next_cursor: "cursor",
  sandbox_id: "sandbox",
};
const poolOf = (name: string) => SAME[name] ?? name;

const textOf = (value: unknown) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
/** A lone surrogate has no encoding. */
const encode = (text: string) => encodeURIComponent(text.toWellFormed());
/** These are no names but other paths. */
function segment(text: string): string {
  if (text === BROKEN) return text;
  return ["", ".", ".."].includes(text) ? "%20" : encode(text);
}

async function answerTo(operation: Described, { url, init }: Sent): Promise<{ status: number; fault: string | null }> {
  let response: Response;
  try {
    response = await fetch(url, { ...init, signal: AbortSignal.timeout(ANSWER_MS) });
  } catch (error) {
    return { status: 0, fault: String(error) };
  }
  const { status } = response;
  const type = response.headers.get("content-type")?.split(";")[0] ?? null;
  const text = await response.text();
  return { status, fault: faultOf(operation, status, type, text, response.headers) };
}

/** First difference of a response from the document; null if absent. */
function faultOf(
  operation: Described,
  status: number,
  type: string | null,
  text: string,
  headers: Headers,
): string | null {
  const documented = operation.described.responses[status];
  const excerpt = `${status} ${type} ${text.slice(0, 400)}`;
  if (!documented) return `a status that is not documented: ${excerpt}`;
  if (status === 500) return excerpt;
  const [wrong] = headerFaults(documented, document.components.headers, headers);
  if (wrong) return `header ${wrong}: ${excerpt}`;
  if (documented.content === undefined) return text === "" ? null : `a body that is not documented: ${excerpt}`;
  const content = documented.content[type ?? ""];
  if (!content) return `a media type that is not documented: ${excerpt}`;
  if (type === "application/problem+json") {
    const problem = JSON.parse(text);
    if (content.examples[problem.code] === undefined)
      return `a code that is not documented: ${status} ${problem.code} ${problem.detail}`;
    if (problem.status !== status) return `another status within: ${excerpt}`;
  }
  const bodies =
    type === "application/x-ndjson" ? text.split("\n").filter(Boolean) : type?.endsWith("json") ? [text] : [];
  for (const body of bodies) {
    const value = JSON.parse(body);
    const wrong = wrongIn(content.schema, value);
    if (wrong) return `not of its schema: ${wrong}: ${excerpt}`;
    if (status < 300) learn(operation, value);
  }
  return null;
}

const ajv = new Ajv2020({ strict: false, validateFormats: true });
addFormats.default(ajv);
const compiled = new Map<Json, ReturnType<typeof ajv.compile>>();

function wrongIn(schema: Json, value: unknown): string | null {
  let check = compiled.get(schema);
  if (!check) {
    check = ajv.compile(closed(schema.$ref ? document.components.schemas.Problem : schema));
    compiled.set(schema, check);
  }
  return check(value) ? null : ajv.errorsText(check.errors);
}

/** The document allows future fields in responses; all current fields must be in it. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed);
  if (!isRecord(schema)) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([name, each]) => [name, closed(each)]));
  return schema.type === "object" && isRecord(schema.properties) ? { additionalProperties: false, ...inner } : inner;
}

/** Keeps the names in an answer, for later requests. */
function learn(operation: Described, value: Json): void {
  if (operation.operationId.includes("audit")) return;
  for (const record of [value, ...(Array.isArray(value?.items) ? value.items.slice(0, 3) : [])]) {
    for (const [name, fieldValue] of Object.entries(isRecord(record) ? record : {})) {
      const pool = poolOf(name);
      if (typeof fieldValue !== "string" || !(KNOWABLE.has(pool) || pool === "sandbox") || pool === "org_id") continue;
      // The tests' own are to stay.
      if (pool === "key_id" && operation.method === "GET") continue;
      const values = known.get(pool) ?? [];
      if (values.includes(fieldValue)) continue;
      known.set(pool, [...values, fieldValue].slice(-40));
    }
  }
}

function shown({ method }: Described, { url, init }: Sent): string {
  const body = init.body instanceof Uint8Array ? Buffer.from(init.body).toString("latin1") : String(init.body ?? "");
  return `${method} ${url.slice(daemon.url.length, daemon.url.length + 300)} ${JSON.stringify(init.headers)
    .replaceAll(/key-[\w-]+/g, "key-…")
    .slice(0, 300)} ${body.slice(0, 500)}`;
}
