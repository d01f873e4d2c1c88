/**
 * A service of great age holds no turn of its event loop for long: while days of the audit are closed, at calls of clients, backups and restarts.
 * ROOMD_TEST_LONG=1 has millions of records.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { type Age, ageService, areDaysClosed } from "../../harness/durability/aged-service.ts";
import { ageAudit } from "../../harness/durability/older-audit.ts";
import { LONG, shortOrLong } from "../../harness/guests.ts";

const AGE: Age = {
  records: shortOrLong("records of an aged service", 50_000, 10_000_000),
  keys: LONG ? 500_000 : 20_000,
  rooms: LONG ? 10_000 : 300,
  calls: LONG ? 2_000_000 : 50_000,
};
const AUDIT = "/v1/orgs/self/audit";
const DAYS_MS = 3 * 86_400_000;
const MAX_PAGES = 5;

const QUERIES = [
  ...["/v1/rooms?limit=200", "/v1/overview/rooms?limit=100", "/v1/orgs/self/keys?limit=200", "/v1/orgs/self/usage"],
  ...[`${AUDIT}?limit=200`, `${AUDIT}?order=asc&limit=200`, `${AUDIT}?event=message.&limit=200`],
  ...[`${AUDIT}?outcome=denied&limit=200`, `${AUDIT}?event=room.&order=asc`, `${AUDIT}?room_id=room-1&limit=100`],
  ...[`${AUDIT}/summary`, "/v1/rooms/room-2/audit?limit=100", "/v1/rooms/room-3/audit/summary"],
] as const;

/** Each query, with some of its further pages. */
async function ask(daemon: TestDaemon): Promise<void> {
  for (const path of QUERIES) {
    let cursor: string | null = null;
    for (let page = 0; page < MAX_PAGES; page++) {
      const more: string = cursor ? `${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}` : "";
      const answer = await daemon.ok("GET", path + more);
      cursor = answer.next_cursor ?? null;
      if (cursor === null) break;
    }
  }
  expect((await fetch(`${daemon.url}/metrics`)).status).toBeLessThan(500);
}

test(
  "holds no turn of the event loop for long, whatever clients ask for",
  async () => {
    await using daemon = await TestDaemon.start();
    const home = mkdtempSync("/tmp/roomd-aged-");
    try {
      await daemon.room("model");
      await daemon.end("SIGTERM");
      ageAudit(daemon, DAYS_MS + 60_000);
      ageService(daemon, AGE);
      await daemon.serve();
      let isClosed = false;
      const closing = expect
        .poll(() => areDaysClosed(daemon), { timeout: LONG ? 3_600_000 : 120_000, interval: 1_000 })
        .toBe(true)
        .then(() => {
          isClosed = true;
        });
      do await ask(daemon);
      while (!isClosed);
      await closing;
      const [verdict, backup] = await Promise.all([
        daemon.ok("GET", `${AUDIT}/verify`),
        daemon.cli(["backup", join(home, "backup.tar")]),
        ask(daemon),
      ]);
      expect(verdict).toMatchObject({ ok: true });
      expect(verdict.to_seq).toBeGreaterThanOrEqual(AGE.records);
      expect(backup).toMatchObject({ status: 0 });
      await daemon.restart("SIGKILL");
      await ask(daemon);
      await daemon.restart("SIGTERM");
      expect(await daemon.ok("GET", `${AUDIT}/verify`)).toMatchObject({ ok: true });
    } finally {
      rmSync(home, { recursive: true });
    }
  },
  LONG ? 4 * 3_600_000 : 300_000,
);
