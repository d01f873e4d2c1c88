/** A daemon whose event loop is blocked: the log names the operation and its owner while it is. */
import { expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../daemon/core/fault-points.ts";
import { TestDaemon } from "../harness/daemon.ts";

const BLOCKED_MS = 500;

interface Line {
  message: string;
  label: string;
  owner: string;
  ms: number;
  state: string;
  syscall?: string;
}

const linesOf = (daemon: TestDaemon): Line[] =>
  daemon.log
    .split("\n")
    .filter((line) => line.includes("the event loop is blocked"))
    .map((line) => JSON.parse(line));

test.each([
  ["compute", { state: "R" }],
  ["sleep", { state: "S", syscall: "clock_nanosleep" }],
] as const)("by a call that does %s", async (does, place) => {
  await using daemon = await TestDaemon.start({ env: { [FAULT_VARIABLE]: `call.worked=${does}` } });
  const answer = await daemon.api("POST", "/v1/rooms", { room_id: "r" }, { "idempotency-key": "once" });
  expect(answer.status).toBe(201);
  // The test host may have suspended the daemon besides.
  const find = () => linesOf(daemon).find(({ label }) => label === "room_create");
  await expect.poll(find).toMatchObject({ owner: `org:${daemon.orgId}`, ...place });
  const line = find();
  console.log(`${does}: logged ${line?.ms} ms after it began, of ${BLOCKED_MS} ms`);
  expect(line?.ms).toBeLessThan(BLOCKED_MS);
  const { host } = await daemon.ok("GET", "/v1/top");
  expect(host.loop.longest).toMatchObject({ label: "room_create", owner: `org:${daemon.orgId}` });
  expect(host.loop.longest.ms).toBeGreaterThanOrEqual(BLOCKED_MS);
});
