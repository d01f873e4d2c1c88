/** Ends of access × kinds of made things: each end ends exactly the things of its maker, in its own transaction. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MADE, MAKER_RULES } from "../../../daemon/compose/made.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import { listAudit } from "../../../daemon/domain/audit/index.ts";
import { getGrant, insertGrant } from "../../../daemon/domain/oauth/store.ts";
import { makeOrgChanges } from "../../../daemon/domain/orgs/changes.ts";
import { newKey, rotationOf } from "../../../daemon/domain/orgs/keys.ts";
import { makeOperator } from "../../../daemon/domain/orgs/operator.ts";
import type { OrgChanges } from "../../../daemon/domain/orgs/org-changes.ts";
import { newSshKey } from "../../../daemon/domain/orgs/ssh-keys.ts";
import { isSshKey } from "../../../daemon/domain/orgs/ssh-keys-store.ts";
import { getKey, insertOrg } from "../../../daemon/domain/orgs/store.ts";
import type { KeyRow } from "../../../daemon/domain/orgs/table.ts";
import { findLabel, insertPort } from "../../../daemon/domain/ports/store.ts";
import type { PortRow } from "../../../daemon/domain/ports/table.ts";
import { changeRole } from "../../../daemon/domain/users/members/role-change.ts";
import { makeUserOperator } from "../../../daemon/domain/users/operator.ts";
import { forget } from "../../../daemon/domain/users/personal.ts";
import { deleteMembership, insertMembership, insertUser } from "../../../daemon/domain/users/store.ts";
import type { UserRow } from "../../../daemon/domain/users/table.ts";
import { getWebhook, insertWebhook } from "../../../daemon/domain/webhooks/store.ts";
import type { WebhookRow } from "../../../daemon/domain/webhooks/table.ts";
import { MADE_NAMES } from "../../../shared/api/made.ts";
import type { Role } from "../../../shared/api/people/members.ts";
import { type KeyId, newId, type OrgId, type UserId, type WebhookId } from "../../../shared/ids.ts";

const [ORG, ELSEWHERE] = [newId("org"), newId("org")];
const AT = "2026-01-01T00:00:00.000Z";
const PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl a";

let connection: Connection;
let database: Database;
let changes: OrgChanges;
/** By name, whether a thing is in force. */
let things: Map<string, () => boolean>;
let ann: UserRow;
let bob: UserRow;
/** Bob's key, and his application. */
let key: KeyRow;
let application: KeyRow;

const within = () => connection.queries;
const maker = (type: "user" | "key", id: string) => ({ type, id });

function newPerson(name: string, roles: Record<OrgId, Role>): UserRow {
  const user_id = newId("usr");
  const email = `${name}@example.org`;
  const row = { user_id, email, name, password_hash: null, created_at: AT, disabled_at: null, verified_at: AT };
  insertUser(within(), row);
  for (const [org_id, role] of Object.entries(roles)) {
    insertMembership(within(), { org_id: org_id as OrgId, user_id, role, created_at: AT });
  }
  return row;
}

async function addKey(user_id: UserId, org_id: OrgId = ORG, more: Partial<KeyRow> = {}): Promise<KeyRow> {
  const { row } = newKey({ org_id, kind: "api", name: "k", maker: maker("user", user_id) });
  await changes.addKey({ ...row, ...more }, () => {});
  return row;
}

async function rotated(old: KeyRow, user_id: UserId, graceSeconds = 0): Promise<KeyRow> {
  const rotate = (found: KeyRow) => rotationOf(found, graceSeconds, maker("user", user_id));
  return await changes.rotateKey(old.key_id, rotate, (_, { row }) => row);
}

