/** Creates a sandbox: checks the request, writes the row, and responds when the guest is ready. */

import type { InputOf } from "../../../../shared/api/contract.ts";
import { LIVE_STATES, type SandboxState, sandboxCreate } from "../../../../shared/api/sandboxes.ts";
import { newId, type SandboxId } from "../../../../shared/ids.ts";
import { type Bound, bind, type KeyCall } from "../../../core/call/operation.ts";
import { findRoom, type RoomTarget, requireActive } from "../../../core/call/room-target.ts";
import { after, now } from "../../../core/clock.ts";
import { DeadlineError } from "../../../core/concurrency/published.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { twice } from "../../../db/dry-run.ts";
import { violatesUnique } from "../../../db/transact.ts";
import type { WarmMachine } from "../../../host/guest/pool.ts";
import { actingAs } from "../../agents/index.ts";
import { imageOf } from "../../templates/manifest.ts";
import { defaultMemoryMib, fieldsOf, requireMakeable, type Source, sourceOf, sourceRules } from "../base-image.ts";
import type { SandboxDeps } from "../deps.ts";
import { requireDrive } from "../drive-held.ts";
import { egressRules } from "../egress-list.ts";
import { environmentRules } from "../executions/run/environment.ts";
import { freeMemoryMib, makingRoom, requireMemory } from "../lifecycle/admission.ts";
import { lifecycleOf, lifecycleRules } from "../lifecycle/lifecycle-settings.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { toSandboxRecord } from "../record.ts";
import { countedWith, heldCids, insertSandbox, unheldCids } from "../store.ts";
import type { SandboxRow } from "../table.ts";

const DEFAULT_WAIT_MS = 60_000;
/** Maximum of assigned CIDs that are tried: rooms that arrive from another host take free ones too. */
const MAX_CID_TRIES = 20;
/** Limit of a launch, which takes a tenth of it. */
const LAUNCH_MS = 2_000;

type Input = InputOf<typeof sandboxCreate>;

export function makeCreate(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxCreate, {
    find: (call, params) => ({ ...findRoom(deps, call, params), asking: call.caller.agent_id }),
    rules: (input, room, bad) => [
      ...environmentRules(input.env),
      ...egressRules("egress_allowlist", input.egress_allowlist),
      ...lifecycleRules(input),
      ...sourceRules(deps, input, room, bad),
    ],
    run: async (call, input, room) => {
      actingAs(call.caller, input.agent_id, "agent_id");
      requireActive(room);
      const existing = begunBy(supervisors, call);
      const source = sourceOf(deps, input, room);
      const { supervisor, warnings } = existing ?? (await begin(deps, supervisors, call, input, room, source));
      // With wait=none the call still waits until the guest is starting, unless others are ahead in the queue.
      const waited: readonly SandboxState[] = input.wait === "none" ? ["creating"] : ["creating", "starting"];
      const waitMs = input.wait === "none" ? LAUNCH_MS : (input.wait_timeout_ms ?? DEFAULT_WAIT_MS);
      const reached = await supervisor.published
        .until(({ state }) => !waited.includes(state), waitMs)
        .catch((error: unknown) => {
          if (error instanceof DeadlineError) return supervisor.row;
          throw error;
        });
      requireComing(deps, reached);
      const ready = reached.state === "running";
      if (ready && !existing) tellStart(deps, call, reached, room);
      return {
        outcome: ready ? "created" : "accepted",
        body: {
          ...toSandboxRecord(reached, room.room_id, deps.portsOf(reached.sandbox_id)),
          ...(warnings.length > 0 ? { warnings } : {}),
        },
      };
    },
  });
}

/** Traces the duration of the start and of each of its stages. */
function tellStart({ traces }: SandboxDeps, { trace }: KeyCall, row: SandboxRow, { room_id }: RoomTarget): void {
  if (!trace.isTold || row.ready_at === null) return;
  const stages = Object.entries(row.boot ?? {}).map(([stage, ms]) => [`roomd.stage.${stage}`, ms]);
  const [began, ready] = [Date.parse(row.created_at), Date.parse(row.ready_at)];
  traces.begin(trace.context, { name: "sandbox start", at: began }).end({
    duration_ms: ready - began,
    attributes: {
      "roomd.org_id": row.org_id,
      "roomd.room_id": room_id,
      "roomd.sandbox_id": row.sandbox_id,
      "roomd.agent_id": row.agent_id,
      "roomd.start_mode": row.start_mode,
      ...Object.fromEntries(stages),
    },
  });
}

