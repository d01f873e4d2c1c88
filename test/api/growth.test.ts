/** What callers can make the database grow by has a bound, and what goes is given back to the disk. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../harness/daemon.ts";
import { until } from "./calls.ts";

const MIB = 1024 ** 2;
let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_RECONCILE_INTERVAL: "1s", ROOMD_POOL_SIZE: "0" } });
});
afterAll(() => daemon.stop());

/** What the database's file takes, and what its log does. */
const sizeMib = (suffix = "") => {
  const file = join(daemon.dataDir, `roomd.db${suffix}`);
  return existsSync(file) ? statSync(file).size / MIB : 0;
};

/** Sends so many messages, some at once; the answers' statuses, and how often each came. */
async function send(count: number, messageOf: (n: number) => object): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  let n = 0;
  const sender = async () => {
    while (n < count) {
      const { status } = await daemon.api("POST", "/v1/rooms/r/messages", messageOf(n++));
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 16 }, sender));
  return statuses;
}

test("the file is as small again as before once the room with its messages is destroyed", async () => {
  await daemon.room("r");
  await daemon.ok("POST", "/v1/rooms/r/messages", { source: "a", topic: "t", payload: 0 });
  const before = sizeMib();
  const payload = "x".repeat(60_000);
  expect(await send(480, (n) => ({ source: "a", topic: `nobody.${n}`, payload }))).toEqual({ 202: 480 });
  expect(sizeMib() + sizeMib("-wal")).toBeGreaterThan(before + 25);
  await daemon.ok("DELETE", "/v1/rooms/r");
  await until(sizeMib, (mib) => mib < before + 4, 15_000);
  expect(sizeMib("-wal")).toBeLessThan(33);
});
