/** Usage of an organization: counted with each event, in groups that add up, and not lost in a crash. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeKey, makeOrg, run, until } from "../calls.ts";
import { describeTemplate } from "../sandboxes/described-template.ts";

let daemon: TestDaemon;
let other: { key_id: string; key: string };

const NOTHING = {
  ...{ sandbox_seconds: 0, vcpu_seconds: 0, memory_mib_seconds: 0, exec_count: 0 },
  ...{ messages: 0, egress_bytes: 0, drive_byte_hours: 0, build_seconds: 0 },
};

const usage = (query = ""): Promise<Json> => daemon.ok("GET", `/v1/orgs/self/usage${query}`);

async function send(room: string, source: string, count: number, key = daemon.apiKey): Promise<void> {
  const body = { source, destination: source, payload: "x" };
  const sent = Array.from({ length: count }, () => daemon.api("POST", `/v1/rooms/${room}/messages`, body, bearer(key)));
  for (const { status } of await Promise.all(sent)) expect(status).toBe(202);
}

beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" } });
  other = await makeKey(daemon);
  for (const room of ["one", "two"]) await daemon.room(room);
  await send("one", "a", 30);
  await send("one", "b", 20, other.key);
  await send("two", "a", 10, other.key);
});
afterAll(() => daemon.stop());

test("is of the calendar month, with current usage and caps", async () => {
  const now = new Date();
  const start_at = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth())).toISOString();
  const end_at = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString();
  const body = await usage();
  expect(body).toMatchObject({
    ...{ org_id: daemon.orgId, plan: "free", entitled: true, period: { start_at, end_at } },
    rooms: { active: 2 },
    sandboxes: { active: 0 },
    memory_mib: { allocated: 0 },
    drive: { used_bytes: 0 },
    guest_cids: { in_use: 0, total: 900 },
    can_create: { room: true, sandbox: true },
    warnings: [],
  });
  expect(body.totals).toEqual({ ...NOTHING, messages: 60 });
  expect(body).not.toHaveProperty("groups");
});

describe("groups", () => {
  const messages = ({ groups }: Json) =>
    Object.fromEntries(groups.map(({ name, totals }: { name: string; totals: Json }) => [name, totals.messages]));

  test("by room, agent, key and day add up to the totals", async () => {
    expect(messages(await usage("?group_by=room"))).toEqual({ one: 50, two: 10 });
    expect(messages(await usage("?group_by=agent"))).toEqual({ a: 40, b: 20 });
    expect(messages(await usage("?group_by=key"))).toEqual({ first: 30, test: 30 });
    const { groups, others, totals } = await usage("?group_by=day");
    expect(groups.reduce((sum: number, group: Json) => sum + group.totals.messages, 0)).toBe(totals.messages);
    expect(others).toBeNull();
  });

  test("of an unknown kind are refused", async () => {
    const { code, errors } = await daemon.problem("GET", "/v1/orgs/self/usage?group_by=colour");
    expect({ code, field: errors[0]?.field }).toEqual({ code: "validation_failed", field: "group_by" });
  });
});

test("another month has its own usage", async () => {
  const { period, totals, groups } = await usage("?month=2020-02&group_by=room");
  expect({ period, totals, groups }).toEqual({
    period: { start_at: "2020-02-01T00:00:00.000Z", end_at: "2020-03-01T00:00:00.000Z" },
    totals: NOTHING,
    groups: [],
  });
  expect((await daemon.problem("GET", "/v1/orgs/self/usage?month=2020-13")).code).toBe("validation_failed");
});

test("each organization has its own, and a key that is bound to rooms sees none", async () => {
  const { org_id, api_key } = await makeOrg(daemon, "second");
  const { body } = await daemon.api("GET", `/v1/orgs/${org_id}/usage`, undefined, bearer(api_key));
  expect(body).toMatchObject({ org_id, totals: NOTHING, rooms: { active: 0 } });
  const { key } = await makeKey(daemon, { rooms: ["one"] });
  const bound = await daemon.api("GET", "/v1/orgs/self/usage", undefined, bearer(key));
  expect(bound.body.code).toBe("insufficient_scope");
});

test("the command line shows it", async () => {
  const whole = await daemon.cli(["usage"]);
  expect(whole.stdout).toMatch(/^messages +60$/m);
  const { stdout } = await daemon.cli(["usage", "--group-by", "room"]);
  const lines = stdout.trim().split("\n");
  expect(lines[0]).toMatch(/^ROOM /);
  expect(lines.find((line) => line.startsWith("one"))).toMatch(/rom_\w+ .* 50 /);
  expect(lines.at(-1)).toMatch(/^total .* 60 /);
  expect((await run(daemon, "usage", "--group-by", "day")).totals.messages).toBe(60);
  expect((await daemon.cli(["usage", "--month", "soon"])).status).toBe(2);
});

test("acknowledged usage survives kill -9 and the end of its room", async () => {
  await daemon.restart("SIGKILL");
  await daemon.ok("DELETE", "/v1/rooms/two");
  await send("one", "a", 5);
  const { totals, groups } = await usage("?group_by=room");
  expect(totals.messages).toBe(65);
  expect(groups.map(({ name, totals: { messages } }: Json) => [name, messages]).sort()).toEqual([
    ["one", 55],
    ["two", 10],
  ]);
});

describe("credits", () => {
  test("are unlimited if none were granted, and prices are published with their defaults", async () => {
    expect((await usage()).credits).toEqual({ granted: null, used: 0, remaining: null });
    const { prices, plans, limits } = await daemon.ok("GET", "/v1/config");
    expect(Object.values(prices)).toEqual([0, 0, 0, 0, 0]);
    expect(plans.free.credits).toBeNull();
    expect(limits.credits_grace_seconds).toBe(15 * 60);
  });

  test("are granted and withdrawn by the operator, and audited", async () => {
    const { org_id, api_key } = await makeOrg(daemon, "granted");
    const granted = () => daemon.api("GET", "/v1/orgs/self/usage", undefined, bearer(api_key));
    expect(await run(daemon, "org", "credits", "--org", org_id, "--grant", "500")).toEqual({
      ...{ org_id, granted: 500, used: 0, remaining: 500 },
    });
    expect(await run(daemon, "org", "credits", "--org", org_id, "--grant", "1")).toMatchObject({ remaining: 501 });
    expect((await granted()).body.credits).toEqual({ granted: 501, used: 0, remaining: 501 });
    await run(daemon, "org", "credits", "--org", org_id, "--withdraw");
    expect((await granted()).body.credits).toEqual({ granted: null, used: 0, remaining: null });
    const records = await daemon.api("GET", "/v1/orgs/self/audit?event=org.credits", undefined, bearer(api_key));
    expect(records.body.items.map(({ event }: Json) => event)).toEqual([
      "org.credits_withdrawn",
      "org.credits_granted",
      "org.credits_granted",
    ]);
    expect((await daemon.cli(["org", "credits", org_id, "--grant", "1", "--withdraw"])).status).toBe(2);
    expect((await daemon.cli(["org", "credits", "--org", "org_none", "--grant", "1"])).stderr).toContain(
      "organization",
    );
  });

  test("are listed per grant with a reason, and each named grant is applied once", async () => {
    const { org_id, api_key } = await makeOrg(daemon, "ledger");
    const grant = (...more: string[]) => run(daemon, "org", "credits", org_id, "--grant", "20", ...more);
    expect(await grant("--reason", "a <b>workshop</b>", "--once", "workshop")).toMatchObject({ granted: 20 });
    const both = await Promise.all([grant("--once", "twice"), grant("--once", "twice")]);
    for (const { granted } of both) expect(granted).toBe(40);
    expect(await grant("--once", "workshop")).toMatchObject({ granted: 40 });
    const list = (query = "") => daemon.api("GET", `/v1/orgs/self/credits${query}`, undefined, bearer(api_key));
    const { body } = await list();
    expect(body).toMatchObject({ granted: 40, used: 0, remaining: 40, next_cursor: null });
    expect(body.items.map(({ kind, amount, reason }: Json) => [kind, amount, reason])).toEqual([
      ["grant", 20, expect.any(String)],
      ["grant", 20, "a <b>workshop</b>"],
    ]);
    const first = (await list("?limit=1")).body;
    expect(first.items).toEqual(body.items.slice(0, 1));
    expect((await list(`?limit=1&cursor=${first.next_cursor}`)).body.items).toEqual(body.items.slice(1));
    expect((await run(daemon, "org", "credits", org_id)).items).toEqual(body.items);
    const other = await makeOrg(daemon, "no ledger");
    const foreign = await daemon.api("GET", `/v1/orgs/${org_id}/credits`, undefined, bearer(other.api_key));
    expect(foreign.status).toBe(404);
    expect((await daemon.api("GET", "/v1/orgs/self/credits", undefined, bearer(other.api_key))).body.items).toEqual([]);
  });

  test("when used up prevent new sandboxes, which is audited, until another grant", async () => {
    describeTemplate(daemon);
    const { org_id, api_key } = await makeOrg(daemon, "spent");
    const as = (method: string, path: string, body?: unknown) => daemon.api(method, path, body, bearer(api_key));
    const create = async () =>
      (await as("POST", "/v1/rooms/r/sandboxes/from-template", { agent_id: "a", guest_cid: 9200, memory_mib: 256 }))
        .body;
    await as("POST", "/v1/rooms", { room_id: "r" });
    await run(daemon, "org", "credits", "--org", org_id, "--grant", "2");
    spend(org_id, 2_000_000);
    expect(await create()).toMatchObject({
      code: "quota_exceeded",
      details: { limit: "credits", used: 2, cap: 2 },
      hint: expect.stringContaining("org credits"),
    });
    await daemon.restart();
    const exhausted = async () => (await as("GET", "/v1/orgs/self/audit?event=quota.credits_exhausted")).body.items;
    await until(exhausted, (records) => records.length === 1);
    expect((await as("GET", "/v1/orgs/self/usage")).body).toMatchObject({
      credits: { granted: 2, used: 2, remaining: 0 },
      can_create: { room: true, sandbox: false },
      warnings: [expect.stringContaining("used up")],
    });
    await run(daemon, "org", "credits", "--org", org_id, "--grant", "1");
    // There is no guest to start: it now fails for another reason than credits.
    expect((await create()).code).not.toBe("quota_exceeded");
    expect((await as("GET", "/v1/orgs/self/usage")).body).toMatchObject({ can_create: { sandbox: true } });
  });
});

function spend(orgId: string, micro: number): void {
  const database = new Database(join(daemon.dataDir, "roomd.db"));
  database.run("UPDATE org_credits SET used_micro = ? WHERE org_id = ?", [micro, orgId]);
  database.close();
}
