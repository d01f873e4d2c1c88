/**
 * Standby with real guests: programs inside pause and continue, the clock is right afterwards, the host's CPU is not used, and every
 * operation on a sandbox also works in standby.
 */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import type { Answer, Json } from "../../harness/daemon.ts";
import { processesOf, remainsOf, shortOrLong, testAlone, until, untilState, withGuests } from "../../harness/guests.ts";

/** Long enough to distinguish paused from running. */
const STILL_MS = 1_500;
/** Time limit of a command that is paused for longer. */
const TIMEOUT_MS = 8_000;
/** The writes of hundreds of files, each by a separate process, on a busy host that emulates the processor. */
const WRITES_MS = 300_000;

/** Ten credits a second, of which the organization has as many as it likes until it is granted some. */
/** Credit granted by another process takes effect with the next comparison. */
const PRICED = { ROOMD_BILLING_SANDBOX_HOUR: "36000", ROOMD_BILLING_GRACE: "1s", ROOMD_RECONCILE_INTERVAL: "3s" };

withGuests("standby", { env: PRICED }, (guests) => {
  beforeAll(() => guests.daemon.room("still"));

  const path = (name: string, verb = "") => `/v1/rooms/still/sandboxes/${name}${verb}`;
  const standby = (name: string): Promise<Json> => guests.daemon.ok("POST", path(name, "/standby"));
  const resume = (name: string): Promise<Json> => guests.daemon.ok("POST", path(name, "/resume"));
  const record = (name: string): Promise<Json> => guests.daemon.ok("GET", path(name));
  const destroy = (name: string): Promise<Json> => guests.daemon.ok("DELETE", path(name));
  const drive = (verb: string) => `/v1/rooms/still/drive/${verb}`;
  const sh = (name: string, line: string) => guests.daemon.sh("still", name, line);
  /** The metered usage of an agent's sandboxes. */
  const metered = async (agent: string): Promise<Json> => {
    const { groups } = await guests.daemon.ok("GET", "/v1/orgs/self/usage?group_by=agent");
    return groups.find(({ id }: Json) => id === agent).totals;
  };
  const skewMs = async (name: string) => (await guests.daemon.ok("GET", path(name, "/metrics"))).clock_skew_ms;

  /** Waits until a command reports that it runs, by creating this file. */
  const started = (file: string) =>
    until("the command runs", async () => (await guests.daemon.api("GET", drive(`stat?path=${file}`))).status === 200);

  /** Starts a counter that writes to the drive, so that it can be read while the guest is paused. */
  async function startCounter(name: string): Promise<() => Promise<number>> {
    const count = `i=0; while :; do i=$((i+1)); echo $i >/mnt/drive/${name}.new; mv /mnt/drive/${name}.new /mnt/drive/${name}; sleep 0.05; done`;
    await sh(name, `setsid sh -c '${count}' >/dev/null 2>&1 &`);
    const currentCount = async () => {
      const { status, body } = await guests.daemon.api("GET", drive(`read?path=${name}`));
      return status === 200 ? Number(body.content) : 0;
    };
    await until("the counter runs", async () => (await currentCount()) > 0);
    return currentCount;
  }

  describe("a sandbox", () => {
    test("pauses and resumes repeatedly, with a correct clock each time", async () => {
      const { sandbox_id } = await guests.daemon.sandbox("still", "counter", guests.cid());
      const currentCount = await startCounter("counter");
      const qemu = processesOf(guests.daemon, "qemu", sandbox_id);
      for (let round = 0; round < shortOrLong("rounds of standby", 2, 40); round++) {
        const paused = await standby("counter");
        expect(paused).toMatchObject({ state: "paused", status: { reason: "standby" }, exit: null });
        const [before, cpu, used] = [await currentCount(), cpuTicks(qemu[0] ?? 0), await metered("counter")];
        expect(used.exec_count).toBe(1);
        expect(used.sandbox_seconds).toBeGreaterThan(0);
        await Bun.sleep(STILL_MS);
        expect(await metered("counter")).toEqual(used);
        expect(await currentCount()).toBe(before);
        // A tick or two for its monitor; a running guest takes far more even when it idles.
        expect(cpuTicks(qemu[0] ?? 0) - cpu).toBeLessThanOrEqual(2);
        expect(await resume("counter")).toMatchObject({ state: "running", status: { reason: "resumed" } });
        expect(Math.abs(await skewMs("counter"))).toBeLessThanOrEqual(50);
        await until("the counter runs on", async () => (await currentCount()) > before);
      }
      expect(processesOf(guests.daemon, "qemu", sandbox_id)).toEqual(qemu);
      await destroy("counter");
    });

    test("has its own time: a command's timeout does not elapse, and its caller is answered in the end", async () => {
      await guests.daemon.sandbox("still", "timed", guests.cid());
      // On a busy host, starting the command takes seconds of that limit.
      const body = { command: ">/mnt/drive/timed; sleep 2; echo done", timeout_ms: TIMEOUT_MS };
      const waiting = guests.daemon.exec("still", "timed", body);
      await started("timed");
      await standby("timed");
      await Bun.sleep(TIMEOUT_MS + 500);
      await resume("timed");
      expect(await waiting).toMatchObject({ exit_code: 0, timed_out: false, stdout: "done\n" });
      // A command that is too slow in its own time is still ended, at that time.
      const slow = guests.daemon.exec("still", "timed", { command: ">/mnt/drive/slow; sleep 60", timeout_ms: 1_500 });
      await started("slow");
      await standby("timed");
      await Bun.sleep(STILL_MS);
      await resume("timed");
      expect(await slow).toMatchObject({ exit_code: null, timed_out: true });
      await destroy("timed");
    });

    test("during a flood of output and input loses none of it", async () => {
      await guests.daemon.sandbox("still", "flood", guests.cid());
      const bytes = 4 * 1024 * 1024;
      const out = guests.daemon.exec("still", "flood", {
        command: `>/mnt/drive/out; head -c ${bytes} /dev/zero | tr '\\0' a`,
        max_output_bytes: bytes,
        timeout_ms: 120_000,
      });
      const sent = Buffer.alloc(bytes, "stdin\n").toString();
      const into = guests.daemon.exec("still", "flood", {
        command: ">/mnt/drive/into; md5sum",
        stdin: sent,
        timeout_ms: 120_000,
      });
      // If a round fails, its error is reported instead.
      Promise.all([out, into]).catch(() => {});
      await Promise.all([started("out"), started("into")]);
      for (let round = 0; round < shortOrLong("rounds under a flood", 3, 30); round++) {
        await standby("flood");
        await Bun.sleep(100);
        await resume("flood");
      }
      const output = await out;
      expect([output.exit_code, output.stdout_bytes, /^a+$/.test(output.stdout)]).toEqual([0, bytes, true]);
      expect((await into).stdout).toBe(`${new Bun.CryptoHasher("md5").update(sent).digest("hex")}  -\n`);
      await destroy("flood");
    });

    test("during writes to the drive loses none of them", { timeout: WRITES_MS }, async () => {
      await guests.daemon.sandbox("still", "writer", guests.cid());
      const files = 400;
      const line = `i=0; while [ $i -lt ${files} ]; do i=$((i+1)); dd if=/dev/zero of=/mnt/drive/w$i bs=4k count=2 conv=fsync 2>/dev/null || exit 1; done`;
      const writing = guests.daemon.exec("still", "writer", { command: line, timeout_ms: WRITES_MS });
      let over = false;
      const ended = writing.finally(() => {
        over = true;
      });
      await started("w1");
      let rounds = 0;
      while (!over && rounds < shortOrLong("rounds under writes", 12, 200)) {
        await standby("writer");
        await resume("writer");
        rounds++;
      }
      expect((await ended).exit_code).toBe(0);
      expect(rounds).toBeGreaterThan(3);
      const { items } = await guests.daemon.ok("GET", drive("list?limit=1000"));
      expect(items.filter((item: Json) => /^w\d+$/.test(item.name) && item.size_bytes === 8192)).toHaveLength(files);
      await destroy("writer");
    });

    test("in standby without wake-up refuses commands and accepts all other calls", async () => {
      await guests.daemon.sandbox("still", "quiet", guests.cid(), { lifecycle: { wake_on: [] } });
      await standby("quiet");
      const refusal = { status: 409, code: "invalid_state", details: { state: "paused", allowed_states: ["running"] } };
      expect(await guests.daemon.problem("POST", path("quiet", "/exec"), { argv: ["true"] })).toMatchObject({
        ...refusal,
        hint: expect.stringContaining("/resume"),
      });
      expect(await guests.daemon.problem("POST", path("quiet", "/standby"))).toMatchObject(refusal);
      await guests.daemon.ok("POST", drive("write"), { path: "for-quiet", content: "written meanwhile" });
      expect((await guests.daemon.ok("GET", path("quiet", "/logs"))).source).toBe("console");
      const metrics = await guests.daemon.ok("GET", path("quiet", "/metrics"));
      expect(metrics).toMatchObject({ clock_skew_ms: null, memory: { memory_mib: 256 } });
      expect(metrics.memory.resident_bytes).toBeGreaterThan(0);
      const labels = { role: "waiting" };
      expect(await guests.daemon.ok("PATCH", path("quiet"), { labels })).toMatchObject({ labels, state: "paused" });
      expect((await guests.daemon.ok("GET", "/v1/rooms/still/sandboxes?state=paused")).items).toHaveLength(1);

      await resume("quiet");
      expect(await guests.daemon.problem("POST", path("quiet", "/resume"))).toMatchObject({
        status: 409,
        code: "invalid_state",
        details: { state: "running", allowed_states: ["paused", "hibernated"] },
      });
      expect(await sh("quiet", "cat /mnt/drive/for-quiet")).toBe("written meanwhile");
      const { items } = await guests.daemon.ok("GET", "/v1/rooms/still/audit?event=sandbox.&agent_id=quiet&order=asc");
      const own = items.filter((item: Json) => item.agent_id === "quiet" && /standby|resume/.test(item.event));
      expect(own.map(({ event, outcome }: Json) => [event, outcome])).toEqual([
        ["sandbox.standby", "success"],
        ["sandbox.standby", "error"],
        ["sandbox.resume", "success"],
        ["sandbox.resume", "error"],
      ]);
      expect(own[2].details.paused_seconds).toBeGreaterThanOrEqual(0);
      await destroy("quiet");
    });

    test("with concurrent standby calls is paused once", async () => {
      await guests.daemon.sandbox("still", "asked", guests.cid());
      const both = async (verb: string) => {
        const answers = await Promise.all([1, 2, 3, 4].map(() => guests.daemon.api("POST", path("asked", verb))));
        return answers.map(({ status }) => status).sort();
      };
      expect(await both("/standby")).toEqual([200, 409, 409, 409]);
      expect(await both("/resume")).toEqual([200, 409, 409, 409]);
      await destroy("asked");
    });
  });

  describe("the end of a sandbox in standby", () => {
    test("by DELETE, also during standby or resume, with the reason for its caller", async () => {
      for (const moment of ["paused", "pausing", "resuming"] as const) {
        const guest_cid = guests.cid();
        const { sandbox_id } = await guests.daemon.sandbox("still", "ended", guest_cid);
        let under: Promise<Answer> | null = null;
        if (moment !== "pausing") await standby("ended");
        if (moment !== "paused") {
          // QEMU that does not answer keeps it in between.
          for (const pid of processesOf(guests.daemon, "qemu", sandbox_id)) process.kill(pid, "SIGSTOP");
          under = guests.daemon.api("POST", path("ended", moment === "pausing" ? "/standby" : "/resume"));
          await untilState(guests.daemon, "still", "ended", moment);
        }
        const startedAt = performance.now();
        expect(await destroy("ended")).toMatchObject({ sandbox_id, guest_cid, state: "destroyed" });
        expect(performance.now() - startedAt).toBeLessThan(5_000);
        if (under) expect(await under).toMatchObject({ status: 409, body: { code: "invalid_state" } });
        expect(remainsOf(guests.daemon, sandbox_id)).toEqual([]);
        // Its CID is free immediately.
        await guests.daemon.sandbox("still", "next", guest_cid);
        await destroy("next");
      }
    });

    test("by QEMU's exit is failed, with a typed end for a paused command", async () => {
      const { sandbox_id } = await guests.daemon.sandbox("still", "killed", guests.cid());
      const waiting = guests.daemon.api("POST", path("killed", "/exec"), {
        command: ">/mnt/drive/killed; sleep 60",
      });
      await started("killed");
      await standby("killed");
      for (const pid of processesOf(guests.daemon, "qemu", sandbox_id)) process.kill(pid, "SIGKILL");
      const failed = await untilState(guests.daemon, "still", sandbox_id, "failed");
      expect(failed).toMatchObject({ exit: { cause: "vmm_crash" } });
      await until("the sandbox's resources are released", async () => (await record(sandbox_id)).stopped_at !== null);
      expect(remainsOf(guests.daemon, sandbox_id)).toEqual([]);
      expect(await waiting).toMatchObject({
        status: 502,
        body: { code: "guest_unreachable", details: { started: true } },
      });
      expect((await guests.daemon.problem("POST", path(sandbox_id, "/resume"))).code).toBe("invalid_state");
      await destroy(sandbox_id);
    });

    test("by its maximal duration happens anyway; idle time does not count, and restarts", async () => {
      const audited = async (sandbox: Json, event: string) => {
        const { items } = await guests.daemon.ok("GET", `/v1/rooms/still/audit?event=${event}`);
        return items.filter((item: Json) => item.sandbox_id === sandbox.sandbox_id);
      };
      const idle = await guests.daemon.sandbox("still", "idle", guests.cid());
      const short = await guests.daemon.sandbox("still", "short", guests.cid());
      await Promise.all([standby("idle"), standby("short")]);
      // Only now: on a busy host the other's start takes as long.
      await guests.daemon.ok("PATCH", path("idle"), { idle_timeout_seconds: 3 });
      await guests.daemon.ok("PATCH", path("short"), { max_duration_seconds: 1 });
      await until(
        "the expired sandbox is destroyed",
        async () => (await guests.daemon.api("GET", path("short"))).status === 404,
      );
      expect(remainsOf(guests.daemon, short.sandbox_id)).toEqual([]);
      await Bun.sleep(3_500);
      expect((await record("idle")).state).toBe("paused");
      // A command under way is use, however long it takes.
      await resume("idle");
      expect((await guests.daemon.exec("still", "idle", { command: "sleep 5; echo awake" })).stdout).toBe("awake\n");
      expect((await record("idle")).state).toBe("running");
      await until(
        "the idle sandbox is destroyed",
        async () => (await guests.daemon.api("GET", path("idle"))).status === 404,
      );
      expect((await audited(idle, "sandbox.resume")).length).toBe(1);
    });

    test("is not caused by a dead vsock device, which is replaced", async () => {
      const { sandbox_id } = await guests.daemon.sandbox("still", "deaf", guests.cid());
      for (let round = 0; round < 2; round++) {
        await standby("deaf");
        const [device = 0] = processesOf(guests.daemon, "vsock", sandbox_id);
        process.kill(device, "SIGKILL");
        await until("the device has exited", () => !processesOf(guests.daemon, "vsock", sandbox_id).includes(device));
        expect((await record("deaf")).state).toBe("paused");
        await resume("deaf");
        expect(await sh("deaf", "echo heard >/mnt/drive/deaf; cat /mnt/drive/deaf")).toBe("heard");
        expect(Math.abs(await skewMs("deaf"))).toBeLessThanOrEqual(50);
        expect(processesOf(guests.daemon, "vsock", sandbox_id)).toHaveLength(1);
      }
      await destroy("deaf");
      expect(remainsOf(guests.daemon, sandbox_id)).toEqual([]);
    });

    test("by the end of its room", async () => {
      await guests.daemon.room("whole");
      const inRoom = await guests.daemon.sandbox("whole", "a", guests.cid());
      await guests.daemon.ok("POST", "/v1/rooms/whole/sandboxes/a/standby");
      expect(await guests.daemon.ok("DELETE", "/v1/rooms/whole?drive=delete")).toMatchObject({
        state: "destroyed",
        sandboxes_destroyed: ["a"],
      });
      expect(remainsOf(guests.daemon, inRoom.sandbox_id)).toEqual([]);
    });
  });

  test("by the command line", async () => {
    await guests.daemon.sandbox("still", "typed", guests.cid(), { lifecycle: { wake_on: [] } });
    expect(await guests.daemon.cli(["sandbox", "standby", "still", "typed"])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/\btyped\b.*\bpaused\n$/),
    });
    const refused = await guests.daemon.cli(["exec", "still", "typed", "--", "true"]);
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toContain("resume");
    expect((await guests.daemon.cli(["sandbox", "resume", "still", "typed"])).stdout).toMatch(
      /\btyped\b.*\brunning\n$/,
    );
    await destroy("typed");
  });

  test("credits that are used up end running sandboxes, and leave paused ones in standby", async () => {
    await Promise.all(["runs", "rests"].map((name) => guests.daemon.sandbox("still", name, guests.cid())));
    await standby("rests");
    expect((await guests.daemon.cli(["org", "credits", "--grant", "1"])).status).toBe(0);
    await until("the sandbox is destroyed", async () => (await guests.daemon.api("GET", path("runs"))).status === 404);
    expect(await guests.daemon.problem("POST", path("rests", "/resume"))).toMatchObject({
      code: "quota_exceeded",
      details: { limit: "credits" },
    });
    const { items } = await guests.daemon.ok("GET", "/v1/orgs/self/audit?limit=1000");
    const [exhausted] = items.filter(({ event }: Json) => event === "quota.credits_exhausted");
    expect(exhausted).toMatchObject({ details: { sandboxes: 1 } });
    const ended = items.filter((item: Json) => item.event === "sandbox.destroyed" && item.agent_id === "runs");
    expect(ended.map(({ details }: Json) => details.reason)).toEqual(["credits_exhausted"]);
    expect((await guests.daemon.cli(["org", "credits", "--withdraw"])).status).toBe(0);
    await resume("rests");
    await destroy("rests");
  });
});

testAlone(
  "a command whose sandbox is paused before it has its input gets all of it afterwards",
  { env: { [FAULT_VARIABLE]: "exec.sent=stall" } },
  async (daemon) => {
    await daemon.room("still");
    await daemon.sandbox("still", "a", 9100);
    const answer = daemon.exec("still", "a", { argv: ["wc", "-c"], stdin: "twelve bytes" });
    await until("the execution is sent", () => daemon.log.includes('"fault_point":"exec.sent"'));
    await daemon.ok("POST", "/v1/rooms/still/sandboxes/a/standby");
    process.kill(daemon.pid, "SIGUSR2");
    await Bun.sleep(STILL_MS);
    await daemon.ok("POST", "/v1/rooms/still/sandboxes/a/resume");
    expect((await answer).stdout).toBe("12\n");
  },
);

/** Fields 14 and 15 of /proc/<pid>/stat: hundredths of a second. */
function cpuTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
