/**
 * Connections to the outside at nearly the limit of a sandbox, by address and by name, without a failure: for five minutes each by
 * `test:long`, else for a few seconds and by calculation that those of any time leave most of the connection tracking table free. A guest
 * without KVM opens as many of them as it can.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { shortOrLong, withGuests } from "../harness/guests.ts";
import { Outside } from "../harness/images/outside.ts";

const NAME = "allowed.example";
/** Of the 200 new ones a second that limits.md promises. */
const RATE = 190;
const SECONDS = shortOrLong("seconds of connections to the outside", 10, 300);
/** A guest without KVM reaches about 100 by address and 60 by name while its host has nothing else to do. */
const LEAST_RATE = 1;
/** Of one connection at most: its own, and that of its look-up. */
const ENTRIES = 2;
/** The last connections of a guest without KVM take seconds. */
const DEADLINE_MS = 120_000 + SECONDS * 1000;

const CLIENT = readFileSync(join(import.meta.dirname, "../fixtures/egress-rate.py"), "utf8");

let outside: Outside;
const prepare = async (daemon: { env: Record<string, string> }) => {
  outside = await Outside.start([NAME]);
  daemon.env.ROOMD_EGRESS_HOSTS_FILE = outside.hostsFile;
};

withGuests("the rate of connections", { prepare }, (guests) => {
  beforeAll(async () => {
    outside.setHosts({ [NAME]: outside.v4 });
    writeFileSync(join(outside.root, "small"), "small answer");
    await guests.daemon.room("rate");
    const list = { egress_allowlist: [NAME, `${outside.v4}:80`], memory_mib: 1024 };
    await guests.daemon.sandbox("rate", "a", guests.cid(), list);
  });
  afterAll(() => outside?.[Symbol.asyncDispose]());

  for (const [how, host] of [
    ["address", () => outside.v4],
    ["name", () => NAME],
  ] as const) {
    test(`${RATE} a second by ${how} for ${SECONDS} seconds, without failures`, {
      timeout: DEADLINE_MS + 60_000,
    }, async () => {
      const argv = ["python3", "-c", CLIENT, host(), String(RATE), String(SECONDS)];
      const done = await guests.daemon.exec("rate", "a", { argv, timeout_ms: DEADLINE_MS });
      expect(done).toMatchObject({ exit_code: 0 });
      const { made, seconds, ms, ...failures } = JSON.parse(done.stdout);
      console.log(`${made} connections by ${how} in ${seconds} s, ms: ${JSON.stringify(ms)}`);
      expect(failures).toEqual({ failed: 0, first: [] });
      if (guests.daemon.env.ROOMD_ACCELERATION === "kvm") expect(made).toBe(RATE * SECONDS);
      else expect(made).toBeGreaterThan(LEAST_RATE * SECONDS);
    });
  }

  test("at this rate, closed ones leave most of the conntrack table free", async () => {
    const place = "/proc/sys/net/netfilter/nf_conntrack";
    const shown = await guests.daemon.sh("rate", "a", `cat ${place}_max ${place}_tcp_timeout_time_wait`);
    const [most = 0, seconds = 0] = shown.split("\n").map(Number);
    expect(seconds).toBeGreaterThan(0);
    expect(RATE * seconds * ENTRIES).toBeLessThan(most / 2);
  });
});