/** One resource of each kind by a maker; the name identifies its owner. */
const MAKES = {
  webhooks: (name: string, org_id: OrgId, by: { type: string; id: string }) => {
    const webhook_id = newId("whk") as WebhookId;
    const shown = { types: ["*"], room_ids: null, disabled_reason: null, disabled_at: null, secret_number: 1 };
    insertWebhook(within(), {
      ...{ webhook_id, org_id, sealed_url: "", ...shown, former_until: null, created_at: AT, updated_at: AT },
      ...{ created_by_type: by.type, created_by_id: by.id, renewed_at: AT, begins_at: AT },
    } as WebhookRow);
    things.set(`webhook of ${name}`, () => getWebhook(within(), org_id, webhook_id)?.disabled_reason === null);
  },
  ports: (name: string, org_id: OrgId, { id }: { id: string }) => {
    const label = `label-${things.size}`;
    insertPort(within(), {
      ...{ label, sandbox_id: "sbx_1", port: 8000 + things.size, visibility: "public", wish: null, org_id },
      ...{ room_uid: "rom_1", agent_id: "a", created_at: AT, expires_at: null, ends_with: id as KeyId },
    } as PortRow);
    things.set(`port of ${name}`, () => findLabel(within(), label) !== undefined);
  },
  ssh_keys: async (name: string, org_id: OrgId, by: { type: string; id: string }) => {
    const row = { ...newSshKey(org_id, { public_key: PUBLIC_KEY }, by), fingerprint: `SHA256:${things.size}` };
    await changes.addSshKey(row, () => {});
    things.set(`ssh key of ${name}`, () => isSshKey(within(), row.ssh_key_id));
  },
};

async function makeAll(name: string, org_id: OrgId, key_id: KeyId): Promise<void> {
  for (const make of Object.values(MAKES)) await make(name, org_id, maker("key", key_id));
}

async function letIn(name: string, user_id: UserId, org_id: OrgId): Promise<KeyRow> {
  const { row } = newKey({ org_id, kind: "oauth", name: "app", scopes: ["terminal"], maker: maker("user", user_id) });
  await changes.addKey(row, () => {});
  insertGrant(within(), {
    ...{ key_id: row.key_id, user_id, client_id: "oap_1", redirect_uri: null, audience: "mcp", code_sha256: null },
    ...{ code_challenge: null, code_expires_at: null, code_used_at: null },
  });
  const isIn = () => getGrant(within(), row.key_id) !== undefined && getKey(within(), row.key_id)?.revoked_at === null;
  things.set(`application of ${name}`, isIn);
  return row;
}

beforeEach(async () => {
  connection = openConnection(":memory:");
  migrate(connection);
  // Ports of sandboxes that need not be there.
  connection.execute("PRAGMA foreign_keys = OFF");
  database = makeDatabase(connection);
  changes = makeOrgChanges(database, MAKER_RULES);
  things = new Map();
  for (const [org_id, name] of [
    [ORG, "one"],
    [ELSEWHERE, "other"],
  ] as const) {
    insertOrg(within(), { org_id, name, plan: "free", created_at: AT });
  }
  ann = newPerson("ann", { [ORG]: "owner", [ELSEWHERE]: "owner" });
  bob = newPerson("bob", { [ORG]: "admin", [ELSEWHERE]: "admin" });
  key = await addKey(bob.user_id);
  await makeAll("bob's key", ORG, key.key_id);
  application = await letIn("bob", bob.user_id, ORG);
  await MAKES.ssh_keys("bob's application", ORG, maker("key", application.key_id));
  MAKES.ports("bob's application", ORG, maker("key", application.key_id));
  MAKES.webhooks("bob", ORG, maker("user", bob.user_id));
  await makeAll("ann's key", ORG, (await addKey(ann.user_id)).key_id);
  await letIn("ann", ann.user_id, ORG);
  await makeAll("bob's key elsewhere", ELSEWHERE, (await addKey(bob.user_id, ELSEWHERE)).key_id);
  await letIn("bob elsewhere", bob.user_id, ELSEWHERE);
  await MAKES.ssh_keys("operator", ORG, { type: "operator", id: "host" });
});
afterEach(() => database.close());

const ended = () => [...things].flatMap(([name, isInForce]) => (isInForce() ? [] : [name])).sort();
const recorded = (events: readonly string[]) =>
  [ORG, ELSEWHERE].flatMap((org_id) =>
    listAudit(connection.queries, { org_id, order: "asc", limit: 100 })
      .filter(({ event, source }) => events.includes(event) && source === "reconciler")
      .map(({ details }) => JSON.parse(details).reason),
  );

const KEYS = ["port of bob's key", "ssh key of bob's key", "webhook of bob's key"];
const APPLICATION = ["port of bob's application", "ssh key of bob's application"];
const EVERYTHING = ["application of bob", ...APPLICATION, ...KEYS, "webhook of bob"].sort();
const THERE = [
  "application of bob elsewhere",
  ..."port,ssh key,webhook".split(",").map((each) => `${each} of bob's key elsewhere`),
];

const setRole = (role: Role) =>
  changeRole(changes, { org_id: ORG, user_id: bob.user_id, role, require: () => {}, before: () => "admin" }, () => {});
