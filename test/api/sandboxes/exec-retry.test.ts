/** A command with an Idempotency-Key has one name, whatever ends between its beginning and the answer; the guest runs a name once. */
import type { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { withFailedSandbox } from "./failed-sandbox.ts";

let daemon: TestDaemon;
let rows: Database;

beforeAll(async () => {
  ({ daemon, rows } = await withFailedSandbox("it"));
});
afterAll(async () => {
  rows?.close();
  await daemon.stop();
});

/** Calls as if the sandbox ran with a guest that does not respond. */
const call = (verb: string, key: string, body: Json = { argv: ["true"] }) => {
  rows.run("UPDATE sandboxes SET state = 'running'");
  return daemon.api("POST", `/v1/rooms/r/sandboxes/it/${verb}`, body, { "idempotency-key": key });
};
/** Execution IDs of the attempted commands, oldest first. */
const names = async () => {
  const { items } = await daemon.ok("GET", "/v1/rooms/r/audit?event=exec.&order=asc&limit=1000");
  return items.map(({ details }: Json) => details.exec_id).filter((id: unknown) => id !== undefined);
};

test.each(["exec", "executions"])("%s repeated with the same key after a 502 uses the same exec_id", async (verb) => {
  const before = (await names()).length;
  for (const key of ["one", "one", "two"]) expect(await call(verb, key)).toMatchObject({ status: 502 });
  const [first, second, third] = (await names()).slice(before);
  expect(first).toMatch(/^exe_[0-9A-Z]{26}$/);
  expect(second).toBe(first);
  expect(third).not.toBe(first);
  await call(verb, "one", { argv: ["false"] });
  expect((await names()).at(-1)).not.toBe(first);
  await call(verb, "named", { argv: ["true"], exec_id: "own" });
  expect((await names()).at(-1)).toBe("own");
});

test("a call repeated after a daemon restart uses the same exec_id", async () => {
  await call("exec", "before");
  const [first] = (await names()).slice(-1);
  // The fault is immediately before the request to the guest.
  daemon.env[FAULT_VARIABLE] = "audit.recorded=kill";
  await daemon.restart();
  await expect(call("exec", "before")).rejects.toThrow();
  await until("the daemon has exited", () => !daemon.runs);
  delete daemon.env[FAULT_VARIABLE];
  await daemon.serve();
  await call("exec", "before");
  expect((await names()).at(-1)).toBe(first);
});
