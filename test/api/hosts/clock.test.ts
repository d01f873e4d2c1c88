/** A host's report on its clock: whether it agrees with the clock of the shared database. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

let service: TestHosts;
let one: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(1);
  one = service.first;
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

const clockIn = (checks: Json[]) => checks.find(({ id }) => id === "clock");
const healthClock = async () => clockIn((await one.api("GET", "/health")).body.checks);
const doctor = async () => clockIn(JSON.parse((await one.cli(["doctor", "--json"])).stdout).checks);

/** From the next connection on the server's clock is ahead by `by`. */
const setClock = (by: string) =>
  service.postgres.sql(`CREATE SCHEMA IF NOT EXISTS later;
    CREATE OR REPLACE FUNCTION later.now() RETURNS timestamptz LANGUAGE sql STABLE
      AS $$ SELECT pg_catalog.now() + interval '${by}' $$;
    ALTER ROLE CURRENT_USER SET search_path = later, pg_catalog`);

test("a host whose clock differs from the database's reports it, with the offset", async () => {
  const agrees = { status: "ok", message: expect.stringContaining("agrees"), remedy: null };
  expect(await healthClock()).toMatchObject(agrees);
  expect(await doctor()).toMatchObject(agrees);
  await setClock("1 minute");
  await service.postgres.terminateSessions();
  const behind = {
    status: "warn",
    message: expect.stringMatching(/^This host's clock is (59|60|61) s behind that of the cluster's database/),
    remedy: expect.stringContaining("NTP"),
  };
  await until("the check of the clock warns", async () => (await healthClock()).status === "warn");
  expect(await healthClock()).toMatchObject(behind);
  expect(await doctor()).toMatchObject(behind);
  expect((await one.api("GET", "/metrics")).body).toMatch(/^roomd_check_status\{check="clock"\} 1$/m);
  await setClock("0");
  await until("the clocks agree again", async () => (await healthClock()).status === "ok");
});
