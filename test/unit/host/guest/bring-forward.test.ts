/** A machine that somebody waits for has its share of the processors at once, or when it joins; what limits it only pretends. */
import { expect, test } from "vitest";
import { limitsOf } from "../../../../daemon/host/confine/index.ts";
import { bringForward, type LaunchParts } from "../../../../daemon/host/guest/steps.ts";

const GUEST = { memory_mib: 512, vcpu_count: 1, translated_mib: 0 };

function waitingParts(qemu: object | null) {
  const asked: number[] = [];
  const failing = { times: 0 };
  const parts = {
    plan: { ...GUEST, sandbox_id: "sbx_1", image: { hardware: { acceleration: "kvm", base_memory_mib: 256 } } },
    host: {
      confinement: {
        kind: "cgroup",
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

test("one whose group is not there yet is raised later", async () => {
  const { parts, asked, failing } = waitingParts({ pid: 1 });
  failing.times = 1;
  await bringForward(parts);
  expect([asked, parts.rank]).toEqual([[], "serving"]);
  await bringForward(parts);
  expect(asked).toEqual([100]);
});

test("one that has not started starts as it is meant to be", async () => {
  const { parts, asked } = waitingParts(null);
  await bringForward(parts);
  expect([asked, parts.rank]).toEqual([[], "serving"]);
});
