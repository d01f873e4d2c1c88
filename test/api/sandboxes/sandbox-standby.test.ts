/** Refusals of standby, hibernation and resume, state by state; their effects on a guest are in test/vm/rooms/standby.test.ts. */
import type { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SANDBOX_STATES, type SandboxState } from "../../../shared/api/sandboxes.ts";
import type { Answer, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeKey } from "../calls.ts";
import { withFailedSandbox } from "./failed-sandbox.ts";

const SANDBOX = "/v1/rooms/r/sandboxes/worker-1";
const LIVE = SANDBOX_STATES.filter((state) => state !== "destroyed");
const ALLOWED = [
  ["standby", ["running"]],
  ["hibernate", ["running", "paused"]],
  ["resume", ["paused", "hibernated"]],
  ["exec", ["running"]],
] as const satisfies [string, SandboxState[]][];

let daemon: TestDaemon;
let rows: Database;

beforeAll(async () => {
  ({ daemon, rows } = await withFailedSandbox("worker-1"));
});
afterAll(async () => {
  rows?.close();
  await daemon.stop();
});

const setState = (state: SandboxState) => rows.run("UPDATE sandboxes SET state = ?", [state]);
const ask = (verb: string, headers?: Record<string, string>): Promise<Answer> =>
  daemon.api("POST", `${SANDBOX}/${verb}`, verb === "exec" ? { argv: ["true"] } : undefined, headers);

describe.each(ALLOWED)("%s", (verb, allowed) => {
  test.each(LIVE.filter((state) => !(allowed as readonly SandboxState[]).includes(state)))(
    "is refused in the state %s, with the allowed states",
    async (state) => {
      setState(state);
      const { status, body } = await ask(verb);
      expect({ status, code: body.code, details: body.details }).toEqual({
        status: 409,
        code: "invalid_state",
        details: { state, allowed_states: allowed },
      });
      expect(body.detail).toContain(state);
      if (state === "paused") expect(body.hint).toContain(`${SANDBOX.replace("/v1/rooms/r/", "")}/resume`);
      expect((await daemon.ok("GET", SANDBOX)).state).toBe(state);
    },
  );
});

test("the supervisor of the guest decides, not the row", async () => {
  for (const [verb, allowed] of ALLOWED.slice(0, 3)) {
    for (const state of allowed) {
      setState(state);
      expect(await ask(verb)).toMatchObject({
        status: 409,
        body: { code: "invalid_state", details: { state: "failed", allowed_states: allowed } },
      });
    }
  }
});

test("an unknown room or sandbox is reported before a wrong state", async () => {
  setState("paused");
  for (const verb of ["standby", "resume"]) {
    expect(await daemon.problem("POST", `/v1/rooms/none/sandboxes/worker-1/${verb}`)).toMatchObject({
      status: 404,
      code: "room_not_found",
    });
    expect(await daemon.problem("POST", `/v1/rooms/r/sandboxes/none/${verb}`)).toMatchObject({
      status: 404,
      code: "sandbox_not_found",
    });
    expect(await daemon.problem("GET", `${SANDBOX}/${verb}`)).toMatchObject({
      status: 405,
      code: "method_not_allowed",
    });
  }
});

test("sandboxes:read is not sufficient for standby", async () => {
  const { key } = await makeKey(daemon, { scopes: ["sandboxes:read", "exec"] });
  for (const verb of ["standby", "resume"]) {
    expect(await ask(verb, bearer(key))).toMatchObject({
      status: 403,
      body: { code: "insufficient_scope", details: { required: "sandboxes:write" } },
    });
  }
});

test("the same Idempotency-Key gets the same answer, whatever the sandbox's state is by then", async () => {
  setState("running");
  const headers = { "idempotency-key": "once" };
  const first = await ask("resume", headers);
  setState("paused");
  const again = await ask("resume", headers);
  expect(first.status).toBe(409);
  expect({ ...again.body, request_id: "" }).toEqual({ ...first.body, request_id: "" });
  expect(again.headers.get("idempotency-replayed")).toBe("true");
});

test("every refusal is audited with the event's name", async () => {
  const { items } = await daemon.ok("GET", "/v1/rooms/r/audit?event=sandbox.&order=asc&limit=1000");
  for (const verb of ["standby", "resume"]) {
    const own = items.filter(({ event }: { event: string }) => event === `sandbox.${verb}`);
    expect(own.length).toBeGreaterThanOrEqual(LIVE.length - 1);
    expect(own[0]).toMatchObject({ outcome: "error", error_code: "invalid_state", agent_id: "worker-1", room_id: "r" });
  }
});
