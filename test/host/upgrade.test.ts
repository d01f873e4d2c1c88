/**
 * Upgrade from an installation by a checkout's quickstart, before there was a package, to the package: with ten counting sandboxes, and a
 * client that keeps calling. Takes minutes, so it runs if ROOMD_TEST_LONG is 1.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until } from "../harness/guests.ts";
import { bootHost, INSTALL, storyOf } from "./installed.ts";
import type { VirtualHost } from "./machine.ts";
import { LEFT_OUT } from "./virtual-host.ts";

/** The last commit without a package. */
const BEFORE = "7a647f02";
const COUNTING = 10;
/**
 * Sandboxes that are at work during the upgrade; the others are on standby. More would take the one emulated processor from that roomd,
 * which then times out on them.
 */
const AT_WORK = 4;
const KEY = ". /root/keys; export ROOMD_API_KEY;";
const SLOW_MS = 180_000;
const TRIES = 30;
/**
 * That roomd fails a guest if its first connection breaks, which happens to most on a host as slow as this; and it may answer before one is
 * up.
 */
const CREATE = `
state() { roomd sandbox get demo $c --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])'; }
for n in $(seq ${TRIES}); do
  roomd sandbox create demo $c --memory 256
  while [ "$(state)" = starting ]; do sleep 1; done
  [ "$(state)" = running ] && exit
  roomd sandbox destroy demo $c
done
exit 1
`;
/**
 * Each program started in a guest takes a tenth of a second of the one emulated processor: ten that count more often leave that roomd none.
 */
const COUNT =
  "n=0; while :; do n=$((n+1)); echo $n >/mnt/drive/new-$0; mv /mnt/drive/new-$0 /mnt/drive/count-$0; sleep 15; done";

/** Calls one after the other until a file exists; retries if the answer permits a retry. */
const CLIENT = `
import json, os, time, urllib.error, urllib.request
key = [line.split("=")[1].strip() for line in open("/root/keys") if line.startswith("ROOMD_API_KEY")][0]
calls = retries = 0
failed = []
longest = 0
def attempt(number):
    body = json.dumps({"command": "echo $(( 6 * 7 ))", "exec_id": f"call-{number}", "timeout_ms": 60000}).encode()
    url = f"http://127.0.0.1:8080/v1/rooms/demo/sandboxes/c{number % ${AT_WORK} + 1}/exec"
    headers = {"authorization": "Bearer " + key, "content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=90) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, {"again_s": error.headers["Retry-After"], **json.loads(error.read() or b"{}")}
    except OSError as error:
        return 0, {"again_s": "0.5", "detail": str(error)}
while not os.path.exists("/root/enough"):
    began = time.monotonic()
    while True:
        status, answer = attempt(calls)
        if status == 200 or not answer.get("again_s") or time.monotonic() - began > 120: break
        retries += 1
        time.sleep(float(answer["again_s"]))
    longest = max(longest, time.monotonic() - began)
    if status != 200 or answer.get("stdout") != "42\\n": failed.append([calls, status, answer])
    calls += 1
    time.sleep(5)
print(json.dumps({"calls": calls, "retries": retries, "longest_s": round(longest, 1), "failed": failed[:5]}))
`;

if (LEFT_OUT !== null) console.log(`an upgrade on a virtual host: left out, because ${LEFT_OUT}`);

let host: VirtualHost;

describe.skipIf(LEFT_OUT !== null)("an upgrade from a version before the package", () => {
  const prepare = async () => {
    host = await bootHost({ before: BEFORE });
    await host.ok(
      "cp /payload/before/roomd.service /etc/systemd/system/ && ln -sfT /usr/local/lib/roomd/roomd /usr/local/bin/roomd && mkdir -p /etc/roomd && printf 'pool.size = 0\\n' >/etc/roomd/config.toml",
    );
    await host.ok(
      'roomd init --json >/root/init.json && python3 -c \'import json; print("ROOMD_API_KEY=" + json.load(open("/root/init.json"))["api_key"])\' >/root/keys',
    );
    await host.ok("systemctl daemon-reload && modprobe -a kvm_amd vhost_vsock && systemctl enable --now roomd");
    await until("the service answers", async () => (await host.run("roomd health")).status === 0, SLOW_MS);
    await host.ok(`${KEY} roomd room create demo`);
    for (let i = 1; i <= COUNTING; i++) {
      await host.ok(`${KEY} c=c${i}\n${CREATE}`, TRIES * SLOW_MS);
      await host.ok(`${KEY} roomd exec demo c${i} --background --timeout 1h -- sh -c '${COUNT}' ${i}`);
      // The existing ones would take the processor from the next.
      await host.ok(`${KEY} roomd sandbox standby demo c${i}`);
    }
    for (let i = 1; i <= AT_WORK; i++) await host.ok(`${KEY} roomd sandbox resume demo c${i}`);
  };

  beforeAll(async () => {
    try {
      await prepare();
    } catch (error) {
      console.log(await storyOf(host));
      throw error;
    }
  }, 3_600_000);

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") console.log(await storyOf(host));
  });

  afterAll(() => host?.end());

  test("no counter restarts, and no call fails that is retried as instructed", async () => {
    const counts = async () => {
      // Read directly on the host: ten more commands would keep it busy for minutes.
      const all = await host.ok(`for i in $(seq ${COUNTING}); do cat /var/lib/roomd/rooms/*/drive/count-$i; done`);
      return all.split("\n").map(Number);
    };
    const before = await counts();
    await host.ok(
      `cat >/root/client.py <<'END'\n${CLIENT}\nEND\nsystemd-run -q --unit client -p StandardOutput=file:/root/said python3 /root/client.py`,
    );
    console.log(await host.ok(`${INSTALL} /payload/roomd.deb`, 600_000));
    await until("the service answers", async () => (await host.run("roomd health")).status === 0, SLOW_MS);
    const goOn = async (from: number, to: number) => {
      const done = async () => (await counts()).slice(from, to).every((count, at) => count > (before[from + at] ?? 0));
      await until(`counters ${from + 1} to ${to} go on`, done, SLOW_MS);
    };
    await goOn(0, AT_WORK);
    await host.ok("touch /root/enough; while systemctl is-active -q client; do sleep 1; done");
    for (let i = AT_WORK + 1; i <= COUNTING; i++) {
      await host.ok(`${KEY} roomd sandbox standby demo c${i - AT_WORK}; roomd sandbox resume demo c${i}`);
      await goOn(i - 1, i);
    }
    const after = await counts();
    const result = JSON.parse(await host.ok("cat /root/said"));
    console.log(`ten count: ${before.join(" ")} → ${after.join(" ")}; ${JSON.stringify(result)}`);
    expect(result.failed).toEqual([]);
    expect(result.calls).toBeGreaterThan(AT_WORK);
    for (const [index, count] of after.entries()) expect(count).toBeGreaterThan(before[index] ?? Number.NaN);
    expect(await host.ok("readlink -f /usr/bin/roomd; ls /usr/local/lib/roomd /usr/local/bin")).not.toMatch(/^roomd$/m);
    expect(await host.ok("systemctl show -p FragmentPath,ExecStart roomd")).toContain("/usr/lib/");
    const listed: { state: string }[] = JSON.parse(await host.ok(`${KEY} roomd sandbox list demo --json`)).items;
    const states = listed.map(({ state }) => state).sort();
    const paused = COUNTING - AT_WORK;
    expect(states).toEqual([...Array(paused).fill("paused"), ...Array(AT_WORK).fill("running")]);
  });
});
