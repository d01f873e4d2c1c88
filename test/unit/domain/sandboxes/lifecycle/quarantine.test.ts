/**
 * Guests that are adopted after a crash, one after another: which others they delay and for how long, and which one is suspected of the
 * next crash.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeLog } from "../../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../../daemon/db/client.ts";
import { migrate } from "../../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { Quarantine } from "../../../../../daemon/domain/sandboxes/lifecycle/quarantine.ts";
import { countAdoptions } from "../../../../../daemon/domain/sandboxes/store.ts";
import type { OrgId, SandboxId } from "../../../../../shared/ids.ts";
import { insertRow } from "../../../../harness/durability/insert-row.ts";
import { until } from "../../../../harness/guests.ts";
import { makeSandbox } from "../sandbox-fixture.ts";

const TIMES = { together: 1, alone: 1, turn: 100 };
const patient = new AbortController().signal;

let connection: Connection;
let database: Database;
let adoptions: Quarantine;
/** Sandboxes with started work, in order. */
let begun: string[];
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  insertRow(connection, database, "orgs", { org_id: "org_1" });
  insertRow(connection, database, "rooms", { room_uid: "rom_1", org_id: "org_1", state: "active" });
  begun = [];
});
afterEach(async () => {
  adoptions.stop();
  await database.close();
});

/** Sandboxes that were all being adopted when the service crashed. */
function crashed(...sandboxes: string[]): void {
  for (const [at, id] of sandboxes.entries()) {
    const row = { room_uid: "rom_1", org_id: "org_1", agent_id: id, state: "running", egress_mode: "none" };
    insertRow(connection, database, "sandboxes", { ...row, sandbox_id: id, guest_cid: 9100 + at });
    connection.execute(`INSERT INTO adoptions VALUES ('${id}', 0, 1)`);
  }
  const log = makeLog("error", () => {});
  adoptions = new Quarantine({ database, log }, true, TIMES);
}

const silent = () => new Promise<never>(() => {});

function takeOver<T>(org: string, sandbox: string, work: () => Promise<T>, signal = patient): Promise<T> {
  const row = { sandbox_id: sandbox as SandboxId, org_id: org as OrgId };
  const tracked = () => {
    begun.push(sandbox);
    return work();
  };
  return adoptions.guard(row, tracked, signal);
}

test("a silent guest delays the others for its turn only, not for as long as it is silent", async () => {
  crashed("a", "b");
  void takeOver("org_1", "a", silent);
  expect(await takeOver("org_2", "b", async () => "taken over")).toBe("taken over");
  expect(begun).toEqual(["a", "b"]);
});

test("organizations take turns", async () => {
  crashed("a1", "a2", "a3", "b1");
  const all = ["a1", "a2", "a3", "b1"].map((name) => takeOver(name.slice(0, 1), name, async () => {}));
  await Promise.all(all);
  expect(begun).toEqual(["a1", "a2", "b1", "a3"]);
});

test("an aborted waiter leaves immediately, and is not adopted", async () => {
  crashed("a", "b", "c");
  const ended = Promise.withResolvers<void>();
  const first = takeOver("org", "a", () => ended.promise);
  await until("the first adoption has started", () => begun.length === 1);
  const impatient = new AbortController();
  const given = takeOver("org", "b", silent, impatient.signal);
  const last = takeOver("org", "c", async () => "last");
  impatient.abort(new Error("destroyed"));
  await expect(given).rejects.toThrow("destroyed");
  expect(begun).toEqual(["a"]);
  ended.resolve();
  await first;
  expect(await last).toBe("last");
  expect(begun).toEqual(["a", "c"]);
});

test("a sandbox that waits behind a silent one is destroyed immediately", async () => {
  crashed("a", "b");
  adoptions.stop();
  adoptions = new Quarantine({ database, log: makeLog("error", () => {}) }, false, { ...TIMES, turn: 60_000 });
  void takeOver("org", "a", silent);
  await until("the first adoption has started", () => begun.length === 1);
  using sandbox = await makeSandbox("running", { adopt: (_row, signal) => takeOver("org", "b", silent, signal) });
  const adopting = sandbox.supervisor.adopt();
  await sandbox.supervisor.destroy("user_requested");
  await adopting;
  expect([sandbox.supervisor.row.state, sandbox.events, begun]).toEqual(["destroyed", [], ["a"]]);
});

test("a crash is attributed to the guest with the turn, and without one to guests that are still silent", async () => {
  crashed("a", "b");
  const crash = () => Object.fromEntries(countAdoptions(database.queries, true));
  void takeOver("org", "a", silent);
  expect(await takeOver("org", "b", async () => crash())).toEqual({ a: 1, b: 2 });

  connection.execute("UPDATE adoptions SET crashes = 1, under_way = 0");
  adoptions.stop();
  adoptions = new Quarantine({ database, log: makeLog("error", () => {}) }, false, TIMES);
  void takeOver("org", "a", silent);
  await until("the second crash is recorded", () => noted("a") === 2);
  expect(crash()).toMatchObject({ a: 2 });
});

test("a guest adopted after a long silence is no longer suspected", async () => {
  crashed("a");
  const answers = Promise.withResolvers<void>();
  const taken = takeOver("org", "a", () => answers.promise);
  await until("the second crash is recorded", () => noted("a") === 2);
  answers.resolve();
  await taken;
  await until("the crash record is removed", () => noted("a") === null);
});

function noted(sandbox: string): number | null {
  const found = database.queries.all<{ under_way: number }>(
    `SELECT under_way FROM adoptions WHERE sandbox_id = '${sandbox}'`,
  );
  return found[0]?.under_way ?? null;
}
