/** Source of a new sandbox, a template or a snapshot of its room: selection, requirements, and the settings it contributes. */
import type { InputOf } from "../../../shared/api/contract.ts";
import { MEMORY_MIB_MIN, type sandboxCreate } from "../../../shared/api/sandboxes.ts";
import type { RuleBreak } from "../../core/call/operation.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import { requireRestorable } from "../../host/guest/restore.ts";
import type { Template } from "../templates/registry.ts";
import type { SandboxDeps } from "./deps.ts";
import { egressOf } from "./egress-list.ts";
import { environmentRules } from "./executions/run/environment.ts";
import { findSnapshot } from "./snapshots/store.ts";
import type { SnapshotRow } from "./snapshots/table.ts";
import type { SandboxRow } from "./table.ts";

/** Template of a sandbox if the call specifies none. */
export const DEFAULT_TEMPLATE = "default";

export type Source = { template: Template; snapshot: null } | { template: null; snapshot: SnapshotRow };

type Input = InputOf<typeof sandboxCreate>;
type SourceInput = Partial<Input>;

/** A room, and the agent to which the caller is bound; null: none. */
type Asking = RoomTarget & { asking: string | null };

/** Null if absent; a caller bound to an agent cannot access the memory of another agent. */
export function sourceOf(deps: SandboxDeps, { template_id, snapshot_id }: SourceInput, room: Asking): Source | null {
  if (snapshot_id !== undefined) {
    const snapshot = findSnapshot(deps.database.queries, room.room_uid, snapshot_id);
    const isSeen = snapshot && (room.asking === null || room.asking === snapshot.agent_id);
    return isSeen ? { template: null, snapshot } : null;
  }
  const template = deps.templates.get(template_id ?? DEFAULT_TEMPLATE, room.org_id);
  return template ? { template, snapshot: null } : null;
}

/** `bad`: other violations in the input. */
export function sourceRules(
  deps: SandboxDeps,
  input: SourceInput,
  room: Asking,
  bad: readonly RuleBreak[],
): RuleBreak[] {
  const source = sourceOf(deps, input, room);
  const broken: RuleBreak[] = [];
  if (input.snapshot_id !== undefined && input.template_id !== undefined) {
    const message = "Send snapshot_id or template_id, not both.";
    broken.push({ field: "snapshot_id", code: "conflicting_fields", message, problem: "conflicting_fields" });
  } else if (!source) broken.push(unknownSource(deps, input, room));
  const [min, max, boundSource] = memoryBounds(deps, source);
  const memory = input.memory_mib;
  // A value that every host refuses is reported with this host's bounds as well.
  const tooLittle = bad.some(({ field, code }) => field === "memory_mib" && code === "out_of_range");
  const outside = { field: "memory_mib", code: "out_of_range", max } as const;
  if (tooLittle || (memory !== undefined && (memory > max || (source?.snapshot && memory < min)))) {
    const least = source?.snapshot ? min : MEMORY_MIB_MIN;
    const bounds = least === max ? `must be ${max}` : `must be at least ${least} and at most ${max}`;
    const problem = "memory_mib_out_of_range";
    const needed =
      source?.template && min > least ? `; template ${source.template.record.template_id} needs ${min}` : "";
    broken.push({ ...outside, message: `memory_mib ${bounds} ${boundSource}${needed}.`, min: least, problem });
  } else if (memory !== undefined && memory < min) {
    const message = `Template ${source?.template?.record.template_id} needs memory_mib of at least ${min}.`;
    broken.push({ ...outside, message, min, problem: "memory_below_template_minimum" });
  }
  const vcpus = vcpusOf(source);
  if (vcpus !== null && (input.vcpu_count ?? vcpus) !== vcpus) {
    const message = `vcpu_count must be ${vcpus}, as the snapshot has.`;
    broken.push({ field: "vcpu_count", code: "out_of_range", message, min: vcpus, max: vcpus });
  } else if ((input.vcpu_count ?? 1) > deps.limits.vcpus) {
    const message = `vcpu_count must be at most ${deps.limits.vcpus} on this host.`;
    broken.push({ field: "vcpu_count", code: "out_of_range", message, min: 1, max: deps.limits.vcpus });
  }
  return broken;
}

/** The memory of a sandbox without a requested size. */
export function defaultMemoryMib(deps: Pick<SandboxDeps, "limits">, source: Source): number {
  if (source.snapshot) return source.snapshot.memory_mib;
  const [least, most] = memoryBounds(deps, source);
  return Math.max(least, Math.min(source.template.record.default_memory_mib, most));
}

