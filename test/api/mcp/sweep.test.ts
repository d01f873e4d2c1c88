/**
 * Each tool of the list in turn: the keys that may call it, and that resources of another organization appear absent. A new tool is swept
 * by being on the list, with its row in tool-calls.ts; bound keys are in bound_keys.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SCOPES } from "../../../shared/api/contract.ts";
import { callTool } from "../../harness/clients/mcp-client.ts";
import { rowOf, TOOL_LIST } from "../../harness/clients/tool-calls.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeKey, makeOrg, run, until } from "../calls.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.room("taken");
  await daemon.ok("POST", "/v1/rooms/taken/drive/write", { path: "/notes.txt", content: "secret" });
  await daemon.ok("GET", "/v1/rooms/taken/messages?agent_id=planner");
});
afterAll(() => daemon.stop());

const as = (key: string, name: string, args: Record<string, unknown>) => callTool(daemon, bearer(key), name, args);

describe("an invalid key", () => {
  const keys: Record<string, string> = { unknown: `key-${"A".repeat(43)}`, malformed: "key-short" };
  beforeAll(async () => {
    const [revoked, expired] = [await makeKey(daemon), await makeKey(daemon, { expires_in_seconds: 1 })];
    for (const { key } of [revoked, expired]) expect((await as(key, "room_list", {})).body.ok).toBe(true);
    await run(daemon, "key", "revoke", revoked.key_id);
    const code = async () => (await as(expired.key, "room_list", {})).body.code;
    await until(code, (seen) => seen === "api_key_expired");
    Object.assign(keys, { revoked: revoked.key, expired: expired.key, operator: daemon.operatorKey });
  });

  test.each(TOOL_LIST)("cannot call $name, whatever its defect", async (tool) => {
    const { name } = tool;
    const args = rowOf(tool).args("taken");
    for (const [kind, key] of Object.entries(keys)) {
      const { status, body, headers } = await as(key, name, args);
      const code = kind === "expired" ? "api_key_expired" : "invalid_api_key";
      expect({ kind, status, code: body.code }).toEqual({ kind, status: 401, code });
      expect(headers.get("www-authenticate")).toMatch(/^Bearer/);
    }
    const none = await callTool(daemon, {}, name, args);
    expect({ status: none.status, code: none.body.code }).toEqual({ status: 401, code: "missing_credentials" });
  });
});

describe("a key with every scope but one", () => {
  const scopes = SCOPES.filter((scope) => scope !== "org:admin");
  const keys = new Map<string, string>();
  beforeAll(async () => {
    for (const scope of scopes) {
      const { key } = await makeKey(daemon, { scopes: scopes.filter((each) => each !== scope) });
      keys.set(scope, key);
    }
  });

  test.each(TOOL_LIST)(
    "can call $name unless that scope is missing, which is checked before any lookup",
    async (tool) => {
      const { access } = tool.operation;
      for (const scope of scopes) {
        const { body } = await as(keys.get(scope) ?? "", tool.name, rowOf(tool).args("never"));
        const isRefused = body.code === "insufficient_scope";
        expect({ scope, isRefused }).toEqual({ scope, isRefused: scope === access });
        if (isRefused) expect(body).toMatchObject({ ok: false, status: 403, details: { required: access } });
      }
    },
  );

  test("cannot use a tool for an effect that requires another operation's scope", async () => {
    await daemon.ok("POST", "/v1/rooms/taken/barriers", { barrier_id: "b", agent_id: "a", parties: 3, timeout_ms: 0 });
    const arrive = { room_id: "taken", barrier_id: "b", agent_id: "late", wait_ms: 0 };
    const { body } = await as(keys.get("fabric:write") ?? "", "agent_wait", arrive);
    expect(body).toMatchObject({ code: "insufficient_scope", details: { required: "fabric:write" } });
    expect((await daemon.ok("GET", "/v1/rooms/taken/barriers/b")).arrived).toEqual(["a"]);
  });
});

/** Tools by the kind of resource that they name; tools that name no resource of an organization have their own test below. */
const inRooms = TOOL_LIST.filter(({ operation }) => "room_id" in operation.params.properties);
const ofOrgs = TOOL_LIST.filter(({ operation }) => "org_id" in operation.params.properties);
const ofNobody = TOOL_LIST.filter((tool) => !inRooms.includes(tool) && !ofOrgs.includes(tool));

describe("another organization's key", () => {
  let other: { org_id: string; api_key: string };
  beforeAll(async () => {
    other = await makeOrg(daemon, "other");
    // The first call that changes something is answered with more.
    for (const name of ["health", "usage"]) await as(other.api_key, name, {});
  });
  const shown = (body: Json, name: string) => JSON.stringify({ ...body, request_id: "" }).replaceAll(name, "NAME");

  test.each(inRooms)("gets from $name the same answer as for a room that never existed", async (tool) => {
    const { args } = rowOf(tool);
    const ask = async (room: string) => shown((await as(other.api_key, tool.name, args(room))).body, room);
    const taken = await ask("taken");
    expect(taken).toBe(await ask("never"));
    expect(taken).toContain('"code":"room_not_found"');
  });

  test.each(ofOrgs)("gets from $name the same answer as for an organization that never existed", async ({ name }) => {
    const ask = async (org_id: string) => shown((await as(other.api_key, name, { org_id })).body, org_id);
    const taken = await ask(daemon.orgId);
    expect(taken).toBe(await ask("org_none"));
    expect(taken).toContain('"code":"org_not_found"');
    expect((await as(other.api_key, name, {})).body.ok).toBe(true);
  });

  test("lists and creates its own rooms", async () => {
    expect((await as(other.api_key, "room_list", {})).body.result).toMatchObject({ org_id: other.org_id, items: [] });
    const made = await as(other.api_key, "room_create", { room_id: "taken" });
    expect(made.body.result).toMatchObject({ room_id: "taken", org_id: other.org_id });
    expect((await as(other.api_key, "fs_list", { room_id: "taken" })).body.result.items).toEqual([]);
    expect(ofNobody.map(({ name }) => name).sort()).toEqual(["health", "room_create", "room_list"]);
  });
});
