/** The procedures of docs/cluster.md: setup of two hosts with a database that must prove its name, and rolling upgrades. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocksOf, pageAt, typed } from "../../harness/documents.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

const PAGE = pageAt("docs/cluster.md");
const [EMPTY, BACK] = blocksOf(PAGE, "sh operations");

let service: TestHosts;

beforeAll(async () => {
  service = await TestHosts.start(0);
  // With the server's name and CA verified, as on the page, and the password in the URL or in a file; the harness runs init, token and
  // join.
  const whole = service.postgres.url("tls");
  const url = new URL(whole);
  const file = join(service.postgres.directory, "password-alone");
  writeFileSync(file, `${decodeURIComponent(url.password)}\n`, { mode: 0o600 });
  url.password = "";
  await service.add({ env: { ROOMD_CLUSTER_URL: url.href, ROOMD_CLUSTER_PASSWORD_FILE: file } });
  await service.add({ env: { ROOMD_CLUSTER_URL: whole } });
  await service.knowEachOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
}, 60_000);

test("a database server that cannot prove its name is refused", async () => {
  const { first, postgres } = service;
  const named = new URL(postgres.url("tls"));
  named.hostname = "127.0.0.1";
  for (const url of [named.href, postgres.url("tls").replace(/&sslrootcert=.*/, "")]) {
    const { status, stderr } = await first.cli(["cluster", "token", "--json"], undefined, {
      ROOMD_CLUSTER_URL: url,
      ROOMD_CLUSTER_PASSWORD_FILE: "",
    });
    expect([status === 0, JSON.parse(stderr).code]).toEqual([false, "cluster_unavailable"]);
  }
});

test("a password both in a file and in the URL is refused", async () => {
  const env = { ROOMD_CLUSTER_URL: service.postgres.url("tls") };
  const { status, stderr } = await service.first.cli(["cluster", "token"], undefined, env);
  expect([status, stderr]).toEqual([2, expect.stringContaining("cluster.password_file")]);
});

test("a host is evacuated, upgraded and returned to service", { timeout: 90_000 }, async () => {
  const [one, two] = service.hosts as [typeof service.first, typeof service.first];
  await one.ok("POST", "/v1/rooms", { room_id: "stays", host: "host-2" });
  const emptied = await typed(one, PAGE.path, [EMPTY as typeof EMPTY & object], one.operatorKey);
  expect(emptied, emptied.errors).toMatchObject({ status: 0 });
  await until("the list has no room on it", async () => {
    return /^host-2 +draining +\S+ +0 /m.test((await one.cli(["cluster", "list"])).stdout);
  });
  expect((await two.ok("GET", "/v1/rooms/stays")).host).toBe("host-1");
  expect((await one.problem("POST", "/v1/rooms", { room_id: "new", host: "host-2" })).code).toBe(
    "insufficient_capacity",
  );
  await two.restart();
  const back = await typed(one, PAGE.path, [BACK as typeof BACK & object], one.operatorKey);
  expect(back, back.errors).toMatchObject({ status: 0 });
  expect(back.printed).toMatch(/host-2 +active/);
  await until("rooms are placed on it", async () => {
    return (await two.api("POST", "/v1/rooms", { room_id: "new", host: "host-2" })).status === 201;
  });
  expect((await one.ok("GET", "/v1/rooms/new")).host).toBe("host-2");
});
