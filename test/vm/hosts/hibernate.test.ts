/**
 * Hibernation with real guests: memory, devices and open files are restored as they were, nothing of the guest but its disk remains on the
 * host in the meantime, and after a kill of any process at any step it is hibernated or runs, and is intact.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import type { Json } from "../../harness/daemon.ts";
import { processesOf, remainsOf, until, withGuests } from "../../harness/guests.ts";
import { sampled } from "../../harness/sampled.ts";

/**
 * Counts in memory, which nothing but its own memory can reveal; keeps a digest of 32 random MiB, which it compares each time; and appends
 * to a file of the drive that it has opened once.
 */
const WORK = `import hashlib, os, sys, time
heap = os.urandom(32 << 20)
digest = hashlib.sha256(heap).hexdigest()
log = open("/mnt/drive/" + sys.argv[1] + ".log", "a", buffering=1)
n = 0
while True:
    n += 1
    whole = n % 20 or hashlib.sha256(heap).hexdigest() == digest
    log.write("%d %s\\n" % (n, "whole" if whole else "broken"))
    time.sleep(0.05)
`;

/** For an interpreter and its digests on a busy host that emulates the processor. */
const WORKS_MS = 60_000;

withGuests("hibernation", {}, (guests) => {
  beforeAll(() => guests.daemon.room("winter"));

  const path = (name: string, verb = "") => `/v1/rooms/winter/sandboxes/${name}${verb}`;
  const hibernate = (name: string): Promise<Json> => guests.daemon.ok("POST", path(name, "/hibernate"));
  const resume = (name: string): Promise<Json> => guests.daemon.ok("POST", path(name, "/resume"));
  const record = (name: string): Promise<Json> => guests.daemon.ok("GET", path(name));
  const sh = (name: string, line: string) => guests.daemon.sh("winter", name, line);
  const kept = (sandboxId: string) => readdirSync(join(guests.daemon.dataDir, "sandboxes", sandboxId)).sort();

  /** The values that the organization's quota counts: rooms, sandboxes, MiB of memory, GiB of disks. */
  async function quota(): Promise<number[]> {
    const { rooms, sandboxes, memory_mib, disk_gib } = await guests.daemon.ok("GET", "/v1/orgs/self/usage");
    return [rooms.active, sandboxes.active, memory_mib.allocated, disk_gib.allocated];
  }

  /** The lines that an agent's work has written so far. */
  async function worked(name: string): Promise<string[]> {
    const { status, body } = await guests.daemon.api("GET", `/v1/rooms/winter/drive/read?path=${name}.log`);
    return status === 200 ? String(body.content).trim().split("\n") : [];
  }

  async function startWork(name: string): Promise<void> {
    await sh(
      name,
      `cat >/tmp/work.py <<'END'\n${WORK}\nEND\nsetsid python3 /tmp/work.py ${name} >/tmp/work.out 2>&1 </dev/null &`,
    );
    await until("the sandbox counts", async () => (await worked(name)).length > 2, WORKS_MS);
  }

  /** Its numbers have no gap and none twice, and its heap was whole each time. */
  const flawless = (lines: readonly string[]) =>
    expect(lines.filter((line, index) => line !== `${index + 1} whole`)).toEqual([]);

  describe("a sandbox", () => {
    test("is saved to disk and resumed, repeatedly, across restarts of the daemon", async () => {
      const { daemon } = guests;
      const made = await daemon.sandbox("winter", "bear", guests.cid(), {
        memory_mib: 512,
        lifecycle: { wake_on: [] },
      });
      const disk = `disk-${made.sandbox_id}.qcow2`;
      const [, , , disk_gib] = await quota();
      await startWork("bear");
      await sh("bear", "echo kept >/root/kept; mkdir -p /tmp/t; mount -t tmpfs t /tmp/t; echo memory >/tmp/t/file");
      for (let round = 0; round < 3; round++) {
        const slept = await hibernate("bear");
        expect(slept).toMatchObject({ state: "hibernated", guest_cid: made.guest_cid, exit: null });
        expect(processesOf(daemon, "qemu", made.sandbox_id)).toEqual([]);
        expect(existsSync(join(daemon.runtimeDir, "g", made.sandbox_id))).toBe(false);
        expect(kept(made.sandbox_id)).toEqual(["base", "console", disk, "memory", "saved.json", "vmm.log"]);
        const before = await worked("bear");
        expect((await daemon.problem("POST", path("bear", "/exec"), { argv: ["true"] })).code).toBe("invalid_state");
        expect((await daemon.ok("GET", path("bear", "/metrics"))).memory.resident_bytes).toBe(0);
        // Its room counts with its disk alone.
        expect(await quota()).toEqual([0, 0, 0, disk_gib]);
        if (round === 1) await daemon.restart("SIGKILL");
        expect(await record("bear")).toEqual(slept);
        expect(await worked("bear")).toEqual(before);
        const woken = await resume("bear");
        expect(woken).toMatchObject({ state: "running", guest_cid: made.guest_cid });
        expect(await quota()).toEqual([1, 1, 512, disk_gib]);
        expect(kept(made.sandbox_id)).toEqual(["base", "console", disk, "vmm.log"]);
        await until("the sandbox counts on", async () => (await worked("bear")).length > before.length + 20, WORKS_MS);
        expect(await sh("bear", "cat /root/kept /tmp/t/file; hostname")).toBe("kept\nmemory\nbear");
        const { clock_skew_ms } = await daemon.ok("GET", path("bear", "/metrics"));
        expect(Math.abs(clock_skew_ms)).toBeLessThanOrEqual(50);
      }
      flawless(await worked("bear"));
      await hibernate("bear");
      await daemon.ok("DELETE", path("bear"));
      expect(remainsOf(daemon, made.sandbox_id)).toEqual([]);
    });

    test("continues with a waiting call", async () => {
      const { daemon } = guests;
      await daemon.sandbox("winter", "mouse", guests.cid());
      const ended = daemon.ok("POST", path("mouse", "/exec"), { argv: ["sh", "-c", "sleep 3; echo done"] });
      await until("the process runs", () => sh("mouse", "pgrep -x sleep").catch(() => ""));
      await hibernate("mouse");
      await resume("mouse");
      expect((await ended).stdout).toBe("done\n");
      await daemon.ok("DELETE", path("mouse"));
    });
  });

  describe("a daemon that is killed", () => {
    test.each(
      sampled(
        "points at which a daemon is killed",
        [
          // During a save the guest runs until the save is complete.
          ["hibernate", "hibernate.saved", "running"],
          ["hibernate", "hibernate.kept", "hibernated"],
          // During a restore it stays hibernated until the save is discarded.
          ["resume", "run.spend.before", "hibernated"],
          ["resume", "run.spend.after", "running"],
          // Steps without a change of state.
          ["hibernate", "undo.machine.after", "hibernated"],
          ["resume", "run.machine.after", "hibernated"],
          ["resume", "run.load.after", "hibernated"],
          ["resume", "run.resume.after", "running"],
        ] as const,
        2,
      ),
    )("during %s, at %s, finds it %s", async (verb, point, expected) => {
      const { daemon } = guests;
      const name = point.replaceAll(".", "-");
      const { sandbox_id } = await daemon.sandbox("winter", name, guests.cid());
      await startWork(name);
      if (verb === "resume") await hibernate(name);
      await daemon.end("SIGTERM");
      daemon.env[FAULT_VARIABLE] = `${point}=kill`;
      await daemon.serve();
      await daemon.api("POST", path(name, `/${verb}`)).catch(() => null);
      await until("the daemon has exited", () => !daemon.runs);
      delete daemon.env[FAULT_VARIABLE];
      await daemon.serve();
      const settled = await until("the sandbox is at rest", async () => {
        const found = await record(name);
        return ["running", "hibernated", "failed"].includes(found.state) ? found : null;
      });
      expect(settled.state).toBe(expected);
      if (expected === "hibernated") {
        expect(processesOf(daemon, "qemu", sandbox_id)).toEqual([]);
        await resume(name);
      }
      const before = (await worked(name)).length;
      await until("the sandbox counts on", async () => (await worked(name)).length > before + 20, WORKS_MS);
      flawless(await worked(name));
      await daemon.ok("DELETE", path(name));
      expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    });
  });
});
