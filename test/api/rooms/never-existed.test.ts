/**
 * A resource of another organization costs the same work as an absent one, so that response times do not reveal it: each operation and tool
 * that is called with either gives the same response and runs the same statements with the same number of rows. A new path parameter fails
 * the first test until it has its row.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Operation } from "../../../shared/api/contract.ts";
import { callTool } from "../../harness/clients/mcp-client.ts";
import { rowOf, TOOL_LIST } from "../../harness/clients/tool-calls.ts";
import type { Answer, Json, TestDaemon } from "../../harness/daemon.ts";
import { startTelling, statementsOf } from "../../harness/event-loop/asked-statements.ts";
import { bare, bearer, makeOrg, until } from "../calls.ts";
import { OF_KEYS, requestOf } from "../requests.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "../sandboxes/described-template.ts";
import { insertSnapshotRow } from "../sandboxes/snapshot-row.ts";

/** The caller's own names, for each path parameter that is not under test. */
const OWN: Record<string, string> = {
  room_id: "own-room",
  source_room_id: "own-room",
  org_id: "self",
  sandbox: "worker-1",
};

interface Names {
  foreign: string;
  never: string;
}

/** For each path parameter a name of another organization, created below, and a name that never existed. */
const NAMES: Record<string, Names> = {
  room_id: { foreign: "secret", never: "nobody" },
  source_room_id: { foreign: "secret", never: "nobody" },
  org_id: { foreign: "", never: "org_00000000000000000000000000" },
  sandbox: { foreign: "", never: "sbx_00000000000000000000000000" },
  key_id: { foreign: "", never: "kid_00000000000000000000000000" },
  ssh_key_id: { foreign: "", never: "ssk_00000000000000000000000000" },
  grant_id: { foreign: "kid_11111111111111111111111111", never: "kid_00000000000000000000000000" },
  webhook_id: { foreign: "", never: "whk_00000000000000000000000000" },
  access_id: { foreign: "", never: "ssa_00000000000000000000000000" },
  message_id: { foreign: "", never: "msg_00000000000000000000000000" },
  checkpoint_id: { foreign: "", never: "chk_00000000000000000000000000" },
  snapshot_id: { foreign: "", never: "snap_00000000000000000000000000" },
  build_id: { foreign: "", never: "bld_00000000000000000000000000" },
  barrier_id: { foreign: "built", never: "drawn" },
  port: { foreign: "8000", never: "8001" },
  id: { foreign: "", never: "sbx_00000000000000000000000000" },
};

/** Path parameters that name nothing which an organization has in the database. */
const NOT_KEPT: Record<string, string> = {
  agent_id: "a name that any room may use",
  delivery_id: "an event of the caller's own chain",
  path: "on the drive of the room",
  template_id: "the host's",
  exec_id: "in the guest's memory",
  terminal_id: "in the guest's memory",
  recording_id: "in the room's directory",
  host: "the operator's",
};

interface Case {
  /** Operation and parameter. */
  title: string;
  ask(given: string, requestId: string): Promise<Answer>;
  name: Names;
}

interface Seen {
  answer: Json;
  statements: readonly string[];
}

/** No server listens there. */
const NO_IMAGE = "docker://127.0.0.1:1/none";

let daemon: TestDaemon;
let other: string;
/** By request: the statements that it ran. */
const OF_CALLER = /from "api_keys" left join "orgs"/;

let run = new Map<string, string[]>();
/** The absent name is requested before the foreign one and after it: work of a concurrent timer is in one of the three. */
const ASKED = ["before", "foreign", "after"] as const;
type Asked = (typeof ASKED)[number];
/** By case. */
const seen = new Map<string, Record<Asked, Seen>>();
/** The caller's existing resources, each with an absent one. */
const CONTROLS = {
  room: ["/v1/rooms/own-room", "/v1/rooms/nobody"],
  sandbox: ["/v1/rooms/own-room/sandboxes/worker-1", "/v1/rooms/own-room/sandboxes/worker-2"],
  barriers: ["/v1/rooms/own-room/barriers", "/v1/rooms/nobody/barriers"],
} as const;

/** The name in room_from_backup is that of the room to create. */
const parametersOf = ({ name, params }: Operation) =>
  name === "room_from_backup" ? [] : Object.keys(params.properties);

type Ask = (parameter: string, given: string, requestId: string) => Promise<Answer>;

const casesOf = (label: string, operation: Operation, ask: Ask): Case[] =>
  parametersOf(operation).flatMap((parameter) => {
    const name = NAMES[parameter];
    if (!name) return [];
    return [{ title: `${label} by ${parameter}`, name, ask: (given, requestId) => ask(parameter, given, requestId) }];
  });

