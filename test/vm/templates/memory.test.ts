/** Memory of the host: promised memory is reserved, and a process killed for lack of memory is a guest, and is reported as that. */
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { removeMemoryGroup, starve, whyNoMemoryGroup } from "../../harness/event-loop/memory-group.ts";
import { processesOf, until, untilState, withGuests } from "../../harness/guests.ts";

if (whyNoMemoryGroup !== null) {
  console.log(`a guest that runs out of memory is left out, because ${whyNoMemoryGroup}`);
}

withGuests("memory of the host", {}, (guests) => {
  const sandboxes = "/v1/rooms/r/sandboxes";
  const free = async () => (await guests.daemon.ok("GET", "/health")).capacity.memory_mib_free;

  beforeAll(async () => {
    await guests.daemon.room("r");
    await guests.daemon.sandbox("r", "bystander", guests.cid());
  });
  afterAll(removeMemoryGroup);

  test("is reserved for guests even if they have not touched it", async () => {
    const before = await free();
    // So large that the remainder is less than one sandbox may have.
    const promised = Math.floor(before / 3);
    await guests.daemon.sandbox("r", "large", guests.cid(), { memory_mib: promised });
    // It has touched some hundred MiB; other programs of this host come and go.
    expect(before - (await free())).toBeGreaterThan(promised / 2);
    const tooMuch = { agent_id: "more", guest_cid: guests.cid(), memory_mib: (await free()) + 512 };
    const refused = await guests.daemon.problem("POST", `${sandboxes}/from-template`, tooMuch);
    expect([refused.status, refused.code]).toEqual([503, "insufficient_capacity"]);
    expect(refused.details.memory_mib_free).toBeLessThan(tooMuch.memory_mib);
    await guests.daemon.ok("DELETE", `${sandboxes}/large`);
    await until("the memory is free again", async () => before - (await free()) < promised / 4);
    expect(await guests.daemon.sh("r", "bystander", "hostname")).toBe("bystander");
  });

  describe("is returned to the host when a guest frees it", () => {
    const USED_MIB = 300;
    /** Code that runs for the first time, the tests' programs and the agent's own, stays in memory. */
    const NEARLY_MIB = 48;
    /** A guest reports a part of its free memory every two seconds. */
    const BACK_WITHIN_MS = 30_000;
    /** A template's own memory: the kernel, the agent, and the files that they have read. */
    const FRESH_MIB = 105;

    /** A sandbox's share of the host's memory: the files of the guest. */
    function memoryOf(sandboxId: string): number {
      const directory = `/proc/${processesOf(guests.daemon, "qemu", sandboxId)[0]}/fd`;
      const files = readdirSync(directory)
        .map((name) => join(directory, name))
        .filter((file) => isMemory(file));
      expect(files).toHaveLength(2);
      return files.reduce((sum, file) => sum + statSync(file).blocks * 512, 0) / 1024 ** 2;
    }

    /** Takes memory and frees it: soon after the sandbox has little more than at first. */
    async function useAndFree(name: string, sandboxId: string, fresh: number): Promise<void> {
      const { daemon } = guests;
      const use = `mount -o remount,size=90% /dev/shm && head -c ${USED_MIB}M /dev/urandom >/dev/shm/used`;
      await daemon.sh("r", name, use);
      const used = memoryOf(sandboxId);
      await daemon.sh("r", name, "rm /dev/shm/used");
      const left = await until(
        "the memory is released",
        () => {
          const now = memoryOf(sandboxId);
          return now < fresh + NEARLY_MIB ? now : null;
        },
        BACK_WITHIN_MS,
      );
      console.log(`${name}: ${[fresh, used, left].map((mib) => mib.toFixed()).join(", ")} MiB fresh, in use, freed`);
      expect(used).toBeGreaterThan(fresh + USED_MIB * 0.9);
    }

    test("of a sandbox, after a snapshot of it, in a fork, and after it hibernated", async () => {
      const { daemon } = guests;
      const { sandbox_id } = await daemon.sandbox("r", "returns", guests.cid(), { memory_mib: 1024 });
      const fresh = memoryOf(sandbox_id);
      expect(fresh).toBeLessThan(FRESH_MIB);
      await useAndFree("returns", sandbox_id, fresh);

      const before = memoryOf(sandbox_id);
      await daemon.ok("POST", `${sandboxes}/returns/snapshots`, {});
      // Saving did not take the memory that it has not used or has returned.
      expect(memoryOf(sandbox_id)).toBeLessThan(before + NEARLY_MIB / 2);
      await useAndFree("returns", sandbox_id, fresh);

      const forked = await daemon.ok("POST", `${sandboxes}/returns/fork`, { agents: [{ agent_id: "forked" }] });
      const fork = forked.items[0].sandbox.sandbox_id;
      expect(memoryOf(sandbox_id)).toBeLessThan(before + NEARLY_MIB);
      expect(memoryOf(fork)).toBeLessThan(before + NEARLY_MIB);
      await useAndFree("forked", fork, fresh);
      await daemon.ok("DELETE", `${sandboxes}/forked`);

      await daemon.ok("POST", `${sandboxes}/returns/hibernate`);
      await daemon.ok("POST", `${sandboxes}/returns/resume`);
      expect(memoryOf(sandbox_id)).toBeLessThan(before + NEARLY_MIB);
      await useAndFree("returns", sandbox_id, fresh);
      await daemon.ok("DELETE", `${sandboxes}/returns`);
    });
  });

  test("is freed by the kernel's OOM killer from guests first", async () => {
    const { sandbox_id } = await guests.daemon.ok("GET", `${sandboxes}/bystander`);
    const scoreOf = (pid: number) => Number(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8"));
    const [qemu = 0] = processesOf(guests.daemon, "qemu", sandbox_id);
    expect(scoreOf(qemu)).toBeGreaterThan(scoreOf(guests.daemon.pid));
  });

  test.skipIf(whyNoMemoryGroup !== null)(
    "when exhausted by a guest ends that guest with this reason, and no other",
    async () => {
      const { daemon } = guests;
      const { sandbox_id, guest_cid } = await daemon.sandbox("r", "eater", guests.cid(), { memory_mib: 1024 });
      const [qemu = 0] = processesOf(daemon, "qemu", sandbox_id);
      starve(qemu);
      const answer = await daemon.api("POST", `${sandboxes}/eater/exec`, {
        command: "head -c 500M /dev/zero >/dev/shm/eaten",
      });
      expect([answer.status, answer.body.code]).toEqual([502, "guest_unreachable"]);
      const failed = await untilState(daemon, "r", sandbox_id, "failed");
      expect(failed.exit).toMatchObject({ cause: "oom" });
      expect(await daemon.sh("r", "bystander", "hostname")).toBe("bystander");
      await daemon.ok("DELETE", `${sandboxes}/${sandbox_id}`);
      await daemon.sandbox("r", "eater", guest_cid);
      // Another end by SIGKILL is not called so.
      const again = await daemon.ok("GET", `${sandboxes}/eater`);
      process.kill(processesOf(daemon, "qemu", again.sandbox_id)[0] ?? 0, "SIGKILL");
      expect((await untilState(daemon, "r", again.sandbox_id, "failed")).exit.cause).toBe("vmm_crash");
    },
  );
});

function isMemory(file: string): boolean {
  try {
    return readlinkSync(file).startsWith("/memfd:memory-backend-memfd");
  } catch {
    // It has been closed.
    return false;
  }
}
