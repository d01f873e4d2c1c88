/** Machines that wait warm: a sandbox that takes one is like any other, and none is left when the daemon goes. */
import { expect, test } from "vitest";
import { processesOf, until, withGuests } from "../harness/guests.ts";

withGuests("the warm pool", { env: { ROOMD_POOL_SIZE: "1" } }, (guests) => {
  test("gives its machines to sandboxes that differ in all that must differ", async () => {
    const { daemon } = guests;
    await daemon.room("warm");
    const seen = new Set<string>();
    let pooled = 0;
    await until(
      "two sandboxes were taken from the pool",
      async () => {
        const cid = guests.cid();
        const record = await daemon.sandbox("warm", `agent-${cid}`, cid, { memory_mib: 512 });
        const facts =
          "head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid /etc/machine-id; hostname";
        const lines = (await daemon.sh("warm", `agent-${cid}`, facts)).split("\n");
        expect(lines).toHaveLength(4);
        for (const line of lines) {
          expect(seen).not.toContain(line);
          seen.add(line);
        }
        const memoryKib = Number(
          await daemon.sh("warm", `agent-${cid}`, "awk '/^MemTotal/ { print $2 }' /proc/meminfo"),
        );
        expect(memoryKib).toBeGreaterThan(400 * 1024);
        await daemon.ok("DELETE", `/v1/rooms/warm/sandboxes/agent-${cid}`);
        if (record.start_mode === "pool") {
          pooled++;
          expect(Object.keys(record.boot)).not.toContain("load_ms");
        }
        return pooled >= 2;
      },
      90_000,
    );
    await daemon.ok("DELETE", "/v1/rooms/warm?drive=delete");
  });

  test("ends its machines with the daemon, also with one that was killed", async () => {
    const { daemon } = guests;
    await until("a machine waits", () => processesOf(daemon, "qemu").length > 0);
    await daemon.end("SIGKILL");
    const orphans = processesOf(daemon, "qemu");
    await daemon.serve();
    await until("the orphans have ended", () => processesOf(daemon, "qemu").every((pid) => !orphans.includes(pid)));
    await daemon.end("SIGTERM");
    expect(daemon.leftovers()).toEqual([]);
    await daemon.serve();
  });
});
