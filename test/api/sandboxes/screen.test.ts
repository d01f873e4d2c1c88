/** Refusals of the screen's operations before any request to a guest; their effects are in test/protocol/screen.test.ts. */
import type { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GUEST_SCOPES } from "../../../daemon/edge/guest/allowed.ts";
import { SANDBOX_STATES } from "../../../shared/api/sandboxes.ts";
import type { Visitor } from "../../harness/browser/visitor.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { People } from "../../harness/people.ts";
import { bearer, makeKey } from "../calls.ts";
import { withFailedSandbox } from "./failed-sandbox.ts";

const SANDBOX = "/v1/rooms/r/sandboxes/worker-1";

let daemon: TestDaemon;
let rows: Database;
/** A person with read access only. */
let viewer: Visitor;

beforeAll(async () => {
  ({ daemon, rows } = await withFailedSandbox("worker-1"));
  viewer = await (await People.first(daemon)).member("viewer");
});
afterAll(async () => {
  rows?.close();
  await daemon.stop();
});

test.each<[string, object, string, string]>([
  ["no action", {}, "validation_failed", "action"],
  ["an unknown action", { action: "fly" }, "validation_failed", "action"],
  ["no position", { action: "mouse_move" }, "validation_failed", "coordinate"],
  ["half a position", { action: "mouse_move", coordinate: [1] }, "validation_failed", "coordinate"],
  [
    "a position outside of any screen",
    { action: "mouse_move", coordinate: [1, 5000] },
    "validation_failed",
    "coordinate[1]",
  ],
  ["a superfluous position", { action: "key", text: "a", coordinate: [1, 1] }, "validation_failed", "coordinate"],
  ["an unknown key", { action: "key", text: "nokey" }, "validation_failed", "text"],
  ["a character without a key", { action: "type", text: "\u001b" }, "validation_failed", "text"],
  ["a text above the limit", { action: "type", text: "a".repeat(10_001) }, "validation_failed", "text"],
  ["a wait above the limit", { action: "wait", duration_ms: 30_001 }, "validation_failed", "duration_ms"],
  ["a width below the limit", { action: "screenshot", width: 1 }, "validation_failed", "width"],
  ["an invalid region", { action: "zoom", region: [9, 9, 1, 1] }, "validation_failed", "region"],
  ["an unknown field", { action: "screenshot", witdh: 640 }, "unknown_field", "witdh"],
])("an action with %s is refused, by its field", async (_, body, code, field) => {
  const problem = await daemon.problem("POST", `${SANDBOX}/computer`, body);
  expect(problem).toMatchObject({ status: 422, code });
  expect(problem.errors.map((each) => each.field)).toEqual([field]);
});

test("a screenshot requires the scope exec, as output does; a signed-in person may view it", async () => {
  rows.run("UPDATE sandboxes SET state = 'paused'");
  const codes = [];
  for (const scopes of [GUEST_SCOPES, ["sandboxes:read"], ["exec"]] as const) {
    const { key } = await makeKey(daemon, { scopes: [...scopes] });
    codes.push((await daemon.api("GET", `${SANDBOX}/screen`, undefined, bearer(key))).body.code);
  }
  expect(codes).toEqual(["insufficient_scope", "insufficient_scope", "invalid_state"]);
  expect((await viewer.api("GET", `${SANDBOX}/screen`)).body.code).toBe("invalid_state");
  expect((await viewer.api("POST", `${SANDBOX}/computer`, { action: "screenshot" })).body.code).toBe(
    "hub_is_read_only",
  );
});

test("is streamed over a WebSocket from pages of the service, to authorized callers", async () => {
  rows.run("UPDATE sandboxes SET state = 'paused'");
  const upgrade = {
    Upgrade: "websocket",
    Connection: "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  const ask = async (path: string, headers: Record<string, string>) => {
    const { status, body } = await daemon.api("GET", `${SANDBOX}/screen/ws${path}`, undefined, headers);
    return [status, body.code];
  };
  const key = bearer(daemon.apiKey);
  expect(await ask("", key)).toEqual([422, "validation_failed"]);
  expect(await ask("", { ...key, ...upgrade })).toEqual([409, "invalid_state"]);
  expect(await ask("", { ...key, ...upgrade, Origin: "https://elsewhere.example" })).toEqual([403, "source_mismatch"]);
  const stranger = await fetch(`${daemon.url}${SANDBOX}/screen/ws?ticket=sdt_nobody_made`, { headers: upgrade });
  expect([stranger.status, ((await stranger.json()) as Json).code]).toEqual([401, "invalid_api_key"]);
  const seen = await viewer.api("GET", `${SANDBOX}/screen/ws`, undefined, upgrade);
  expect([seen.status, seen.body.code]).toEqual([409, "invalid_state"]);
});

describe.each(SANDBOX_STATES.filter((state) => state !== "destroyed" && state !== "running"))("%s", (state) => {
  test.each<[string, string, Json?]>([
    ["GET", "/screen"],
    ["POST", "/computer", { action: "screenshot" }],
    ["POST", "/screen/ticket", { drive: true }],
  ])("refuses %s %s", async (method, path, body) => {
    rows.run("UPDATE sandboxes SET state = ?", [state]);
    expect(await daemon.problem(method, SANDBOX + path, body)).toMatchObject({
      status: 409,
      code: "invalid_state",
      details: { state, allowed_states: ["running"] },
    });
  });
});
