/**
 * Webhooks, to a real receiver over TLS: the deliveries, their order and signatures; handling of a receiver that is down, refuses,
 * redirects, hangs, or has a forbidden address; and that a crash loses nothing.
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Received, WebhookReceiver } from "../fixtures/webhook-receiver.ts";
import { Visitor } from "../harness/browser/visitor.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { blocksOf, pageAt, typed } from "../harness/documents.ts";
import { until } from "../harness/guests.ts";
import { issue } from "../harness/issued-certificate.ts";
import { bearer, makeKey, makeOrg } from "./calls.ts";

const HOOKS = "/v1/orgs/self/webhooks";
const home = mkdtempSync(join(tmpdir(), "roomd-webhooks-"));
const names = join(home, "hosts");
let receiver: WebhookReceiver;
let untrusted: WebhookReceiver;
let daemon: TestDaemon;

beforeAll(async () => {
  const issued = await issue(["receiver.test", "other.test", "localhost"]);
  writeFileSync(join(home, "ca.pem"), issued.authority);
  nameAddresses();
  receiver = await new WebhookReceiver(issued).listen();
  untrusted = await new WebhookReceiver(await issue(["receiver.test"])).listen();
  daemon = await TestDaemon.start({
    env: {
      NODE_EXTRA_CA_CERTS: join(home, "ca.pem"),
      ROOMD_WEBHOOKS_PRIVATE_RANGES: "127.0.0.1",
      ROOMD_EGRESS_HOSTS_FILE: names,
      // Must be ignored: deliveries use no proxy.
      HTTPS_PROXY: "http://127.0.0.1:1",
    },
  });
});
afterAll(async () => {
  await daemon.stop();
  await receiver.stop();
  await untrusted.stop();
  rmSync(home, { recursive: true });
});

/** Writes the addresses of names. */
function nameAddresses(more: readonly string[] = []): void {
  const lines = ["127.0.0.1 receiver.test", "127.0.0.1 unnamed.test", "127.0.0.2 beside.test", "10.1.2.3 inside.test"];
  const both = ["127.0.0.1 both.test", "192.168.1.1 both.test", "169.254.169.254 metadata.test"];
  writeFileSync(names, [...lines, ...both, ...more, ""].join("\n"));
}

/** The error for a name with a forbidden address, and for an unknown name. */
const closed = (name: string) =>
  new RegExp(`^${name} could not be looked up, or has an address that webhooks may not be sent to: .*private_ranges.$`);

interface Hook {
  webhook_id: string;
  secret: string;
  path: string;
}

let made = 0;
/** A webhook with a separate path. */
async function hook(types: string[], more: Json = {}): Promise<Hook> {
  const path = `/hook-${++made}`;
  const { webhook_id, secret } = await daemon.ok("POST", HOOKS, { url: receiver.url(path), types, ...more });
  return { webhook_id, secret, path };
}
const get = ({ webhook_id }: Hook): Promise<Json> => daemon.ok("GET", `${HOOKS}/${webhook_id}`);
const remove = ({ webhook_id }: Hook) => daemon.ok("DELETE", `${HOOKS}/${webhook_id}`);
const deliveries = async ({ webhook_id }: Hook): Promise<Json[]> =>
  (await daemon.ok("GET", `${HOOKS}/${webhook_id}/deliveries`)).items;
/** The delivery of the first event that failed. */
const told = (own: Hook) => until("a delivery is listed", async () => (await deliveries(own))[0]);
const arrived = (path: string, count: number, type = "") =>
  until(`${count} events at ${path}`, () => {
    const all = receiver.at(path, type);
    return all.length >= count && all;
  });
/** Throws if the signature is not by the secret, or its time differs from now. */
const verify = ({ headers, body }: Received, secret: string) => new Webhook(secret).verify(body, headers);
const roomsOf = (all: readonly Received[]) => all.map(({ event }) => event.data.room_id);

