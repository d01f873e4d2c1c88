/**
 * Benchmark of the pipeline that each request passes: one room read repeatedly over 64 connections, against a server that only responds
 * with the same bytes, the share of authentication and authorization, and the same read with a person's session.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { MAKER_RULES } from "../../daemon/compose/made.ts";
import { openConnection } from "../../daemon/db/client.ts";
import { migrate } from "../../daemon/db/migrate.ts";
import { makeDatabase } from "../../daemon/db/transact.ts";
import { makeOrgChanges } from "../../daemon/domain/orgs/changes.ts";
import { makeAuthenticate, newKey } from "../../daemon/domain/orgs/keys.ts";
import { requireScope } from "../../daemon/edge/pipeline/authorization.ts";
import { RateLimit } from "../../daemon/edge/pipeline/rate-limit.ts";
import { newId } from "../../shared/ids.ts";
import { Visitor } from "../harness/browser/visitor.ts";
import { startBare } from "./bare.ts";
import { type Load, loadHttp } from "./load/http-load.ts";
import type { Bench, Report } from "./report.ts";

const CONNECTIONS = 64;
const ROUNDS = 6;
const USUAL_COUNT = 20_000;
const RECOGNISED = 20_000;
const MOMENT = "2026-01-01T00:00:00.000Z";

export async function benchRequests({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  await benchRecognition(report);
  const daemon = await start({ guests: false });
  const room = await daemon.room("bench");
  const person = await Visitor.owner(daemon);
  await using bare = await startBare(JSON.stringify(room));
  const ours: Load[] = [];
  const persons: Load[] = [];
  const theirs: Load[] = [];
  // The first round is not counted: code is compiled then.
  for (let round = -1; round < ROUNDS; round++) {
    const load = (headers: Record<string, string>) =>
      loadHttp(`${daemon.url}/v1/rooms/bench`, headers, CONNECTIONS, count);
    const own = await load({ authorization: `Bearer ${daemon.apiKey}` });
    const session = await load(person.headers);
    const other = await loadHttp(bare.url, {}, CONNECTIONS, count);
    if (round < 0) continue;
    ours.push(own);
    persons.push(session);
    theirs.push(other);
  }
  const perSecond = (loads: readonly Load[]) =>
    loads.map(({ samplesMs, wallMs }) => (samplesMs.length / wallMs) * 1000);
  const each = (loads: readonly Load[]) => loads.flatMap(({ samplesMs }) => samplesMs);
  report.add("room_get_per_second", "1/s", perSecond(ours), "bare_per_second", { of: "p50", least: 15_000 });
  report.add("room_get_64_connections", "ms", each(ours), "bare_64_connections", { of: "p99", most: 10 });
  report.add("session_per_second", "1/s", perSecond(persons), "room_get_per_second");
  report.add("session_64_connections", "ms", each(persons), "room_get_64_connections");
  // Each compared with its own round: other load of the host changes between rounds.
  const ratios = perSecond(persons).map((rate, round) => rate / (perSecond(ours)[round] ?? rate));
  report.add("session_beside_key", "×", ratios, undefined, { of: "p50", least: 0.9 });
  report.add("bare_per_second", "1/s", perSecond(theirs));
  report.add("bare_64_connections", "ms", each(theirs));
}

/** Lookup of a key by its text, its scope and its rate, each in a separate turn of the event loop. */
async function benchRecognition(report: Report): Promise<void> {
  const home = mkdtempSync("/tmp/roomd-bench-");
  const connection = openConnection(join(home, "roomd.db"));
  migrate(connection);
  const database = makeDatabase(connection);
  try {
    const org_id = newId("org");
    const maker = { type: "operator", id: "bench" };
    const { key, row } = newKey({ org_id, kind: "api", name: "bench", maker });
    const org = { org_id, name: "bench", plan: "free", created_at: MOMENT } as const;
    await makeOrgChanges(database, MAKER_RULES).addOrg({ org, keys: [row] }, () => {});
    const authenticate = makeAuthenticate(connection.queries, () => {});
    const rates = new RateLimit({ perSecond: 1_000_000, burst: 1_000_000 });
    const samples: number[] = [];
    for (let n = 0; n < RECOGNISED; n++) {
      const startedAt = performance.now();
      const caller = authenticate(`Bearer ${key}`, "rooms:read");
      rates.require(rates.take(caller));
      requireScope(caller, { access: "rooms:read" });
      samples.push(performance.now() - startedAt);
      await new Promise((turned) => setImmediate(turned));
    }
    report.add("key_and_scope", "ms", samples, undefined, { of: "p99", most: 0.1 });
  } finally {
    await database.close();
    rmSync(home, { recursive: true });
  }
}
