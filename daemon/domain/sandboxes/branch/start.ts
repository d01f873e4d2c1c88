/**
 * Starts the sandboxes of a checkpoint in their state at its cut, once the rest of the room is restored: a sandbox that hibernates in that
 * state is resumed, a missing one is forked from its snapshot, and each sandbox not running at the cut rests again. Each is independent of
 * the others' outcomes; a second start continues the first.
 */
import { newId, type SandboxId } from "../../../../shared/ids.ts";
import { type KeyCall, trialCall } from "../../../core/call/operation.ts";
import type { RoomTarget } from "../../../core/call/room-target.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { begin, requireComing } from "../calls/create.ts";
import { resumeSupervised } from "../calls/resume.ts";
import { Gate } from "../lifecycle/admission.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import { recordMade } from "../snapshots/fork.ts";
import { getSnapshot } from "../snapshots/store.ts";
import { locateSandbox } from "../store.ts";
import { type BranchParts, type CutSandbox, type ForkedItem, failedItem, isAtRest, itemOf } from "./parts.ts";

const WAIT_MS = 150_000;

/** `as`: the room's ids for them. */
export async function startAll(
  parts: BranchParts,
  call: KeyCall,
  room: RoomTarget,
  sandboxes: readonly CutSandbox[],
  as: ReadonlyMap<string, SandboxId>,
): Promise<ForkedItem[]> {
  const gate = new Gate(parts.deps.limits.concurrent_creates);
  const start = async (sandbox: CutSandbox) => {
    const sandbox_id = as.get(sandbox.sandbox_id) ?? newId("sbx");
    const found = parts.supervisors.get(sandbox_id);
    try {
      const supervisor = await present(parts, call, room, { sandbox, sandbox_id, found }, gate);
      await restAgain(parts, supervisor, sandbox);
      return itemOf(parts, room, supervisor);
    } catch (error) {
      const item = failedItem(parts, sandbox.agent_id, error);
      const isThere = found !== undefined && isAtRest(found.row.state);
      return isThere ? { ...itemOf(parts, room, found), problem: item.problem } : item;
    }
  };
  return await Promise.all(sandboxes.map(start));
}

interface Starting {
  sandbox: CutSandbox;
  sandbox_id: SandboxId;
  found: Supervisor | undefined;
}

async function present(
  parts: BranchParts,
  call: KeyCall,
  room: RoomTarget,
  { sandbox, sandbox_id, found }: Starting,
  gate: Gate,
): Promise<Supervisor> {
  const { deps } = parts;
  if (found && found.row.state !== "failed") {
    const never = new AbortController().signal;
    if (sandbox.was !== "hibernated") {
      await gate.through(room.org_id, () => resume(parts, room, found), never);
    }
    return found;
  }
  await found?.destroy("user_requested");
  const wasMade = found === undefined && locateSandbox(deps.database.queries, room.org_id, sandbox_id) !== undefined;
  if (wasMade) throw new ServiceError("sandbox_not_found", { detail: "It was created, and has been destroyed since." });
  return await make(parts, call, room, sandbox, found ? newId("sbx") : sandbox_id);
}

/** Does nothing if another trigger, such as a message, was faster. */
async function resume(
  { deps, supervisors }: BranchParts,
  { org_id }: RoomTarget,
  supervisor: Supervisor,
): Promise<void> {
  const { sandbox_id } = supervisor.row;
  const settled = () => supervisor.published.until(({ state }) => isAtRest(state) || state === "failed", WAIT_MS);
  await supervisors.use(sandbox_id, async () => {
    await settled().catch(() => {});
    if (supervisor.row.state !== "hibernated") return;
    try {
      await resumeSupervised(deps, supervisors, supervisor, {
        reason: "resume",
        requireQuota: (queries, added) => deps.quota.require(queries, org_id, added),
      });
    } catch (error) {
      const isRefused = error instanceof ServiceError && error.code === "invalid_state";
      if (!isRefused || supervisor.row.state === "hibernated") throw error;
      await settled();
    }
  });
}

async function make(
  { deps, supervisors }: BranchParts,
  call: KeyCall,
  room: RoomTarget,
  sandbox: CutSandbox,
  sandbox_id: SandboxId,
): Promise<Supervisor> {
  const { agent_id, snapshot_id, labels, on_idle, wake_on, idle_timeout_seconds, max_duration_seconds } = sandbox;
  const snapshot = getSnapshot(deps.database.queries, snapshot_id);
  if (!snapshot) throw new ServiceError("snapshot_not_found");
  const own = { ...trialCall(call.caller), request_id: call.request_id };
  const input = {
    ...{ agent_id, snapshot_id, sandbox_id, labels, memory_mib: snapshot.memory_mib },
    lifecycle: { idle_after_seconds: idle_timeout_seconds, on_idle, wake_on },
    ...(max_duration_seconds === null ? {} : { max_duration_seconds }),
  };
  const source = { template: null, snapshot };
  const { supervisor } = await begin(deps, supervisors, own, input, room, source);
  await recordMade(deps, call, room, supervisor.row);
  await supervisor.published
    .until(({ state }) => state !== "creating" && state !== "starting", WAIT_MS)
    .catch(() => {});
  requireComing(deps, supervisor.row);
  return supervisor;
}

/** A sandbox that was not running at the cut does not run now. A failure of this is not reported as a problem of the room. */
async function restAgain(
  { deps, supervisors }: BranchParts,
  supervisor: Supervisor,
  { was }: CutSandbox,
): Promise<void> {
  const { sandbox_id } = supervisor.row;
  if (was === "running" || supervisor.row.state !== "running") return;
  const isWanted = () => supervisor.row.state === "running" && supervisors.usesOf(sandbox_id) <= 1;
  const rest = () =>
    was === "paused"
      ? supervisor.standby(undefined, undefined, isWanted)
      : supervisor.hibernate(undefined, undefined, isWanted);
  await supervisors.use(sandbox_id, rest).catch((error: unknown) =>
    deps.log.warn("failed to pause or hibernate a sandbox; it keeps running", {
      sandbox_id,
      error: describeError(error),
    }),
  );
}
