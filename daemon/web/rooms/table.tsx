/** Owns the table of rooms. */

import type { RoomRecord } from "../../../shared/api/rooms.ts";
import { roomPath } from "../data/paths.ts";
import { State } from "../parts/parts.tsx";
import { Ago, Foreign, sizeText } from "../parts/text.tsx";

const LOOKS = { active: "ok", destroying: "busy", destroyed: "quiet" } as const;

export function RoomState({ room: { state } }: { room: RoomRecord }) {
  return <State look={LOOKS[state]}>{state}</State>;
}

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

export function RoomTable({ rooms }: { rooms: readonly RoomRecord[] }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th>Room</th>
            <th>State</th>
            <th class="num">Sandboxes</th>
            <th class="num">Drive</th>
            <th>Made</th>
            <th>Labels</th>
          </tr>
        </thead>
        <tbody>
          {rooms.map((room) => (
            <tr key={room.room_uid}>
              <td data-label="Room">
                <a class="name" data-row href={roomPath(room.room_id)}>
                  <Foreign text={room.room_id} />
                </a>
              </td>
              <td data-label="State">
                <RoomState room={room} />
              </td>
              <td data-label="Sandboxes" class="num">
                {room.sandbox_count}
              </td>
              <td data-label="Drive" class="num">
                {sizeText(room.drive.used_bytes)}
              </td>
              <td data-label="Made">
                <Ago at={room.created_at} />
              </td>
              <td data-label="Labels">
                <Labels labels={room.labels} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