/** Checks before resources are reserved. Throws snapshot_incompatible, insufficient_capacity, invalid_env_json. */
export async function requireMakeable(
  { paths, limits }: Pick<SandboxDeps, "paths" | "limits">,
  { room_uid, snapshot_id, mode, settings, ...has }: SnapshotRow,
  { env }: Pick<Input, "env">,
): Promise<void> {
  if (mode === "full") await requireRestorable(paths.snapshot(room_uid, snapshot_id));
  if (mode === "full" && (has.memory_mib > limits.memory_mib || has.vcpu_count > limits.vcpus)) {
    throw new ServiceError("insufficient_capacity", {
      detail: `The snapshot has ${has.memory_mib} MiB of memory and ${has.vcpu_count} processors; a sandbox of this host has ${limits.memory_mib} and ${limits.vcpus} at most.`,
    });
  }
  // Each may be within the limits alone, but not both together.
  const [broken] = environmentRules({ ...settings.env, ...env });
  if (broken) throw new ServiceError("invalid_env_json", { detail: broken.message });
}

/** Fields of a sandbox's row from its source, unless `input` overrides them. */
export function fieldsOf(
  { template, snapshot }: Source,
  input: Omit<Input, "room_id" | "wait" | "wait_timeout_ms">,
  egressDefault: "public" | "none",
): Pick<SandboxRow, OfSource> {
  const { env = {}, egress_allowlist, attach_fabric, enable_guest_net, vcpu_count } = input;
  if (template) {
    const guest_net = enable_guest_net ?? true;
    return {
      template_id: template.record.template_id,
      template_digest: template.record.digest,
      snapshot_id: null,
      vcpu_count: vcpu_count ?? 1,
      disk_mib: template.disk_mib,
      env,
      ...egressOf(egress_allowlist, guest_net, egressDefault),
      guest_net,
      fabric_attached: attach_fabric ?? true,
    };
  }
  const { settings, template_id, template_digest, snapshot_id, disk_mib } = snapshot;
  // A guest that was saved without network or room does not get them later.
  const guest_net = settings.guest_net && (enable_guest_net ?? true);
  return {
    template_id,
    template_digest,
    snapshot_id,
    vcpu_count: snapshot.mode === "full" ? snapshot.vcpu_count : (vcpu_count ?? snapshot.vcpu_count),
    disk_mib,
    env: { ...settings.env, ...env },
    ...(egress_allowlist === undefined && guest_net
      ? { egress_mode: settings.egress_mode, egress_allowlist: settings.egress_allowlist }
      : egressOf(egress_allowlist, guest_net, egressDefault)),
    guest_net,
    fabric_attached: settings.fabric_attached && (attach_fabric ?? true),
  };
}

type OfSource =
  | ("template_id" | "template_digest" | "snapshot_id" | "vcpu_count" | "disk_mib")
  | ("env" | "egress_mode" | "egress_allowlist" | "guest_net" | "fabric_attached");

function unknownSource(
  deps: SandboxDeps,
  { template_id, snapshot_id }: SourceInput,
  { org_id }: RoomTarget,
): RuleBreak {
  if (snapshot_id !== undefined) {
    const message = `The room has no snapshot ${snapshot_id}.`;
    return { field: "snapshot_id", code: "snapshot_not_found", message };
  }
  return {
    field: "template_id",
    code: "template_not_found",
    message: `There is no template ${template_id ?? DEFAULT_TEMPLATE}.`,
    details: { available: deps.templates.list(org_id).map(({ record }) => record.template_id) },
  };
}

/** Minimum and maximum memory of such a sandbox, and the origin of these limits. */
function memoryBounds(
  deps: Pick<SandboxDeps, "limits">,
  source: Source | null,
): [min: number, max: number, whose: string] {
  const most = deps.limits.memory_mib;
  if (source?.snapshot) {
    const { mode, memory_mib, snapshot_id } = source.snapshot;
    return mode === "full"
      ? [memory_mib, memory_mib, `as snapshot ${snapshot_id} has`]
      : [MEMORY_MIB_MIN, most, "on this host"];
  }
  if (!source) return [0, most, "on this host"];
  const { record, manifest } = source.template;
  // A template was saved with its host's memory limit of that time as the maximum.
  const max = Math.min(most, manifest.hardware.base_memory_mib + manifest.hardware.max_plugged_mib);
  return [record.min_memory_mib, max, max < most ? `with template ${record.template_id}` : "on this host"];
}

/** The number of processors of a saved machine, which cannot be changed; else null. */
function vcpusOf(source: Source | null): number | null {
  return source?.snapshot?.mode === "full" ? source.snapshot.vcpu_count : null;
}
