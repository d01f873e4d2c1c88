/** Cost of a room since it was created: the written days, and its current use. */
import { MAX_COST_DAYS, type RoomGlance } from "../../../../shared/api/overview/room-overview.ts";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";
import { wallMs } from "../../../core/clock.ts";
import type { Queries } from "../../../db/client.ts";
import { add } from "./amounts.ts";
import type { Meter } from "./meter.ts";
import { MICRO, microOf, type Prices } from "./prices.ts";
import { sumRoom } from "./store.ts";

const DAY_MS = 86_400_000;

/** Costs of one organization's rooms, up to the day on which this is called. */
export function roomCosts(queries: Queries, meter: Pick<Meter, "runningIn">, prices: Prices, orgId: OrgId) {
  const daysSince = knownDays(wallMs());
  return ({ room_uid, created_at }: { room_uid: RoomUid; created_at: string }): NonNullable<RoomGlance["cost"]> => {
    const sum = sumRoom(queries, orgId, daysSince(created_at), room_uid);
    add(sum, meter.runningIn(orgId, room_uid));
    return { sandbox_seconds: sum.sandbox_ms / 1000, credits: microOf(prices, sum) / MICRO };
  };
}

/** Days from a moment up to now as JSON, limited to the most recent; cached, since many rooms have the same first day. */
function knownDays(nowMs: number): (created_at: string) => string {
  const known = new Map<string, string>();
  const last = Math.floor(nowMs / DAY_MS);
  return (created_at) => {
    const day = created_at.slice(0, 10);
    const first = Math.max(Math.floor(Date.parse(created_at) / DAY_MS), last - MAX_COST_DAYS + 1);
    const days =
      known.get(day) ??
      JSON.stringify(
        Array.from({ length: Math.max(1, last - first + 1) }, (_, index) =>
          new Date((first + index) * DAY_MS).toISOString().slice(0, 10),
        ),
      );
    known.set(day, days);
    return days;
  };
}
