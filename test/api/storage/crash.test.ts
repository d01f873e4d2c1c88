/** Uncaught exceptions: the service logs them and exits, instead of continuing in an unknown state. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

test("an uncaught exception ends the service, its whole cause chain is logged, and a restart finds all data", async () => {
  await daemon.room("kept");
  await daemon.end("SIGTERM");
  daemon.env[FAULT_VARIABLE] = "room.made=throw";
  await daemon.serve();
  const cutOff = daemon.room("cut-off").catch(() => null);
  await until("the service has exited", () => !daemon.runs);
  await cutOff;
  expect(daemon.exitCode).toBe(125);
  const [{ error, stack }] = daemon.logged({ level: "error" }) as [Json];
  // The error of the fault point, and its cause.
  expect(error).toMatch(/room\.made ← \S/);
  expect(stack).toMatch(/room\.made\n +at /);
  daemon.env[FAULT_VARIABLE] = "";
  await daemon.serve();
  expect((await daemon.api("GET", "/v1/rooms/kept")).status).toBe(200);
});
