/**
 * Connections to the outside at nearly the rate that a sandbox has: none of them fails, however long it lasts. By `test:long` for five
 * minutes. Else for as many as a guest without KVM opens in a minute, and by calculation that those of any time leave most of the
 * connection tracking table free.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { shortOrLong, withGuests } from "../harness/guests.ts";
import { Outside } from "../harness/outside.ts";

const NAME = "allowed.example";
/** Of the 200 new ones a second that limits.md promises. */
const RATE = 190;
const SECONDS = shortOrLong("connections to the outside, which without KVM take 30 ms or more each, seconds", 4, 300);
/** Of one connection at most: its own, and that of its look-up. */
const ENTRIES = 2;
/** Without KVM the guest may be slower than the rate. */
const DEADLINE_MS = 240_000 + 10 * SECONDS * 1000;

const CLIENT = `
import concurrent.futures, json, socket, sys, time
host, rate, total = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
begun = time.monotonic()
def ask(number):
    wait = begun + number / rate - time.monotonic()
    if wait > 0: time.sleep(wait)
    try:
        with socket.create_connection((host, 80), 30) as connection:
            connection.sendall(b"GET /small HTTP/1.1\\r\\nHost: ${NAME}\\r\\nConnection: close\\r\\n\\r\\n")
            got = b""
            while chunk := connection.recv(65536): got += chunk
            return None if b"small answer" in got else repr(got[:100])
    except OSError as error:
        return repr(error)
with concurrent.futures.ThreadPoolExecutor(48) as pool:
    failed = [each for each in pool.map(ask, range(total)) if each]
print(json.dumps({"failed": len(failed), "first": failed[:3], "seconds": time.monotonic() - begun}))
`;

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
    test(`${RATE} a second by ${how}, and none fails`, { timeout: DEADLINE_MS + 60_000 }, async () => {
      const argv = ["python3", "-c", CLIENT, host(), String(RATE), String(RATE * SECONDS)];
      const done = await guests.daemon.exec("rate", "a", { argv, timeout_ms: DEADLINE_MS });
      expect(done).toMatchObject({ exit_code: 0 });
      const { seconds, ...told } = JSON.parse(done.stdout);
      console.log(`${RATE * SECONDS} connections by ${how} in ${seconds.toFixed(1)} s`);
      expect(told).toEqual({ failed: 0, first: [] });
    });
  }

  test("those that have ended leave most of the table free at this rate", async () => {
    const place = "/proc/sys/net/netfilter/nf_conntrack";
    const shown = await guests.daemon.sh("rate", "a", `cat ${place}_max ${place}_tcp_timeout_time_wait`);
    const [most = 0, seconds = 0] = shown.split("\n").map(Number);
    expect(seconds).toBeGreaterThan(0);
    expect(RATE * seconds * ENTRIES).toBeLessThan(most / 2);
  });
});
