/**
 * A host that shuts down and reboots with working sandboxes: their memory, open files, ports and SSH continue; sandboxes for which the disk
 * has no space are named beforehand, and end; a restart of the service, or a power loss, is neither. Takes half an hour, so it runs if
 * ROOMD_TEST_LONG is 1.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until as untilSoon } from "../harness/guests.ts";
import type { Json } from "../harness/json.ts";
import { bootHost, DATA, INSTALL, storyOf, WITH_KEY } from "./installed.ts";
import type { VirtualHost } from "./machine.ts";
import { LEFT_OUT } from "./virtual-host.ts";

/** Sandboxes that are at work when the host shuts down, and sandboxes on standby. */
const AT_WORK = 7;
const STANDING_BY = 3;
const MEMORY_MIB = 256;
/** Emulation within emulation makes everything slow. */
const SLOW_MS = 900_000;
const PORT = 8000;

/**
 * Counts in memory and writes the count to a file of the drive that it has opened once; a digest of its memory's content is compared each
 * time. The first one also answers with its count on a port. Starting a program for each count would keep the one processor busy.
 */
const WORK = `
import hashlib, http.server, os, sys, threading, time
heap = os.urandom(4 << 20)
digest = hashlib.sha256(heap).hexdigest()
log = open("/mnt/drive/count-" + sys.argv[1], "a", buffering=1)
n = 0
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"%d of %d\\n" % (n, os.getpid())
        self.send_response(200); self.send_header("content-length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *args): pass
if sys.argv[1] == "w1":
    threading.Thread(target=http.server.HTTPServer(("127.0.0.1", ${PORT}), Answer).serve_forever, daemon=True).start()
while True:
    n += 1
    log.write("%d %s\\n" % (n, "whole" if hashlib.sha256(heap).hexdigest() == digest else "broken"))
    time.sleep(5)
`;

/** Each poll takes some of the one processor from the observed sandboxes. */
const LOOK_MS = 2_000;
const until: typeof untilSoon = (description, probe, deadlineMs) =>
  untilSoon(
    description,
    async () => {
      const found = await probe();
      if (!found) await Bun.sleep(LOOK_MS);
      return found;
    },
    deadlineMs,
  );

const NAMES = Array.from({ length: AT_WORK + STANDING_BY }, (_, index) => `w${index + 1}`);
const WORKING = NAMES.slice(0, AT_WORK);
const STANDING = NAMES.slice(AT_WORK);

if (LEFT_OUT !== null) console.log(`a host that reboots: left out, because ${LEFT_OUT}`);

let host: VirtualHost;

const TRIES = 5;

/** With curl, which starts immediately: each start of roomd's own client takes seconds here. Returns the answer with its status. */
async function call(method: string, path: string, body?: object): Promise<{ status: number; body: Json }> {
  const data = body === undefined ? "" : `-H 'content-type: application/json' --data-binary @-`;
  const output = await host.ok(
    `${WITH_KEY} curl -s -m ${SLOW_MS / 1000} -w '\\n%{http_code}' -X ${method} -H "authorization: Bearer $ROOMD_API_KEY" ${data} 'http://127.0.0.1:8080/v1/rooms${path}'${
      body === undefined ? "" : ` <<'END'\n${JSON.stringify(body)}\nEND`
    }`,
    SLOW_MS,
  );
  const [text = "", status = ""] = output.split(/\n(?=\d+$)/);
  return { status: Number(status), body: text === "" ? null : JSON.parse(text) };
}

