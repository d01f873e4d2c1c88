/** A machine that a caller waits for has its share of the processors immediately, or when it joins; its limits are simulated. */
import { expect, test, vi } from "vitest";
import { limitsOf } from "../../../../daemon/host/confine/index.ts";
import { bringForward, type LaunchParts } from "../../../../daemon/host/guest/steps.ts";
import { processOf } from "../../../../daemon/host/process.ts";
import { until } from "../../../harness/guests.ts";

/** Results of attempts to rank a session, the last of them repeatedly. */
const ranks: boolean[] = [];
const tried: [pid: number, rank: string][] = [];
vi.mock("../../../../daemon/host/cpu-priority.ts", async (original) => ({
  ...(await original<object>()),
  rankSession: (pid: number, rank: string) => {
    tried.push([pid, rank]);
    return ranks.length > 1 ? ranks.shift() : ranks[0];
  },
}));

const GUEST = { memory_mib: 512, vcpu_count: 1, acceleration: "kvm" } as const;

function waitingParts(qemu: object | null, kind = "cgroup") {
  const asked: number[] = [];
  const failing = { times: 0 };
  const parts = {
    plan: { ...GUEST, sandbox_id: "sbx_1", image: { hardware: { acceleration: "kvm", base_memory_mib: 256 } } },
    host: {
      confinement: {
        kind,
        limit: async (_id: string, { cpu_weight }: { cpu_weight: number }) => {
          if (failing.times-- > 0) throw new Error("no such group yet");
          asked.push(cpu_weight);
        },
      },
    },
    record: { now: { qemu } },
    rank: "waiting",
    limits: limitsOf(GUEST, "waiting"),
  };
  return { parts: parts as unknown as LaunchParts, asked, failing };
}

test("it is raised once", async () => {
  const { parts, asked } = waitingParts({ pid: 1 });
  await bringForward(parts);
  await bringForward(parts);
  expect([asked, parts.limits, parts.rank]).toEqual([[100], limitsOf(GUEST, "serving"), "serving"]);
});

test("a machine whose group is missing is raised later", async () => {
  const { parts, asked, failing } = waitingParts({ pid: 1 });
  failing.times = 1;
  await bringForward(parts);
  expect([asked, parts.rank]).toEqual([[], "serving"]);
  await bringForward(parts);
  expect(asked).toEqual([100]);
});

test("a machine that has not started starts with its intended rank", async () => {
  const { parts, asked } = waitingParts(null);
  await bringForward(parts);
  expect([asked, parts.rank]).toEqual([[], "serving"]);
});

test("a session that could not be ranked is ranked as soon as possible, and its start continues", async () => {
  ranks.push(false, false, true);
  const { parts } = waitingParts(processOf(process.pid), "none");
  await bringForward(parts);
  expect(parts.limits).toEqual(limitsOf(GUEST, "waiting"));
  await until("the serving limits are set", () => Bun.deepEquals(parts.limits, limitsOf(GUEST, "serving")));
  expect(tried).toEqual(Array(3).fill([process.pid, "serving"]));
});

test("ranking is not retried for a machine whose QEMU has exited", async () => {
  [ranks.length, tried.length] = [0, 0];
  ranks.push(false);
  const { parts } = waitingParts({ pid: process.pid, start_ticks: "another" }, "none");
  await bringForward(parts);
  await Bun.sleep(600);
  expect(tried).toHaveLength(1);
});