/** Throws the reason if the sandbox will not come up. */
export function requireComing(deps: SandboxDeps, row: SandboxRow): void {
  if (row.state === "failed") throw notStarted(deps, row);
  if (row.state === "destroying" || row.state === "destroyed") throw destroyedMeanwhile(row);
}

/** The settings of a new sandbox. Defaults: a free CID, the memory of its template or snapshot. */
export type SandboxSettings = Omit<Input, "room_id" | "wait" | "wait_timeout_ms"> & {
  /** Its id, if known in advance. */
  sandbox_id?: SandboxId;
};

type Settled = SandboxSettings & { guest_cid: number; memory_mib: number };

interface StartedSandbox {
  supervisor: Supervisor;
  warnings: string[];
}

/**
 * The sandbox that the same call created in an earlier attempt without an answer: no second one is created. A sandbox that failed or was
 * destroyed is created again.
 */
function begunBy(supervisors: Supervisors, call: KeyCall): StartedSandbox | null {
  const { begun } = call.work;
  const supervisor = begun && supervisors.get(String(begun.sandbox_id));
  if (!supervisor || !LIVE_STATES.includes(supervisor.row.state)) return null;
  describe(call, supervisor.row);
  return { supervisor, warnings: [] };
}

function describe({ audit }: KeyCall, { agent_id, sandbox_id, guest_cid, memory_mib, template_id }: SandboxRow): void {
  Object.assign(audit, { agent_id, sandbox_id, details: { guest_cid, memory_mib, template_id } });
}

/**
 * Writes the row of a new sandbox and starts it. Without a guest_cid it gets the next free one; if another program takes that
 * first, the one after it. Throws template_not_found, snapshot_not_found, not_ready, guest_cid_in_use, and the errors of `insert`.
 */
export async function begin(
  deps: SandboxDeps,
  supervisors: Supervisors,
  call: KeyCall,
  input: SandboxSettings,
  room: RoomTarget,
  source: Source | null,
): Promise<StartedSandbox> {
  requireDrive(deps, room);
  if (!source) throw new ServiceError(input.snapshot_id === undefined ? "template_not_found" : "snapshot_not_found");
  // Throws not_ready if no guest could start: nothing is allocated or written in that case.
  const { transport } = deps.host();
  // A virtual machine of another program may use the CID.
  if (input.guest_cid !== undefined && transport.firstFree([input.guest_cid]) === null) {
    throw cidInUse(deps, input.guest_cid);
  }
  if (source.snapshot) await requireMakeable(deps, source.snapshot, input);
  const memory_mib = input.memory_mib ?? defaultMemoryMib(deps, source);
  for (let attempt = 1; ; attempt++) {
    const guest_cid = input.guest_cid ?? supervisors.cids.next(deps.database.queries, transport);
    try {
      return await beginWith(deps, supervisors, call, { ...input, guest_cid, memory_mib }, room, source);
    } catch (error) {
      const isTaken = error instanceof ServiceError && error.code === "guest_cid_in_use";
      if (!isTaken || input.guest_cid !== undefined || attempt === MAX_CID_TRIES) throw error;
    }
  }
}

async function beginWith(
  deps: SandboxDeps,
  supervisors: Supervisors,
  call: KeyCall,
  input: Settled,
  room: RoomTarget,
  source: Source,
): Promise<StartedSandbox> {
  const warm = takeWarm(deps, input, source);
  const row = newRow(call, input, room, source, deps.egressDefault, warm);
  describe(call, row);
  // Supervised before its row exists: the deletion of a room must find a supervisor for every row.
  const supervisor = supervisors.add(row, room, warm);
  let warnings: string[];
  try {
    warnings = await makingRoom(deps.pool, row.memory_mib, () => insert(deps, supervisors, call, row, room));
  } catch (error) {
    supervisors.drop(row.sandbox_id);
    if (warm) deps.pool.giveBack(warm);
    throw error;
  }
  // Pooled machines are created from the host's templates only.
  if (source.template?.owner === null) deps.templateUsed(row);
  deps.onState(row);
  await faultPoint("sandbox.accepted");
  supervisor.start().catch((error: unknown) =>
    deps.log.error("failed to write the start of a sandbox", {
      sandbox_id: row.sandbox_id,
      error: describeError(error),
    }),
  );
  return { supervisor, warnings };
}

/** Takes a pooled machine with equally many processors and no more memory. */
function takeWarm(deps: SandboxDeps, { vcpu_count, memory_mib }: Settled, { template }: Source): WarmMachine | null {
  return template && deps.pool.take(imageOf(template.directory, template.manifest, true, vcpu_count), memory_mib);
}