/** Rows are changed while no daemon has them: time passes as a test wants it. */
async function whileDown(change: (rows: Database) => void, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  await daemon.end(signal);
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  change(rows);
  rows.close();
  await daemon.serve();
}

describe("an event", () => {
  test("arrives signed, thin and in order, equal to its audit record", async () => {
    const own = await hook(["room.created"]);
    for (let n = 0; n < 20; n++) await daemon.room(`ordered-${n}`);
    const all = await arrived(own.path, 20);
    expect(roomsOf(all)).toEqual(Array.from({ length: 20 }, (_, n) => `ordered-${n}`));
    for (const each of all) verify(each, own.secret);
    const [{ headers, event }] = all as [Received];
    const { items } = await daemon.ok("GET", `/v1/orgs/self/audit?audit_id=${headers["webhook-id"]}`);
    const [record] = items;
    expect(event).toEqual({
      type: "room.created",
      timestamp: record.at,
      data: {
        event_id: record.audit_id,
        org_id: daemon.orgId,
        room_id: "ordered-0",
        room_uid: record.room_uid,
        agent_id: null,
        sandbox_id: null,
        actor: { type: "key", id: record.actor.id },
        outcome: "success",
        error_code: null,
        request_id: record.request_id,
        details: {},
      },
    });
    expect(headers["webhook-id"]).toMatch(/^evt_[0-9A-Z]{26}$/);
    expect(headers.host).toBe(`receiver.test:${receiver.port}`);
    expect(all.every(({ body }) => Buffer.byteLength(body) < 20_000)).toBe(true);
    expect(await get(own)).toMatchObject({ sent_count: 20, waiting_count: 0, failing_since: null });
    expect(await deliveries(own)).toEqual([]);
    await remove(own);
  });

  test("is sent to matching webhooks: by type prefix, and by room", async () => {
    const [all, ofRoom] = [await hook(["*"]), await hook(["*"], { room_ids: ["wanted"] })];
    await daemon.room("unwanted");
    await daemon.room("wanted");
    await daemon.ok("GET", "/v1/rooms/wanted");
    await daemon.ok("DELETE", "/v1/rooms/wanted");
    await arrived(ofRoom.path, 2);
    expect(receiver.at(ofRoom.path).map(({ event }) => event.type)).toEqual(["room.created", "room.destroyed"]);
    const seen = (await arrived(all.path, 4)).map(({ event }) => event.type);
    // The creation of the second webhook, and no event of a read.
    expect(seen.slice(0, 4)).toEqual(["webhook.created", "webhook.created", "room.created", "room.created"]);
    expect(receiver.at(all.path).filter(({ event }) => /read|listed/.test(event.type))).toEqual([]);
    await remove(all);
    await remove(ofRoom);
  });
});

