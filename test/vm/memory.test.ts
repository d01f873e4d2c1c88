/** Memory of the host: what was promised is kept back, and who is ended for want of it is a guest, and called by that name. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { processesOf, until, untilState, withGuests } from "../harness/guests.ts";
import { removeMemoryGroup, starve, whyNoMemoryGroup } from "../harness/memory-group.ts";

if (whyNoMemoryGroup !== null) {
  console.log(`the end of a guest for want of memory is left out, because ${whyNoMemoryGroup}`);
}

withGuests("memory of the host", {}, (guests) => {
  const sandboxes = "/v1/rooms/r/sandboxes";
  const free = async () => (await guests.daemon.ok("GET", "/health")).capacity.memory_mib_free;

  beforeAll(async () => {
    await guests.daemon.room("r");
    await guests.daemon.sandbox("r", "bystander", guests.cid());
  });
  afterAll(removeMemoryGroup);

  test("what a guest was promised and has not touched is kept back for it", async () => {
    const before = await free();
    // So much that what is left is less than one sandbox may have.
    const promised = Math.floor(before / 3);
    await guests.daemon.sandbox("r", "large", guests.cid(), { memory_mib: promised });
    // It has touched some hundred MiB; other programs of this host come and go.
    expect(before - (await free())).toBeGreaterThan(promised / 2);
    const tooMuch = { agent_id: "more", guest_cid: guests.cid(), memory_mib: (await free()) + 512 };
    const refused = await guests.daemon.problem("POST", `${sandboxes}/from-template`, tooMuch);
    expect([refused.status, refused.code]).toEqual([503, "insufficient_capacity"]);
    expect(refused.details.memory_mib_free).toBeLessThan(tooMuch.memory_mib);
    await guests.daemon.ok("DELETE", `${sandboxes}/large`);
    await until("it is free again", async () => before - (await free()) < promised / 4);
    expect(await guests.daemon.sh("r", "bystander", "hostname")).toBe("bystander");
  });

  test("what a guest frees comes back to the host", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox("r", "returns", guests.cid(), { memory_mib: 512 });
    const residentMib = () => {
      const rollup = readFileSync(`/proc/${processesOf(daemon, "qemu", sandbox_id)[0]}/smaps_rollup`, "utf8");
      return Number(/^Rss: +(\d+) kB/m.exec(rollup)?.[1]) / 1024;
    };
    const fresh = residentMib();
    await daemon.sh("r", "returns", "mount -o remount,size=90% /dev/shm && head -c 200M /dev/urandom >/dev/shm/used");
    const used = residentMib();
    expect(used).toBeGreaterThan(fresh + 150);
    await daemon.sh("r", "returns", "rm /dev/shm/used");
    const left = await until("most of it is back", () => (residentMib() < used - 150 ? residentMib() : null), 60_000);
    console.log(
      `resident: ${fresh.toFixed()} MiB fresh, ${used.toFixed()} with 200 MiB in use, ${left.toFixed()} without`,
    );
    await daemon.ok("DELETE", `${sandboxes}/${sandbox_id}`);
  });

  test("guests are the first that the kernel ends", async () => {
    const { sandbox_id } = await guests.daemon.ok("GET", `${sandboxes}/bystander`);
    const scoreOf = (pid: number) => Number(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8"));
    const [qemu = 0] = processesOf(guests.daemon, "qemu", sandbox_id);
    expect(scoreOf(qemu)).toBeGreaterThan(scoreOf(guests.daemon.pid));
  });

  test.skipIf(whyNoMemoryGroup !== null)("one that it has ended says so, and no other is affected", async () => {
    const { daemon } = guests;
    const { sandbox_id, guest_cid } = await daemon.sandbox("r", "eater", guests.cid(), { memory_mib: 1024 });
    const [qemu = 0] = processesOf(daemon, "qemu", sandbox_id);
    starve(qemu);
    const answer = await daemon.api("POST", `${sandboxes}/eater/exec`, {
      command: "head -c 500M /dev/zero >/dev/shm/eaten",
    });
    expect([answer.status, answer.body.code]).toEqual([502, "guest_unreachable"]);
    const failed = await untilState(daemon, "r", sandbox_id, "failed");
    expect(failed).toMatchObject({
      exit: { cause: "oom" },
      status: { message: expect.stringMatching(/ran out of memory/) },
    });
    expect(await daemon.sh("r", "bystander", "hostname")).toBe("bystander");
    await daemon.ok("DELETE", `${sandboxes}/${sandbox_id}`);
    await daemon.sandbox("r", "eater", guest_cid);
    // Another end by SIGKILL is not called so.
    const again = await daemon.ok("GET", `${sandboxes}/eater`);
    process.kill(processesOf(daemon, "qemu", again.sandbox_id)[0] ?? 0, "SIGKILL");
    expect((await untilState(daemon, "r", again.sandbox_id, "failed")).exit.cause).toBe("vmm_crash");
  });
});
