/** The table of rooms: activity, waits, messages and cost of each. */

import type { RoomGlance } from "../../../shared/api/overview/room-overview.ts";
import type { RoomRecord } from "../../../shared/api/rooms.ts";
import { State } from "../components/parts.tsx";
import { Table } from "../components/table.tsx";
import { Ago, countText, Foreign, nowMs, sizeText, spanText } from "../components/text.tsx";
import { pathOf } from "../data/api.ts";
import { addressOf, roomPath } from "../data/paths.ts";
import { boot } from "../shell/boot.ts";

const LOOKS = { active: "ok", destroying: "busy", destroyed: "quiet" } as const;

export function RoomState({ room: { state } }: { room: Pick<RoomRecord, "state"> }) {
  return <State look={LOOKS[state]}>{state}</State>;
}

/** Whether the room's host does not respond, so that only its name, labels and time are known. */
export const isUnknown = ({ warnings = [] }: RoomGlance): boolean => warnings.length > 0;

const UNKNOWN = <span class="muted">–</span>;

export function Labels({ labels }: { labels: Record<string, string> }) {
  return (
    <>
      {Object.entries(labels).map(([name, value]) => (
        <span key={name} class="label">
          <Foreign text={`${name}=${value}`} most={60} />
        </span>
      ))}
    </>
  );
}

/** Agents without an answer; a cycle is worse, since no agent in it can continue alone. */
export function Blocked({ room: { room_id, blocked, in_circle, truncated } }: { room: RoomGlance }) {
  if (blocked === 0) return <span class="muted">–</span>;
  return (
    <a href={roomPath(room_id, "waits")}>
      <State look={in_circle ? "bad" : "wait"}>
        {countText(blocked)}
        {truncated ? " or more" : ""}
        {in_circle ? ", in a circle" : ""}
      </State>
    </a>
  );
}

/** Credits if something has a price, otherwise the sandboxes' time. */
export function costText(cost: RoomGlance["cost"]): string {
  if (cost === null) return "–";
  if (cost.credits > 0)
    return `${cost.credits < 10 ? cost.credits.toFixed(2) : countText(Math.round(cost.credits))} credits`;
  return cost.sandbox_seconds === 0 ? "–" : spanText(cost.sandbox_seconds * 1000);
}

/** A sent message triggers a reload: a minute without one means that none was sent in the last minute. */
const MINUTE_MS = 60_000;

export interface Glances {
  items: readonly RoomGlance[];
  /** Time of the request. */
  askedMs: number;
  /** Whether the rooms have ended: ended rooms have no running sandboxes and no waits. */
  isEnded?: boolean;
}

export function RoomTable({ items, askedMs, isEnded = false }: Glances) {
  const worth = items.some(({ cost }) => cost !== null && cost.credits > 0) ? "Cost" : "Sandbox time";
  const isQuiet = nowMs.value - askedMs > MINUTE_MS;
  return (
    <Table
      class="rooms"
      classes={{ Agents: "num", Running: "num", "Messages/min": "num", Drive: "num", [worth]: "num" }}
      rows={items.map((room) => ({
        key: room.room_uid,
        cells: {
          Room: (
            <a class="name" data-row href={roomPath(addressOf(room))}>
              <Foreign text={room.room_id} />
            </a>
          ),
          State: isUnknown(room) ? (
            <State look="bad">
              <span title={room.warnings?.join(" ")}>host silent</span>
            </State>
          ) : (
            <RoomState room={room} />
          ),
          ...(boot.has_hosts
            ? {
                Host: (
                  <a href={pathOf("/rooms", { host: room.host })} title="Rooms on this host">
                    <Foreign text={room.host} />
                  </a>
                ),
              }
            : {}),
          ...(isEnded
            ? {}
            : {
                Agents: isUnknown(room) ? UNKNOWN : countText(room.agents),
                Running: isUnknown(room) ? UNKNOWN : countText(room.running),
                Blocked: <Blocked room={room} />,
                "Messages/min": isUnknown(room) ? UNKNOWN : countText(isQuiet ? 0 : room.messages_last_minute),
              }),
          Drive: isUnknown(room) ? UNKNOWN : sizeText(room.drive.used_bytes),
          [worth]: costText(room.cost),
          Made: <Ago at={room.created_at} />,
          Labels: <Labels labels={room.labels} />,
        },
      }))}
    />
  );
}
