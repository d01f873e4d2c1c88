/**
 * Sandboxes with more processors than their template was built with: the first boots cold, in the meantime the template is saved with that
 * number, and the next ones start from it as usual.
 */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { SHARED_TEMPLATES, type TestDaemon } from "../../harness/daemon.ts";
import { LONG, processesOf, testAlone, until } from "../../harness/guests.ts";

if (!LONG)
  console.log("templates saved with two processors: left out, because it takes minutes: ROOMD_TEST_LONG=1 runs it");

const DEADLINE_MS = 240_000;
/** Prints each of two processors' affinity from two concurrent processes. */
const BOTH = "for n in 0 1; do taskset -c $n sh -c 'grep ^Cpus_allowed_list /proc/self/status' & done; wait";

/** A separate template, which may be extended. */
function ownTemplate({ dataDir }: TestDaemon): void {
  const own = join(dataDir, "templates");
  rmSync(own);
  mkdirSync(own);
  // The saved files have holes of some gigabytes.
  const { status, stderr } = spawnSync("cp", ["--archive", "--sparse=always", join(SHARED_TEMPLATES, "default"), own]);
  if (status !== 0) throw new Error(String(stderr));
  for (const version of readdirSync(join(own, "default"))) {
    const saved = join(own, "default", version);
    if (!lstatSync(saved).isDirectory()) continue;
    for (const name of readdirSync(saved).filter((each) => each.includes("processors-"))) {
      rmSync(join(saved, name), { recursive: true });
    }
  }
}

describe.skipIf(!LONG)("long tests", () => {
  testAlone(
    "a sandbox with two processors boots cold once, and later ones start from a two-processor snapshot",
    { prepare: ownTemplate, env: { ROOMD_POOL_SIZE: "1" } },
    async (daemon) => {
      await daemon.room("two");
      const create = (agent: string, cid: number) => daemon.sandbox("two", agent, cid, { vcpu_count: 2 });
      const first = await create("first", 9100);
      expect(first.start_mode).toBe("cold");
      expect(await daemon.sh("two", "first", "nproc")).toBe("2");
      // Killed during the save: nothing of it remains, and the next create starts the save again.
      await until("the template is being saved", () => savings(daemon).length > 0, DEADLINE_MS);
      const [machine = ""] = savings(daemon);
      await daemon.restart("SIGKILL");
      await until(
        "the files of the interrupted save are removed",
        () => !existsSync(join(daemon.dataDir, "savings", machine)),
      );
      // Stopped during the save: nothing of it remains, immediately.
      await create("again", 9101);
      await until("the template is being saved again", () => savings(daemon).length > 0, DEADLINE_MS);
      expect(await daemon.end("SIGTERM")).toBe(0);
      expect([savings(daemon), drafts(daemon)]).toEqual([[], []]);
      await daemon.serve();
      await create("once-more", 9102);
      await until("the template is saved", () => daemon.log.includes('"took_ms":'), DEADLINE_MS);
      expect(savings(daemon)).toEqual([]);
      await until("a warm machine is ready", () => daemon.log.includes('"ready_ms":'), DEADLINE_MS);
      const modes: string[] = [];
      for (const [n, agent] of ["third", "fourth", "fifth"].entries()) {
        const { start_mode } = await create(agent, 9110 + n);
        modes.push(start_mode);
        expect((await daemon.sh("two", agent, BOTH)).split("\n").sort()).toEqual([
          "Cpus_allowed_list:\t0",
          "Cpus_allowed_list:\t1",
        ]);
      }
      expect(modes).not.toContain("cold");
      await daemon.ok("DELETE", "/v1/rooms/two?drive=delete");
      await daemon.end("SIGTERM");
      expect(daemon.leftovers()).toEqual([]);
      expect(processesOf(daemon, "qemu")).toEqual([]);
      await daemon.serve();
    },
    2 * DEADLINE_MS,
  );
});

function savings({ dataDir }: TestDaemon): string[] {
  const directory = join(dataDir, "savings");
  return existsSync(directory) ? readdirSync(directory) : [];
}

function drafts({ dataDir }: TestDaemon): string[] {
  const files = readdirSync(join(dataDir, "templates", "default"), { recursive: true, encoding: "utf8" });
  return files.filter((path) => path.includes(".processors-"));
}
