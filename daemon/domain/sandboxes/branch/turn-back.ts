/**
 * Rolls all sandboxes of a room back:
 *
 *     all preconditions are checked, else it is refused and nothing changes ⇒ the start of the rollback is stored
 *     → newer sandboxes are destroyed; each of the others is ended, and hibernates in its state of the checkpoint
 *     → none runs: the rest of the room is restored
 *
 * Once its start is stored, it can only be completed, with as many retries as that takes; it is idempotent.
 */
import { newId, type SandboxId } from "../../../../shared/ids.ts";
import { actorOf, type KeyCall } from "../../../core/call/operation.ts";
import type { RoomTarget } from "../../../core/call/room-target.ts";
import { now } from "../../../core/clock.ts";
import { describeError } from "../../../core/service-error.ts";
import { requireRestorable } from "../../../host/guest/restore.ts";
import { appendAudit } from "../../audit/index.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import { roomSandboxes } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import { type BranchParts, type CutSandbox, placeOf, supervised } from "./parts.ts";

export interface TurnBack {
  sandboxes: readonly CutSandbox[];
  /** Stores that the rollback has started. */
  begin(): Promise<void>;
  /** Called when none runs; `as`: the ids of the checkpoint's sandboxes from now on, with new ids for the missing ones. */
  whileEnded(as: ReadonlyMap<string, SandboxId>): Promise<void>;
}

/**
 * Throws invalid_state, guest_unreachable, snapshot_incompatible and errors of `begin` before any change; later, the error that occurred.
 */
export async function turnBack(
  parts: BranchParts,
  call: KeyCall,
  room: RoomTarget,
  { sandboxes, begin, whileEnded }: TurnBack,
): Promise<void> {
  const { deps, supervisors } = parts;
  await supervisors.holding(room.room_uid, async () => {
    const all = await supervised(parts, room);
    const present = new Map(all.map((supervisor) => [supervisor.row.sandbox_id, supervisor]));
    for (const { snapshot_id } of sandboxes) await requireRestorable(placeOf(parts, room, snapshot_id).files);
    deps.credits.admit(deps.database.queries, room.org_id);
    await begin();
    const kept = new Set<SandboxId>(sandboxes.map(({ sandbox_id }) => sandbox_id).filter((id) => present.has(id)));
    const gone: SandboxRow[] = [];
    for (const row of roomSandboxes(deps.database.queries, room.room_uid)) {
      if (kept.has(row.sandbox_id)) continue;
      await (supervisors.get(row.sandbox_id) ?? supervisors.add(row, room, null)).destroy("user_requested");
      gone.push(row);
    }
    const turned = await Promise.allSettled(
      sandboxes.map((sandbox) => turnOne(parts, room, sandbox, present.get(sandbox.sandbox_id))),
    );
    for (const outcome of turned) if (outcome.status === "rejected") throw outcome.reason;
    const as = new Map(
      sandboxes.map(({ sandbox_id }) => [sandbox_id as string, kept.has(sandbox_id) ? sandbox_id : newId("sbx")]),
    );
    await whileEnded(as);
    const back = sandboxes.filter(({ sandbox_id }) => kept.has(sandbox_id));
    await record(parts, call, room, { gone, back });
  });
}

async function turnOne(
  parts: BranchParts,
  room: RoomTarget,
  { snapshot_id, sandbox_id }: CutSandbox,
  supervisor: Supervisor | undefined,
): Promise<void> {
  if (!supervisor) return;
  const { deps, supervisors, ends } = parts;
  const onEnded = () =>
    ends
      .rolledBack(sandbox_id)
      .catch((error: unknown) =>
        deps.log.warn("failed to record ends of commands", { sandbox_id, error: describeError(error) }),
      );
  const from = placeOf(parts, room, snapshot_id);
  await supervisors.use(sandbox_id, () => supervisor.rollback(from, { snapshot_id }, { onEnded }));
}

/** Each sandbox has its own audit record, as if requested separately. */
async function record(
  { deps }: BranchParts,
  call: KeyCall,
  room: RoomTarget,
  { gone, back }: { gone: readonly SandboxRow[]; back: readonly CutSandbox[] },
): Promise<void> {
  const { caller, source, request_id, ip } = call;
  const about = { outcome: "success", at: now(), actor: actorOf(caller), source, request_id, ip } as const;
  const roomIds = { org_id: room.org_id, room_id: room.room_id, room_uid: room.room_uid };
  await deps.database.commit((queries) => {
    for (const { agent_id, sandbox_id } of gone) {
      const details = { reason: "room_restored" };
      appendAudit(queries, { ...about, ...roomIds, event: "sandbox.destroyed", agent_id, sandbox_id, details });
    }
    for (const { agent_id, sandbox_id, snapshot_id } of back) {
      const details = { snapshot_id };
      appendAudit(queries, { ...about, ...roomIds, event: "sandbox.rolled_back", agent_id, sandbox_id, details });
    }
  });
}