const cases = [
  ...OF_KEYS.flatMap((operation) =>
    casesOf(operation.name, operation, (parameter, given, requestId) => {
      const names = { room_id: "", org_id: "" };
      const { method, path, headers, body } = requestOf(operation, names, { ...OWN, [parameter]: given });
      return bare(daemon, method, path, { ...headers, ...bearer(other), "x-request-id": requestId }, body);
    }),
  ),
  ...TOOL_LIST.flatMap((tool) =>
    casesOf(`the tool ${tool.name}`, tool.operation, (parameter, given, requestId) => {
      const args = { ...rowOf(tool).args("own-room"), [parameter]: parameter === "port" ? Number(given) : given };
      return callTool(daemon, { ...bearer(other), "x-request-id": requestId }, tool.name, args);
    }),
  ),
];

const replyTo: Case = {
  title: "agent_send by reply_to",
  ask: (reply_to, requestId) => {
    const body = JSON.stringify({ source: "planner", destination: "planner", payload: 1, reply_to });
    const headers = { ...bearer(other), "content-type": "application/json", "x-request-id": requestId };
    return bare(daemon, "POST", "/v1/rooms/own-room/messages", headers, body);
  },
  name: NAMES.message_id as Names,
};

/** With its ID alone each resource is looked up among those of its type. */
const located: Case[] = ["key_id", "ssh_key_id", "access_id", "message_id"].map((parameter) => ({
  title: `locate of a ${parameter}`,
  ask: (id, requestId) => bare(daemon, "GET", `/v1/locate/${id}`, { ...bearer(other), "x-request-id": requestId }),
  name: NAMES[parameter] as Names,
}));

const all = [...cases, replyTo, ...located];

/** All are as long as each other: they are in the answers. */
const idOf = (variant: Asked, index: number) => `${variant.padEnd(8, "-")}${index}`;

async function sandboxIn(room: string, key: string, guest_cid: number): Promise<string> {
  const auth = bearer(key);
  const body = { agent_id: "worker-1", guest_cid, memory_mib: DESCRIBED_MIN_MIB };
  await daemon.api("POST", "/v1/rooms", { room_id: room }, auth);
  // It fails, for want of a QEMU, and leaves its row.
  await daemon.api("POST", `/v1/rooms/${room}/sandboxes/from-template`, body, auth);
  const failed = async () => {
    const { items } = (await daemon.api("GET", `/v1/rooms/${room}/sandboxes?state=failed`, undefined, auth)).body;
    return items[0]?.sandbox_id;
  };
  return String(await until(failed, (id) => id !== undefined));
}

/** The rows of another organization: one of each kind. */
async function makeForeign(): Promise<void> {
  const foreign = (parameter: string, value: string) => Object.assign(NAMES[parameter] ?? {}, { foreign: value });
  const secret = "/v1/rooms/secret";
  foreign("org_id", daemon.orgId);
  foreign("sandbox", await sandboxIn("secret", daemon.apiKey, 9100));
  foreign("id", NAMES.sandbox?.foreign ?? "");
  const made = (path: string, body: Json) => daemon.ok("POST", path, body);
  foreign("key_id", (await made("/v1/orgs/self/keys", { name: "theirs" })).key_id);
  const public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me";
  foreign("ssh_key_id", (await made("/v1/orgs/self/ssh-keys", { name: "theirs", public_key })).ssh_key_id);
  const webhook = { url: "https://example.org/", types: ["none"] };
  foreign("webhook_id", (await made("/v1/orgs/self/webhooks", webhook)).webhook_id);
  foreign("access_id", (await made(`${secret}/sandboxes/worker-1/ssh-access`, {})).access_id);
  await daemon.ok("GET", `${secret}/messages?agent_id=planner`);
  const message = { source: "planner", destination: "planner", payload: 1 };
  foreign("message_id", (await made(`${secret}/messages`, message)).message_id);
  await made(`${secret}/barriers`, { barrier_id: "built", agent_id: "planner", parties: 2, timeout_ms: 0 });
  const { build_id } = await made("/v1/templates", { template_id: "default", from: { image: NO_IMAGE } });
  const path = `/v1/templates/default/builds/${build_id}`;
  await until(
    async () => (await daemon.ok("GET", path)).state,
    (state) => state === "failed",
  );
  foreign("build_id", build_id);
  foreign("checkpoint_id", (await made(`${secret}/checkpoints`, {})).checkpoint_id);
  foreign("snapshot_id", insertSnapshotRow(daemon, NAMES.sandbox?.foreign ?? ""));
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  rows.run("PRAGMA busy_timeout = 5000");
  rows.run(
    `INSERT INTO ports (label, sandbox_id, port, visibility, org_id, room_uid, agent_id, created_at)
     SELECT 'theirs', sandbox_id, 8000, 'private', org_id, room_uid, agent_id, created_at FROM sandboxes`,
  );
  insertGrant(rows, NAMES.grant_id?.foreign ?? "", NAMES.key_id?.foreign ?? "");
  rows.close();
}

