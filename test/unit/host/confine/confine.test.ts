/** The limits of a sandbox's processes: what they come to, and how systemd and the files of cgroup v2 are told. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { killedForMemory, makeCgroups } from "../../../../daemon/host/confine/cgroup.ts";
import { limitsOf } from "../../../../daemon/host/confine/index.ts";
import { addArgv, startArgv, weighArgv } from "../../../../daemon/host/confine/systemd.ts";

const MIB = 1024 ** 2;
const LIMITS = limitsOf({ memory_mib: 512, vcpu_count: 2, translated_mib: 128 });
let mount = "";

beforeEach(() => {
  mount = mkdtempSync(join(tmpdir(), "roomd-cgroup-"));
});
afterEach(() => rmSync(mount, { recursive: true }));

const offer = (controllers: string) => writeFileSync(join(mount, "cgroup.controllers"), `${controllers}\n`);
const read = (...path: string[]) => readFileSync(join(mount, "roomd", ...path), "utf8");

test("limits are the guest's own, and what serves it", () => {
  expect(LIMITS).toEqual({ memory_bytes: (512 + 128 + 384) * MIB, cpus: 3, tasks: 258 });
});

test("systemd is asked in one call for a scope with all processes in it", () => {
  expect(startArgv("sbx_1", [11, 12, 13], LIMITS).join(" ")).toBe(
    [
      "busctl --quiet call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager",
      "StartTransientUnit ssa(sv)a(sa(sv)) roomd-sbx_1.scope fail 9",
      "Description s Sandbox sbx_1 of roomd Slice s roomd.slice CollectMode s inactive-or-failed PIDs au 3 11 12 13",
      `MemoryMax t ${1024 * MIB} MemorySwapMax t 0 TasksMax t 258 CPUQuotaPerSecUSec t 3000000 IOWeight t 100 0`,
    ].join(" "),
  );
  expect(addArgv("sbx_1", 14).slice(-6)).toEqual(["AttachProcessesToUnit", "ssau", "roomd-sbx_1.scope", "", "1", "14"]);
});

test("all sandboxes together have less of the disk than the daemon", () => {
  expect(weighArgv().slice(-7).join(" ")).toBe("sba(sv) roomd.slice true 1 IOWeight t 20");
});

test("cgroup v2: the disk is shared where its scheduler knows weights, and else only the rest", () => {
  offer("cpuset cpu memory pids");
  expect(makeCgroups(mount)?.kind).toBe("cgroup");
  expect(read("cgroup.subtree_control")).toBe("+memory +pids +cpu");
  expect(existsSync(join(mount, "roomd", "io.weight"))).toBe(false);
  offer("cpuset cpu io memory pids");
  writeFileSync(join(mount, "roomd", "io.weight"), "default 100");
  expect(makeCgroups(mount)?.kind).toBe("cgroup");
  expect(read("io.weight")).toBe("default 20");
});

test.for(["", "cpuset cpu io", "memory pids", "cpuset io memory pids misc"])(
  "cgroup v2 that offers %o is not taken",
  (controllers) => {
    if (controllers !== "") offer(controllers);
    expect(makeCgroups(mount)).toBeNull();
    expect(existsSync(join(mount, "roomd"))).toBe(false);
  },
);

test("cgroup v2 that may not be handed down is not taken", () => {
  offer("cpuset cpu io memory pids");
  mkdirSync(join(mount, "cgroup.subtree_control"));
  expect(makeCgroups(mount)).toBeNull();
});

test("cgroup v2: controllers are handed down, limits come before the processes, and the group goes", async () => {
  offer("cpuset cpu io memory pids");
  mkdirSync(join(mount, "roomd", "sbx_old"), { recursive: true });
  const groups = makeCgroups(mount);
  expect(groups?.kind).toBe("cgroup");
  expect(readFileSync(join(mount, "cgroup.subtree_control"), "utf8")).toBe("+memory +pids +cpu +io");
  expect(read("cgroup.subtree_control")).toBe("+memory +pids +cpu +io");
  expect(readdirSync(join(mount, "roomd"))).not.toContain("sbx_old");

  await groups?.confine("sbx_1", [11, 12], LIMITS);
  expect(read("sbx_1", "memory.max")).toBe(String(1024 * MIB));
  expect(read("sbx_1", "pids.max")).toBe("258");
  expect(read("sbx_1", "cpu.max")).toBe("300000 100000");
  // The kernel takes one process a write; of a plain file the last one stays.
  expect(read("sbx_1", "cgroup.procs")).toBe("12");
  await groups?.add("sbx_1", 14);
  expect(read("sbx_1", "cgroup.procs")).toBe("14");

  expect(groups?.ranOutOfMemory("sbx_1")).toBe(false);
  writeFileSync(join(mount, "roomd", "sbx_1", "memory.events"), "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
  expect(groups?.ranOutOfMemory("sbx_1")).toBe(true);

  for (const file of readdirSync(join(mount, "roomd", "sbx_1"))) rmSync(join(mount, "roomd", "sbx_1", file));
  await groups?.release("sbx_1");
  await groups?.release("sbx_1");
  expect(existsSync(join(mount, "roomd", "sbx_1"))).toBe(false);
});

test("an end for want of memory is told from none", () => {
  expect(killedForMemory(() => "oom 3\noom_kill 0\n")).toBe(false);
  expect(killedForMemory(() => "oom_kill 12\n")).toBe(true);
  expect(killedForMemory(() => "oom_group_kill 1\n")).toBe(false);
  expect(
    killedForMemory(() => {
      throw new Error("gone");
    }),
  ).toBe(false);
});
