/** Refusals of terminals before any request to a guest; their effects are in test/vm/terminals.test.ts. */
import type { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SANDBOX_STATES } from "../../../shared/api/sandboxes.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { People } from "../../harness/people.ts";
import { bare, bearer, makeKey } from "../calls.ts";
import { withFailedSandbox } from "./failed-sandbox.ts";

const SANDBOX = "/v1/rooms/r/sandboxes/worker-1";
const WS = `${SANDBOX}/terminals/ter_none/ws`;
const HANDSHAKE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

let daemon: TestDaemon;
let rows: Database;

beforeAll(async () => {
  ({ daemon, rows } = await withFailedSandbox("worker-1"));
});
afterAll(async () => {
  rows?.close();
  await daemon.stop();
});

const setState = (state: string) => rows.run("UPDATE sandboxes SET state = ?", [state]);
const opened = (more: object) => daemon.problem("POST", `${SANDBOX}/terminals`, { rows: 24, cols: 80, ...more });
const shaken = (headers: Record<string, string>, path = WS) => bare(daemon, "GET", path, { ...HANDSHAKE, ...headers });

test.each<[string, object, string, string]>([
  ["no rows", { rows: 0 }, "validation_failed", "rows"],
  ["too many cols", { cols: 1001 }, "validation_failed", "cols"],
  ["half a row", { rows: 1.5 }, "validation_failed", "rows"],
  ["argv and command together", { argv: ["a"], command: "a" }, "invalid_command", "command"],
  ["an empty argv", { argv: [] }, "invalid_command", "argv"],
  ["an empty command", { command: "" }, "invalid_command", "command"],
  ["an empty program name", { argv: [""] }, "invalid_command", "argv[0]"],
  ["NUL in an argument", { argv: ["a", "b\0"] }, "invalid_command", "argv"],
  ["a relative cwd", { cwd: "tmp" }, "validation_failed", "cwd"],
  ["an invalid user name", { user: "a b" }, "validation_failed", "user"],
  ["an invalid TERM", { term: "x\ny" }, "validation_failed", "term"],
  ["an unknown field", { row: 3 }, "unknown_field", "row"],
])("a terminal with %s is refused, by its field", async (_, more, code, field) => {
  const problem = await opened(more);
  expect(problem).toMatchObject({ status: 422, code });
  expect(problem.errors.map((each) => each.field)).toEqual([field]);
});

describe.each(SANDBOX_STATES.filter((state) => state !== "destroyed" && state !== "running"))("%s", (state) => {
  test.each<[string, string, Json?]>([
    ["POST", "/terminals", { rows: 1, cols: 1 }],
    ["GET", "/terminals"],
    ["GET", "/terminals/ter_x"],
    ["GET", "/terminals/ter_x/watch"],
    ["DELETE", "/terminals/ter_x"],
    ["POST", "/terminals/ter_x/token", {}],
  ])("refuses %s %s", async (method, path, body) => {
    setState(state);
    expect(await daemon.problem(method, SANDBOX + path, body)).toMatchObject({
      status: 409,
      code: "invalid_state",
      details: { state, allowed_states: ["running"] },
    });
  });

  test("refuses a handshake", async () => {
    setState(state);
    expect(await shaken(bearer(daemon.apiKey))).toMatchObject({ status: 409, body: { code: "invalid_state" } });
  });
});

test("a guest that is paused because the disk is full gets 507 immediately", async () => {
  setState("running");
  rows.run("UPDATE sandboxes SET status_reason = 'disk_full', status_message = 'It stands still.'");
  const stands = { status: 507, code: "disk_full", detail: "It stands still." };
  expect(await opened({})).toMatchObject(stands);
  expect(await daemon.problem("GET", `${SANDBOX}/terminals`)).toMatchObject(stands);
  expect(await shaken(bearer(daemon.apiKey))).toMatchObject({ status: 507, body: stands });
  rows.run("UPDATE sandboxes SET status_reason = 'vmm_failed', status_message = ''");
});

test("attaching requires a WebSocket handshake", async () => {
  for (const method of ["GET", "HEAD"]) expect((await daemon.api(method, WS)).status).toBe(422);
  expect(await daemon.problem("GET", WS)).toMatchObject({ errors: [{ field: "Upgrade", code: "required" }] });
  expect(await daemon.problem("POST", WS, {})).toMatchObject({ code: "method_not_allowed" });
});

test("a handshake requires a key, or a token as a subprotocol, and ignores the query", async () => {
  const token = `ttk_${"A".repeat(43)}`;
  const protocol = (value: string) => ({ "sec-websocket-protocol": value });
  for (const [headers, path, code] of [
    [{}, WS, "missing_credentials"],
    [{}, `${WS}?token=${daemon.apiKey}`, "missing_credentials"],
    [protocol("roomd.terminal"), WS, "missing_credentials"],
    [protocol(`roomd.terminal, roomd.token.${token}`), WS, "invalid_api_key"],
    [protocol(`roomd.token.${daemon.apiKey}`), WS, "invalid_api_key"],
    [protocol("roomd.token."), WS, "invalid_api_key"],
    [bearer(token), WS, "invalid_api_key"],
  ] as const) {
    expect([headers, (await shaken(headers, path)).body.code]).toEqual([headers, code]);
  }
  const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=exec.terminal_attached");
  expect(items.every(({ outcome }: Json) => outcome !== "success")).toBe(true);
});

