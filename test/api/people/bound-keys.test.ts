/**
 * Keys bound to rooms or to an agent: resources outside of the binding appear absent, through every transport. Each operation has its row
 * in both tables, so that a new one fails the suite until its behaviour for a bound key is declared.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Operation } from "../../../shared/api/contract.ts";
import type { Tool } from "../../../shared/api/mcp/tool.ts";
import { callTool } from "../../harness/clients/mcp-client.ts";
import { SshClient, sshPort } from "../../harness/clients/ssh-client.ts";
import { rowOf, TOOL_LIST } from "../../harness/clients/tool-calls.ts";
import { type Answer, type Json, NO_GUESTS, TestDaemon } from "../../harness/daemon.ts";
import { untilState } from "../../harness/guests.ts";
import { bare, bearer, makeKey } from "../calls.ts";
import { OF_KEYS, requestOf } from "../requests.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "../sandboxes/described-template.ts";
import { insertSnapshotRow } from "../sandboxes/snapshot-row.ts";

const SANDBOXES = "/v1/rooms/r/sandboxes";
/** The agent that requests.ts queries, and the agent of the key. */
const [OTHER, OWN] = ["worker-1", "worker-2"];

let daemon: TestDaemon;
let bound: Record<string, string>;
let key: string;
let other: Json;

const sandbox = (agent_id: string, guest_cid: number) => ({ agent_id, guest_cid, memory_mib: DESCRIBED_MIN_MIB });

beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: NO_GUESTS,
  });
  describeTemplate(daemon);
  await daemon.room("r");
  for (const [at, agent] of [OWN, OTHER].entries()) {
    // It fails, for want of a QEMU, and leaves its row.
    await daemon.api("POST", `${SANDBOXES}/from-template`, sandbox(agent, 9100 + at));
    other = await untilState(daemon, "r", agent, "failed");
  }
  // The message that requests.ts names.
  const message = { message_id: "no-message", source: "planner", destination: "reviewer", payload: 1 };
  await daemon.ok("GET", "/v1/rooms/r/messages?agent_id=reviewer");
  await daemon.ok("POST", "/v1/rooms/r/messages", message);
  ({ key } = await makeKey(daemon, { agent: OWN }));
  bound = bearer(key);
});
afterAll(() => daemon.stop());

const perSandbox = OF_KEYS.filter(({ path }) => path.includes("{sandbox}"));
/** The room that it names is a new one. */
const makesRoom = ({ name }: Operation) => name === "room_from_backup";
const inRooms = OF_KEYS.filter((each) => /\{(source_)?room_id\}/.test(each.path) && !makesRoom(each));
const names = (operations: readonly Operation[]) => operations.map(({ name }) => name);
const ofOrg = [
  ...["ssh_key_add", "ssh_key_list", "ssh_key_remove", "application_list", "application_end"],
  ...["webhook_create", "webhook_list", "webhook_get", "webhook_update", "webhook_delete"],
  ...["webhook_rotate", "webhook_deliveries", "webhook_redeliver", "webhook_test"],
  ...["template_create", "template_remove", "template_build_get", "template_build_stream", "template_build_end"],
  ...["org_audit_list", "org_audit_summary", "org_audit_verify", "org_events", "usage", "credit_list", "metrics"],
];
const anybodys = [
  "host_list",
  "health",
  "config_get",
  "me_get",
  "openapi_get",
  "template_list",
  "template_get",
  "live_socket",
];
/** Its results are limited to readable resources, which locate.test.ts checks. */
const ofIds = ["locate"];
/** They create and list only keys bound at least as tightly, which keys.test.ts checks. */
const ofKeys = ["key_create", "key_list", "key_rotate", "key_revoke"];

/** Behaviour of each operation for a key bound to other rooms. */
const TO_A_ROOMS_KEY: Record<string, readonly string[]> = {
  "has no such room": names(inRooms),
  "is refused": [...ofOrg, "room_create", "room_from_backup"],
  "has less of it": [...ofKeys, ...ofIds, "room_list", "room_overview", "top_get", "org_sandbox_list"],
  "has all of it": anybodys,
  "is no operator": ["org_create", "host_evacuate"],
};

const actsAs = [
  "sandbox_create",
  "agent_send",
  "message_send_many",
  "agent_wait",
  "message_ack",
  "message_reply",
  "agent_subscribe",
  "barrier_arrive",
];

