/** A host that is killed while it joins the cluster. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { freePort } from "../../harness/free-port.ts";
import { Postgres } from "../../harness/hosts/postgres.ts";

let postgres: Postgres;
const hosts: TestDaemon[] = [];

beforeAll(async () => {
  postgres = await Postgres.start();
}, 60_000);

afterAll(async () => {
  await Promise.all(hosts.map((host) => host.stop()));
  await postgres?.[Symbol.asyncDispose]();
});

const envOf = async (host: string) => ({
  ROOMD_HOST_ID: host,
  ROOMD_CLUSTER_URL: postgres.url(),
  ROOMD_CLUSTER_LISTEN: `127.0.0.1:${await freePort()}`,
});
const KILLED = { ROOMD_FAULT_POINT: "member.noted=kill" };

test("a host whose join was interrupted becomes a member by the same command", async () => {
  const first = await TestDaemon.start({
    env: await envOf("host-1"),
    prepare: async (daemon) => {
      const killed = await daemon.cli(["cluster", "init"], undefined, KILLED);
      expect(killed.status).not.toBe(0);
      const again = await daemon.cli(["cluster", "init"]);
      expect(again.status, again.stderr).toBe(0);
      const thrice = await daemon.cli(["cluster", "init", "--json"]);
      expect([thrice.status === 0, JSON.parse(thrice.stderr).code]).toEqual([false, "invalid_state"]);
    },
  });
  hosts.push(first);
  const token = (await first.cli(["cluster", "token"])).stdout.trim();
  const join = ["cluster", "join", token];
  const prepare = async (daemon: TestDaemon) => {
    expect((await daemon.cli(join, undefined, KILLED)).status).not.toBe(0);
  };
  const second = await TestDaemon.join(first, { env: await envOf("host-2"), prepare }, join);
  hosts.push(second);
  expect((await second.cli(join)).stderr).toContain(String(second.pid));
  await second.end("SIGTERM");
  const again = await second.cli([...join, "--json"]);
  expect([again.status === 0, JSON.parse(again.stderr).code]).toEqual([false, "invalid_state"]);
  expect((await first.cli(["cluster", "list"])).stdout).toMatch(/host-1 .*\n.*host-2 /);
}, 60_000);