/** Returns warnings for the caller. Throws 409, then quota_exceeded, then insufficient_capacity. */
async function insert(
  deps: SandboxDeps,
  supervisors: Supervisors,
  call: KeyCall,
  row: SandboxRow,
  room: RoomTarget,
): Promise<string[]> {
  const growth = supervisors.growth();
  const write = (queries: Queries) => {
    requireActive(deps.currentRoom(room.room_uid));
    supervisors.requireUnheld(room.room_uid);
    if (heldCids(queries).has(row.guest_cid)) throw cidInUse(deps, row.guest_cid);
    // Memory that its pooled machine uses already is its own.
    const free = freeMemoryMib(queries, growth) + (growth.resident_mib.get(row.sandbox_id) ?? 0);
    insertSandbox(queries, row);
    call.work.note({ sandbox_id: row.sandbox_id });
    const warnings = [
      ...deps.quota.admit(queries, call, { ...countedWith(queries, row, true), disk_gib: row.disk_mib / 1024 }),
      ...deps.credits.admit(queries, row.org_id),
    ];
    requireMemory(row.memory_mib, free);
    return warnings;
  };
  try {
    // The sandbox counts for its organization on all hosts.
    return await deps.directory.database.commit((queries) => twice(queries, write));
  } catch (error) {
    if (violatesUnique(error, "sandboxes.guest_cid")) throw cidInUse(deps, row.guest_cid);
    if (violatesUnique(error, "sandboxes.room_uid")) {
      throw new ServiceError("agent_id_in_use", {
        detail: `Agent ${row.agent_id} has a live sandbox in room ${room.room_id}.`,
        hint: "Destroy it first, or use another agent_id.",
      });
    }
    throw error;
  }
}

/** Names a free CID, but never the owner of the requested one. */
function cidInUse(deps: SandboxDeps, guestCid: number): ServiceError {
  const suggested = deps.host().transport.firstFree(unheldCids(deps.database.queries, guestCid));
  return new ServiceError("guest_cid_in_use", {
    detail: `guest_cid ${guestCid} is in use on this host.`,
    details: { suggested_guest_cid: suggested },
    hint: suggested === null ? "All CIDs are in use: destroy a sandbox." : `Use guest_cid ${suggested}.`,
  });
}

function notStarted(deps: SandboxDeps, row: SandboxRow): ServiceError {
  // Another program on the host has taken the CID in the meantime.
  if (/unable to set guest cid/.test(row.status_message)) return cidInUse(deps, row.guest_cid);
  const full = /ENOSPC|No space left/.test(row.status_message);
  return new ServiceError(full ? "disk_full" : "guest_unreachable", {
    detail: row.status_message,
    details: { sandbox_id: row.sandbox_id, state: row.state, reason: row.status_reason },
    hint: `Its logs stay until it is deleted. {{sandbox_logs sandbox=${row.sandbox_id}}} shows them.`,
  });
}

function destroyedMeanwhile(row: SandboxRow): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `Sandbox ${row.agent_id} was destroyed while it was being created.`,
    details: { sandbox_id: row.sandbox_id, state: row.state, allowed_states: ["creating", "starting", "running"] },
  });
}

function newRow(
  call: KeyCall,
  input: Settled,
  room: RoomTarget,
  source: Source,
  egressDefault: "public" | "none",
  warm: WarmMachine | null,
): SandboxRow {
  const created_at = now();
  return {
    sandbox_id: input.sandbox_id ?? warm?.sandbox_id ?? newId("sbx"),
    room_uid: room.room_uid,
    org_id: room.org_id,
    agent_id: input.agent_id,
    guest_cid: input.guest_cid,
    cid_held: true,
    memory_mib: input.memory_mib,
    state: "creating",
    status_reason: "accepted",
    status_message: "The sandbox is being created.",
    last_transition_at: created_at,
    exit_cause: null,
    exit_at: null,
    ...fieldsOf(source, input, egressDefault),
    egress_revision: 1,
    labels: input.labels ?? {},
    ...lifecycleOf(input),
    max_duration_seconds: input.max_duration_seconds ?? null,
    created_at,
    started_at: null,
    ready_at: null,
    stopped_at: null,
    expires_at: input.max_duration_seconds === undefined ? null : after(created_at, input.max_duration_seconds),
    create_wall_ms: null,
    drive_fault: null,
    boot: {},
    start_mode: null,
    created_by_type: "key",
    created_by_id: call.caller.key_id,
  };
}
