/** Limits on the database growth that callers can cause, and that freed space is returned to the disk. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { OtherOrg } from "../../harness/other-org.ts";
import { until } from "../calls.ts";

const MIB = 1024 ** 2;
const LONG = process.env.ROOMD_TEST_LONG === "1";
const MESSAGES = LONG ? 200_000 : 6000;
let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_RECONCILE_INTERVAL: "1s", ROOMD_POOL_SIZE: "0" } });
});
afterAll(() => daemon.stop());

/** Size of the database file, or with a suffix of its log. */
const sizeMib = (suffix = "", of = daemon) => {
  const file = join(of.dataDir, `roomd.db${suffix}`);
  return existsSync(file) ? statSync(file).size / MIB : 0;
};

/** Sends `count` messages, several concurrently. Returns the number of responses per status. */
async function send(
  count: number,
  messageOf: (n: number) => object,
  { to = daemon, room = "r", done = (): boolean => false } = {},
): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  let n = 0;
  const sender = async () => {
    while (n < count && !done()) {
      const { status } = await to.api("POST", `/v1/rooms/${room}/messages`, messageOf(n++));
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 16 }, sender));
  return statuses;
}

test("the database file shrinks to its former size when a room with its messages is destroyed", async () => {
  await daemon.room("r");
  await daemon.ok("POST", "/v1/rooms/r/messages", { source: "a", topic: "t", payload: 0 });
  const before = sizeMib();
  const payload = "x".repeat(60_000);
  expect(await send(480, (n) => ({ source: "a", topic: `nobody.${n}`, payload }))).toEqual({ 202: 480 });
  expect(sizeMib() + sizeMib("-wal")).toBeGreaterThan(before + 25);
  await daemon.ok("DELETE", "/v1/rooms/r");
  await until(
    () => sizeMib(),
    (mib) => mib < before + 4,
    15_000,
  );
  expect(sizeMib("-wal")).toBeLessThan(33);
});

test(
  `${MESSAGES} unaddressed messages and as many to their own sender: all are accepted and audited, the file is bounded`,
  async () => {
    if (!LONG) console.log("growth: short run; ROOMD_TEST_LONG=1 has 200,000 messages");
    const env = {
      ...{ ROOMD_FABRIC_KEPT_MIB: "2", ROOMD_AUDIT_RECORDS_PER_DAY: "500", ROOMD_AUDIT_COUNTED_INTERVAL: "1s" },
      ...{ ROOMD_RECONCILE_INTERVAL: "1s", ROOMD_POOL_SIZE: "0" },
    };
    await using small = await TestDaemon.start({ env });
    await small.room("r");
    const payload = "x".repeat(1000);
    const other = await OtherOrg.make(small);
    await small.room("usual");
    const toNobody = async () => {
      const sent = await send(MESSAGES, (n) => ({ source: "a", topic: `nobody.${n}`, payload }), { to: small });
      expect(sent).toEqual({ 202: MESSAGES });
    };
    let usualSent = 0;
    const usual = async (done: () => boolean) => {
      const message = () => ({ source: "a", topic: "t", payload });
      const sent = await send(Number.POSITIVE_INFINITY, message, { to: small, room: "usual", done });
      usualSent += sent[202] ?? 0;
    };
    await other.feels(`${MESSAGES} messages to nobody`, toNobody, usual);
    const oneself = { source: "a", destination: "a", payload };
    for (let left = MESSAGES; left > 0; left -= 500) {
      expect(await send(500, () => oneself, { to: small })).toEqual({ 202: 500 });
      const { seq } = (await small.ok("GET", "/v1/rooms/r/messages?agent_id=a&limit=1000")).items.at(-1);
      await small.ok("GET", `/v1/rooms/r/messages?agent_id=a&after=${seq}`);
    }
    await until(
      () => sizeMib("", small),
      (mib) => mib < 12,
      15_000,
    );
    const auditedCount = async () => {
      let [sum, cursor]: [number, string | null] = [0, ""];
      while (cursor !== null) {
        const after = cursor && `&cursor=${encodeURIComponent(cursor)}`;
        const page = await small.ok("GET", `/v1/orgs/self/audit?event=message.sent&limit=1000${after}`);
        for (const { details } of page.items) sum += details.count ?? 1;
        cursor = page.next_cursor;
      }
      return sum;
    };
    await until(auditedCount, (count) => count === 2 * MESSAGES + usualSent, 15_000);
    expect(await small.ok("GET", "/v1/orgs/self/audit/verify")).toMatchObject({ ok: true });
  },
  LONG ? 1_800_000 : 60_000,
);
