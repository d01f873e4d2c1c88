/**
 * Benchmark of templates: one of each family, created on demand in alternation with `default`, from the call to the end of the first
 * command. The time to load saved memory is proportional to its size; the limit of the rest is 1.3 times that of `default`. Also reported:
 * the disk, the saved memory, and the resident memory of an idle sandbox.
 */
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import type { SandboxRecord } from "../../shared/api/sandboxes.ts";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { ownTemplates, shippedTemplate } from "../harness/images/built-templates.ts";
import { busyboxRoot, writeImage } from "../harness/images/oci-image.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 8;
const ROOM = "bench";
const AGENT = "worker";
/** All have the same memory, so that plugging it costs the same. */
const MEMORY_MIB = 1024;
const MAX_OF_DEFAULT = 1.3;
const MIB = 1024 ** 2;

interface Life {
  whole: number;
  /** Without the time to load saved memory. */
  beyondLoad: number;
  load: number;
}

export async function benchTemplates({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: true, env: { ROOMD_POOL_SIZE: "0" } });
  ownTemplates(daemon);
  await importImage(daemon);
  for (const name of ["docker", "browser", "desktop"]) await shippedTemplate(daemon, name);
  const names = ["default", "image", "docker", "browser", "desktop"];
  await daemon.room(ROOM);
  const lives = new Map<string, Life[]>(names.map((name) => [name, []]));
  const resident = new Map<string, number>();
  // Once uncounted: the template is read whole then.
  for (const name of names)
    await live(daemon, name, (record) => void resident.set(name, residentMib(record.sandbox_id)));
  for (let round = 0; round < count; round++) {
    for (const name of names) lives.get(name)?.push(await live(daemon, name));
  }
  for (const name of names) {
    const of = (part: keyof Life) => lives.get(name)?.map((each) => each[part]) ?? [];
    const isDefault = name === "default";
    report.add(name, "ms", of("whole"), isDefault ? undefined : "default");
    const limit = isDefault ? undefined : ({ of: "ratio", most: MAX_OF_DEFAULT } as const);
    report.add(`${name}.beyond_load`, "ms", of("beyondLoad"), isDefault ? undefined : "default.beyond_load", limit);
    report.add(`${name}.load`, "ms", of("load"));
    const { disk, memory } = sizesOf(daemon, name);
    report.add(`${name}.disk`, "MiB", [disk]);
    report.add(`${name}.saved_memory`, "MiB", [memory]);
    report.add(`${name}.resident_memory`, "MiB", [resident.get(name) ?? Number.NaN]);
  }
}

/** A root without libc, of one program. */
async function importImage(daemon: TestDaemon): Promise<void> {
  const reference = await writeImage(join(daemon.home, "image"), [busyboxRoot()], { Env: ["PATH=/bin"] });
  const { status, stdout, stderr } = await daemon.cli(["template", "import", "image", reference, "--disk", "1024"]);
  if (status !== 0) throw new Error(`the image was not imported: ${stdout}${stderr}`);
}

async function live(daemon: TestDaemon, template_id: string, atRest?: (record: SandboxRecord) => void): Promise<Life> {
  const began = performance.now();
  const record: SandboxRecord = await daemon.sandbox(ROOM, AGENT, GUEST_CID_MIN, {
    template_id,
    memory_mib: MEMORY_MIB,
  });
  const done = await daemon.exec(ROOM, AGENT, { argv: ["true"] });
  const whole = performance.now() - began;
  if (done.exit_code !== 0 || record.start_mode !== "snapshot") throw new Error(JSON.stringify({ done, record }));
  atRest?.(record);
  await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/${AGENT}`);
  const load = Number(record.boot.load_ms);
  return { whole, beyondLoad: whole - load, load };
}

/** Allocated size on disk, without holes. */
function sizesOf(daemon: TestDaemon, name: string): { disk: number; memory: number } {
  const directory = realpathSync(join(daemon.dataDir, "templates", name, "current"));
  const taken = (file: string) => (statSync(join(directory, file)).blocks * 512) / MIB;
  const memory = taken("memory");
  return { disk: readdirSync(directory).reduce((sum, file) => sum + taken(file), 0) - memory, memory };
}

/** PSS of its virtual machine's process: private memory, and its proportional part of shared memory. */
function residentMib(sandboxId: string): number {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`guest=${sandboxId}`)) continue;
      const kib = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1];
      return Number(kib) / 1024;
    } catch {
      // It has exited in the meantime.
    }
  }
  throw new Error(`no process of ${sandboxId}`);
}