describe("a receiver", () => {
  test("that is down gets all events once it is back, and does not delay others", async () => {
    const [first, other] = [await hook(["room."]), await hook(["room."])];
    const { webhook_id } = await daemon.ok("POST", HOOKS, { url: "https://receiver.test:1024/", types: ["room."] });
    for (let n = 0; n < 3; n++) await daemon.room(`before-${n}`);
    await arrived(first.path, 3);
    await arrived(other.path, 3);
    await receiver.stop();
    for (let n = 0; n < 3; n++) await daemon.room(`down-${n}`);
    const waiting = await until("three deliveries wait", async () => {
      const all = await deliveries(first);
      return all.length === 3 && all;
    });
    expect(waiting[0]).toMatchObject({ state: "waiting", type: "room.created", status: null });
    expect(waiting[0]?.error).toMatch(new RegExp(`receiver\\.test .*\\b${receiver.port}\\b`));
    expect(await get(first)).toMatchObject({ waiting_count: 3, failing_since: expect.any(String) });
    await receiver.listen();
    const all = await arrived(first.path, 6);
    expect(roomsOf(all).sort()).toEqual(["before-0", "before-1", "before-2", "down-0", "down-1", "down-2"]);
    await until("the deliveries are listed as delivered", async () =>
      (await deliveries(first)).every(({ state, attempts }) => state === "delivered" && attempts > 1),
    );
    expect(await get(first)).toMatchObject({ waiting_count: 0, failing_since: null, sent_count: 6 });
    await daemon.ok("DELETE", `${HOOKS}/${webhook_id}`);
    for (const each of [first, other]) await remove(each);
  });

  test("that answers 500 to every third event gets the others immediately, and those on retry", async () => {
    const own = await hook(["room.created"]);
    const refused = new Set<string>();
    let count = 0;
    receiver.answer(({ path, headers }) => {
      const id = String(headers["webhook-id"]);
      if (path !== own.path || refused.has(id) || ++count % 3 !== 0) return 204;
      refused.add(id);
      return 500;
    });
    for (let n = 0; n < 9; n++) await daemon.room(`third-${n}`);
    await until("three deliveries were refused", () => refused.size === 3);
    const one = await told(own);
    expect(one).toMatchObject({ state: "waiting", status: 500, error: expect.stringContaining("500"), attempts: 1 });
    expect(Date.parse(one.next_at) - Date.parse(one.last_attempt_at)).toBeGreaterThanOrEqual(5000);
    const all = await arrived(own.path, 12);
    const twice = all.filter(({ headers }) => refused.has(String(headers["webhook-id"])));
    expect(twice).toHaveLength(6);
    for (const each of all) verify(each, own.secret);
    // The same bytes each time, and the same id: only the time of the try and the signature differ.
    for (const id of refused) {
      const both = all.filter(({ headers }) => headers["webhook-id"] === id);
      expect(new Set(both.map(({ body }) => body)).size).toBe(1);
      expect(Number(both[1]?.headers["webhook-timestamp"])).toBeGreaterThan(
        Number(both[0]?.headers["webhook-timestamp"]),
      );
    }
    receiver.answer(() => 204);
    await remove(own);
  });

  test.each<[string, (path: string) => string, Json]>([
    ["with an untrusted certificate", (path) => untrusted.url(path), { error: /is not trusted/ }],
    ["with a certificate for another name", (path) => receiver.url(path, "unnamed.test"), { error: /is not trusted/ }],
    ["with a certificate for no address", (path) => receiver.url(path, "127.0.0.1"), { error: /is not trusted/ }],
    ["in a private network", () => "https://inside.test/", { error: closed("inside.test") }],
    ["with an unknown name", () => "https://nobody.invalid/", { error: closed("nobody.invalid") }],
    [
      "with an address next to the allowed one",
      (path) => receiver.url(path, "beside.test"),
      { error: /may not be sent to/ },
    ],
    ["with one address too many", (path) => receiver.url(path, "both.test"), { error: /may not be sent to/ }],
    ["that leaks credentials", () => "https://metadata.test/", { error: /may not be sent to/ }],
  ])("%s is sent nothing, which the test call reports", async (_, urlOf, { error }) => {
    const url = urlOf(`/never-${++made}`);
    const { webhook_id } = await daemon.ok("POST", HOOKS, { url, types: ["none."] });
    const result = await daemon.ok("POST", `${HOOKS}/${webhook_id}/test`, {});
    expect(result).toMatchObject({ delivered: false, status: null, error: expect.stringMatching(error) });
    expect([...receiver.received, ...untrusted.received].filter(({ path }) => url.endsWith(path))).toEqual([]);
    await daemon.ok("DELETE", `${HOOKS}/${webhook_id}`);
  });

  test("whose name resolves to another address later is refused then", async () => {
    nameAddresses(["127.0.0.1 other.test"]);
    const path = "/rebound";
    const { webhook_id } = await daemon.ok("POST", HOOKS, { url: receiver.url(path, "other.test"), types: ["room."] });
    await daemon.room("rebound-0");
    await arrived(path, 1);
    nameAddresses(["127.0.0.2 other.test"]);
    await daemon.room("rebound-1");
    expect(await told({ webhook_id, secret: "", path })).toMatchObject({
      state: "waiting",
      status: null,
      error: expect.stringContaining("webhooks.private_ranges"),
    });
    expect(receiver.at(path)).toHaveLength(1);
    nameAddresses();
    await daemon.ok("DELETE", `${HOOKS}/${webhook_id}`);
  });

  test.each<[string, (path: string) => string]>([
    ["without TLS", () => "http://example.org/"],
    ["at a privileged port", () => "https://example.org:22/"],
    ["with a password", () => "https://me:pass@example.org/"],
    ["at a private address", () => "https://10.0.0.1/"],
    ["at loopback in an unusual notation", () => "https://0x7f.2/"],
    ["at a metadata service", () => "https://[fd00:ec2::254]/"],
    ["that is not a URL", () => "example.org"],
  ])("%s is refused immediately", async (_, urlOf) => {
    const problem = await daemon.problem("POST", HOOKS, { url: urlOf("/x"), types: ["*"] });
    expect(problem).toMatchObject({ status: 422, detail: expect.stringMatching(/^url [a-z]/) });
  });

  test("that redirects is not followed", async () => {
    const own = await hook(["none."]);
    receiver.answer(({ path }, response) => {
      if (path !== own.path) return 204;
      response.writeHead(302, { location: receiver.url("/followed") }).end();
      return undefined;
    });
    expect(await daemon.ok("POST", `${HOOKS}/${own.webhook_id}/test`, {})).toMatchObject({
      delivered: false,
      status: 302,
      error: expect.stringContaining("302"),
    });
    expect(receiver.at("/followed")).toEqual([]);
    receiver.answer(() => 204);
    await remove(own);
  });

  test("that never ends or starts its answer delays no other", { timeout: 30_000 }, async () => {
    const [endless, other, mute] = [await hook(["room."]), await hook(["room."]), await hook(["none."])];
    const writing = new Set<Timer>();
    receiver.answer(({ path }, response) => {
      if (path === mute.path) return undefined;
      if (path !== endless.path) return 204;
      response.writeHead(200);
      const timer = setInterval(() => response.write("more and more "), 20);
      writing.add(timer);
      response.on("close", () => {
        clearInterval(timer);
        writing.delete(timer);
      });
      return undefined;
    });
    const muted = daemon.ok("POST", `${HOOKS}/${mute.webhook_id}/test`, {});
    for (let n = 0; n < 3; n++) await daemon.room(`endless-${n}`);
    await arrived(other.path, 3);
    await arrived(endless.path, 3);
    await until(
      "the receiver is disconnected",
      async () => (await get(endless)).sent_count === 3 && writing.size === 0,
    );
    expect(await muted).toMatchObject({
      ...{ delivered: false, status: null, error: expect.stringMatching(/receiver\.test.* 15 /) },
    });
    receiver.answer(() => 204);
    for (const each of [endless, other, mute]) await remove(each);
  });

  test("with Retry-After is given that time", async () => {
    const own = await hook(["room."]);
    receiver.answer(({ path }, response) => {
      if (path !== own.path) return 204;
      response.writeHead(429, { "retry-after": "3600" }).end();
      return undefined;
    });
    await daemon.room("asked-for-time");
    await daemon.room("asked-for-time-too");
    const one = await told(own);
    expect(Date.parse(one.next_at) - Date.parse(one.last_attempt_at)).toBeGreaterThanOrEqual(3_600_000);
    // The second waits in the audit, untried.
    expect(receiver.at(own.path)).toHaveLength(1);
    expect(await get(own)).toMatchObject({ waiting_count: 1, behind_count: expect.any(Number) });
    receiver.answer(() => 204);
    // A change of the webhook restarts its deliveries.
    await daemon.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: true });
    await arrived(own.path, 2);
    await remove(own);
  });

  test("that answers 410 is disabled, which is audited; enabled again it gets the missed events", async () => {
    const [own, watcher] = [await hook(["room."]), await hook(["webhook.disabled"])];
    receiver.answer(({ path }) => (path === own.path ? 410 : 204));
    await daemon.room("gone-0");
    const [delivery] = (await arrived(watcher.path, 1)) as [Received];
    expect(delivery.event.data.details).toMatchObject({ webhook_id: own.webhook_id, reason: "gone" });
    expect(await get(own)).toMatchObject({ enabled: false, disabled_reason: "gone" });
    await daemon.room("gone-1");
    expect(
      await daemon.problem(
        "POST",
        `${HOOKS}/${own.webhook_id}/deliveries/${delivery.headers["webhook-id"]}/redeliver`,
        {},
      ),
    ).toMatchObject({
      code: "invalid_state",
    });
    receiver.answer(() => 204);
    await daemon.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: true });
    await until("both events have arrived", () => new Set(roomsOf(receiver.at(own.path))).size === 2);
    for (const each of [own, watcher]) await remove(each);
  });
});

