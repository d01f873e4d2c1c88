/** Webhooks of an organization on two hosts, to a real receiver: each host sends its own events, signed with one secret. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Received, WebhookReceiver } from "../../fixtures/webhook-receiver.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";
import { issue } from "../../harness/issued-certificate.ts";

const HOOKS = "/v1/orgs/self/webhooks";
const home = mkdtempSync(join(tmpdir(), "roomd-webhooks-"));
let receiver: WebhookReceiver;
let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  const issued = await issue(["receiver.test"]);
  writeFileSync(join(home, "ca.pem"), issued.authority);
  writeFileSync(join(home, "hosts"), "127.0.0.1 receiver.test\n");
  receiver = await new WebhookReceiver(issued).listen();
  service = await TestHosts.start(2, {
    env: {
      NODE_EXTRA_CA_CERTS: join(home, "ca.pem"),
      ROOMD_WEBHOOKS_PRIVATE_RANGES: "127.0.0.1",
      ROOMD_EGRESS_HOSTS_FILE: join(home, "hosts"),
    },
  });
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await receiver.stop();
  rmSync(home, { recursive: true });
});

interface Hook {
  webhook_id: string;
  secret: string;
  path: string;
}

let made = 0;

/** A webhook with a separate path that both hosts have replicated. */
async function hook(types: string[]): Promise<Hook> {
  const path = `/hook-${++made}`;
  const { webhook_id, secret } = await one.ok("POST", HOOKS, { url: receiver.url(path), types });
  await until(
    "the other host knows the webhook",
    async () => (await two.api("GET", `${HOOKS}/${webhook_id}`)).status === 200,
  );
  return { webhook_id, secret, path };
}

function answer({ path }: Hook, status: number): void {
  receiver.answer((received) => (received.path === path ? status : 204));
}

let rooms = 0;

/** A room on each host, under new names. */
async function happen(): Promise<[string, string]> {
  const names: [string, string] = [`room-${++rooms}`, `room-${++rooms}`];
  await one.ok("POST", "/v1/rooms", { room_id: names[0], host: "host-1" });
  await one.ok("POST", "/v1/rooms", { room_id: names[1], host: "host-2" });
  return names;
}

const arrived = (path: string, count: number) =>
  until(`${count} events at ${path}`, () => {
    const all = receiver.at(path);
    return all.length >= count && all;
  });
const verify = ({ headers, body }: Received, secret: string) => new Webhook(secret).verify(body, headers);
const roomsOf = (all: readonly Received[]) => all.map(({ event }) => event.data.room_id);

test("events of either host arrive once, signed with one secret, and both hosts report the same deliveries", async () => {
  const own = await hook(["room.created"]);
  const names = await happen();
  const all = await arrived(own.path, 2);
  expect(roomsOf(all).sort()).toEqual(names);
  for (const each of all) verify(each, own.secret);
  for (const host of [one, two]) {
    // The reads are events too, which each host processes a moment later.
    const shown = await until("both hosts have sent all events", async () => {
      const found = await host.ok("GET", `${HOOKS}/${own.webhook_id}`);
      return found.sent_count === 2 && found.behind_count === 0 && found;
    });
    expect(shown).toMatchObject({ url: receiver.url(own.path), enabled: true, failing_since: null });
    const { items } = await host.ok("GET", HOOKS);
    expect(items.find(({ webhook_id }: Json) => webhook_id === own.webhook_id)).toMatchObject({ sent_count: 2 });
  }
  expect(receiver.at(own.path)).toHaveLength(2);
});

test("the database of both hosts contains neither secret nor URL", async () => {
  const own = await hook(["room.created"]);
  const rows = await service.postgres.sql("SELECT string_agg(row::text, ' ') FROM roomd.rows WHERE tbl = 'webhooks'");
  expect(rows).toContain(own.webhook_id);
  for (const secret of [own.path, "receiver.test", own.secret.slice("whsec_".length)])
    expect(rows).not.toContain(secret);
});

test("a new secret, a deletion and a re-creation reach both hosts", async () => {
  const own = await hook(["room.created"]);
  const { secret } = await two.ok("POST", `${HOOKS}/${own.webhook_id}/rotate`, { grace_seconds: 0 });
  let count = 0;
  /** Deliveries of the next event of both hosts. */
  const next = async () => {
    await happen();
    count += 2;
    return (await arrived(own.path, count)).slice(count - 2);
  };
  await until("both hosts sign with the new secret", async () => {
    return (await next()).every((each) => {
      try {
        return verify(each, secret) !== undefined;
      } catch {
        return false;
      }
    });
  });
  await two.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: false });
  const isOff = async (host: TestDaemon) => (await host.ok("GET", `${HOOKS}/${own.webhook_id}`)).enabled === false;
  await until("both hosts know that the webhook is disabled", async () => (await isOff(one)) && (await isOff(two)));
  const meanwhile = await happen();
  await one.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: true });
  await until("the events of the interruption have arrived", () => {
    const names = roomsOf(receiver.at(own.path));
    return meanwhile.every((name) => names.includes(name));
  });
  await two.ok("DELETE", `${HOOKS}/${own.webhook_id}`);
  await until("the webhook is deleted on both hosts", async () => {
    const answers = await Promise.all([one, two].map((host) => host.api("GET", `${HOOKS}/${own.webhook_id}`)));
    return answers.every(({ status }) => status === 404);
  });
});