async function ok(method: string, path: string, body?: object): Promise<Json> {
  const answer = await call(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const of = (name: string, verb = "") => `/demo/sandboxes/${name}${verb}`;
const records = async (): Promise<Map<string, Json>> => {
  const { items } = await ok("GET", "/demo/sandboxes");
  return new Map(items.map((item: Json) => [item.agent_id, item]));
};
const audited = async (event: string): Promise<Json[]> =>
  (await ok("GET", `/demo/audit?event=${event}&limit=100`)).items;

/** A machine within a machine that is emulated may not come up. */
async function create(name: string, guest_cid: number): Promise<void> {
  for (let tries = 1; ; tries++) {
    await ok("POST", "/demo/sandboxes/from-template?wait=none", { agent_id: name, guest_cid, memory_mib: MEMORY_MIB });
    const state = await until(
      `${name} runs`,
      async () => {
        const now = (await call("GET", of(name))).body.state;
        return now !== "creating" && now !== "starting" && now;
      },
      SLOW_MS,
    );
    if (state === "running") return;
    console.log(`${name} did not start: ${JSON.stringify((await call("GET", of(name))).body.status)}`);
    if (tries === TRIES) throw new Error(`${name} does not start`);
    await ok("DELETE", of(name));
  }
}

const states = async () => {
  const lines = [...(await records()).values()].map(
    ({ agent_id, state, status }) => `${agent_id} ${state} ${status.reason}`,
  );
  return lines.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
};
/** Read directly on the host: a command in each guest would take minutes. */
const countedLines = async (name: string) =>
  (await host.ok(`cat ${DATA}/rooms/*/drive/count-${name} 2>/dev/null || true`)).split("\n").filter(Boolean);
const countsOf = async (names: readonly string[]) =>
  new Map(await Promise.all(names.map(async (name) => [name, (await countedLines(name)).length] as const)));

/** Each continues from its previous count, none has restarted, and its memory is intact. */
async function goOn(before: ReadonlyMap<string, number>): Promise<void> {
  for (const [name, count] of before) {
    const lines = await until(
      `${name} counts on`,
      async () => {
        const all = await countedLines(name);
        return all.length > count && all;
      },
      SLOW_MS,
    );
    expect(lines.filter((line, index) => line !== `${index + 1} whole`)).toEqual([]);
  }
}

/** Seconds from its start until it reported readiness to systemd. */
async function secondsToReady(): Promise<number> {
  await until(
    "the service is ready",
    async () => (await host.run("systemctl is-active -q roomd")).status === 0,
    SLOW_MS,
  );
  const shown = await host.ok(
    "systemctl show roomd -P ExecMainStartTimestampMonotonic -P ActiveEnterTimestampMonotonic",
  );
  const [from = 0, to = 0] = shown.split("\n").map(Number);
  return (to - from) / 1e6;
}

const shutdownOf = async () =>
  await host.ok(
    "journalctl -b -1 -o short-monotonic --no-pager | grep -E 'roomd|systemd-shutdown|Reached target' | tail -n 200",
  );

describe.skipIf(LEFT_OUT !== null)("a host that reboots", { timeout: 7_200_000 }, () => {
  const prepare = async () => {
    host = await bootHost();
    // Log output from before a boot remains readable after it.
    await host.ok("mkdir -p /var/log/journal && systemctl restart systemd-journald");
    await host.ok(`${INSTALL} /payload/roomd.deb`);
    await host.ok(
      // A probe has a limit of seconds, and a host that is emulated next to other work may need more.
      "printf 'pool.size = 0\\nacceleration = \"kvm\"\\n' >/etc/roomd/config.toml && roomd setup --no-demo",
      SLOW_MS,
    );
    await ok("POST", "", { room_id: "demo" });
    await ok("POST", "/demo/drive/write", { path: "/work.py", content: WORK });
    for (const [index, name] of NAMES.entries()) {
      await create(name, 9100 + index);
      const command = `setsid python3 /mnt/drive/work.py ${name} >/dev/null 2>&1 </dev/null &`;
      await ok("POST", of(name, "/exec"), { command, timeout_ms: 300_000 });
      await until(`${name} counts`, async () => (await countedLines(name)).length > 0, SLOW_MS);
      if (STANDING.includes(name)) await ok("POST", of(name, "/standby"));
    }
    await host.ok("ssh-keygen -q -t ed25519 -N '' -f /root/id && roomd org ssh-key add /root/id.pub");
  };

  beforeAll(async () => {
    try {
      await prepare();
    } catch (error) {
      console.log(await storyOf(host));
      throw error;
    }
  }, 7_200_000);

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") console.log(await storyOf(host));
  });

  afterAll(() => host?.end());

  const ssh = () =>
    host.run(
      "ssh -i /root/id -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR w1@demo@127.0.0.1 cat /proc/sys/kernel/random/boot_id",
      SLOW_MS,
    );
  let url = "";
  const port = async () => await host.run(`curl -sf -m 120 '${url}'`);

  test("saves no sandbox when only its service is restarted", async () => {
    const before = await countsOf(WORKING);
    const pids = await host.ok("pgrep qemu-system | sort");
    await host.ok("systemctl restart roomd");
    await secondsToReady();
    expect(await host.ok("pgrep qemu-system | sort")).toBe(pids);
    await goOn(before);
    expect(await audited("sandbox.hibernated")).toEqual([]);
  });

  test("resumes all with memory, open files, port and SSH; and is ready when they are", async () => {
    url = (await ok("POST", of("w1", "/ports"), { port: PORT, visibility: "public" })).path_url;
    const answered = await until("the port answers", async () => (await port()).text.match(/of (\d+)/)?.[1], SLOW_MS);
    const bootId = (await ssh()).text.trim();
    expect(bootId).toMatch(/^[0-9a-f-]{36}$/);
    const { checks } = JSON.parse(await host.ok("roomd doctor --json 2>/dev/null"));
    const check = checks.find(({ id }: Json) => id === "host_restart");
    console.log(check.message);
    expect(check).toMatchObject({ status: "ok", message: expect.stringContaining(`all ${NAMES.length} sandboxes`) });
    const before = await countsOf(NAMES);

    await host.reboot(SLOW_MS);
    const seconds = await secondsToReady();
    const after = await states();
    console.log(
      `${AT_WORK} of ${NAMES.length} resumed; the service was ready ${seconds} s after its start\n${await shutdownOf()}`,
    );
    expect(after).toEqual([
      ...WORKING.map((name) => `${name} running resumed`),
      ...STANDING.map((name) => `${name} hibernated standby`),
    ]);
    await goOn(new Map(WORKING.map((name) => [name, before.get(name) ?? 0])));
    expect(await until("the port answers", async () => (await port()).text.match(/of (\d+)/)?.[1], SLOW_MS)).toBe(
      answered,
    );
    expect((await ssh()).text.trim()).toBe(bootId);
    for (const name of STANDING) {
      await ok("POST", of(name, "/resume"));
      await goOn(new Map([[name, before.get(name) ?? 0]]));
      await ok("DELETE", of(name));
    }
  });

  test("ends those that do not fit on the disk, as predicted by doctor, with that reason", async () => {
    for (const name of WORKING.slice(4)) await ok("DELETE", of(name));
    await ok("POST", of("w4", "/hibernate"));
    const doctor = async () => {
      const { checks } = JSON.parse(await host.ok("roomd doctor --json 2>/dev/null"));
      return checks.find(({ id }: Json) => id === "host_restart");
    };
    const [, need] = /\b(\d+) of\b/.exec((await doctor()).message) ?? [];
    // Space for two and a half of the three, above the space that has to stay free.
    const space = 128 + Math.floor((Number(need) * 5) / 6);
    await host.ok(
      `free=$(df --output=avail -B1M ${DATA} | tail -n 1) && fallocate -l $((free - ${space}))M ${DATA}/filler && df -h ${DATA}`,
    );
    const check = await doctor();
    console.log(check.message, check.remedy);
    expect(check).toMatchObject({
      status: "warn",
      message: expect.stringMatching(/\bdemo\/w[123] \(/),
    });
    const named = [...String(check.message).matchAll(/demo\/(w\d)/g)].map(([, name]) => name);
    const before = await countsOf(["w1", "w2", "w3"]);

    await host.reboot(SLOW_MS);
    console.log(`ready ${await secondsToReady()} s after its start`);
    const ended = [...(await records()).values()].filter(({ state }) => state === "failed");
    console.log(
      JSON.stringify(
        ended.map(({ agent_id, status }) => [agent_id, status]),
        null,
        2,
      ),
    );
    expect(ended.map(({ agent_id }) => agent_id)).toEqual(named);
    for (const each of ended) {
      expect(each).toMatchObject({
        exit: { cause: "host_restart" },
        status: {
          message: expect.stringMatching(/\b\d+ MiB\b/),
        },
      });
    }
    const endedNames = new Set(ended.map(({ agent_id }) => agent_id));
    await goOn(new Map([...before].filter(([name]) => !endedNames.has(name))));
    // By a call, and so until a call.
    expect((await records()).get("w4")).toMatchObject({ state: "hibernated", status: { reason: "hibernated" } });
    const left = (await audited("sandbox.hibernated")).filter(({ details }: Json) => details.reason === "not_saved");
    expect(left.map(({ agent_id, outcome }: Json) => [agent_id, outcome])).toEqual(
      [...endedNames].map((name) => [name, "error"]),
    );
  });

  test("after a power loss ends those that were running, and no other", async () => {
    await host.ok(`rm ${DATA}/filler`);
    const running = [...(await records()).values()]
      .filter(({ state }) => state === "running")
      .map(({ agent_id }) => agent_id);
    expect(running.length).toBeGreaterThan(0);
    await host.reboot(SLOW_MS, "sync; echo b >/proc/sysrq-trigger");
    console.log(`ready ${await secondsToReady()} s after its start`);
    const found = await records();
    for (const name of running) {
      expect(found.get(name)).toMatchObject({ state: "failed", exit: { cause: "host_restart" } });
    }
    await ok("POST", of("w4", "/resume"));
    const count = (await countedLines("w4")).length;
    await goOn(new Map([["w4", count]]));
  });
});
