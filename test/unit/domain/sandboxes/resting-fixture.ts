/** One sandbox that hibernates or pauses when idle and is woken, with a simulated guest. */
import { tmpdir } from "node:os";
import type { RoomTarget } from "../../../../daemon/core/call/room-target.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import type { SandboxDeps } from "../../../../daemon/domain/sandboxes/deps.ts";
import { type Activity, Idleness } from "../../../../daemon/domain/sandboxes/lifecycle/idleness.ts";
import type { Supervisors } from "../../../../daemon/domain/sandboxes/lifecycle/supervisors.ts";
import { Waking } from "../../../../daemon/domain/sandboxes/lifecycle/waking.ts";
import { SandboxStats } from "../../../../daemon/domain/sandboxes/stats.ts";
import type { SandboxRow } from "../../../../daemon/domain/sandboxes/table.ts";
import { until } from "../../../harness/guests.ts";
import type { MovedClock } from "../../../harness/hosts/moved-clock.ts";
import { makeSandbox, PretendedGuest } from "./sandbox-fixture.ts";

/** An idle time of a second. */
export const IDLE_MS = 1000;
/** Time passes in such steps while a state is waited for. */
const STEP_MS = 100;
const MAX_PASSED_MS = 10 * 60_000;
const TIMES_MS = { standby: 300, margin: 0, again: [20] };

/** With `clock` time passes while a state is waited for. */
export async function restingSandbox(change: Partial<SandboxRow>, startLimitMs = 300, clock?: MovedClock) {
  const pretended = new PretendedGuest();
  const events: string[] = [];
  const warnings: string[] = [];
  const onEvent: SandboxDeps["onEvent"] = (event, _row, details, outcome = "error") => {
    const { reason, error_code } = details;
    events.push([event, reason, outcome, ...(error_code === undefined ? [] : [error_code])].join(" "));
  };
  const log = makeLog("warn", (line) => warnings.push(line));
  const given = {
    /** Why it takes no memory again. */
    refusal: null as Error | null,
    /** Before it is restored. */
    before: async () => {},
    ended: 0,
    /** Whether a message waits for its agent. */
    isCalled: false,
    /** Whether its room is being restored to a checkpoint. */
    isTurning: false,
    activity: { traffic_at: null, cpu_seconds: null } as Activity,
  };
  const sandbox = await makeSandbox("running", {
    adopt: async () => ({ guest: pretended.guest, paused: false }),
    restore: async () => {
      await given.before();
      pretended.told.push("restore");
      return pretended.guest;
    },
    onState: ({ sandbox_id }) => idleness.restart(sandbox_id),
  });
  pretended.savedTo = sandbox.paths.directory;
  const { supervisor } = sandbox;
  const end = async () => void given.ended++;
  const isCalled = () => given.isCalled;
  const activityOf = () => given.activity;
  const idleness = new Idleness({ log, onEvent, supervisorOf: () => supervisor, isCalled, activityOf, end });
  const supervisors = {
    get: () => supervisor,
    use: (id: string, work: () => Promise<unknown>) => idleness.use(id, work),
    schedule: () => {},
    growth: () => ({ overcommit_percent: 0, others_mib: 0, resident_mib: new Map() }),
    outcomes: new SandboxStats(),
  } as unknown as Supervisors;
  const deps = {
    log,
    onEvent,
    startLimitMs,
    database: sandbox.database,
    limits: { concurrent_creates: 1 },
    credits: { admit: () => [] },
    quota: {
      require: () => {
        if (given.refusal) throw given.refusal;
      },
    },
    pool: { makeRoom: async () => false },
    driveMode: () => "open",
    portsOf: () => [],
    paths: { data: tmpdir() },
    currentRoom: () => ({ is_turning: given.isTurning }),
  } as unknown as SandboxDeps;
  const waking = new Waking(deps, supervisors, TIMES_MS);
  await supervisor.adopt();
  await supervisor.change({ on_idle: "hibernate", wake_on: ["api", "message"], ...change });
  idleness.restart(supervisor.row.sandbox_id);
  return {
    deps,
    supervisors,
    given,
    pretended,
    supervisor,
    idleness,
    waking,
    outcomes: supervisors.outcomes,
    events,
    warnings,
    id: supervisor.row.sandbox_id,
    /** As a call has found it. */
    get target() {
      return { room: { state: "active" } as RoomTarget, row: supervisor.row, isLookedAt: false };
    },
    get heldCids(): number[] {
      return sandbox.heldCids;
    },
    /** Once it is in this state. */
    reached: async (state: SandboxRow["state"]) => {
      const passing = () => {
        if (supervisor.row.state !== state) clock?.pass(STEP_MS);
        return supervisor.row.state === state;
      };
      if (clock) await until(`the sandbox is ${state}`, passing, MAX_PASSED_MS);
      else await supervisor.published.until((row) => row.state === state, 5_000);
    },
    [Symbol.dispose]: () => {
      idleness.stop();
      waking.stop();
      sandbox[Symbol.dispose]();
    },
  };
}
