/** An agent's snapshots: their ancestry, their size, and how long each paused its sandbox. */
import type { SnapshotRecord, snapshotList } from "../../../shared/api/snapshots.ts";
import { Line, Shown } from "../components/parts.tsx";
import { Table } from "../components/table.tsx";
import { Clock, Foreign, sizeText, spanText } from "../components/text.tsx";
import { get, part } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import type { TabProps } from "./tab.ts";

/** A room has fewer. */
const ALL = 1000;
const CHANGES = /^(?:snapshot\.(?:created|deleted|expired)|sandbox\.forked)$/;

export function Snapshots({ room, agentId, sandbox }: TabProps) {
  const snapshots = useLoaded(
    `snapshots ${room.room_uid} ${agentId}`,
    async (signal) => {
      if (room.state !== "active") return [];
      const query = { agent_id: agentId, limit: ALL };
      return (await get<typeof snapshotList>(`/v1/rooms/${part(room.room_id)}/snapshots`, query, signal)).items;
    },
    ({ event, agent_id }) => agent_id === agentId && CHANGES.test(event),
  );
  return (
    <>
      <h2>Snapshots of its sandboxes</h2>
      <Shown of={snapshots}>
        {(items) =>
          items.length > 0 ? (
            <SnapshotTable items={items.toReversed()} at={sandbox?.snapshot_id ?? null} />
          ) : (
            <>
              <p class="muted">No snapshots.</p>
              {room.state === "active" ? <Line words={["sandbox", "snapshot", room.room_id, agentId]} /> : null}
            </>
          )
        }
      </Shown>
    </>
  );
}

/** `at`: the snapshot that its sandbox was made from, or the last one taken of it. */
function SnapshotTable({ items, at }: { items: readonly SnapshotRecord[]; at: string | null }) {
  return (
    <Table
      classes={{ Has: "tight", Size: "num tight", Paused: "num tight", Taken: "tight", Ends: "tight" }}
      rows={items.map(({ snapshot_id, name, parent, mode, size_bytes, paused_ms, created_at, expires_at }) => ({
        key: snapshot_id,
        cells: {
          Snapshot: (
            <>
              <Foreign text={snapshot_id} mono /> {name === null ? null : <Foreign text={name} most={60} />}
              {snapshot_id === at ? <span class="label">current</span> : null}
              {parent === null ? null : (
                <div class="muted">
                  from <Foreign text={parent} mono />
                </div>
              )}
            </>
          ),
          Has: mode === "full" ? "memory and disk" : "its disk",
          Size: sizeText(size_bytes),
          Paused: spanText(paused_ms),
          Taken: <Clock at={created_at} />,
          Ends: expires_at === null ? "with the room" : <Clock at={expires_at} />,
        },
      }))}
    />
  );
}
