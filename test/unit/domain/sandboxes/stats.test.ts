/** Statistics of a sandbox's life, state after state. */
import { expect, test } from "vitest";
import { SandboxStats } from "../../../../daemon/domain/sandboxes/stats.ts";
import type { SandboxRow } from "../../../../daemon/domain/sandboxes/table.ts";
import { EXIT_CAUSES } from "../../../../shared/api/sandboxes.ts";

const NEW = {
  state: "creating",
  status_reason: "",
  start_mode: null,
  create_wall_ms: null,
  exit_cause: null,
  ready_at: null,
};
const STARTING = { state: "starting" } as const;
const READY = {
  state: "running",
  status_reason: "ready",
  start_mode: "pool",
  create_wall_ms: 700,
  ready_at: "now",
} as const;
const DESTROYED = { state: "destroyed" } as const;

/** Statistics of sandboxes that take these states. */
function countsOf(...lives: Partial<SandboxRow>[][]) {
  const outcomes = new SandboxStats();
  for (const life of lives) {
    let row = NEW as SandboxRow;
    for (const change of life) {
      row = { ...row, ...change };
      outcomes.note(row);
    }
  }
  const { started, ended, notStarted } = outcomes;
  const causes = EXIT_CAUSES.filter((cause) => ended[cause] > 0).map((cause) => [cause, ended[cause]]);
  return { pool: started.pool.atMost().at(-1), cold: started.cold.atMost().at(-1), notStarted, causes };
}

test("a sandbox that ran and was destroyed counts as one start, also after standby, and as one end", () => {
  const pausing = { state: "paused", status_reason: "standby" } as const;
  const again = { state: "running", status_reason: "resumed" } as const;
  const destroying = { state: "destroying", exit_cause: "user_requested" } as const;
  expect(countsOf([STARTING, READY, pausing, again, destroying, DESTROYED])).toEqual({
    pool: 1,
    cold: 0,
    notStarted: 0,
    causes: [["user_requested", 1]],
  });
});

test("a failed sandbox counts as ended by the failure, and not by a later destroy", () => {
  const crashed = { state: "failed", exit_cause: "vmm_crash" } as const;
  expect(countsOf([STARTING, READY, crashed, DESTROYED], [STARTING, READY, crashed])).toEqual({
    pool: 2,
    cold: 0,
    notStarted: 0,
    causes: [["vmm_crash", 2]],
  });
});

test("a sandbox that never ran counts as not started", () => {
  const failed = { state: "failed", exit_cause: "vmm_crash", create_wall_ms: 120_000 } as const;
  expect(countsOf([STARTING, failed])).toEqual({ pool: 0, cold: 0, notStarted: 1, causes: [["vmm_crash", 1]] });
});

test("hibernations and resumes are counted by duration, except for failed saves", () => {
  const outcomes = new SandboxStats();
  const [saving, running] = [
    { state: "hibernating" },
    { state: "running", status_reason: "hibernate_failed" },
  ] as const;
  for (const change of [saving, running, saving, { state: "hibernated" } as const]) {
    outcomes.note({ ...NEW, sandbox_id: "sbx_1", ...change } as SandboxRow);
  }
  outcomes.noteResumed("hibernated", "message", 1.2);
  outcomes.noteResumed("paused", "resume", 0.2);
  expect(outcomes.hibernated.atMost().at(-1)).toBe(1);
  expect([outcomes.resumed.hibernated.atMost().at(-1), outcomes.resumed.paused.atMost().at(-1)]).toEqual([1, 1]);
  expect(outcomes.resumes).toEqual({ resume: 1, api: 0, terminal: 0, message: 1, port: 0 });
});

test("three consecutive failed starts for host reasons mark the host as failing, until one succeeds", () => {
  const outcomes = new SandboxStats();
  const note = (change: Partial<SandboxRow>) => outcomes.note({ ...(NEW as SandboxRow), ...change });
  const failed = (status_reason: string) => note({ state: "failed", status_reason, exit_cause: "vmm_crash" });
  for (const reason of ["machine_failed", "agent_failed", "plug_failed", "start_failed"]) failed(reason);
  expect(outcomes.areFailing).toBe(false);
  failed("disk_failed");
  expect(outcomes.areFailing).toBe(true);
  note(READY);
  expect(outcomes.areFailing).toBe(false);
});
