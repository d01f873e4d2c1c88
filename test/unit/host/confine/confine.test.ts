/** The limits of a sandbox's processes: their values, and how they are set in systemd and in the files of cgroup v2. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { BusError } from "../../../../daemon/host/confine/bus.ts";
import { killedForMemory, makeCgroups } from "../../../../daemon/host/confine/cgroup.ts";
import type { MethodCall } from "../../../../daemon/host/confine/dbus-message.ts";
import { limitsOf } from "../../../../daemon/host/confine/index.ts";
import { addCall, limitCall, makeScopes, startCall, weighCall } from "../../../../daemon/host/confine/systemd.ts";

const MIB = 1024 ** 2;
const GUEST = { memory_mib: 512, vcpu_count: 2, acceleration: "tcg" } as const;
const LIMITS = limitsOf(GUEST, "serving");
let mount = "";

beforeEach(() => {
  mount = mkdtempSync(join(tmpdir(), "roomd-cgroup-"));
});
afterEach(() => rmSync(mount, { recursive: true }));

const offer = (controllers: string) => writeFileSync(join(mount, "cgroup.controllers"), `${controllers}\n`);
const read = (...path: string[]) => readFileSync(join(mount, "roomd", ...path), "utf8");

test("limits cover the guest and its sidecar processes", () => {
  expect(LIMITS).toEqual({ memory_bytes: (512 + 128 + 384) * MIB, cpus: 3, tasks: 258, cpu_weight: 100 });
});

test("a waiting machine has almost no processor share against sandboxes", () => {
  expect(limitsOf(GUEST, "waiting")).toEqual({ ...LIMITS, cpu_weight: 10 });
});

const LIMITED = [
  ["MemoryMax", { type: "t", value: 1024 * MIB }],
  ["MemorySwapMax", { type: "t", value: 0 }],
  ["TasksMax", { type: "t", value: 258 }],
  ["CPUQuotaPerSecUSec", { type: "t", value: 3_000_000 }],
  ["CPUWeight", { type: "t", value: 100 }],
];

test("a scope is started with its first process in one call to systemd", () => {
  expect(startCall("sbx_1", 11, LIMITS)).toEqual({
    destination: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
    member: "StartTransientUnit",
    signature: "ssa(sv)a(sa(sv))",
    body: [
      "roomd-sbx_1.scope",
      "fail",
      [
        ["Description", { type: "s", value: expect.stringContaining("sbx_1") }],
        ["Slice", { type: "s", value: "roomd.slice" }],
        ["CollectMode", { type: "s", value: "inactive-or-failed" }],
        ["DelegateControllers", { type: "as", value: [] }],
        ["PIDs", { type: "au", value: [11] }],
        ...LIMITED,
        ["IOWeight", { type: "t", value: 100 }],
        ["Before", { type: "as", value: ["basic.target"] }],
      ],
      [],
    ],
  });
  expect(addCall("sbx_1", 14)).toMatchObject({
    member: "AttachProcessesToUnit",
    signature: "ssau",
    body: ["roomd-sbx_1.scope", "", [14]],
  });
});

test("a machine that becomes a sandbox gets the sandbox's limits, permanently", () => {
  const expected = { member: "SetUnitProperties", signature: "sba(sv)", body: ["roomd-sbx_1.scope", true, LIMITED] };
  expect(limitCall("sbx_1", LIMITS)).toMatchObject(expected);
});

test("all sandboxes together have a lower disk weight than the daemon", () => {
  const weight = ["IOWeight", { type: "t", value: 20 }];
  expect(weighCall().body).toEqual(["roomd.slice", true, [weight]]);
});

test("a process is reported as in its scope once it is, also while a previous scope still ends", async () => {
  const calls: string[] = [];
  const groups = ["0::/system.slice/roomd.service\n", "0::/roomd.slice/roomd-sbx_1.scope\n"];
  const call = async ({ member }: MethodCall) => {
    calls.push(member);
    const refusals = calls.filter((name) => name === "StartTransientUnit").length;
    if (member === "StartTransientUnit" && refusals < 3) throw new BusError(member, exists);
    if (member === "SetUnitProperties") throw new BusError(member, { name: "org.example.No", message: "no" });
  };
  const exists = { name: "org.freedesktop.systemd1.UnitExists", message: "Unit was already loaded" };
  await makeScopes({ call }, () => groups.shift() ?? "").confine("sbx_1", 11, LIMITS);
  expect(calls).toEqual(["SetUnitProperties", ...Array.from({ length: 3 }, () => "StartTransientUnit")]);
  expect(groups).toEqual([]);
});

test("a process gets a separate scope if its sandbox's scope of an earlier version accepts no more", async () => {
  const calls: string[] = [];
  const refused = { name: "org.freedesktop.DBus.Error.InvalidArgs", message: "not available on non-delegated units" };
  const call = async ({ member, body }: MethodCall) => {
    calls.push(`${member} ${body[0]}`);
    if (member === "AttachProcessesToUnit") throw new BusError(member, refused);
  };
  await makeScopes({ call }, () => "0::/roomd.slice/roomd-sbx_1-14.scope\n").add("sbx_1", 14);
  expect(calls).toEqual(["AttachProcessesToUnit roomd-sbx_1.scope", "StartTransientUnit roomd-sbx_1-14.scope"]);
});

test("a process that exits before it is in its scope, or that systemd refuses, is an immediate error", async () => {
  const refuse = async () => {
    throw new BusError("StartTransientUnit", { name: "org.freedesktop.DBus.Error.AccessDenied", message: "" });
  };
  await expect(makeScopes({ call: refuse }).confine("sbx_1", 11, LIMITS)).rejects.toThrow("AccessDenied");
  const missingPid = 2 ** 22 + 1;
  await expect(makeScopes({ call: async () => {} }).confine("sbx_1", missingPid, LIMITS)).rejects.toThrow(
    "ended before",
  );
});

test("cgroup v2: the disk is weighted if its scheduler supports it, and otherwise only the rest", () => {
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
  "cgroup v2 that offers %o is not used",
  (controllers) => {
    if (controllers !== "") offer(controllers);
    expect(makeCgroups(mount)).toBeNull();
    expect(existsSync(join(mount, "roomd"))).toBe(false);
  },
);

test("cgroup v2 that cannot be delegated is not used", () => {
  offer("cpuset cpu io memory pids");
  mkdirSync(join(mount, "cgroup.subtree_control"));
  expect(makeCgroups(mount)).toBeNull();
});

test("cgroup v2: controllers are delegated, limits precede the processes, and the group is removed", async () => {
  offer("cpuset cpu io memory pids");
  mkdirSync(join(mount, "roomd", "sbx_old"), { recursive: true });
  const groups = makeCgroups(mount);
  expect(groups?.kind).toBe("cgroup");
  expect(readFileSync(join(mount, "cgroup.subtree_control"), "utf8")).toBe("+memory +pids +cpu +io");
  expect(read("cgroup.subtree_control")).toBe("+memory +pids +cpu +io");
  expect(readdirSync(join(mount, "roomd"))).not.toContain("sbx_old");

  await groups?.confine("sbx_1", 12, LIMITS);
  expect(read("sbx_1", "memory.max")).toBe(String(1024 * MIB));
  expect(read("sbx_1", "pids.max")).toBe("258");
  expect(read("sbx_1", "cpu.max")).toBe("300000 100000");
  expect(read("sbx_1", "cpu.weight")).toBe("100");
  // The kernel takes one process a write; of a plain file the last one stays.
  expect(read("sbx_1", "cgroup.procs")).toBe("12");
  await groups?.add("sbx_1", 14);
  expect(read("sbx_1", "cgroup.procs")).toBe("14");

  await groups?.limit("sbx_1", { ...LIMITS, memory_bytes: 5 });
  expect(read("sbx_1", "memory.max")).toBe("5");

  expect(groups?.ranOutOfMemory("sbx_1")).toBe(false);
  writeFileSync(join(mount, "roomd", "sbx_1", "memory.events"), "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
  expect(groups?.ranOutOfMemory("sbx_1")).toBe(true);

  for (const file of readdirSync(join(mount, "roomd", "sbx_1"))) rmSync(join(mount, "roomd", "sbx_1", file));
  await groups?.release("sbx_1");
  await groups?.release("sbx_1");
  expect(existsSync(join(mount, "roomd", "sbx_1"))).toBe(false);
});

test("an out-of-memory kill is detected", () => {
  expect(killedForMemory(() => "oom 3\noom_kill 0\n")).toBe(false);
  expect(killedForMemory(() => "oom_kill 12\n")).toBe(true);
  expect(killedForMemory(() => "oom_group_kill 1\n")).toBe(false);
  expect(
    killedForMemory(() => {
      throw new Error("gone");
    }),
  ).toBe(false);
});
