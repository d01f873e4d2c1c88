/**
 * Confinement by systemd: a transient scope per sandbox, named after it, which outlives the daemon's own service. A machine that waits in
 * the pool has the scope of its future sandbox. The bus messages are tested everywhere, their effect only on hosts with systemd.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { monotonicMs, sleep } from "../../core/clock.ts";
import { DeadlineError } from "../../core/concurrency/published.ts";
import { errnoOf } from "../../core/service-error.ts";
import { Bus, BusError } from "./bus.ts";
import { killedForMemory } from "./cgroup.ts";
import { type Confinement, IO_WEIGHT, type Limits } from "./confinement.ts";
import type { MethodCall, Value } from "./dbus-message.ts";

const DEADLINE_MS = 10_000;
/** systemd replies before the scope exists; its creation takes a millisecond or two. */
const LOOK_EVERY_MS = 1;
const SLICE = "roomd.slice";
const BASIC = "basic.target";
const GROUPS = join("/sys/fs/cgroup", SLICE);
const USEC_PER_SEC = 1_000_000;
/** The scope of a machine that just ended still exists when another machine of the same sandbox starts. */
const STILL_THERE = "org.freedesktop.systemd1.UnitExists";
const NOT_DELEGATED = "org.freedesktop.DBus.Error.InvalidArgs";

export function makeScopes(bus: Pick<Bus, "call"> = new Bus(), groupsOf = groupsOfProcess): Confinement {
  let isWeighed = false;
  // A lower disk weight than intended is no reason to fail a start.
  const weigh = () => {
    if (isWeighed) return;
    isWeighed = true;
    bus.call(weighCall()).catch(() => {
      isWeighed = false;
    });
  };
  return {
    kind: "systemd",
    reason: "Each sandbox has a systemd scope with limits of memory, processors and threads.",
    confine: async (sandboxId, pid, limits) => {
      weigh();
      await untilGone(() => bus.call(startCall(sandboxId, pid, limits)));
      await untilIn(pid, scopeOf(sandboxId), groupsOf);
    },
    add: async (sandboxId, pid) => {
      try {
        await bus.call(addCall(sandboxId, pid));
      } catch (error) {
        if (!(error instanceof BusError) || error.error_name !== NOT_DELEGATED) throw error;
        // The scope of a guest that an earlier daemon started accepts no more processes: this one gets a separate scope.
        const separateScope = scopeOf(`${sandboxId}-${pid}`);
        await bus.call(startCall(sandboxId, pid, null, separateScope));
        await untilIn(pid, separateScope, groupsOf);
      }
    },
    limit: (sandboxId, limits) => bus.call(limitCall(sandboxId, limits)),
    // QEMU's exit is noticed while its back ends still keep the scope.
    ranOutOfMemory: (sandboxId) =>
      killedForMemory(() => readFileSync(join(GROUPS, scopeOf(sandboxId), "memory.events"), "utf8")),
    // systemd removes a scope after its last process.
    release: async () => {},
  };
}

export function startCall(
  sandboxId: string,
  pid: number,
  limits: Limits | null,
  scope = scopeOf(sandboxId),
): MethodCall {
  const properties = [
    property("Description", "s", `Sandbox ${sandboxId} of roomd`),
    property("Slice", "s", SLICE),
    property("CollectMode", "s", "inactive-or-failed"),
    // Delegated, or else systemd adds no further process to the scope; roomd makes no groups in it, and needs no controllers there.
    property("DelegateControllers", "as", []),
    property("PIDs", "au", [pid]),
    ...(limits ? propertiesOf(limits) : []),
    property("IOWeight", "t", IO_WEIGHT.sandbox),
    // At host shutdown the service must stop before the scopes, or else it would see its guests crash: like all services it is ordered
    // after this target. If the scope named the service itself, no scope could start while the service stops.
    property("Before", "as", [BASIC]),
  ];
  return call("StartTransientUnit", "ssa(sv)a(sa(sv))", [scope, "fail", properties, []]);
}

export function limitCall(sandboxId: string, limits: Limits): MethodCall {
  return call("SetUnitProperties", "sba(sv)", [scopeOf(sandboxId), true, propertiesOf(limits)]);
}

/** Disk weight of all sandboxes together, relative to the slice of the daemon's service. */
export function weighCall(): MethodCall {
  const weight = property("IOWeight", "t", IO_WEIGHT.all_sandboxes);
  return call("SetUnitProperties", "sba(sv)", [SLICE, true, [weight]]);
}

export function addCall(sandboxId: string, pid: number): MethodCall {
  return call("AttachProcessesToUnit", "ssau", [scopeOf(sandboxId), "", [pid]]);
}

function propertiesOf(limits: Limits): Value[] {
  return [
    property("MemoryMax", "t", limits.memory_bytes),
    property("MemorySwapMax", "t", 0),
    property("TasksMax", "t", limits.tasks),
    property("CPUQuotaPerSecUSec", "t", limits.cpus * USEC_PER_SEC),
    property("CPUWeight", "t", limits.cpu_weight),
  ];
}

function property(name: string, type: string, value: Value): Value {
  return [name, { type, value }];
}

function call(member: string, signature: string, body: readonly Value[]): MethodCall {
  const systemd = "org.freedesktop.systemd1";
  const path = "/org/freedesktop/systemd1";
  return { destination: systemd, path, interface: `${systemd}.Manager`, member, signature, body };
}

function scopeOf(sandboxId: string): string {
  return `roomd-${sandboxId}.scope`;
}

async function untilGone(start: () => Promise<void>): Promise<void> {
  for (const deadline = monotonicMs() + DEADLINE_MS; ; ) {
    try {
      await start();
      return;
    } catch (error) {
      const isThere = error instanceof BusError && error.error_name === STILL_THERE;
      if (!isThere || monotonicMs() > deadline) throw error;
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** Resolves once the process is in the scope. Throws when it has ended, or systemd takes too long. */
async function untilIn(pid: number, scope: string, groupsOf: (pid: number) => string): Promise<void> {
  for (const deadline = monotonicMs() + DEADLINE_MS; !groupsOf(pid).includes(`/${scope}\n`); ) {
    if (monotonicMs() > deadline) throw new DeadlineError(`process ${pid} was not in ${scope} in time`);
    await sleep(LOOK_EVERY_MS);
  }
}

function groupsOfProcess(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") throw new Error(`process ${pid} ended before it was in its scope`);
    throw error;
  }
}