test("a token is not accepted by other routes", async () => {
  const headers = { "sec-websocket-protocol": `roomd.token.ttk_${"A".repeat(43)}` };
  expect((await bare(daemon, "GET", "/v1/me", { ...HANDSHAKE, ...headers })).body.code).toBe("missing_credentials");
});

test.each([
  ["https://elsewhere.example", 403],
  ["null", 403],
  ["nonsense", 403],
])("a page of %s may not attach", async (origin, status) => {
  const refused = await shaken({ ...bearer(daemon.apiKey), origin });
  expect(refused).toMatchObject({ status, body: { code: "source_mismatch" } });
});

test("a page of the service may attach", async () => {
  setState("paused");
  expect((await shaken({ ...bearer(daemon.apiKey), origin: daemon.url })).body.code).toBe("invalid_state");
});

test("the scope terminal is required, and exec is not sufficient", async () => {
  const { key } = await makeKey(daemon, { scopes: ["exec", "sandboxes:write"] });
  expect(await shaken(bearer(key))).toMatchObject({ status: 403, body: { details: { required: "terminal" } } });
});

describe("a web session", () => {
  const commands = `${SANDBOX}/executions`;
  const watched = [
    commands,
    `${commands}/e`,
    `${commands}/e/stream`,
    `${SANDBOX}/terminals`,
    `${SANDBOX}/terminals/ter_none`,
    `${SANDBOX}/terminals/ter_none/watch`,
  ];
  let people: People;
  beforeAll(async () => {
    people = await People.first(daemon);
  });

  test("can view commands and terminals in any role, if the guest is reachable", async () => {
    setState("paused");
    for (const role of ["viewer", "member", "admin"]) {
      const visitor = await people.member(role);
      for (const path of watched) {
        expect([role, path, (await visitor.api("GET", path)).body.code]).toEqual([role, path, "invalid_state"]);
      }
    }
    const stranger = await people.foreign();
    for (const path of watched) expect((await stranger.api("GET", path)).body.code).toBe("room_not_found");
  });

  test("cannot change them, nor attach to a terminal", async () => {
    for (const [method, path] of [
      ["POST", `${SANDBOX}/exec`],
      ["POST", commands],
      ["POST", `${commands}/e/stdin`],
      ["POST", `${commands}/e/signal`],
      ["DELETE", `${commands}/e`],
      ["POST", `${SANDBOX}/terminals`],
      ["POST", `${SANDBOX}/terminals/ter_none/token`],
      ["DELETE", `${SANDBOX}/terminals/ter_none`],
      ["GET", WS],
    ] as const) {
      const { status, body } = await people.owner.api(method, path, method === "POST" ? {} : undefined);
      expect([method, path, status, body.code]).toEqual([method, path, 403, "hub_is_read_only"]);
    }
  });

  test("is ignored if a token is sent with its cookie", async () => {
    const page = { ...people.owner.headers, origin: daemon.url };
    const token = { "sec-websocket-protocol": `roomd.terminal, roomd.token.ttk_${"A".repeat(43)}` };
    expect((await shaken(page)).body.code).toBe("hub_is_read_only");
    expect((await shaken({ ...page, ...token })).body.code).toBe("invalid_api_key");
    const elsewhere = { ...page, ...token, origin: "https://elsewhere.example" };
    expect((await shaken(elsewhere)).body.code).toBe("source_mismatch");
  });

  test("is accepted only from pages of the service", async () => {
    for (const path of watched) {
      const { body } = await people.owner.api("GET", path, undefined, { "sec-fetch-site": "cross-site" });
      expect(body.code).toBe("foreign_request");
    }
  });
});

test("watching with a key requires the scope terminal, and listing commands exec", async () => {
  const { key } = await makeKey(daemon, { scopes: ["rooms:read", "sandboxes:read"] });
  for (const [path, required] of [
    ["terminals/ter_none/watch", "terminal"],
    ["terminals", "terminal"],
    ["executions", "exec"],
  ] as const) {
    const answer = await daemon.api("GET", `${SANDBOX}/${path}`, undefined, bearer(key));
    expect(answer).toMatchObject({ status: 403, body: { code: "insufficient_scope", details: { required } } });
  }
});

test("the position to watch from must be a valid offset", async () => {
  setState("running");
  const watch = `${SANDBOX}/terminals/ter_none/watch`;
  for (const after of ["-1", "x", "1.5", "9007199254740992"]) {
    expect(await daemon.problem("GET", `${watch}?after=${after}`)).toMatchObject({ status: 422 });
  }
});