describe("across the daemon's end", () => {
  test("by repeated SIGKILL, no event is lost", { timeout: 60_000 }, async () => {
    const own = await hook(["room.created"]);
    let count = 0;
    const refused = new Set<string>();
    // None twice: a second refusal would put off the next try by more than the test waits.
    receiver.answer(({ path, headers }) => {
      const id = String(headers["webhook-id"]);
      if (path !== own.path || refused.has(id) || ++count % 4 !== 0) return 204;
      refused.add(id);
      return 503;
    });
    const rooms: string[] = [];
    for (let round = 0; round < 4; round++) {
      for (let n = 0; n < 6; n++) {
        const name = `killed-${round}-${n}`;
        await daemon.room(name);
        rooms.push(name);
      }
      // In the middle: some are sent and not written down, some are not sent.
      await daemon.restart("SIGKILL");
    }
    receiver.answer(() => 204);
    const taken = () => new Set(roomsOf(receiver.at(own.path)));
    await until("all events have arrived", () => taken().size === rooms.length, 30_000);
    await until("no delivery waits", async () => (await get(own)).waiting_count === 0, 30_000);
    expect([...taken()].sort()).toEqual(rooms.sort());
    for (const each of receiver.at(own.path)) verify(each, own.secret);
    await remove(own);
  });

  test("retries back off, and an event that exceeds the limit is dropped and counted", {
    timeout: 60_000,
  }, async () => {
    const own = await hook(["room.created"]);
    receiver.answer(({ path }) => (path === own.path ? 500 : 204));
    await daemon.room("again");
    const waits: number[] = [];
    for (let tries = 1; tries <= 9; tries++) {
      const one = await until(`attempt ${tries} is made`, async () => {
        const [first] = await deliveries(own);
        return first?.attempts === tries && first;
      });
      waits.push(Math.round((Date.parse(one.next_at) - Date.parse(one.last_attempt_at)) / 1000));
      await whileDown((rows) => rows.run("UPDATE webhook_deliveries SET next_at = '2000-01-01T00:00:00.000Z'"));
    }
    expect(waits).toEqual([5, 60, 300, 1800, 7200, 21_600, 43_200, 43_200, 43_200]);
    expect(await get(own)).toMatchObject({ enabled: true, failed_count: 0 });
    await until("the last attempt is made", async () => (await deliveries(own))[0]?.attempts === 10);
    const dueLast = "UPDATE webhook_deliveries SET attempts = 16, next_at = '2000-01-01T00:00:00.000Z'";
    await whileDown((rows) => rows.run(dueLast));
    await until("the delivery has failed", async () => (await get(own)).failed_count === 1);
    expect((await deliveries(own))[0]).toMatchObject({ state: "failed", attempts: 17, next_at: null });
    // Until a redelivery is requested.
    receiver.answer(() => 204);
    const [{ delivery_id }] = (await deliveries(own)) as [Json];
    const before = receiver.at(own.path).length;
    await daemon.ok("POST", `${HOOKS}/${own.webhook_id}/deliveries/${delivery_id}/redeliver`, {});
    await arrived(own.path, before + 1);
    await remove(own);
  });

  test("five days of failure disable the webhook", async () => {
    const own = await hook(["room.created"]);
    receiver.answer(({ path }) => (path === own.path ? 500 : 204));
    await daemon.room("five-days");
    await until("the webhook is failing", async () => (await get(own)).failing_since);
    const ago = new Date(Date.now() - 5 * 86_400_000).toISOString();
    await whileDown((rows) => rows.run("UPDATE webhook_progress SET failing_since = ?", [ago]));
    await daemon.room("five-days-and-one");
    await until("the webhook is disabled", async () => !(await get(own)).enabled);
    expect(await get(own)).toMatchObject({ disabled_reason: "failing", failing_since: ago });
    const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=webhook.disabled&limit=1");
    expect(items[0]).toMatchObject({
      actor: { type: "system", id: "webhooks" },
      details: { webhook_id: own.webhook_id, reason: "failing", failing_since: ago, last_status: 500 },
    });
    // Pending deliveries are not failed with it, and do not wait longer once it is enabled again.
    const later = new Date(Date.now() + 86_400_000).toISOString();
    await whileDown((rows) => rows.run("UPDATE webhook_deliveries SET attempts = 17, next_at = ?", [later]));
    expect(await get(own)).toMatchObject({ waiting_count: 2, failed_count: 0 });
    receiver.answer(() => 204);
    const before = receiver.at(own.path).length;
    await daemon.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: true });
    await arrived(own.path, before + 2);
    await until("no delivery waits", async () => (await get(own)).waiting_count === 0);
    await remove(own);
  });

  test("events deleted by audit retention are reported as missed", async () => {
    const own = await hook(["room.created"]);
    receiver.answer(({ path }) => (path === own.path ? 500 : 204));
    await daemon.room("lost");
    await until("the delivery waits", async () => (await deliveries(own)).length === 1);
    await whileDown((rows) => {
      const { seq } = rows.query("SELECT max(seq) AS seq FROM audit WHERE org_key = ?").get(daemon.orgId) as Json;
      const { hash } = rows
        .query("SELECT hash FROM audit WHERE org_key = ? AND seq = ?")
        .get(daemon.orgId, seq) as Json;
      rows.run("INSERT OR REPLACE INTO audit_starts (org_key, seq, hash) VALUES (?, ?, ?)", [daemon.orgId, seq, hash]);
      rows.run("DELETE FROM audit WHERE org_key = ?", [daemon.orgId]);
      rows.run("UPDATE webhook_progress SET seq = seq - 2 WHERE webhook_id = ?", [own.webhook_id]);
      rows.run("UPDATE webhook_deliveries SET next_at = '2000-01-01T00:00:00.000Z'");
    });
    receiver.answer(() => 204);
    await daemon.room("found");
    await until("the next event arrives", () => roomsOf(receiver.at(own.path)).includes("found"));
    await until("the delivery is listed as lost", async () => (await deliveries(own))[0]?.state === "lost");
    expect((await get(own)).missed_count).toBeGreaterThanOrEqual(3);
    await remove(own);
  });
});