const ofSnapshots = ["snapshot_get", "snapshot_delete"];
/** They are about all of a room's agents. */
const ofWholeRooms = ["room_checkpoint", "room_fork", "room_move", "room_backup", "room_from_backup"];

/** Behaviour of each operation for a key bound to another agent of the same room. */
const TO_AN_AGENTS_KEY: Record<string, readonly string[]> = {
  "has no such sandbox": names(perSandbox),
  "is not that agent": actsAs,
  "is refused": [...ofOrg, ...ofWholeRooms],
  "has no such snapshot": ofSnapshots,
  "has less of it": [...ofKeys, ...ofIds, "sandbox_list", "org_sandbox_list", "snapshot_list", "top_get"],
  "has all of it": [
    ...anybodys,
    ...["room_create", "room_list", "room_get", "room_update", "room_destroy", "agent_list", "message_get"],
    ...["barrier_list", "barrier_get", "barrier_cancel", "audit_list", "audit_summary", "audit_verify", "room_events"],
    ...["room_overview", "room_waits", "room_now", "room_timeline"],
    // The named resource does not exist.
    ...["checkpoint_list", "checkpoint_get", "checkpoint_delete", "room_restore"],
    ...["fs_write", "fs_list", "fs_read", "fs_stat", "fs_mkdir", "fs_move", "fs_delete", "file_put", "file_get"],
  ],
  "is no operator": ["org_create", "host_evacuate"],
};

test.each([
  ["a room's key", TO_A_ROOMS_KEY],
  ["an agent's key", TO_AN_AGENTS_KEY],
])("every operation has one row for %s", (_, rows) => {
  expect(Object.values(rows).flat().sort()).toEqual(names(OF_KEYS).sort());
});

const operationsOf = (rows: readonly string[] | undefined) => OF_KEYS.filter(({ name }) => rows?.includes(name));

/** A tool behaves for a bound key as its operation does. */
const toolsOf = (rows: readonly string[] | undefined) =>
  TOOL_LIST.filter(({ operation }) => rows?.includes(operation.name));

/** A response without the fields that differ from call to call, and with the requested name replaced by a placeholder. */
const shown = ({ status, body }: Answer, name: string) =>
  JSON.stringify({ status, ...body, request_id: "" }).replaceAll(name, "NAME");

/** The same of a tool's answer, which may have more in it the first time. */
async function toolShown(auth: Record<string, string>, tool: Tool, room: string, more: Json = {}, name = "NAME") {
  const { status, body } = await callTool(daemon, auth, tool.name, { ...rowOf(tool).args(room), ...more });
  const { preflight: _, ...answer } = body;
  return shown({ status, headers: new Headers(), body: answer }, name);
}

function ask(operation: Operation, auth: Record<string, string>, room: string, agent = OTHER): Promise<Answer> {
  const { method, path, body, headers } = requestOf(operation, { room_id: room, org_id: "self" });
  const query = operation.name === "agent_wait" ? "?agent_id=planner" : "";
  const place = path.replace(`/${OTHER}`, `/${agent}`) + query;
  return bare(daemon, method, place, { ...headers, ...auth }, body);
}

describe("a key that is bound to other rooms", () => {
  let rooms: Record<string, string>;
  beforeAll(async () => {
    rooms = bearer((await makeKey(daemon, { rooms: ["elsewhere"] })).key);
  });

  test.each(inRooms)("gets from $name the same answer for this room as for an unknown one", async (operation) => {
    const there = shown(await ask(operation, rooms, "r"), "room r");
    expect(there).toBe(shown(await ask(operation, rooms, "never-was"), "room never-was"));
    expect(there).toContain("room_not_found");
  });

  test.each(operationsOf(TO_A_ROOMS_KEY["is refused"]))("is refused by $name", async (operation) => {
    expect(await ask(operation, rooms, "r")).toMatchObject({ status: 403, body: { code: "insufficient_scope" } });
  });

  test.each(toolsOf(TO_A_ROOMS_KEY["has no such room"]))(
    "gets from the tool $name the same answer as for an unknown room",
    async (tool) => {
      const there = await toolShown(rooms, tool, "r", {}, "room r");
      expect(there).toBe(await toolShown(rooms, tool, "never-was", {}, "room never-was"));
      expect(there).toContain("room_not_found");
    },
  );

  test.each(toolsOf(TO_A_ROOMS_KEY["is refused"]))("is refused by the tool $name", async (tool) => {
    expect(await toolShown(rooms, tool, "r")).toContain("insufficient_scope");
  });

  test("sees none of them in its list of rooms", async () => {
    const { body } = await daemon.api("GET", "/v1/rooms", undefined, rooms);
    expect(body.items).toEqual([]);
    expect((await callTool(daemon, rooms, "room_list", {})).body.result.items).toEqual([]);
  });
});