const remove = () =>
  changes.endAccess(
    ORG,
    bob.user_id,
    { require: () => {}, gives: [], change: (queries) => deleteMembership(queries, ORG, bob.user_id) },
    (_, { made }) => made,
  );
const operator = () => makeOperator(database, database, changes, {} as never, () => {});
const people = () => makeUserOperator(database, changes, []);
const revoke = ({ key_id }: Pick<KeyRow, "key_id">) => changes.revokeKey(key_id, (_, { made }) => made);
const expire = (row: KeyRow) => {
  connection.execute(`UPDATE api_keys SET expires_at = '${AT}' WHERE key_id = '${row.key_id}'`);
  return changes.endMadeIn(ORG);
};

describe("every kind is in the tests", () => {
  test("exactly the listed ones", () => {
    expect(MADE.map(({ name }) => name).sort()).toEqual([...MADE_NAMES].sort());
    expect([...Object.keys(MAKES), "applications"].sort()).toEqual([...MADE_NAMES].sort());
  });
});

test.each<[string, () => Promise<unknown>, readonly string[]]>([
  ["a key that is revoked", () => revoke(key), KEYS],
  ["a key that the operator revokes", () => operator().revokeKey(key.key_id), KEYS],
  ["the last key of a line", async () => revoke(await rotated(key, bob.user_id)), KEYS],
  ["the time of a key", () => expire(key), KEYS],
  ["a removed member", remove, EVERYTHING],
  ["a role that gives nothing", () => setRole("viewer"), EVERYTHING],
  ["a role that gives less", () => setRole("member"), [...KEYS, "webhook of bob"].sort()],
  ["an account that is deleted", () => forget(changes, [], bob, () => {}), [...EVERYTHING, ...THERE].sort()],
  [
    "a disabled user",
    () => people().disableUser(bob.email, true),
    [...APPLICATION, "application of bob", "application of bob elsewhere"].sort(),
  ],
  ["an application that is signed out", () => revoke(application), ["application of bob", ...APPLICATION].sort()],
])("%s ends the things made by it, and nothing else", async (_, end, expected) => {
  expect(ended()).toEqual([]);
  await end();
  expect(ended()).toEqual([...expected]);
});

test("the end of an organization ends all things made by keys; memberships end after it", async () => {
  await changes.endOrg(
    ORG,
    () => {},
    () => {},
  );
  expect(ended()).toEqual([...things.keys()].filter((name) => !/elsewhere$|^webhook of bob$/.test(name)).sort());
});

test("the caller receives the ended things, and each is recorded", async () => {
  const made = await remove();
  expect(Object.fromEntries(Object.entries(made).map(([name, { count }]) => [name, count]))).toEqual({
    ...{ webhooks: 2, ports: 2, ssh_keys: 2, applications: 1 },
  });
  const events = ["webhook.disabled", "key.ssh_removed", "oauth.ended"];
  expect(recorded(events)).toEqual(Array.from({ length: 5 }, () => "maker_ended"));
  // Of a second end, which finds nothing.
  await changes.endMadeIn(ORG);
  expect(recorded(events)).toHaveLength(5);
});

test("a refused end ends nothing", async () => {
  const refused = changes.endAccess(ORG, bob.user_id, { require: () => {}, gives: [], change: () => {} }, () => {
    throw new Error("refused");
  });
  await expect(refused).rejects.toThrow("refused");
  expect(ended()).toEqual([]);
});

describe("a line of keys is one maker", () => {
  test("things stay while one of its keys is valid, in any order of their ends", async () => {
    const second = await rotated(key, bob.user_id, 3600);
    const third = await rotated(second, bob.user_id, 3600);
    await makeAll("third", ORG, third.first_key_id as KeyId);
    await revoke(third);
    await revoke(second);
    expect(ended()).toEqual([]);
    await expire(key);
    expect(ended()).toEqual([...KEYS, ...KEYS.map((name) => name.replace("bob's key", "third"))].sort());
  });

  test("a key rotated by another person keeps ports and webhooks; SSH keys belong to their person", async () => {
    const taken = await rotated(key, ann.user_id);
    await remove();
    const kept = KEYS.filter((name) => !name.startsWith("ssh key"));
    expect(ended()).toEqual(EVERYTHING.filter((name) => !kept.includes(name)));
    await revoke(taken);
    expect(ended()).toEqual(EVERYTHING);
  });
});