describe("its owner", () => {
  test("rotates its secret: for a while both sign", async () => {
    const own = await hook(["room.created"]);
    const rotated = await daemon.ok("POST", `${HOOKS}/${own.webhook_id}/rotate`, { grace_seconds: 3600 });
    expect(rotated.secret).not.toBe(own.secret);
    await daemon.room("by-both");
    const [both] = (await arrived(own.path, 1)) as [Received];
    for (const secret of [own.secret, rotated.secret]) verify(both, secret);
    const last = await daemon.ok("POST", `${HOOKS}/${own.webhook_id}/rotate`, { grace_seconds: 0 });
    await daemon.room("by-one");
    const [, one] = (await arrived(own.path, 2)) as [Received, Received];
    verify(one, last.secret);
    for (const secret of [own.secret, rotated.secret]) expect(() => verify(one, secret)).toThrow();
    expect(statSync(join(daemon.dataDir, "webhook_key")).mode & 0o777).toBe(0o600);
    await remove(own);
  });

  test("redelivers a delivered event, and tests the receiver", async () => {
    const own = await hook(["room.created"]);
    await daemon.room("again-taken");
    const [first] = (await arrived(own.path, 1)) as [Received];
    const id = first.headers["webhook-id"];
    await daemon.ok("POST", `${HOOKS}/${own.webhook_id}/deliveries/${id}/redeliver`, {});
    const [, second] = (await arrived(own.path, 2)) as [Received, Received];
    expect(second.body).toBe(first.body);
    expect(second.headers["webhook-id"]).toBe(id);
    expect(await daemon.problem("POST", `${HOOKS}/${own.webhook_id}/deliveries/evt_none/redeliver`, {})).toMatchObject({
      code: "delivery_not_found",
    });
    await daemon.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: false });
    const result = await daemon.ok("POST", `${HOOKS}/${own.webhook_id}/test`, {});
    expect(result).toMatchObject({ delivered: true, status: 204, error: null });
    const [tried] = receiver.at(own.path, "webhook.test") as [Received];
    expect(tried.headers["webhook-id"]).toBe(result.event_id);
    verify(tried, own.secret);
    await remove(own);
  });

  test("loses no events while it is disabled, and may change its URL", async () => {
    const own = await hook(["room.created"]);
    await daemon.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: false });
    await daemon.room("while-disabled");
    const path = `${own.path}-moved`;
    await daemon.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { url: receiver.url(path), enabled: true });
    expect(roomsOf(await arrived(path, 1))).toEqual(["while-disabled"]);
    expect(receiver.at(own.path)).toEqual([]);
    await remove(own);
    expect(await daemon.problem("GET", `${HOOKS}/${own.webhook_id}`)).toMatchObject({ code: "webhook_not_found" });
  });

  test("is the only one to see it: not other organizations, narrower keys or members", async () => {
    const own = await hook(["none."]);
    const foreign = bearer((await makeOrg(daemon, "foreign")).api_key);
    const bound = bearer((await makeKey(daemon, { rooms: ["r"] })).key);
    const narrow = bearer((await makeKey(daemon, { scopes: ["rooms:read", "audit:read"] })).key);
    for (const path of ["", "/deliveries"]) {
      const at = (headers: Record<string, string>) =>
        daemon.api("GET", `${HOOKS}/${own.webhook_id}${path}`, undefined, headers);
      expect((await at(foreign)).body.code).toBe("webhook_not_found");
      expect((await at(bound)).body.code).toBe("insufficient_scope");
      expect((await at(narrow)).body.code).toBe("insufficient_scope");
    }
    expect((await daemon.api("GET", HOOKS, undefined, foreign)).body.items).toEqual([]);
    const owner = await Visitor.owner(daemon);
    expect((await owner.api("GET", HOOKS)).body.items).toHaveLength(1);
    expect((await owner.api("POST", HOOKS, { url: receiver.url("/x"), types: ["*"] })).body.code).toBe(
      "hub_is_read_only",
    );
    // Its ID is resolved for callers that may see it.
    const place = `/v1/locate/${own.webhook_id}`;
    expect(await daemon.ok("GET", place)).toMatchObject({
      type: "webhook",
      path: `/webhooks?webhook=${own.webhook_id}`,
    });
    expect((await owner.api("GET", place)).status).toBe(200);
    for (const headers of [foreign, bound, narrow]) {
      expect((await daemon.api("GET", place, undefined, headers)).body.code).toBe("id_not_found");
    }
    // Its secret is in no answer but the first.
    expect(JSON.stringify((await owner.api("GET", `${HOOKS}/${own.webhook_id}`)).body)).not.toContain("whsec_");
    await remove(own);
  });

  test("is a key or its rotations; their end disables the webhook, and the caller that enables it is its new creator", async () => {
    const first = await makeKey(daemon);
    const path = `/hook-${++made}`;
    const body = { url: receiver.url(path), types: ["room.created"] };
    const { status, body: own } = await daemon.api("POST", HOOKS, body, bearer(first.key));
    expect(status).toBe(201);
    const second = await daemon.ok("POST", `/v1/orgs/self/keys/${first.key_id}/rotate`, { grace_seconds: 0 });
    await daemon.room("made-by-rotated");
    await arrived(path, 1);
    await daemon.ok("DELETE", `/v1/orgs/self/keys/${second.key_id}`);
    await daemon.room("made-by-nobody");
    const ended = await until("the webhook is disabled", async () => {
      const found = await get(own);
      return found.enabled ? false : found;
    });
    expect(ended).toMatchObject({ disabled_reason: "maker_ended", created_by: { type: "key", id: first.key_id } });
    const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=webhook.disabled");
    expect(items[0].details).toEqual({ webhook_id: own.webhook_id, reason: "maker_ended" });
    expect(roomsOf(receiver.at(path))).toEqual(["made-by-rotated"]);
    const taken = await daemon.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: true });
    expect(taken.created_by.id).not.toBe(first.key_id);
    expect(roomsOf(await arrived(path, 2))).toEqual(["made-by-rotated", "made-by-nobody"]);
    await remove(own);
  });

  test("ends with its organization", async () => {
    const { org_id, api_key } = await makeOrg(daemon, "ending");
    const path = "/ending";
    const body = { url: receiver.url(path), types: ["*"] };
    expect((await daemon.api("POST", HOOKS, body, bearer(api_key))).status).toBe(201);
    await arrived(path, 1);
    expect((await daemon.cli(["org", "delete", org_id, "--name", "ending"])).status).toBe(0);
    const rows = new Database(join(daemon.dataDir, "roomd.db"), { readonly: true });
    await until("the rows of the organization are deleted", () => {
      const { n } = rows.query("SELECT count(*) AS n FROM webhooks WHERE org_id = ?").get(org_id) as { n: number };
      return n === 0;
    });
    rows.close();
  });

  test("sees the types and limits of webhooks", async () => {
    for (const types of [[], ["Room"], ["audit.listed"]]) {
      expect((await daemon.problem("POST", HOOKS, { url: receiver.url("/x"), types })).status).toBe(422);
    }
    const all: Hook[] = [];
    for (let n = 0; n < 20; n++) all.push(await hook(["none."]));
    expect(await daemon.problem("POST", HOOKS, { url: receiver.url("/x"), types: ["*"] })).toMatchObject({
      code: "quota_exceeded",
    });
    const { items, next_cursor } = await daemon.ok("GET", `${HOOKS}?limit=15`);
    const rest = await daemon.ok("GET", `${HOOKS}?cursor=${next_cursor}`);
    expect([...items, ...rest.items].map(({ webhook_id }: Json) => webhook_id)).toEqual(
      all.map(({ webhook_id }) => webhook_id),
    );
    for (const each of all) await remove(each);
  });
});

test("docs/webhooks.md runs as written, also without guests", async () => {
  const page = pageAt("docs/webhooks.md");
  const blocks = blocksOf(page, "sh test");
  const { status, printed, errors } = await typed(daemon, page.path, blocks);
  expect([status, status === 0 ? "" : printed + errors]).toEqual([0, ""]);
  expect(printed.match(/^--- /gm)?.length).toBe(blocks.length);
});
