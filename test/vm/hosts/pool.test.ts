/** Pooled warm machines: a sandbox that takes one is like any other, and none remains when the daemon stops. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import type { Json } from "../../harness/daemon.ts";
import { processesOf, until, withGuests } from "../../harness/guests.ts";

withGuests("the warm pool", { env: { ROOMD_POOL_SIZE: "1" } }, (guests) => {
  /** Log entries of the machines that became ready. */
  const readyMachines = () => guests.daemon.logged({ level: "info" }).filter(({ ready_ms }) => ready_ms !== undefined);

  test("provides machines to sandboxes that differ where they must", async () => {
    const { daemon } = guests;
    await daemon.room("warm");
    const seen = new Set<string>();
    let pooled = 0;
    let last = "";
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
          last = record.sandbox_id;
        }
        return pooled >= 2;
      },
      90_000,
    );
    // The previous sandbox had this much memory, so the machine was given it while it waited.
    expect(readyMachines().find(({ sandbox_id }) => sandbox_id === last)).toMatchObject({ memory_mib: 512 });
    await daemon.ok("DELETE", "/v1/rooms/warm?drive=delete");
  });

  test("rehearses with temporary devices and a read-only drive, and both are gone when a machine is ready", async () => {
    const { daemon } = guests;
    await daemon.end("SIGTERM");
    const logStart = daemon.log.length;
    daemon.env[FAULT_VARIABLE] = "pool.rehearsing=stall";
    await daemon.serve();
    delete daemon.env[FAULT_VARIABLE];
    await until("a machine warms up", () => daemon.log.slice(logStart).includes("pool.rehearsing"));
    const [id = ""] = readdirSync(join(daemon.runtimeDir, "g"));
    const drive = join(daemon.runtimeDir, "g", id, "rehearsal", "drive");
    expect(statSync(drive)).toMatchObject({ uid: 0, mode: 0o40555 });
    const shares = processesOf(daemon, "virtiofsd");
    expect(shares.length).toBeGreaterThan(0);
    // A virtiofsd with another root than the host's may not write to the host root's files, and QEMU's user may not write to the socket's
    // directory.
    const qemus = processesOf(daemon, "qemu").map((pid) => statSync(`/proc/${pid}`).uid);
    expect(qemus).not.toContain(statSync(join(daemon.runtimeDir, "g", id, "fs")).uid);
    for (const pid of shares)
      expect(readFileSync(`/proc/${pid}/uid_map`, "utf8")).toMatch(/^\s*0\s+[1-9]\d{4,}\s+65536$/m);
    process.kill(daemon.pid, "SIGUSR2");
    await until("the warm machine is ready", () => daemon.log.slice(logStart).includes('"ready_ms":'));
    for (const left of ["rehearsal", "fs"]) expect(existsSync(join(daemon.runtimeDir, "g", id, left))).toBe(false);
    expect([processesOf(daemon, "virtiofsd"), processesOf(daemon, "vsock")]).toEqual([[], []]);
    await daemon.room("rehearsed");
    const cid = guests.cid();
    const record = await daemon.sandbox("rehearsed", "worker", cid);
    expect(record.start_mode).toBe("pool");
    expect(await daemon.sh("rehearsed", "worker", "echo kept >/mnt/drive/note; cat /mnt/drive/note; ls /mnt")).toBe(
      "kept\ndrive",
    );
    await daemon.ok("DELETE", "/v1/rooms/rehearsed?drive=delete");
  });

  test("has lower CPU priority than sandboxes until a machine becomes one", async ({ skip }) => {
    const { daemon } = guests;
    const { waiting, ready_ms } = await until("a warm machine is ready", () => {
      for (const { sandbox_id, ready_ms } of readyMachines()) {
        const [waiting] = processesOf(daemon, "qemu", sandbox_id);
        if (waiting !== undefined) return { waiting, ready_ms };
      }
      return null;
    });
    const { checks } = await daemon.ok("GET", "/health");
    const hasGroups = checks.find(({ id }: Json) => id === "confinement").status === "ok";
    if (hasGroups) skip("guests have groups here, whose weights test/host/scopes looks at");
    if (!existsSync(`/proc/${waiting}/autogroup`)) skip("this kernel does not weigh sessions");
    const nice = () => /nice (\d+)$/m.exec(readFileSync(`/proc/${waiting}/autogroup`, "utf8"))?.[1];
    // A machine that was late has its share already.
    if (ready_ms < 2_900) expect(nice()).toBe("15");
    await daemon.room("ranked");
    const record = await daemon.sandbox("ranked", "worker", guests.cid());
    expect(record.start_mode).toBe("pool");
    expect(processesOf(daemon, "qemu", record.sandbox_id)).toEqual([waiting]);
    expect(nice()).toBe("5");
    await daemon.ok("DELETE", "/v1/rooms/ranked?drive=delete");
  });

  test("leaves nothing of a rehearsal when the daemon is killed", async () => {
    const { daemon } = guests;
    await daemon.end("SIGTERM");
    daemon.env[FAULT_VARIABLE] = "pool.rehearsing=kill";
    await daemon.serve();
    delete daemon.env[FAULT_VARIABLE];
    await until("the daemon was killed", () => !daemon.runs);
    const left = ["qemu", "virtiofsd", "vsock"].flatMap((part) => processesOf(daemon, part as "qemu"));
    expect(left.length).toBeGreaterThanOrEqual(3);
    await daemon.serve();
    await until("the leftover processes have exited", () =>
      ["qemu", "virtiofsd", "vsock"]
        .flatMap((part) => processesOf(daemon, part as "qemu"))
        .every((pid) => !left.includes(pid)),
    );
  });

  test("ends its machines with the daemon, also after a kill", async () => {
    const { daemon } = guests;
    await until("a machine runs", () => processesOf(daemon, "qemu").length > 0);
    await daemon.end("SIGKILL");
    const orphans = processesOf(daemon, "qemu");
    await daemon.serve();
    await until("the orphans have exited", () => processesOf(daemon, "qemu").every((pid) => !orphans.includes(pid)));
    await daemon.end("SIGTERM");
    expect(daemon.leftovers()).toEqual([]);
    await daemon.serve();
  });
});
