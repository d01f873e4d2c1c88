/** Rooms with real guests that move between two hosts: killed at every step, under load, and to a host that cannot have all of it. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Roomd } from "../../../sdk/typescript/src/index.ts";
import { newId } from "../../../shared/ids.ts";
import { type Json, type TestDaemon, whyNoGuests } from "../../harness/daemon.ts";
import { LONG, processesOf, showLogs, until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

const reason = whyNoGuests() ?? (LONG ? null : "it takes many minutes: ROOMD_TEST_LONG=1 runs it");
if (reason !== null) console.log(`rooms with guests that move: left out, because ${reason}`);

const MEMORY_MIB = 256;
const RECORDED = randomBytes(3_000_000);
/** Under TCG, on a host that does other things besides. */
const BACK_MS = 120_000;

describe.skipIf(reason !== null)("rooms with guests that move", () => {
  let service: TestHosts;
  let one: TestDaemon;
  let two: TestDaemon;

  beforeAll(async () => {
    service = await TestHosts.start(2, { guests: true, env: { ROOMD_POOL_SIZE: "0" } });
    [one, two] = service.hosts as [TestDaemon, TestDaemon];
    await service.knowEachOther();
  }, 180_000);
  afterEach(({ task }) => {
    if (task.result?.state === "fail") for (const host of service.hosts) showLogs(host, task.name);
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  const nameOf = (host: TestDaemon) => (host === one ? "host-1" : "host-2");
  const otherOf = (host: TestDaemon) => (host === one ? two : one);

  /** Retries until the room has moved; throws if it cannot move. Returns the answer. */
  async function moved(room: string, to: TestDaemon): Promise<Json> {
    let body: Json = null;
    await until(`${room} has moved`, async () => {
      const answer = await one.api("POST", `/v1/rooms/${room}/move`, { host: nameOf(to) });
      body = answer.body;
      if (answer.status >= 300 && body.code !== "room_moving") throw new Error(JSON.stringify(body));
      return answer.status < 300;
    });
    return body;
  }

  async function untilRuns(room: string, agent: string): Promise<void> {
    const path = `/v1/rooms/${room}/sandboxes/${agent}`;
    await until(
      `${agent} runs`,
      async () => {
        const { status, body } = await one.api("GET", path);
        return status === 200 && body.state === "running";
      },
      BACK_MS,
    );
  }

  describe("a guest that counts on its drive and in memory, while either host is killed", () => {
    const ROOM = "counts";
    let sandboxId = "";
    let here: TestDaemon;
    let watch: Watch;

    beforeAll(async () => {
      here = one;
      await one.ok("POST", "/v1/rooms", { room_id: ROOM, host: "host-1" });
      await one.ok("PUT", `/v1/rooms/${ROOM}/agents/b/subscriptions`, { topics: ["t"] });
      await until(
        "the other host knows the room",
        async () => (await two.api("GET", `/v1/rooms/${ROOM}`)).status === 200,
      );
      ({ sandbox_id: sandboxId } = await one.sandbox(ROOM, "w", 9140, { memory_mib: MEMORY_MIB }));
      await one.sh(ROOM, "w", `setsid sh -c '${COUNT}' > /dev/null 2>&1 &`);
      watch = new Watch([one, two], sandboxId);
    }, 120_000);
    afterAll(() => watch?.end());

    const atSource = ["noted", "saved", "packed", "sent", "claimed", "handed", "retired"];
    const atGoal = ["received", "ready", "placed", "arrived"];
    const points = [...atSource.map((point) => [point, "source"]), ...atGoal.map((point) => [point, "goal"])];
    const cases = points.flatMap(([point, at]) => ["source", "goal"].map((victim) => [point, at, victim] as const));

    test.each(cases)(
      "at move.%s of the %s, the %s",
      async (point, at, killed) => {
        const [source, goal] = [here, otherOf(here)];
        const [reached, victim] = [at === "source" ? source : goal, killed === "source" ? source : goal];
        const isItself = reached === victim;
        reached.env.ROOMD_FAULT_POINT = `move.${point}=${isItself ? "kill" : "stall"}`;
        await reached.restart();
        delete reached.env.ROOMD_FAULT_POINT;
        await service.knowEachOther();
        await untilRuns(ROOM, "w");
        const logStart = reached.log.length;
        const before = await currentCount();
        const sending = senders([one, two], ROOM);
        const request = source.api("POST", `/v1/rooms/${ROOM}/move`, { host: nameOf(goal) }).catch(() => null);
        if (isItself) await until("the daemon has exited", () => !victim.runs, BACK_MS);
        else {
          await until(
            "the daemon is at the fault point",
            () => reached.log.slice(logStart).includes(`"move.${point}"`),
            BACK_MS,
          );
          await victim.end("SIGKILL");
          process.kill(reached.pid, "SIGUSR2");
        }
        await request;
        await victim.restart();
        await service.knowEachOther();
        await until(
          "both hosts route to the owner",
          async () => {
            const answers = await Promise.all([one, two].map((host) => host.api("GET", `/v1/rooms/${ROOM}`)));
            const hosts = answers.map(({ status, body }) => (status === 200 ? body.host : null));
            if (hosts[0] === null || hosts[0] !== hosts[1]) return false;
            here = hosts[0] === "host-1" ? one : two;
            return true;
          },
          BACK_MS,
        );
        await untilRuns(ROOM, "w");
        const sent = await sending.end();
        expect(await numbers()).toEqual(expect.arrayContaining(sent));
        expect(new Set(await numbers()).size).toBe((await numbers()).length);
        const after = await until("the sandbox counts on", async () => {
          const count = await currentCount();
          return count > before && count;
        });
        console.log(`${point}, ${killed} killed: on ${nameOf(here)}, ${before} → ${after}, ${sent.length} messages`);
        expectOnce(await linesOf("counts"));
        const directory = join(otherOf(here).dataDir, "sandboxes", sandboxId);
        await until("no copy remains on the other host", () => !existsSync(directory), BACK_MS);
        expect(watch.both).toEqual([]);
      },
      360_000,
    );

    const currentCount = async () => Number(await one.sh(ROOM, "w", "cat /dev/shm/count"));
    /** If the host's daemon was killed during the guest's resume, the guest may get its drive a moment later. */
    const linesOf = async (path: string) => {
      const request = { command: `cat /mnt/drive/${path}`, timeout_ms: 60_000 };
      const { stdout } = await until(
        "the drive is mounted",
        async () => {
          const done = await one.exec(ROOM, "w", request);
          if (done.exit_code !== 0) console.log(`the drive is not there yet: ${done.stderr}`);
          return done.exit_code === 0 && done;
        },
        BACK_MS,
      );
      return String(stdout).trim().split("\n").map(Number);
    };
    const numbers = async () => (await messagesOf(one, ROOM)).map(({ payload }) => payload.n as number);
  });

  test("paused and hibernated guests stay so, a snapshot is forked there, and all keep their memory", async () => {
    const room = "rests";
    await one.ok("POST", "/v1/rooms", { room_id: room, host: "host-1" });
    for (const [index, agent] of ["stands", "sleeps", "runs"].entries())
      await one.sandbox(room, agent, 9150 + index, { memory_mib: MEMORY_MIB });
    for (const agent of ["stands", "sleeps", "runs"])
      await one.sh(room, agent, `echo ${agent} > /dev/shm/known; echo ${agent} > /root/known`);
    const { snapshot_id } = await one.ok("POST", `/v1/rooms/${room}/sandboxes/runs/snapshots`, { name: "before" });
    await one.sh(room, "runs", "echo later > /dev/shm/known");
    const recording = await keepRecording(room, "runs");
    await one.ok("POST", `/v1/rooms/${room}/sandboxes/stands/standby`);
    await one.ok("POST", `/v1/rooms/${room}/sandboxes/sleeps/hibernate`);
    expect(await moved(room, two)).toMatchObject({ sandboxes_ended: [], lost: { snapshots: 0 } });
    await untilRuns(room, "runs");
    const states = async () => {
      const { items } = await one.ok("GET", `/v1/rooms/${room}/sandboxes`);
      return Object.fromEntries(items.map((each: Json) => [each.agent_id, each.state]));
    };
    expect(await states()).toEqual({ stands: "hibernated", sleeps: "hibernated", runs: "running" });
    expect(await one.sh(room, "runs", "cat /dev/shm/known")).toBe("later");
    expect(await recording()).toEqual(RECORDED);
    await one.ok("POST", `/v1/rooms/${room}/sandboxes/from-template`, {
      agent_id: "forked",
      guest_cid: 9160,
      memory_mib: MEMORY_MIB,
      snapshot_id,
    });
    await untilRuns(room, "forked");
    expect(await one.sh(room, "forked", "cat /dev/shm/known /root/known")).toBe("runs\nruns");
    for (const agent of ["stands", "sleeps"]) {
      await one.ok("POST", `/v1/rooms/${room}/sandboxes/${agent}/resume`);
      expect(await one.sh(room, agent, "cat /dev/shm/known /root/known")).toBe(`${agent}\n${agent}`);
    }
    await one.ok("DELETE", `/v1/rooms/${room}`);
  }, 480_000);

  /** An ended recording, as the service stores it; returns a function that reads it through the other host. */
  async function keepRecording(room: string, agent: string): Promise<() => Promise<Buffer>> {
    const { room_uid } = await one.ok("GET", `/v1/rooms/${room}`);
    const { sandbox_id } = await one.ok("GET", `/v1/rooms/${room}/sandboxes/${agent}`);
    const [recording_id, at] = [newId("rec"), new Date().toISOString()];
    const directory = join(one.dataDir, "rooms", room_uid, "recordings");
    mkdirSync(directory, { recursive: true });
    const size = { width: 800, height: 600 };
    const kept = { recording_id, agent_id: agent, sandbox_id, started_at: at, ...size };
    const end = { reason: "stopped", at, duration_ms: 1 };
    writeFileSync(join(directory, `${recording_id}.rfb`), RECORDED);
    writeFileSync(join(directory, `${recording_id}.json`), JSON.stringify({ ...kept, end }));
    const path = `/v1/rooms/${room}/sandboxes/${agent}/screen/recordings`;
    return async () => {
      const { items } = await two.ok("GET", path);
      expect(items).toMatchObject([{ recording_id, sandbox_id, state: "ended", end_reason: "stopped" }]);
      const headers = { authorization: `Bearer ${one.apiKey}` };
      return Buffer.from(await (await fetch(`${two.url}${path}/${recording_id}/data`, { headers })).arrayBuffer());
    };
  }

  test("a guest with a missing file is retried for half a minute, then ends, and its room opens", async () => {
    const room = "lacks";
    await one.ok("POST", "/v1/rooms", { room_id: room, host: "host-1" });
    const made = await one.sandbox(room, "lost", 9170, { memory_mib: MEMORY_MIB });
    await one.sandbox(room, "kept", 9171, { memory_mib: MEMORY_MIB });
    await one.sh(room, "kept", "echo known > /dev/shm/known");
    two.env.ROOMD_FAULT_POINT = "move.ready=stall";
    await two.restart();
    delete two.env.ROOMD_FAULT_POINT;
    await service.knowEachOther();
    const logStart = two.log.length;
    const request = one.api("POST", `/v1/rooms/${room}/move`, { host: "host-2" });
    await until("the daemon is at the fault point", () => two.log.slice(logStart).includes('"move.ready"'), BACK_MS);
    const [room_uid = ""] = readdirSync(join(two.dataDir, "arriving"));
    rmSync(join(two.dataDir, "arriving", room_uid, "sandboxes", made.sandbox_id, "saved.json"));
    process.kill(two.pid, "SIGUSR2");
    const since = performance.now();
    expect((await request).body.code).toBe("room_moving");
    await until("the room is active", async () => (await one.api("GET", `/v1/rooms/${room}`)).status === 200, BACK_MS);
    console.log(`a guest that cannot be had: its room was open after ${Math.round(performance.now() - since)} ms`);
    await untilRuns(room, "kept");
    expect(await one.sh(room, "kept", "cat /dev/shm/known")).toBe("known");
    await until("the sandbox is destroyed", async () => {
      const { items } = await one.ok("GET", `/v1/rooms/${room}/sandboxes?state=destroyed`);
      return items.some((each: Json) => each.agent_id === "lost" && each.exit?.cause === "host_evacuated");
    });
    await one.ok("DELETE", `/v1/rooms/${room}`);
  }, 480_000);

  test("four agents, two of them in guests, work while their room moves: messages once, barriers complete", async () => {
    const room = "busy";
    await one.ok("POST", "/v1/rooms", { room_id: room, host: "host-1" });
    for (const [index, agent] of ["a", "b"].entries()) {
      await one.sandbox(room, agent, 9180 + index, { memory_mib: MEMORY_MIB });
      await one.sh(room, agent, `setsid sh -c '${COUNT.replaceAll("counts", `counts-${agent}`)}' > /dev/null 2>&1 &`);
    }
    await until(
      "the other host knows the room",
      async () => (await two.api("GET", `/v1/rooms/${room}`)).status === 200,
    );
    const clients = [one, two].map((host) => new Roomd({ url: host.url, apiKey: host.apiKey }));
    const names = ["a", "b", "c", "d"];
    let isOver = false;
    let sending = 0;
    const sent: string[] = [];
    const received: Record<string, string[]> = { a: [], b: [], c: [], d: [] };
    const rounds: Record<string, number> = { a: 0, b: 0, c: 0, d: 0 };
    const over = new AbortController();
    const agents = names.map((name, index) => {
      const roomd = clients[index % 2] as Roomd;
      return { name, agent: roomd.rooms.open(room).agent(name) };
    });
    for (const { agent } of agents) await agent.subscribe(["t"]);
    const talks = agents.map(async ({ name, agent }, index) => {
      const next = names[(index + 1) % names.length] as string;
      for (let n = 0; !isOver; n++) {
        const text = `${name} to ${next}: ${n}`;
        sending++;
        await agent.send(next, text, { messageId: `${name}-${n}` });
        sending--;
        sent.push(text);
        await agent.barrier(`round-${n}`, { participants: names, timeoutMs: 300_000, signal: over.signal });
        rounds[name] = n + 1;
      }
    });
    const hears = agents.map(async ({ name, agent }) => {
      while (!over.signal.aborted) {
        const message = await agent.wait<string>({ timeoutMs: 1_000, signal: over.signal });
        if (message) received[name]?.push(message.payload);
      }
    });
    const failed: unknown[] = [];
    const all = Promise.all(
      [...talks, ...hears].map((each) => each.catch((error) => over.signal.aborted || failed.push(error))),
    );
    const away: number[] = [];
    for (const to of [two, one, two, one]) {
      const { away_ms, sandboxes_ended } = await moved(room, to);
      expect(sandboxes_ended).toEqual([]);
      away.push(away_ms);
      await Promise.all(["a", "b"].map((agent) => untilRuns(room, agent)));
    }
    isOver = true;
    const last = Math.min(...Object.values(rounds));
    const isHeard = (text: string) => Object.values(received).flat().includes(text);
    await until("all sent messages have arrived", () => sending === 0 && sent.every(isHeard), BACK_MS);
    over.abort();
    await all;
    for (const each of clients) each.close();
    console.log(`four agents: away for ${away.join(", ")} ms; ${sent.length} messages, ${last} rounds`);
    expect(Object.values(received).flat().sort()).toEqual([...sent].sort());
    expect(failed).toEqual([]);
    expect(last).toBeGreaterThan(0);
    for (const agent of ["a", "b"]) {
      const lines = await one.sh(room, agent, `cat /mnt/drive/counts-${agent}`);
      expectOnce(lines.split("\n").map(Number));
    }
    await one.ok("DELETE", `/v1/rooms/${room}`);
  }, 600_000);
});

describe.skipIf(reason !== null)("a destination that cannot run every guest", () => {
  let service: TestHosts;
  let one: TestDaemon;
  let bare: TestDaemon;
  let old: TestDaemon;

  beforeAll(async () => {
    service = await TestHosts.start(1, { guests: true, env: { ROOMD_POOL_SIZE: "0" } });
    // Without templates, and with a QEMU that is older by its own word.
    bare = await service.add({ guests: false, env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" } });
    const qemu = join(bare.home, "older-qemu");
    writeFileSync(qemu, OLDER_QEMU, { mode: 0o755 });
    old = await service.add({ guests: true, env: { ROOMD_HOST_QEMU: qemu, ROOMD_POOL_SIZE: "0" } });
    one = service.first;
    await service.knowEachOther();
    await one.ok("POST", "/v1/rooms", { room_id: "r", host: "host-1" });
    await one.sandbox("r", "w", 9190, { memory_mib: MEMORY_MIB });
    await one.sh("r", "w", "echo known > /dev/shm/known");
  }, 240_000);
  afterEach(({ task }) => {
    if (task.result?.state === "fail") for (const host of service.hosts) showLogs(host, task.name);
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  test("without the template receives its files with the guest, and resumes it", async () => {
    const { sandboxes_ended } = await one.ok("POST", "/v1/rooms/r/move", { host: "host-2" });
    expect(sandboxes_ended).toEqual([]);
    await until(
      "the sandbox runs on the other host",
      async () => (await one.ok("GET", "/v1/rooms/r/sandboxes/w")).state === "running",
      BACK_MS,
    );
    expect(await one.sh("r", "w", "cat /dev/shm/known")).toBe("known");
    expect(existsSync(join(bare.dataDir, "templates", "default"))).toBe(false);
    await one.ok("POST", "/v1/rooms/r/move", { host: "host-1" });
    await until(
      "the sandbox runs on this host",
      async () => (await one.ok("GET", "/v1/rooms/r/sandboxes/w")).state === "running",
      BACK_MS,
    );
    expect(await one.sh("r", "w", "cat /dev/shm/known")).toBe("known");
  }, 240_000);

  test("with an older QEMU refuses: the room stays if it has a snapshot, otherwise the guest ends", async () => {
    const { snapshot_id } = await one.ok("POST", "/v1/rooms/r/sandboxes/w/snapshots", { name: "kept" });
    const refused = await one.problem("POST", "/v1/rooms/r/move", { host: "host-3" });
    expect(refused).toMatchObject({ code: "invalid_state", detail: expect.stringContaining("older") });
    expect(await one.sh("r", "w", "cat /dev/shm/known")).toBe("known");
    await one.ok("DELETE", `/v1/rooms/r/snapshots/${snapshot_id}`);
    const { sandboxes_ended } = await one.ok("POST", "/v1/rooms/r/move", { host: "host-3" });
    expect(sandboxes_ended).toEqual(["w"]);
    const { items } = await old.ok("GET", "/v1/rooms/r/sandboxes?state=destroyed");
    expect(items).toMatchObject([{ agent_id: "w", exit: { cause: "host_evacuated" } }]);
  }, 240_000);
});

/** It reports version 5.0, and is otherwise the real one. */
const OLDER_QEMU = `#!/bin/sh
case "$1" in
  -version|--version) qemu-system-x86_64 --version | sed 's/version [0-9.]*/version 5.0.0/' ;;
  *) exec qemu-system-x86_64 "$@" ;;
esac
`;

/** Each number is written to the drive once, and memory holds the next one. */
const COUNT =
  "n=0; while :; do n=$((n+1)); until echo $n >> /mnt/drive/counts; do sleep 0.1; done; echo $n > /dev/shm/count; sleep 0.2; done";

function expectOnce(lines: readonly number[]): void {
  expect(lines).toEqual(lines.map((_, index) => index + 1));
}

/** Polls on which hosts a guest has a QEMU; reports when it was on both. */
class Watch {
  readonly both: string[] = [];
  readonly #timer: Timer;

  constructor(hosts: readonly TestDaemon[], sandboxId: string) {
    this.#timer = setInterval(() => {
      const pids = hosts.map((host) => processesOf(host, "qemu", sandboxId));
      if (pids.every((each) => each.length > 0)) this.both.push(pids.join(" and "));
    }, 100);
  }

  end(): void {
    clearInterval(this.#timer);
  }
}

/** Sends through both hosts; each message is retried with its own id until it is acknowledged. */
function senders(hosts: readonly TestDaemon[], room: string) {
  let isOver = false;
  const sent: number[] = [];
  const all = hosts.map(async (host) => {
    while (!isOver) {
      const n = nextMessage++;
      const body = { source: "a", destination: "b", payload: { n }, message_id: `m-${n}` };
      const path = `/v1/rooms/${room}/messages`;
      await until(
        "the message is accepted",
        async () => ((await host.api("POST", path, body).catch(() => null))?.status ?? 500) < 300,
        BACK_MS,
      );
      sent.push(n);
      await Bun.sleep(20);
    }
  });
  return {
    end: async (): Promise<number[]> => {
      isOver = true;
      await Promise.all(all);
      return sent;
    },
  };
}
let nextMessage = 0;

async function messagesOf(host: TestDaemon, room: string): Promise<Json[]> {
  const all: Json[] = [];
  for (let after = 0; ; after = all.at(-1).seq) {
    const { items } = await host.ok("GET", `/v1/rooms/${room}/messages?agent_id=b&limit=100&after=${after}`);
    all.push(...items);
    if (items.length < 100) return all;
  }
}
