/**
 * Many snapshots of one sandbox: its disk is merged to lie directly over its base again while it runs, whatever happens in between, and no
 * snapshot loses anything by it.
 */
import { readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import type { Json } from "../../harness/daemon.ts";
import { LONG, processesOf, until, withGuests } from "../../harness/guests.ts";

if (!LONG) console.log("merged layers: left out, because it takes minutes; ROOMD_TEST_LONG=1 runs it");

/** With the sandbox's own layer these are more than are kept: merging starts after the last. */
const SNAPSHOTS = 16;
const DEADLINE_MS = 900_000;
/** Quiet, which is doubled once, and the copying. */
const MERGED_MS = 240_000;
const MIB = 1024 ** 2;
/** In each layer, so that the copying takes a while. */
const WRITTEN_MIB = 10;

/** Appends to a file without a pause, and overwrites part of another. */
const WORK = `n=0; while :; do n=$((n+1)); echo $n >>/root/own.log; echo $n | dd of=/root/f1 conv=notrunc 2>/dev/null; sleep 0.2; done`;

/** Digests over a part of each disk cluster of a file: clusters are copied whole, and hashing everything takes minutes without KVM. */
const DIGESTS = `import glob, hashlib
for name in sorted(glob.glob("/root/[fg][0-9][0-9]")):
    with open(name, "rb") as file:
        whole = file.read()
    some = b"".join(whole[at:at + 4096] for at in range(0, len(whole), 65536))
    print(name, len(whole), hashlib.sha256(some).hexdigest())
`;

describe.skipIf(!LONG)("long tests", () => {
  withGuests("layers", {}, (guests) => {
    const ROOM = "deep";
    const path = `/v1/rooms/${ROOM}/sandboxes/long`;
    let directory = "";
    let sandboxId = "";
    /** The snapshot with memory, and one of the disk alone, with the digests of their files. */
    const taken: Record<"full" | "disk", { snapshot_id: string; files: string }> = {
      full: { snapshot_id: "", files: "" },
      disk: { snapshot_id: "", files: "" },
    };

    const sh = (line: string, name = "long") => guests.daemon.sh(ROOM, name, line);
    /** Digests of all files except those being written to. */
    const digests = async (name = "long") => {
      const done = await guests.daemon.exec(ROOM, name, { argv: ["python3", "-c", DIGESTS], timeout_ms: 120_000 });
      expect(done).toMatchObject({ exit_code: 0, stderr: "" });
      return String(done.stdout);
    };
    const layers = () => readdirSync(directory).filter((name) => /^disk(-\w+)?\.qcow2$/.test(name));
    const sizes = () => layers().map((name) => [name, statSync(join(directory, name)).blocks * 512] as const);
    const take = (mode: "full" | "disk") => guests.daemon.ok("POST", `${path}/snapshots`, { mode });
    const merged = () => until("the layers are merged", () => layers().length === 1, MERGED_MS);

    /** Its log has every number once, and it keeps counting. */
    async function goesOn(name = "long"): Promise<void> {
      const currentCount = async () => Number(await sh("tail -n 1 /root/own.log", name));
      const before = await currentCount();
      await until(`${name} counts on`, async () => (await currentCount()) > before + 2);
      expect(await sh("awk '$1 != NR' /root/own.log | head -n 1", name)).toBe("");
    }

    async function grow(prefix: string): Promise<void> {
      for (let number = 1; number <= SNAPSHOTS; number++) {
        await sh(`head -c ${WRITTEN_MIB}M /dev/urandom >/root/${prefix}${number + 10}; sync`);
        const mode = number === SNAPSHOTS ? "full" : "disk";
        const files = number >= SNAPSHOTS - 1 ? await digests() : "";
        const { snapshot_id } = await take(mode);
        if (files !== "") taken[mode] = { snapshot_id, files };
      }
      expect(layers()).toHaveLength(SNAPSHOTS + 1);
    }

    /** The top layer has more than the guest has written to it since. */
    async function copying(): Promise<void> {
      const before = new Map(sizes());
      await until(
        "layers are being copied",
        () => sizes().some(([name, bytes]) => bytes > (before.get(name) ?? 0) + 3 * WRITTEN_MIB * MIB),
        MERGED_MS,
      );
      expect(layers().length).toBeGreaterThan(1);
    }

    /** QEMU holds no deleted file open, and the sandbox's reported usage is the existing files'. */
    async function nothingHidden(): Promise<void> {
      const [pid] = processesOf(guests.daemon, "qemu", sandboxId);
      const open = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
        try {
          return readlinkSync(`/proc/${pid}/fd/${fd}`);
        } catch {
          return [];
        }
      });
      expect(open.filter((file) => file.includes("qcow2") && file.includes("(deleted)"))).toEqual([]);
      expect(new Set(open.filter((file) => file.includes("/disk-")))).toEqual(
        new Set(layers().map((name) => join(directory, name))),
      );
      const { disk } = (await guests.daemon.ok("GET", `${path}/metrics`)) as Json;
      const sum = sizes().reduce((total, [, bytes]) => total + bytes, 0);
      expect(Math.abs(disk.used_bytes - sum)).toBeLessThan(4 * MIB);
    }

    beforeAll(async () => {
      const { daemon } = guests;
      await daemon.room(ROOM);
      const { sandbox_id } = await daemon.sandbox(ROOM, "long", guests.cid());
      sandboxId = sandbox_id;
      directory = join(daemon.dataDir, "sandboxes", sandbox_id);
      await sh(`echo start >/root/f1; setsid sh -c '${WORK}' >/dev/null 2>&1 </dev/null &`);
      await until("the sandbox writes", async () => Number(await sh("cat /root/own.log 2>/dev/null | wc -l")) > 2);
    });

    test(
      "layers are merged while the sandbox runs; a concurrent snapshot succeeds",
      async () => {
        await grow("f");
        await copying();
        const early = { ...taken };
        const before = early.full.files;
        // The merging waits twice as long after it.
        const between = await take("disk");
        expect(layers()).toHaveLength(SNAPSHOTS + 2);
        await merged();
        expect(await digests()).toBe(before);
        await goesOn();
        await nothingHidden();

        const cid = guests.cid();
        for (const [snapshot_id, files] of [
          [early.full.snapshot_id, early.full.files],
          [early.disk.snapshot_id, early.disk.files],
          [between.snapshot_id, before],
        ] as const) {
          const body = { agent_id: "other", guest_cid: cid, memory_mib: 256, snapshot_id };
          await guests.daemon.ok("POST", `/v1/rooms/${ROOM}/sandboxes/from-template`, body);
          expect(await digests("other")).toBe(files);
          await guests.daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/other`);
        }
      },
      DEADLINE_MS,
    );

    test(
      "a daemon that is killed during and after the merge adopts the sandbox",
      async () => {
        const { daemon } = guests;
        await grow("g");
        await copying();
        const before = taken.full.files;
        await daemon.end("SIGKILL");
        daemon.env[FAULT_VARIABLE] = "layers.merged=kill";
        await daemon.serve();
        await until("the daemon has exited", () => !daemon.runs, MERGED_MS);
        delete daemon.env[FAULT_VARIABLE];
        expect(layers()).toHaveLength(SNAPSHOTS + 1);
        await daemon.serve();
        await merged();
        expect(await digests()).toBe(before);
        await goesOn();
        await nothingHidden();
      },
      DEADLINE_MS,
    );

    test(
      "the sandbox hibernates, is rolled back to before the merge, and its layers are merged again",
      async () => {
        const { daemon } = guests;
        const before = await digests();
        await daemon.ok("POST", `${path}/hibernate`);
        await daemon.ok("POST", `${path}/resume`);
        expect(await digests()).toBe(before);
        await daemon.ok("POST", `${path}/rollback`, { snapshot_id: taken.full.snapshot_id });
        // As many as the snapshot has, and the sandbox's own.
        expect(layers()).toHaveLength(SNAPSHOTS + 1);
        await copying();
        await daemon.ok("POST", `${path}/rollback`, { snapshot_id: taken.full.snapshot_id });
        expect(await digests()).toBe(taken.full.files);
        await goesOn();
      },
      DEADLINE_MS,
    );
  });
});