describe("a key that is bound to an agent", () => {
  test("finds its own sandbox by both its names and in the list", async () => {
    const own = await daemon.api("GET", `${SANDBOXES}/${OWN}`, undefined, bound);
    expect(own.status).toBe(200);
    expect((await daemon.api("GET", `${SANDBOXES}/${own.body.sandbox_id}`, undefined, bound)).status).toBe(200);
    const { body } = await daemon.api("GET", SANDBOXES, undefined, bound);
    expect(body.items.map((each: Json) => each.agent_id)).toEqual([OWN]);
    expect((await daemon.ok("GET", SANDBOXES)).items).toHaveLength(2);
  });

  test.each(perSandbox)(
    "gets from $name the same answer for another agent's sandbox as for an unknown one",
    async (operation) => {
      const never = shown(await ask(operation, bound, "r", "worker-3"), "worker-3");
      for (const name of [OTHER, other.sandbox_id]) {
        expect(shown(await ask(operation, bound, "r", name), name)).toBe(never);
      }
      expect(never).toContain("sandbox_not_found");
    },
  );

  test.each(toolsOf(names(perSandbox)))(
    "gets from the tool $name the same answer as for an unknown sandbox",
    async (tool) => {
      const never = await toolShown(bound, tool, "r", { sandbox: "worker-3" }, "worker-3");
      for (const name of [OTHER, other.sandbox_id]) {
        expect(await toolShown(bound, tool, "r", { sandbox: name }, name)).toBe(never);
      }
      expect(never).toContain("sandbox_not_found");
    },
  );

  test.each(toolsOf(actsAs))("cannot act as another agent with the tool $name", async (tool) => {
    expect(await toolShown(bound, tool, "r")).toContain("source_mismatch");
  });

  test.each(toolsOf(ofOrg))("is refused by the tool $name", async (tool) => {
    expect(await toolShown(bound, tool, "r")).toContain("insufficient_scope");
  });

  test("sees no snapshot of another agent, and cannot create a sandbox from one", async () => {
    const theirs = insertSnapshotRow(daemon, other.sandbox_id);
    const never = "snap_00000000000000000000000000";
    const place = (id: string) => `/v1/rooms/r/snapshots/${id}`;
    for (const method of ["GET", "DELETE"]) {
      const none = shown(await daemon.api(method, place(never), undefined, bound), never);
      expect(none).toContain("snapshot_not_found");
      expect(shown(await daemon.api(method, place(theirs), undefined, bound), theirs)).toBe(none);
    }
    expect((await daemon.api("GET", "/v1/rooms/r/snapshots", undefined, bound)).body.items).toEqual([]);
    expect((await daemon.ok("GET", "/v1/rooms/r/snapshots")).items).toHaveLength(1);
    const request = { ...sandbox(OWN, 9150), snapshot_id: theirs };
    const made = await daemon.api("POST", `${SANDBOXES}/from-template`, request, bound);
    expect(made).toMatchObject({ status: 404, body: { code: "snapshot_not_found" } });
  });

  test.each(operationsOf(actsAs))("cannot act as another agent with $name", async (operation) => {
    expect(await ask(operation, bound, "r")).toMatchObject({ status: 403, body: { code: "source_mismatch" } });
  });

  test.each(operationsOf(ofOrg))("is refused by $name, which affects the whole organization", async (operation) => {
    expect(await ask(operation, bound, "r")).toMatchObject({ status: 403, body: { code: "insufficient_scope" } });
  });

  test("is not accepted as the SSH password of another agent", async () => {
    using client = new SshClient(sshPort(daemon));
    const { status, stderr } = await client.sshByPassword(`${OTHER}@r`, key, ["true"]);
    expect(status).toBe(255);
    expect(stderr).toContain("Permission denied");
  });
});
