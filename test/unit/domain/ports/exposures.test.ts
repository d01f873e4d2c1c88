/** Ends of exposed ports without a call: with the line of keys that made them, whatever ended it. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeLog } from "../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { listAudit } from "../../../../daemon/domain/audit/index.ts";
import type { Connections } from "../../../../daemon/domain/ports/connections.ts";
import type { PortDeps } from "../../../../daemon/domain/ports/deps.ts";
import { Exposures, MAKER_ENDED } from "../../../../daemon/domain/ports/exposures.ts";
import { allPorts, endMaker, findPort, insertPort } from "../../../../daemon/domain/ports/store.ts";
import type { PortRow } from "../../../../daemon/domain/ports/table.ts";
import { Traffic } from "../../../../daemon/domain/ports/traffic.ts";
import type { KeyId } from "../../../../shared/ids.ts";
import { until } from "../../../harness/guests.ts";

let connection: Connection;
let database: Database;
/** Callbacks for the end of a line of keys, by its first key. */
let lines: Map<string, Set<() => void>>;
let cut: string[];

beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  // Ports of sandboxes that need not be there.
  connection.execute("PRAGMA foreign_keys = OFF");
  database = makeDatabase(connection);
  [lines, cut] = [new Map(), []];
});
afterEach(() => database.close());

/** A daemon's. */
function newExposures(): Exposures {
  const deps = {
    database,
    log: makeLog("error", () => {}),
    sandboxes: { ended: () => new Promise(() => {}) },
    holdMaker: ({ key_id }: { key_id: string }, end: () => void) => {
      const ends = lines.get(key_id) ?? new Set();
      lines.set(key_id, ends.add(end));
      return () => ends.delete(end);
    },
    traffic: new Traffic(),
  } as unknown as PortDeps;
  return new Exposures(deps, { cut: (label: string) => void cut.push(label) } as unknown as Connections);
}

function expose(exposures: Exposures, port: number, ends_with: string | null): Promise<void> {
  const row = {
    ...{ label: `label-${port}`, sandbox_id: "sbx_1", port, visibility: "public", wish: null, org_id: "org_1" },
    ...{ room_uid: "rom_1", agent_id: "a", created_at: new Date().toISOString(), expires_at: null, ends_with },
  } as PortRow;
  return database.commit((queries) => insertPort(queries, row)).then(() => exposures.keep(row));
}

const left = () => allPorts(database.queries).map(({ port }) => port);
const end = (first: string) => {
  for (const each of [...(lines.get(first) ?? [])]) each();
};

test("ports of a line of keys end with it, are closed and recorded; those of others and without a key stay", async () => {
  const exposures = newExposures();
  await expose(exposures, 8001, "kid_1");
  await expose(exposures, 8002, "kid_1");
  await expose(exposures, 8003, "kid_2");
  await expose(exposures, 8004, null);
  end("kid_1");
  await until("both exposures are closed and disconnected", () => left().length === 2 && new Set(cut).size === 2);
  expect(left()).toEqual([8003, 8004]);
  expect([...new Set(cut)].sort()).toEqual(["label-8001", "label-8002"]);
  const records = listAudit(database.queries, { org_id: "org_1", order: "asc", limit: 10 });
  expect(records.map(({ event, details }) => [event, JSON.parse(details).reason])).toEqual([
    ["port.closed", MAKER_ENDED],
    ["port.closed", MAKER_ENDED],
  ]);
});

test("a port taken over by another key ends with that key alone", async () => {
  const exposures = newExposures();
  await expose(exposures, 8001, "kid_1");
  exposures.keep({ ...(allPorts(database.queries)[0] as PortRow), ends_with: "kid_2" as KeyId });
  expect([lines.get("kid_1")?.size, lines.get("kid_2")?.size]).toEqual([0, 1]);
  end("kid_1");
  end("kid_2");
  await until("the exposure is closed", () => left().length === 0);
});

test("a port number is free once its maker has ended, and open connections are closed anyway", async () => {
  const exposures = newExposures();
  await expose(exposures, 8001, "kid_1");
  await database.commit((queries) => endMaker(queries, "kid_1" as KeyId, new Date().toISOString()));
  expect(findPort(database.queries, "sbx_1", 8001)).toBeUndefined();
  await database.commit((queries) => exposures.closeEnded(queries, "sbx_1"));
  expect(listAudit(database.queries, { org_id: "org_1", order: "asc", limit: 10 })).toHaveLength(1);
  end("kid_1");
  await until("the connection is closed", () => cut.length > 0);
  expect(listAudit(database.queries, { org_id: "org_1", order: "asc", limit: 10 })).toHaveLength(1);
});

test("a port exposed by a previous daemon ends with its key too", async () => {
  await expose(newExposures(), 8001, "kid_1");
  lines.clear();
  newExposures().recover();
  end("kid_1");
  await until("the exposure is closed", () => left().length === 0);
});

test("an unexposed port and a stopped daemon release the key", async () => {
  const exposures = newExposures();
  await expose(exposures, 8001, "kid_1");
  await expose(exposures, 8002, "kid_1");
  const [row] = allPorts(database.queries);
  exposures.forget(row as PortRow, "unexposed");
  expect(lines.get("kid_1")?.size).toBe(1);
  exposures.stop();
  expect(lines.get("kid_1")?.size).toBe(0);
});
