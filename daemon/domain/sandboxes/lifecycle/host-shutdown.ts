/**
 * Saves all sandboxes that have a guest, because the host is about to be shut down: in parallel, a few at a time, within the time that a
 * host allows for its shutdown. The row of a saved sandbox contains the reason, by which the next daemon selects the sandboxes to resume
 * (host-start.ts).
 *
 *     running, or about to run ──▶ hibernated (host_shutdown)
 *     in standby ──▶ running ──▶ hibernated (standby), not resumed automatically
 *     no space, unsavable, too slow ──▶ unchanged, with the reason in its row (not_saved): it ends with the host
 */

import { timeoutSignal } from "../../../core/clock.ts";
import { unlessGivenUp } from "../../../core/concurrency/published.ts";
import { describeError, ServiceError, saidOf } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { SandboxDeps } from "../deps.ts";
import { HOST_SHUTDOWN, NOT_SAVED } from "../health.ts";
import { undestroyed } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import { Gate } from "./admission.ts";
import { shutdownPlanOf, TO_SAVE } from "./shutdown-plan.ts";
import type { Supervisor } from "./supervisor.ts";
import type { Supervisors } from "./supervisors.ts";

/** systemd aborts a shutdown after half an hour (poweroff.target), and other services need a part of that. */
const MAX_MS = 20 * 60_000;
/** A busy guest may not reply in time, and other work on it may have to finish first. */
const TRIES = 3;

/** `status.reason` of a sandbox that was in standby before. */
export const STANDBY = "standby";
const REASONS: readonly string[] = [HOST_SHUTDOWN, STANDBY];

const SHUTDOWN_MESSAGE = "Its host was shut down. The sandbox is on disk, and is resumed when the service starts.";
const STANDBY_MESSAGE =
  "It was in standby when its host was shut down. The sandbox is on disk until it is resumed by a call.";

type Deps = Pick<SandboxDeps, "database" | "log" | "paths" | "onEvent"> & {
  limits: Pick<SandboxDeps["limits"], "concurrent_creates">;
};

export interface Shutdown {
  saved: number;
  left_out: number;
}

/** `spaceBytes`: bytes that may be added to the disk. Resolves once each is saved or left out; never rejects because of one of them. */
export async function hibernateAll(
  deps: Deps,
  supervisors: Pick<Supervisors, "get" | "use">,
  spaceBytes: number,
  mostMs = MAX_MS,
): Promise<Shutdown> {
  const { saved: toSave, lost } = shutdownPlanOf(deps.database.queries, deps.paths, spaceBytes);
  deps.log.info("hibernating all sandboxes", { sandboxes: toSave.length, left_out: lost.length });
  const late = timeoutSignal(mostMs);
  const gate = new Gate(deps.limits.concurrent_creates);
  const shutdown: Shutdown = { saved: 0, left_out: 0 };
  const leave = async (row: SandboxRow, why: string) => {
    shutdown.left_out++;
    const supervisor = supervisors.get(row.sandbox_id);
    if (supervisor) await leaveOut(deps, supervisor, why);
  };
  const one = async ({ row: { sandbox_id, org_id } }: { row: SandboxRow }) => {
    const supervisor = supervisors.get(sandbox_id);
    if (!supervisor) return;
    const why = await gate.through(
      org_id,
      () => {
        late.throwIfAborted();
        return unlessGivenUp(
          late,
          supervisors.use(sandbox_id, () => save(deps, supervisor, RESTING)),
        );
      },
      late,
    );
    if (why === null) shutdown.saved++;
    else if (why !== GONE) await leave(supervisor.row, why);
  };
  const tooSlow = `it was not done within ${Math.round(mostMs / 60_000)} minutes`;
  const whyNot = (error: unknown) => (late.aborted ? tooSlow : saidOf(error));
  const outcomes = await Promise.allSettled([
    ...lost.map(({ row, why }) => leave(row, why)),
    ...toSave.map((each) => one(each).catch((error: unknown) => leave(each.row, whyNot(error)))),
  ]);
  for (const outcome of outcomes) {
    if (outcome.status === "rejected")
      deps.log.error("failed to record the outcome of a sandbox", { error: describeError(outcome.reason) });
  }
  deps.log.info("all sandboxes are hibernated", { ...shutdown });
  return shutdown;
}

/** Sandboxes hibernated because of it, and sandboxes that still have a guest. */
export function listHibernated(queries: Queries): { asleep: SandboxRow[]; awake: SandboxRow[] } {
  const rows = undestroyed(queries);
  return {
    asleep: rows.filter(({ state, status_reason }) => state === "hibernated" && REASONS.includes(status_reason)),
    awake: rows.filter(({ state }) => TO_SAVE.includes(state)),
  };
}

/** It has ended in the meantime: not counted as left out. */
const GONE = Symbol("gone");

/** Reason and message in the row of a saved sandbox, by its state before, and the reason in the event. */
export interface Resting {
  reason: string;
  running: readonly [string, string];
  standby: readonly [string, string];
}

const RESTING: Resting = {
  reason: HOST_SHUTDOWN,
  running: [HOST_SHUTDOWN, SHUTDOWN_MESSAGE],
  standby: [STANDBY, STANDBY_MESSAGE],
};

/** Returns null once the sandbox is saved, else the reason of the failure. */
export async function save(
  deps: Pick<Deps, "log" | "onEvent">,
  supervisor: Supervisor,
  { reason, running, standby }: Resting,
): Promise<string | typeof GONE | null> {
  await supervisor.adopted().catch(() => {});
  let stoodBy = false;
  for (let tries = 1; ; tries++) {
    const { state } = supervisor.row;
    if (!TO_SAVE.includes(state)) return state === "hibernated" ? null : GONE;
    stoodBy ||= state === "paused" || state === "pausing";
    try {
      // The agent must close its connection first, and responds only while the guest runs.
      if (state === "paused" || state === "pausing") await supervisor.resume();
      const row = await supervisor.hibernate(...(stoodBy ? standby : running));
      deps.onEvent("sandbox.hibernated", row, { reason }, "success");
      return null;
    } catch (error) {
      const { sandbox_id, state: now } = supervisor.row;
      // Another operation was first: it hibernates, or has ended.
      if (!TO_SAVE.includes(now)) continue;
      deps.log.warn("failed to save a sandbox", { sandbox_id, tries, error: describeError(error) });
      const isFull = error instanceof ServiceError && error.code === "disk_full";
      if (tries >= TRIES || isFull || supervisor.isLeft) return saidOf(error);
    }
  }
}

async function leaveOut({ log, onEvent }: Deps, supervisor: Supervisor, why: string): Promise<void> {
  const { sandbox_id } = supervisor.row;
  log.warn("failed to save a sandbox before the host's shutdown", { sandbox_id, error: why });
  const message = `The sandbox was not saved when its host was shut down: ${why.replace(/\.$/, "")}.`;
  const row = await supervisor.changeBy(({ state }) =>
    TO_SAVE.includes(state) ? { status_reason: NOT_SAVED, status_message: message.slice(0, 1000) } : {},
  );
  onEvent("sandbox.hibernated", row, { reason: NOT_SAVED, message });
}