/** An application that a person of the organization of a key has signed in. */
function insertGrant(rows: Database, grantId: string, keyId: string): void {
  const columns = rows.query("SELECT name FROM pragma_table_info('api_keys')").all() as { name: string }[];
  const own: Record<string, string> = { key_id: `'${grantId}'`, key_sha256: "'theirs'", kind: "'oauth'" };
  const names = columns.map(({ name }) => name);
  const values = names.map((name) => own[name] ?? name);
  rows.run(`INSERT INTO api_keys (${names}) SELECT ${values} FROM api_keys WHERE key_id = ?`, [keyId]);
  rows.run(
    "INSERT INTO users (user_id, email, name, created_at) VALUES ('usr_theirs', 'them@example.org', 'them', '')",
  );
  rows.run(
    "INSERT INTO oauth_grants (key_id, user_id, client_id, audience) VALUES (?, 'usr_theirs', 'oap_theirs', 'mcp')",
    [grantId],
  );
}

beforeAll(async () => {
  daemon = await startTelling({
    ROOMD_ACCELERATION: "tcg",
    ROOMD_POOL_SIZE: "0",
    ROOMD_HOST_QEMU: "/bin/false",
    ROOMD_TEMPLATE_REGISTRIES: "127.0.0.1:1",
    // Their records are written some together, by whichever request comes then.
    ROOMD_AUDIT_READS: "false",
  });
  describeTemplate(daemon);
  await makeForeign();
  other = (await makeOrg(daemon, "other")).api_key;
  await sandboxIn("own-room", other, 9101);
  // The first call that changes something has more to do.
  for (const name of ["health", "usage"]) await callTool(daemon, bearer(other), name, {});

  const answers = new Map<string, Answer>();
  for (const [index, { ask, name }] of all.entries()) {
    for (const variant of ASKED) {
      const id = idOf(variant, index);
      answers.set(id, await ask(variant === "foreign" ? name.foreign : name.never, id));
    }
  }
  for (const [control, paths] of Object.entries(CONTROLS)) {
    for (const path of paths)
      await bare(daemon, "GET", path, { ...bearer(other), "x-request-id": `${control}:${path}` });
  }
  run = statementsOf(daemon);
  for (const [index, { title, name }] of all.entries()) {
    const seenOf = (variant: Asked): Seen => {
      const id = idOf(variant, index);
      const { status, headers, body } = answers.get(id) as Answer;
      const kept = [...headers].filter(([header]) => !/^(date|x-request-id|ratelimit-\w+)$/.test(header));
      const { preflight: _, ...rest } = body;
      const text = JSON.stringify({ status, headers: kept, ...rest, request_id: "" });
      const given = variant === "foreign" ? name.foreign : name.never;
      // The caller's key is read again after a restart of the write-ahead log, before any name is looked up.
      const statements = (run.get(id) ?? []).filter((each) => !OF_CALLER.test(each));
      return { answer: JSON.parse(text.replaceAll(given, "NAME")), statements };
    };
    seen.set(title, { before: seenOf("before"), foreign: seenOf("foreign"), after: seenOf("after") });
  }
}, 60_000);
afterAll(() => daemon.stop());

test("every path parameter has test names, or a reason for having none", () => {
  const parameters = new Set(OF_KEYS.flatMap(parametersOf));
  expect([...parameters].sort()).toEqual([...Object.keys(NAMES), ...Object.keys(NOT_KEPT)].sort());
  expect(cases.length).toBeGreaterThan(80);
});

test.each(all)("$title", ({ title, name }) => {
  const { before, foreign, after } = seen.get(title) as Record<Asked, Seen>;
  expect(name.foreign).not.toBe("");
  expect(foreign.answer.status).toBe(404);
  if (!Bun.deepEquals(foreign, before)) expect(foreign).toEqual(after);
});

test.each(Object.entries(CONTROLS))(
  "the database work for one's own %s differs: the measurement is sensitive",
  (control, [own, none]) => {
    const [found, missed] = [own, none].map((path) => run.get(`${control}:${path}`) ?? []);
    expect(found?.length).toBeGreaterThan(0);
    expect(found).not.toEqual(missed);
  },
);