test("a receiver that answers 410 gets no more from either host until the other host enables it again", async () => {
  const own = await hook(["room.created"]);
  answer(own, 410);
  await happen();
  const isGone = async (host: TestDaemon) =>
    (await host.ok("GET", `${HOOKS}/${own.webhook_id}`)).disabled_reason === "gone";
  await until("both hosts know that the webhook is deleted", async () => (await isGone(one)) && (await isGone(two)));
  answer(own, 204);
  const before = receiver.at(own.path).length;
  await two.ok("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: true });
  const names = await happen();
  await until("both hosts send again", () => {
    const since = roomsOf(receiver.at(own.path).slice(before));
    return names.every((name) => since.includes(name));
  });
});

test("failed deliveries are listed by both hosts in one order, and redelivered by the host that has them", async () => {
  const own = await hook(["room.created"]);
  answer(own, 500);
  const names = await happen();
  for (const host of [one, two]) {
    const items = await until("two deliveries wait", async () => {
      const found: Json[] = (await host.ok("GET", `${HOOKS}/${own.webhook_id}/deliveries`)).items;
      return found.length === 2 && found;
    });
    const [first, second] = items as [Json, Json];
    expect(first.delivery_id > second.delivery_id).toBe(true);
    const page = await host.ok("GET", `${HOOKS}/${own.webhook_id}/deliveries?limit=1`);
    expect(page.items).toMatchObject([{ delivery_id: first.delivery_id }]);
    const rest = await host.ok("GET", `${HOOKS}/${own.webhook_id}/deliveries?limit=1&cursor=${page.next_cursor}`);
    expect(rest).toMatchObject({ items: [{ delivery_id: second.delivery_id }], next_cursor: null });
  }
  answer(own, 204);
  const before = receiver.at(own.path).length;
  const { items } = await one.ok("GET", `${HOOKS}/${own.webhook_id}/deliveries`);
  for (const { delivery_id } of items) {
    const path = `${HOOKS}/${own.webhook_id}/deliveries/${delivery_id}/redeliver`;
    expect((await one.api("POST", path)).status).toBe(202);
  }
  const again = await arrived(own.path, before + 2);
  expect(roomsOf(again.slice(before)).sort()).toEqual(names);
  const nowhere = `${HOOKS}/${own.webhook_id}/deliveries/evt_00000000000000000000000000/redeliver`;
  expect((await one.problem("POST", nowhere)).code).toBe("delivery_not_found");
});

test("a killed host resumes with the same IDs, and an unavailable one does not block the other", async () => {
  const own = await hook(["room.created"]);
  answer(own, 500);
  await happen();
  await until("both hosts have tried", () => receiver.at(own.path).length >= 2);
  await two.end("SIGKILL");
  answer(own, 204);
  await one.ok("POST", "/v1/rooms", { room_id: "while-away", host: "host-1" });
  await until("the other host sends", () => roomsOf(receiver.at(own.path)).includes("while-away"));
  for (const path of [HOOKS, `${HOOKS}/${own.webhook_id}`, `${HOOKS}/${own.webhook_id}/deliveries`]) {
    const { warnings } = await one.ok("GET", path);
    expect(warnings).toEqual([expect.stringContaining("host-2")]);
  }
  await two.serve();
  const ids = await until(
    "all deliveries are made",
    async () => {
      const { waiting_count, sent_count } = await one.ok("GET", `${HOOKS}/${own.webhook_id}`);
      return (
        waiting_count === 0 && sent_count >= 3 && receiver.at(own.path).map(({ headers }) => headers["webhook-id"])
      );
    },
    30_000,
  );
  expect(new Set(ids).size).toBe(3);
});

test("without the database events are delivered, and webhooks are read-only", async () => {
  const own = await hook(["drive."]);
  const [here] = await happen();
  await service.postgres.stop();
  try {
    await one.ok("POST", `/v1/rooms/${here}/drive/write`, { path: "/f", content: "f" });
    await arrived(own.path, 1);
    const refused = await one.problem("PATCH", `${HOOKS}/${own.webhook_id}`, { enabled: false });
    expect(refused.code).toBe("cluster_unavailable");
    expect((await one.ok("GET", `${HOOKS}/${own.webhook_id}`)).enabled).toBe(true);
  } finally {
    await service.postgres.begin();
  }
});
