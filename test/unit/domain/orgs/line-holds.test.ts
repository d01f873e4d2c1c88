/** When what a line of keys has made ends: with its last good key, or with its maker, also where it was given for good. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { makeOrgChanges } from "../../../../daemon/domain/orgs/changes.ts";
import { makeOrgs, type Orgs } from "../../../../daemon/domain/orgs/index.ts";
import { type NewKey, newKey } from "../../../../daemon/domain/orgs/keys.ts";
import type { OrgChanges } from "../../../../daemon/domain/orgs/org-changes.ts";
import { newId } from "../../../../shared/ids.ts";

const org_id = newId("org");
const maker = { type: "user", id: newId("usr") };
const never = () => {
  throw new Error("nobody asks");
};

let connection: Connection;
let changes: OrgChanges;
let orgs: Orgs;
let grips: (() => void)[];

beforeEach(async () => {
  grips = [];
  connection = openConnection(":memory:");
  migrate(connection);
  const database = makeDatabase(connection);
  changes = makeOrgChanges(database);
  const log = { debug: never, info: never, warn: never, error: never } as never;
  const asked = { reads: {} as never, meter: {} as never, standing: never, credits: never, roomName: never };
  orgs = makeOrgs({ database, changes, log, ...asked });
  const org = { org_id, name: "org", plan: "free", created_at: "2026-01-01" } as const;
  await changes.addOrg({ org, keys: [] }, () => {});
});
afterEach(() => {
  for (const letGo of grips) letGo();
  orgs.holds.look();
  connection.close();
});

async function held(more: Partial<NewKey> = {}) {
  const { row } = newKey({ org_id, kind: "api", name: "k", maker, ...more });
  await changes.addKey(row, () => {});
  const line = { key_id: row.key_id, isCut: false };
  const letGo = orgs.holdLine(row.key_id, () => {
    line.isCut = true;
  });
  grips.push(letGo);
  return line;
}
const isCut = (line: { isCut: boolean }) => {
  orgs.holds.look();
  return line.isCut;
};
const removeMaker = () => changes.revokeKeysOf(org_id, maker.id as never, { require: () => {}, gives: [] }, () => {});

test("what an administrator's key without an end has made stays when that is revoked", async () => {
  const line = await held();
  await changes.revokeKey(line.key_id, () => {});
  expect(isCut(line)).toBe(false);
});

test.each([
  ["of fewer scopes", { scopes: ["ports:write"] }],
  ["with an end", { expires_at: "2099-01-01T00:00:00.000Z" }],
] as const)("what a key %s has made ends with it", async (_, more) => {
  const line = await held(more);
  expect(isCut(line)).toBe(false);
  await changes.revokeKey(line.key_id, () => {});
  expect(isCut(line)).toBe(true);
});

test("what it has made ends when its maker is removed, though it was revoked before", async () => {
  const [first, second] = [await held(), await held()];
  await changes.revokeKey(first.key_id, () => {});
  await removeMaker();
  expect([isCut(first), isCut(second)]).toEqual([true, true]);
});
