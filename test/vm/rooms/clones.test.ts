/** Clones of one snapshot are strangers: nothing random and no name is shared, the clock is the host's, the template untouched. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { digestFile } from "../../../daemon/host/images/digest.ts";
import { type Json, SHARED_TEMPLATES } from "../../harness/daemon.ts";
import { shortOrLong, withGuests } from "../../harness/guests.ts";

const CLOCK_TOLERANCE_MS = 50;
const clones = shortOrLong("clones compared", 3, 16);
const atOnce = 2;

withGuests("clones of one template", {}, (guests) => {
  const names = Array.from({ length: clones }, (_, index) => `clone-${index}`);

  test("share no randomness and no identity", async () => {
    const { daemon } = guests;
    await daemon.room("clones");
    const random: Record<string, string> = {
      urandom: "head -c 32 /dev/urandom | base64",
      getrandom: "python3 -c 'import os; print(os.getrandom(16).hex())'",
      python: "python3 -c 'import random; print(random.random())'",
      node: "node -p 'Math.random() + crypto.randomUUID()'",
      uuid: "cat /proc/sys/kernel/random/uuid",
      boot_id: "cat /proc/sys/kernel/random/boot_id",
      machine_id: "cat /etc/machine-id",
      hostname: "hostname",
      // The layout of the address space of a process started after the restore.
      layout: "grep -m 1 stack /proc/self/maps",
    };
    const lines = Object.values(random).join("; ");
    const seen: string[][] = [];
    while (seen.length < clones) {
      const some = names.slice(seen.length, seen.length + atOnce);
      const printed = some.map(async (name) => {
        await daemon.sandbox("clones", name, guests.cid());
        return (await daemon.sh("clones", name, lines)).split("\n");
      });
      seen.push(...(await Promise.all(printed)));
    }
    for (const [index, source] of Object.keys(random).entries()) {
      const values = seen.map((printed) => printed[index]);
      expect(values.every((value) => value !== undefined && value !== "")).toBe(true);
      expect([source, new Set(values).size]).toEqual([source, clones]);
    }
    expect(seen.map((printed) => printed[Object.keys(random).indexOf("hostname")])).toEqual(names);
  });

  test("have the host's time", async () => {
    const { daemon } = guests;
    const skews: number[] = [];
    for (const name of names) {
      const { clock_skew_ms } = await daemon.ok("GET", `/v1/rooms/clones/sandboxes/${name}/metrics`);
      const before = Date.now();
      const guestMs = Number(await daemon.sh("clones", name, "date +%s%N")) / 1e6;
      const after = Date.now();
      expect(guestMs).toBeGreaterThan(before - CLOCK_TOLERANCE_MS);
      expect(guestMs).toBeLessThan(after + CLOCK_TOLERANCE_MS);
      skews.push(clock_skew_ms);
    }
    console.log(`clock skew of ${clones} clones: ${skews.join(", ")} ms`);
    expect(skews.filter((skew) => !(Math.abs(skew) < CLOCK_TOLERANCE_MS))).toEqual([]);
  });

  test("leave the template's files unchanged, regardless of their writes to memory and disk", async () => {
    const { daemon } = guests;
    const directory = join(SHARED_TEMPLATES, "default", "current");
    const manifest: Json = await Bun.file(join(directory, "manifest.json")).json();
    const fill = "head -c 96M /dev/urandom >/dev/shm/fill; head -c 64M /dev/urandom >/var/fill; rm /usr/bin/git; sync";
    await daemon.exec("clones", "clone-0", { command: fill, timeout_ms: 60_000 });
    const { disk } = await daemon.ok("GET", "/v1/rooms/clones/sandboxes/clone-0/metrics");
    expect(disk.used_bytes).toBeGreaterThan(64 * 1024 * 1024);
    // The guest may not survive this to answer.
    const wreck = { command: "dd if=/dev/urandom of=/dev/vda bs=1M count=256 conv=fsync", timeout_ms: 60_000 };
    await daemon.api("POST", "/v1/rooms/clones/sandboxes/clone-0/exec", wreck);
    for (const { name, digest } of Object.values<Json>(manifest.files)) {
      expect([name, await digestFile(join(directory, name))]).toEqual([name, digest]);
    }
    await daemon.sandbox("clones", "late", guests.cid());
    expect(await daemon.sh("clones", "late", "git --version")).toMatch(/^git version/);
  });
});
