/**
 * Sandboxes that hibernate or pause when they are idle, with real guests, and everything that wakes them: a call, a message to the agent in
 * the guest, a request to a port, and attaching to a terminal; one resume for all, also across a crash of the daemon.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../daemon/core/fault-points.ts";
import { TerminalClient } from "../harness/clients/terminal-client.ts";
import type { Json } from "../harness/daemon.ts";
import { LONG, processesOf, untilState, until as untilWithin, withGuests } from "../harness/guests.ts";

const ROOM = "seasons";
const IDLE_SECONDS = 2;
/** Time for the agent in the guest to write down a received message. */
const LISTENER_IDLE_SECONDS = 8;
/** Whatever is waited for, on a slow machine that others use as well. */
const PATIENCE_MS = 60_000;
const SLEPT = "sandbox.hibernated idle success";

const until = <T>(description: string, probe: () => T | Promise<T>) => untilWithin(description, probe, PATIENCE_MS);

/** Writes each message of its agent's inbox to the drive, as the agent of a guest that waits for work. */
const LISTENER = 'while :; do line=$(room wait --timeout 1h) && echo "$line" >>/mnt/drive/$ROOMD_AGENT_ID.heard; done';

withGuests("an idle sandbox", { env: { ROOMD_AUDIT_READS: "false" } }, (guests) => {
  beforeAll(() => guests.daemon.room(ROOM));

  const path = (name: string, verb = "") => `/v1/rooms/${ROOM}/sandboxes/${name}${verb}`;
  const record = (name: string): Promise<Json> => guests.daemon.ok("GET", path(name));
  const sh = (name: string, line: string) => guests.daemon.sh(ROOM, name, line);
  const make = (name: string, lifecycle: Json = {}, more: Json = {}): Promise<Json> =>
    guests.daemon.sandbox(ROOM, name, guests.cid(), {
      ...more,
      lifecycle: { idle_after_seconds: IDLE_SECONDS, on_idle: "hibernate", ...lifecycle },
    });
  const destroy = (name: string) => guests.daemon.ok("DELETE", path(name));

  async function asleep(name: string, state = "hibernated"): Promise<Json> {
    return await until(`${name} is ${state}`, async () => {
      const now = await record(name);
      return now.state === state ? now : null;
    });
  }

  /** The events of a sandbox that no call has made, oldest first. */
  async function unasked(sandboxId: string): Promise<string[]> {
    const { items } = await guests.daemon.ok("GET", `/v1/rooms/${ROOM}/audit?event=sandbox.&order=asc&limit=1000`);
    return items
      .filter(({ sandbox_id, actor }: Json) => sandbox_id === sandboxId && actor.type === "system")
      .map(({ event, outcome, details }: Json) => `${event} ${details.reason} ${outcome}`);
  }

  /** These, and no others. */
  const events = (sandboxId: string, expected: string[]) =>
    until("the events are recorded", async () => (await unasked(sandboxId)).length >= expected.length).then(async () =>
      expect(await unasked(sandboxId)).toEqual(expected),
    );

  async function heard(name: string): Promise<string[]> {
    const { status, body } = await guests.daemon.api("GET", `/v1/rooms/${ROOM}/drive/read?path=${name}.heard`);
    return status === 200 ? String(body.content).trim().split("\n") : [];
  }

  /** Its agent listens, and has heard a first word. Before that it must not sleep, which it might on a slow machine. */
  async function listen(name: string): Promise<void> {
    await sh(name, `setsid sh -c '${LISTENER}' >/dev/null 2>&1 </dev/null &`);
    await send(name, "hello");
    await until(`${name} listens`, async () => (await heard(name)).length === 1);
  }

  const send = (name: string, word: string, more: Json = {}): Promise<Json> =>
    guests.daemon.ok("POST", `/v1/rooms/${ROOM}/messages`, {
      source: "operator",
      destination: name,
      payload: word,
      ...more,
    });

  describe("after its idle time", () => {
    test("is on disk, and is woken once for all calls that need it; reading its state does not wake it", async () => {
      const { daemon } = guests;
      const { sandbox_id } = await make("owl");
      // In use it is not idle, however long that takes.
      expect(await sh("owl", `sleep ${IDLE_SECONDS * 2}; echo kept >/tmp/kept; hostname`)).toBe("owl");
      const slept = await asleep("owl");
      expect(slept.status).toMatchObject({ reason: "idle", message: expect.stringContaining("was idle") });
      await until("its QEMU has exited", () => processesOf(daemon, "qemu", sandbox_id).length === 0);
      for (const verb of ["", "/metrics", "/logs", "/ports", "/egress"]) await daemon.ok("GET", path("owl", verb));
      await daemon.ok("GET", `/v1/rooms/${ROOM}/sandboxes`);
      await daemon.ok("GET", `/v1/rooms/${ROOM}/agents`);
      await daemon.ok("GET", "/health");
      expect((await record("owl")).status).toEqual(slept.status);
      const startedAt = performance.now();
      const lines = await Promise.all(["echo one", "echo two", "cat /tmp/kept"].map((line) => sh("owl", line)));
      console.log(`three calls woke a hibernated sandbox and ran, in ${Math.round(performance.now() - startedAt)} ms`);
      expect(lines).toEqual(["one", "two", "kept"]);
      const wokenAt = Date.parse((await record("owl")).status.last_transition_at);
      await events(sandbox_id, [SLEPT, "sandbox.resume api success"]);
      // Its idle time starts again.
      const again = await asleep("owl");
      expect(Date.parse(again.status.last_transition_at) - wokenAt).toBeGreaterThanOrEqual(IDLE_SECONDS * 1000);
      await events(sandbox_id, [SLEPT, "sandbox.resume api success", SLEPT]);
      const metrics = await fetch(`${daemon.url}/metrics`).then((response) => response.text());
      expect(metrics).toContain('roomd_sandbox_resumes_total{reason="api"} 1');
      await destroy("owl");
    });

    test("is in standby, stays there, and is woken by a call", async () => {
      const { sandbox_id } = await make("hen", { on_idle: "standby" });
      expect((await asleep("hen", "paused")).status.reason).toBe("idle");
      await Bun.sleep(IDLE_SECONDS * 1500);
      expect((await record("hen")).state).toBe("paused");
      const startedAt = performance.now();
      expect(await sh("hen", "hostname")).toBe("hen");
      console.log(`a call woke a sandbox in standby and ran, in ${Math.round(performance.now() - startedAt)} ms`);
      await events(sandbox_id, ["sandbox.standby idle success", "sandbox.resume api success"]);
      await destroy("hen");
    });

    test("keeps running if it cannot be saved, reports why, and is retried", async () => {
      const { daemon } = guests;
      const { sandbox_id } = await make("mule", { idle_after_seconds: null });
      for (const pid of processesOf(daemon, "virtiofsd", sandbox_id)) process.kill(pid, "SIGKILL");
      await until("the drive is restored", async () => (await record("mule")).status.reason === "recovered");
      await daemon.ok("PATCH", path("mule"), { lifecycle: { idle_after_seconds: 1 } });
      const failed = "sandbox.hibernated idle error";
      await until(
        "two attempts have failed",
        async () => (await unasked(sandbox_id)).filter((event) => event === failed)[1],
      );
      expect(await record("mule")).toMatchObject({
        state: "running",
        status: { reason: "hibernate_failed" },
      });
      expect(await sh("mule", "hostname")).toBe("mule");
      await destroy("mule");
    });
  });

  describe("is woken", () => {
    test("only by the events in its record", async () => {
      const { daemon } = guests;
      await make("bat", { wake_on: [] });
      await daemon.ok("GET", `/v1/rooms/${ROOM}/messages?agent_id=operator`);
      await asleep("bat");
      const refused = await daemon.problem("POST", path("bat", "/exec"), { argv: ["true"] });
      expect(refused).toMatchObject({ code: "invalid_state", details: { state: "hibernated" } });
      expect(refused.hint).toContain("/resume");
      await send("bat", "nobody hears this");
      await Bun.sleep(1000);
      expect((await record("bat")).state).toBe("hibernated");
      await destroy("bat");
    });

    test("by a message to its agent, by a topic, by a request, and by one that arrives during hibernation", async () => {
      const { daemon } = guests;
      const { sandbox_id } = await make("dog", { idle_after_seconds: null, wake_on: ["message"] });
      await daemon.ok("PUT", `/v1/rooms/${ROOM}/agents/dog/subscriptions`, { topics: ["bones.>"] });
      await listen("dog");
      await daemon.ok("PATCH", path("dog"), { lifecycle: { idle_after_seconds: LISTENER_IDLE_SECONDS } });
      const told: [string, Json][] = [
        ["topic", { destination: undefined, topic: "bones.large" }],
        ...(LONG ? [["direct", {}] satisfies [string, Json]] : []),
      ];
      for (const [word, more] of told) {
        await asleep("dog");
        const known = (await heard("dog")).length;
        const startedAt = performance.now();
        await send("dog", word, more);
        const answeredMs = performance.now() - startedAt;
        // The sender did not wait for the guest.
        expect((await record("dog")).state).not.toBe("running");
        await until("the sandbox has received a message", async () => (await heard("dog")).length > known);
        console.log(
          `a message (${word}) was answered in ${answeredMs.toFixed()} ms, and received in the hibernated guest after ${(performance.now() - startedAt).toFixed()} ms`,
        );
        expect((await heard("dog")).at(-1)).toMatch(new RegExp(`${word}$`));
      }
      // Whatever state it is in: each message is received, and in the end it sleeps.
      const words = Array.from({ length: LONG ? 5 : 4 }, (_, index) => `word-${index}`);
      const known = (await heard("dog")).length;
      for (const [index, word] of words.entries()) {
        await send("dog", word, index === 0 ? { kind: "request" } : {});
        await Bun.sleep(LISTENER_IDLE_SECONDS * 1000 - 300 + index * 200);
      }
      const all = await until("all messages have arrived", async () => {
        const lines = (await heard("dog")).slice(known);
        return lines.length >= words.length ? lines : null;
      });
      expect(all.map((line) => line.split(" ").at(-1))).toEqual(words);
      await asleep("dog");
      await until("the hibernation is recorded", async () => (await unasked(sandbox_id)).at(-1) === SLEPT);
      const turns = ((await unasked(sandbox_id)).length - 1) / 2;
      expect(turns).toBeGreaterThan(told.length);
      await events(sandbox_id, [...Array(turns).fill([SLEPT, "sandbox.resume message success"]).flat(), SLEPT]);
      await destroy("dog");
    }, 600_000);

    test("by a request to its port", async () => {
      const { daemon } = guests;
      const { sandbox_id } = await make("fox", { wake_on: ["port"] });
      await sh("fox", "mkdir /srv/web; echo den >/srv/web/index.html");
      await sh(
        "fox",
        "cd /srv/web && setsid python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 </dev/null & until curl -sf http://127.0.0.1:8000/; do sleep 0.5; done",
      );
      const port = await daemon.ok("POST", path("fox", "/ports"), { port: 8000, visibility: "public" });
      expect((await fetch(port.path_url)).status).toBe(200);
      for (let round = 0; round < 2; round++) {
        await asleep("fox");
        // Listing the ports, or exposing the port again, wakes nothing; nor does a call.
        expect((await daemon.ok("GET", path("fox", "/ports"))).items[0]).toMatchObject({ listening: false });
        await daemon.ok("POST", path("fox", "/ports"), { port: 8000, visibility: "public" });
        expect((await daemon.problem("GET", path("fox", "/executions"))).code).toBe("invalid_state");
        const startedAt = performance.now();
        const answers = await Promise.all(
          Array.from({ length: 5 }, () => fetch(port.path_url).then((answer) => answer.text())),
        );
        console.log(`8 requests to a port of a hibernated sandbox: ${Math.round(performance.now() - startedAt)} ms`);
        expect(new Set(answers)).toEqual(new Set(["den\n"]));
      }
      await events(sandbox_id, [SLEPT, "sandbox.resume port success", SLEPT, "sandbox.resume port success"]);
      await destroy("fox");
    });

    test("by a client that attaches to its terminal, which is unchanged", async () => {
      const { daemon } = guests;
      const { sandbox_id } = await make("cat", { wake_on: ["terminal"] });
      const { ws_path } = await daemon.ok("POST", path("cat", "/terminals"), { rows: 24, cols: 80 });
      const before = await TerminalClient.attach(daemon, ws_path);
      before.type("word=purr\n");
      await before.shows("word=purr");
      // An attached client keeps it awake.
      await Bun.sleep(IDLE_SECONDS * 1500);
      expect((await record("cat")).state).toBe("running");
      before.drop();
      await asleep("cat");
      expect((await daemon.problem("GET", path("cat", "/terminals"))).code).toBe("invalid_state");
      const startedAt = performance.now();
      const after = await TerminalClient.attach(daemon, ws_path);
      console.log(`attached to a terminal of a hibernated sandbox in ${Math.round(performance.now() - startedAt)} ms`);
      after.type("echo $word-$word\n");
      await after.shows("purr-purr");
      after.drop();
      await events(sandbox_id, [SLEPT, "sandbox.resume terminal success"]);
      await destroy("cat");
    });

    test("during hibernation, by one resume for a concurrent call and message", async () => {
      const { daemon } = guests;
      const { sandbox_id } = await make("elk", { idle_after_seconds: null, wake_on: ["api", "message"] });
      await listen("elk");
      const sleeping = daemon.api("POST", path("elk", "/hibernate"));
      await untilState(daemon, ROOM, "elk", "hibernating");
      const [line] = await Promise.all([sh("elk", "hostname"), send("elk", "at once")]);
      expect([(await sleeping).status, line]).toEqual([200, "elk"]);
      await until("the sandbox has received a message", async () => (await heard("elk")).length === 2);
      await events(sandbox_id, [expect.stringMatching(/^sandbox.resume (api|message) success$/)]);
      await destroy("elk");
    });
  });

  test("without enough memory reports that to callers, keeps sleeping, and is woken by its message later", async () => {
    const { daemon } = guests;
    const free = async (): Promise<number> => (await daemon.ok("GET", "/health")).capacity.memory_mib_free;
    const { sandbox_id } = await make("whale", { idle_after_seconds: null }, { memory_mib: 2048 });
    await listen("whale");
    await daemon.ok("POST", path("whale", "/hibernate"));
    const { memory_mib_max } = (await daemon.ok("GET", "/v1/config")).limits;
    const hogs: string[] = [];
    while ((await free()) > 1500) {
      const name = `hog-${hogs.length}`;
      await make(
        name,
        { on_idle: "destroy", idle_after_seconds: null },
        { memory_mib: Math.min(memory_mib_max, (await free()) - 600) },
      );
      hogs.push(name);
    }
    const refused = await daemon.problem("POST", path("whale", "/exec"), { argv: ["true"] });
    expect([refused.status, refused.code]).toEqual([503, "insufficient_capacity"]);
    await send("whale", "there is krill");
    await until("the attempt has failed", async () =>
      (await unasked(sandbox_id)).includes("sandbox.resume message error"),
    );
    expect((await record("whale")).state).toBe("hibernated");
    for (const hog of hogs) await destroy(hog);
    await until("the sandbox has received a message", async () => (await heard("whale")).length === 2);
    await destroy("whale");
  }, 600_000);

  test("whose daemon is killed between a message and the resume, is woken by the next daemon", async () => {
    const { daemon } = guests;
    await make("swan", { idle_after_seconds: null, wake_on: ["message"] });
    await make("goose", { idle_after_seconds: null, wake_on: ["message"] });
    for (const name of ["swan", "goose"]) {
      await listen(name);
      await daemon.ok("POST", path(name, "/hibernate"));
    }
    await daemon.end("SIGTERM");
    daemon.env[FAULT_VARIABLE] = "sandbox.waking=kill";
    await daemon.serve();
    await send("swan", "fly").catch(() => {});
    await until("the daemon has exited", () => !daemon.runs);
    delete daemon.env[FAULT_VARIABLE];
    const startedAt = performance.now();
    await daemon.serve();
    await until("the sandbox has received a message", async () => (await heard("swan")).length === 2);
    console.log(`received ${Math.round(performance.now() - startedAt)} ms after the start of the next daemon`);
    expect((await heard("swan")).at(-1)).toMatch(/fly$/);
    // Nothing waits for the other.
    expect((await record("goose")).state).toBe("hibernated");
    for (const name of ["swan", "goose"]) await destroy(name);
  });
});
