/** The OrgChanges of a standalone host: its refusals, and atomicity of a change and the writes that belong to it. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MAKER_RULES } from "../../../../daemon/compose/made.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { makeOrgChanges } from "../../../../daemon/domain/orgs/changes.ts";
import { newKey, rotationOf } from "../../../../daemon/domain/orgs/keys.ts";
import type { OrgChanges } from "../../../../daemon/domain/orgs/org-changes.ts";
import { newSshKey } from "../../../../daemon/domain/orgs/ssh-keys.ts";
import type { KeyRow, NewOrgRow, SshKeyRow } from "../../../../daemon/domain/orgs/table.ts";
import { newId, type OrgId } from "../../../../shared/ids.ts";

const MAKER = { type: "operator", id: "host" };
const PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl a";
const NONE = "org_none" as OrgId;

let connection: Connection;
let database: Database;
let changes: OrgChanges;
let org: NewOrgRow;
let key: KeyRow;
let sshKey: SshKeyRow;

const orgOf = (name: string): NewOrgRow => ({ org_id: newId("org"), name, plan: "free", created_at: "2026-01-01" });
const keyOf = (org_id: OrgId | null) => newKey({ org_id, kind: "api", name: "k", maker: MAKER }).row;
const sshKeyOf = (orgId: OrgId, name = "a") => ({ ...newSshKey(orgId, { public_key: PUBLIC_KEY }, MAKER), name });
const rotate = (old: KeyRow) => rotationOf(old, 60, MAKER);

beforeEach(async () => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  changes = makeOrgChanges(database, MAKER_RULES);
  org = orgOf("first");
  key = keyOf(org.org_id);
  sshKey = sshKeyOf(org.org_id);
  await changes.addOrg({ org, keys: [key], isFirst: true }, () => {});
  await changes.addSshKey(sshKey, () => {});
});
afterEach(() => database.close());

const rows = () => ["orgs", "api_keys", "ssh_keys"].map((table) => database.queries.all(`SELECT * FROM ${table}`));

const toStarter = () => ({ plan: "starter", plan_by: "operator" }) as const;

/** Every kind of change, applied to the rows that exist before each test. */
const CHANGES: Record<string, (within: () => unknown) => Promise<unknown>> = {
  addOrg: (within) => {
    const made = orgOf("second");
    return changes.addOrg({ org: made, keys: [keyOf(made.org_id), keyOf(null)] }, within);
  },
  setPlan: (within) => changes.setPlan(org.org_id, toStarter, within),
  addKey: (within) => changes.addKey(keyOf(org.org_id), within),
  rotateKey: (within) => changes.rotateKey(key.key_id, rotate, within),
  revokeKey: (within) => changes.revokeKey(key.key_id, within),
  addSshKey: (within) => changes.addSshKey({ ...sshKeyOf(org.org_id), fingerprint: "SHA256:other" }, within),
  removeSshKey: (within) => changes.removeSshKey(org.org_id, sshKey.ssh_key_id, within),
};

describe.each(Object.entries(CHANGES))("%s", (_, change) => {
  test("is stored with its nested writes, and returns their result", async () => {
    const before = rows();
    expect(await change(() => "answer")).toBe("answer");
    expect(rows()).not.toEqual(before);
  });

  test("is not stored if its nested write fails", async () => {
    const before = rows();
    const broken = change(() => {
      throw new Error("not recorded");
    });
    await expect(broken).rejects.toThrow("not recorded");
    expect(rows()).toEqual(before);
  });
});

const REFUSED: [string, string, () => Promise<unknown>][] = [
  ["a name that is taken", "already_exists", () => changes.addOrg({ org: orgOf("first"), keys: [] }, () => {})],
  ["a second first", "already_exists", () => changes.addOrg({ org: orgOf("b"), keys: [], isFirst: true }, () => {})],
  ["a plan of none", "org_not_found", () => changes.setPlan(NONE, toStarter, () => {})],
  ["a key of none", "org_not_found", () => changes.addKey(keyOf(NONE), () => {})],
  ["an SSH key of none", "org_not_found", () => changes.addSshKey(sshKeyOf(NONE), () => {})],
  ["the same SSH key", "already_exists", () => changes.addSshKey(sshKeyOf(org.org_id, "b"), () => {})],
  ["removing another's SSH key", "key_not_found", () => changes.removeSshKey(NONE, sshKey.ssh_key_id, () => {})],
  ["rotating a missing key", "key_not_found", () => changes.rotateKey(newId("kid"), rotate, () => {})],
  ["revoking a missing key", "key_not_found", () => changes.revokeKey(newId("kid"), () => {})],
];

test.each(REFUSED)("rejects %s", async (_, code, change) => {
  const before = rows();
  await expect(change()).rejects.toMatchObject({ code });
  expect(rows()).toEqual(before);
});

test("a key ended by one change cannot be changed by another", async () => {
  await changes.revokeKey(key.key_id, () => {});
  await expect(changes.revokeKey(key.key_id, () => {})).rejects.toMatchObject({ code: "key_not_found" });
  await expect(changes.rotateKey(key.key_id, rotate, () => {})).rejects.toMatchObject({ code: "key_not_found" });
});

test("one of two concurrent rotations succeeds", async () => {
  const both = await Promise.allSettled([1, 2].map(() => changes.rotateKey(key.key_id, rotate, () => {})));
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(rows()[1]).toHaveLength(2);
});

test("a revoked key creates nothing, in whichever call was in progress", async () => {
  const ended = keyOf(org.org_id);
  await changes.addKey(ended, () => {});
  const by = { type: "key", id: ended.key_id };
  const made = newKey({ org_id: org.org_id, kind: "api", name: "made", maker: by }).row;
  const added = newSshKey(org.org_id, { public_key: PUBLIC_KEY }, by);
  const [end, ...under] = await Promise.allSettled([
    changes.revokeKey(ended.key_id, () => {}),
    changes.addKey(made, () => {}),
    changes.addSshKey({ ...added, fingerprint: "SHA256:other" }, () => {}),
    changes.rotateKey(
      key.key_id,
      (old) => rotationOf(old, 60, by),
      () => {},
    ),
  ]);
  expect(end.status).toBe("fulfilled");
  for (const each of under) expect(each).toMatchObject({ status: "rejected", reason: { code: "invalid_api_key" } });
  expect(rows().map((each) => each.length)).toEqual([1, 2, 1]);
});
