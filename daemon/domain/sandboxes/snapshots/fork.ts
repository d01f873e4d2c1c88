/** Copies a sandbox: takes one snapshot, then creates a sandbox from it for each agent, regardless of failures of the others. */
import type { InputOf } from "../../../../shared/api/contract.ts";
import { ERRORS } from "../../../../shared/api/errors.ts";
import type { SandboxRecord } from "../../../../shared/api/sandboxes.ts";
import { sandboxFork } from "../../../../shared/api/snapshots.ts";
import { actorOf, type Bound, bind, type KeyCall, trialCall } from "../../../core/call/operation.ts";
import { type RoomTarget, requireActive } from "../../../core/call/room-target.ts";
import { now } from "../../../core/clock.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { actingAs } from "../../agents/index.ts";
import { appendAudit } from "../../audit/index.ts";
import { begin, requireComing } from "../calls/create.ts";
import type { SandboxDeps } from "../deps.ts";
import { environmentRules } from "../executions/run/environment.ts";
import { findTarget } from "../find.ts";
import { requireState } from "../lifecycle/state.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { toSandboxRecord } from "../record.ts";
import { findSandbox } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import type { SnapshotPlaces } from "./place.ts";
import type { SnapshotRow } from "./table.ts";
import { takeSnapshot } from "./take.ts";

type Agent = InputOf<typeof sandboxFork>["agents"][number];

const WAIT_MS = 60_000;

export interface Problem {
  code: string;
  title: string;
  detail: string;
  details?: Record<string, unknown>;
}

export function makeFork(
  deps: SandboxDeps,
  supervisors: Supervisors,
  places: SnapshotPlaces,
  onTaken: (row: SnapshotRow) => void,
): Bound {
  return bind(sandboxFork, {
    find: (call, params) => findTarget(deps, call, params),
    rules: ({ agents = [] }) => [
      ...agents.flatMap(({ env }, at) =>
        environmentRules(env).map((rule) => ({ ...rule, field: `agents[${at}].${rule.field}` })),
      ),
      ...agents.flatMap(({ agent_id }, at) => {
        if (agents.findIndex((other) => other.agent_id === agent_id) === at) return [];
        const field = `agents[${at}].agent_id`;
        return [{ field, code: "conflicting_fields", message: `${field} is given twice.` }];
      }),
    ],
    run: async (call, input, { room, row }) => {
      requireActive(room);
      requireState(row, ["running", "hibernated"]);
      for (const { agent_id } of input.agents) actingAs(call.caller, agent_id, "agent_id");
      const supervisor = supervisors.get(row.sandbox_id);
      if (!supervisor) throw new ServiceError("guest_unreachable");
      const { expires_in_seconds } = input;
      const snapshot = await takeSnapshot({ deps, supervisors, places }, call, room, supervisor, {
        expires_in_seconds,
      });
      onTaken(snapshot);
      const fork = (agent: Agent) => forkOne({ deps, supervisors }, call, room, snapshot, agent);
      // Protected from deletion during the forks; the start gate limits concurrency.
      const items = await places.use(snapshot.snapshot_id, () => Promise.all(input.agents.map(fork)));
      const { snapshot_id, paused_ms } = snapshot;
      const agents = items.flatMap(({ sandbox, agent_id }) => (sandbox ? [agent_id] : []));
      const failed = items.length - agents.length;
      call.audit.details = { snapshot_id, paused_ms, forks: agents.length, failed, agents };
      return { outcome: "ok", body: { snapshot_id, items } };
    },
  });
}

async function forkOne(
  { deps, supervisors }: { deps: SandboxDeps; supervisors: Supervisors },
  call: KeyCall,
  room: RoomTarget,
  snapshot: SnapshotRow,
  { agent_id, guest_cid, env }: Agent,
): Promise<{ agent_id: string; sandbox: SandboxRecord | null; problem: Problem | null }> {
  const shown = (sandboxId: string) => {
    const row = supervisors.get(sandboxId)?.row;
    if (!row) throw new ServiceError("guest_unreachable", { detail: "The sandbox has just ended." });
    requireComing(deps, row);
    return { agent_id, sandbox: toSandboxRecord(row, room.room_id, deps.portsOf(sandboxId)), problem: null };
  };
  try {
    const { snapshot_id, memory_mib } = snapshot;
    // An earlier attempt of the same call may have created it.
    const known = findSandbox(deps.database.queries, room.room_uid, agent_id);
    const isMade = known?.snapshot_id === snapshot_id && known.sandbox_id !== snapshot.sandbox_id;
    if (known && known.state !== "failed" && isMade) return shown(known.sandbox_id);
    const given = { ...(env === undefined ? {} : { env }), ...(guest_cid === undefined ? {} : { guest_cid }) };
    const input = { agent_id, memory_mib, snapshot_id, ...given };
    const own = { ...trialCall(call.caller), signal: call.signal, request_id: call.request_id };
    const source = { template: null, snapshot };
    const { supervisor } = await begin(deps, supervisors, own, input, room, source);
    await recordMade(deps, call, room, supervisor.row);
    await supervisor.published
      .until(({ state }) => state !== "creating" && state !== "starting", WAIT_MS, call.signal)
      .catch(() => {});
    return shown(supervisor.row.sandbox_id);
  } catch (error) {
    if (!(error instanceof ServiceError)) {
      deps.log.error("fork failed", { agent_id, error: describeError(error) });
    }
    return { agent_id, sandbox: null, problem: problemOf(error) };
  }
}

/** Each sandbox has its own audit record, as if requested separately. */
export async function recordMade(
  { database }: SandboxDeps,
  call: KeyCall,
  room: RoomTarget,
  row: SandboxRow,
): Promise<void> {
  const { sandbox_id, agent_id, guest_cid, memory_mib, template_id, snapshot_id } = row;
  const { caller, source, request_id, ip } = call;
  await database.commit((queries) =>
    appendAudit(queries, {
      ...{ event: "sandbox.created", outcome: "success", at: now(), actor: actorOf(caller), source, request_id, ip },
      ...{ org_id: caller.org_id, room_id: room.room_id, room_uid: room.room_uid, agent_id, sandbox_id },
      details: { guest_cid, memory_mib, template_id, snapshot_id },
    }),
  );
}

export function problemOf(error: unknown): Problem {
  const known = error instanceof ServiceError ? error : new ServiceError("internal");
  const { detail, details } = known.options;
  const { title } = ERRORS[known.code];
  return { code: known.code, title, detail: detail ?? title, ...(details ? { details } : {}) };
}
