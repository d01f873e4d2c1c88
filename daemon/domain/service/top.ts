/** The operation that returns current resource usage, of the caller's sandboxes and of the host. */
import { MAX_LOOP_OWNERS, MAX_TOP, type Top, topGet } from "../../../shared/api/overview/top.ts";
import { type Bound, bind, boundTo, type Caller, type OpenCall } from "../../core/call/operation.ts";
import { monotonicMs, now } from "../../core/clock.ts";
import { usageOfHost } from "../../host/usage.ts";
import type { Measured } from "../sandboxes/index.ts";
import type { ServiceDeps } from "./deps.ts";

const MIB = 1024 ** 2;

const seconds = (ms: number) => Math.round(ms) / 1000;

export function makeTop(deps: ServiceDeps): Bound {
  const startedAt = monotonicMs();

  /** Throws room_not_found. */
  const scopeOf = (caller: Caller, roomId: string | undefined): Measured => {
    const { org_id, agent_id } = caller;
    if (roomId !== undefined) return { org_id, agent_id, room_uids: [deps.findRoom(caller, roomId).room_uid] };
    const bound = caller.room_ids?.flatMap((id) => deps.roomUidOf(org_id, id) ?? []);
    return { org_id, agent_id, room_uids: bound ?? null };
  };

  const hostNow = (): Top["host"] => {
    const { rooms, sandboxes, memory_mib, disk } = deps.figures();
    const { cores, busy_seconds, idle_seconds, memory_bytes, memory_available_bytes } = usageOfHost();
    const counts = deps.requests.all().flatMap(({ classes }) => classes);
    return {
      uptime_seconds: Math.floor((monotonicMs() - startedAt) / 1000),
      rooms,
      sandboxes,
      requests: counts.reduce((sum, count) => sum + count, 0),
      cpu: { cores, busy_seconds, idle_seconds },
      memory: {
        size_bytes: memory_bytes,
        available_bytes: memory_available_bytes,
        promised_bytes: memory_mib * MIB,
        resident_bytes: deps.capacity().memory_mib_resident * MIB,
      },
      disk: { size_bytes: disk.size_bytes, free_bytes: disk.free_bytes },
      loop: loopNow(),
    };
  };

  const loopNow = (): NonNullable<Top["host"]>["loop"] => {
    const { used, waiting, longest } = deps.loop;
    return {
      busy_seconds: seconds(used.reduce((sum, [, ms]) => sum + ms, 0)),
      owners: used.slice(0, MAX_LOOP_OWNERS).map(([owner, ms]) => ({ owner, busy_seconds: seconds(ms) })),
      waiting: waiting.org + waiting.net + waiting.host,
      longest: longest && { label: longest.label, owner: longest.owner, ms: Math.round(longest.ms * 10) / 10 },
    };
  };

  return bind(topGet, {
    // A call without a key comes from the host.
    run: async ({ caller, audit }: OpenCall, { room_id }) => {
      if (room_id !== undefined) audit.room_id = room_id;
      const { items, more } = caller ? await deps.measure(scopeOf(caller, room_id), MAX_TOP) : { items: [], more: 0 };
      const host = caller && (boundTo(caller) || !caller.scopes.includes("org:admin")) ? null : hostNow();
      return { outcome: "ok", body: { items, not_shown: more, host, at: now() } };
    },
  });
}
