/** Periodic work over the rows of all organizations, and the longest turn of the event loop while it runs. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeLog } from "../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import { Networks } from "../../../daemon/domain/egress/networks.ts";
import { Tally } from "../../../daemon/domain/egress/tally.ts";
import type { OAuthDeps } from "../../../daemon/domain/oauth/deps.ts";
import { makeOAuth } from "../../../daemon/domain/oauth/index.ts";
import type { Consumer } from "../../../daemon/domain/orgs/index.ts";
import { momentNow } from "../../../daemon/domain/orgs/usage/clock.ts";
import { Meter } from "../../../daemon/domain/orgs/usage/meter.ts";
import type { SandboxId } from "../../../shared/ids.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

const DRIVES = 20_000;
const GRANTS = 5_000;
const SANDBOXES = 2_000;
const DESTINATIONS = 10;
const MAX_MS = 15;
const AT = "2026-01-01T00:00:00.000Z";
const LATE = "2036-01-01T00:00:00.000Z";

let connection: Connection;
let database: Database;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  connection.execute("PRAGMA foreign_keys = OFF");
  database = makeDatabase(connection);
});
afterEach(() => database.close());

const numbers = (count: number) =>
  `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
const count = (from: string) => database.queries.all<{ n: number }>(sql.raw(`SELECT count(*) AS n FROM ${from}`))[0]?.n;

async function measured(name: string, work: () => Promise<unknown>): Promise<void> {
  // Compiled before it is measured.
  await work();
  const longest = await longestTurn(work);
  console.log(`${name}: longest turn ${longest.toFixed(1)} ms`);
  expect(longest).toBeLessThan(boundOf(MAX_MS));
}

test("the use of 20,000 drives is counted in many commits", async () => {
  const { wall_ms, uptime_ms, boot_id } = momentNow();
  const since = `${wall_ms - 60_000}, ${Math.round(uptime_ms - 60_000)}, '${boot_id}'`;
  connection.execute(`${numbers(DRIVES)} INSERT INTO usage_open (subject, org_id, room_uid, agent_id, key_id, vcpu_count, memory_mib,
      drive_bytes, wall_ms, uptime_ms, boot_id)
    SELECT printf('rom_%05d', i), 'org_' || (i % 500), printf('rom_%05d', i), '', '', 0, 0, 1000000, ${since} FROM n`);
  const meter = new Meter(database);
  await measured("usage", () => meter.checkpoint());
  expect(count("usage")).toBeGreaterThanOrEqual(DRIVES);
  expect(count(`usage_open WHERE wall_ms < ${wall_ms}`)).toBe(0);
});

test("the traffic of 2,000 sandboxes and 20,000 of their destinations is written in many commits", async () => {
  const log = makeLog("error", (line) => {
    throw new Error(line);
  });
  const networks = new Networks(database.queries);
  const tally = new Tally({ database, log, meter: new Meter(database), isKept: () => true }, networks);
  const traffic = { sent_bytes: 5, received_bytes: 7, connections: 1 };
  const ids = Array.from({ length: SANDBOXES }, (_, n) => `sbx_${n}` as SandboxId);
  await measured("traffic", async () => {
    for (const [n, sandbox_id] of ids.entries()) {
      const place = { org_id: "org_1", room_uid: `rom_${n}`, agent_id: "a", key_id: "kid_1" } as Consumer;
      tally.count(sandbox_id, place, traffic);
      const network = networks.of({ sandbox_id, created_at: AT });
      for (let port = 1; port <= DESTINATIONS; port++)
        network.opened({ host: "a.example", ip: "192.0.2.1", port })(traffic);
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    await tally.write();
  });
  expect(count("egress_usage WHERE sent_bytes = 10")).toBe(SANDBOXES);
  expect(count("egress_destinations")).toBeGreaterThan(1_000);
});

test("5,000 grants of applications are examined in pieces, and those without a token end", async () => {
  connection.execute(`${numbers(GRANTS)} INSERT INTO api_keys (key_id, org_id, kind, name, key_sha256, key_prefix, scopes, created_at)
    SELECT printf('kid_%05d', i), 'org_1', 'oauth', 'key ' || i, printf('%064x', i), 'rmk-1234', '[]', '${AT}' FROM n`);
  connection.execute(`${numbers(GRANTS + 5)} INSERT INTO oauth_grants (key_id, client_id, user_id, audience, code_used_at)
    SELECT printf('kid_%05d', i), 'client', 'usr_1', 'mcp', '${AT}' FROM n`);
  connection.execute(`${numbers(GRANTS)} INSERT INTO oauth_tokens (token_sha256, key_id, kind, created_at, expires_at)
    SELECT 'token ' || i, printf('kid_%05d', i), 'refresh', '${AT}', '${LATE}' FROM n`);
  const warn = (message: string, fields: object) => {
    throw new Error(`${message}: ${JSON.stringify(fields)}`);
  };
  const deps = { database, changes: {}, orgs: {}, log: { warn }, url: () => "", documents: null };
  const oauth = makeOAuth(deps as unknown as OAuthDeps);
  await measured("grants", () => oauth.sweep());
  expect(count("oauth_grants")).toBe(GRANTS);
});
