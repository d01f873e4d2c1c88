/** The end of a key that has made as many things as it may, and the longest turn of the event loop during it. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { MAKER_RULES } from "../../../daemon/compose/made.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import { makeOrgChanges } from "../../../daemon/domain/orgs/changes.ts";
import { newKey } from "../../../daemon/domain/orgs/keys.ts";
import type { OrgChanges } from "../../../daemon/domain/orgs/org-changes.ts";
import { insertOrg } from "../../../daemon/domain/orgs/store.ts";
import type { KeyRow } from "../../../daemon/domain/orgs/table.ts";
import { findLabel, insertPort } from "../../../daemon/domain/ports/store.ts";
import type { PortRow } from "../../../daemon/domain/ports/table.ts";
import { newId, type OrgId } from "../../../shared/ids.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

const MAX_MS = 20;
/** Of 900 sandboxes with 16 each. */
const PORTS = 14_400;
const ORG = newId("org");
const AT = "2026-01-01T00:00:00.000Z";

let connection: Connection;
let database: Database;
let changes: OrgChanges;

beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  // Ports of sandboxes that need not be there.
  connection.execute("PRAGMA foreign_keys = OFF");
  database = makeDatabase(connection);
  changes = makeOrgChanges(database, MAKER_RULES);
  insertOrg(connection.queries, { org_id: ORG, name: "one", plan: "free", created_at: AT });
});
afterEach(() => database.close());

async function keyWith(ports: number, name: string, org_id: OrgId = ORG): Promise<KeyRow> {
  const { row } = newKey({ org_id, kind: "api", name, maker: { type: "operator", id: "host" } });
  await changes.addKey(row, () => {});
  await database.commit((queries) => {
    for (let n = 0; n < ports; n++) {
      insertPort(queries, {
        ...{ label: `${name}-${n}`, sandbox_id: `sbx_${name}_${n >> 4}`, port: 8000 + (n % 16), visibility: "public" },
        ...{ wish: null, org_id, room_uid: "rom_1", agent_id: "a", created_at: AT, expires_at: null },
        ...{ ends_with: row.key_id },
      } as PortRow);
    }
  });
  return row;
}

test("ends 14,400 exposed ports", async () => {
  const [first, second] = [await keyWith(100, "first"), await keyWith(PORTS, "second")];
  // Compiled before it is measured.
  await changes.revokeKey(first.key_id, (_, { made }) => made);
  let ended = 0;
  const longest = await longestTurn(async () => {
    const made = await changes.revokeKey(second.key_id, (_, { made }) => made);
    ended = made.ports.count;
  });
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(ended).toBe(PORTS);
  expect(findLabel(connection.queries, `second-${PORTS - 1}`)).toBeUndefined();
  expect(longest).toBeLessThan(boundOf(MAX_MS));
}, 60_000);
