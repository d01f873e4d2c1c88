/** The page of a room's waits: a sentence per deadlock, a picture, and all waits as a table. */

import { useEffect } from "preact/hooks";
import type { auditList } from "../../../../shared/api/audit.ts";
import type { roomWaits, Wait } from "../../../../shared/api/overview/overview.ts";
import { pathOf } from "../../../../shared/places.ts";
import { Empty, Facts, Shown, State } from "../../components/parts.tsx";
import { Table } from "../../components/table.tsx";
import { Clock, countText, Foreign, Since } from "../../components/text.tsx";
import { WAIT_WORDS } from "../../components/waits.ts";
import { get, part } from "../../data/api.ts";
import { now } from "../../data/now.ts";
import { useLoaded } from "../../data/resource.ts";
import { place } from "../../shell/router.ts";
import { movesAgents } from "../load.ts";
import type { TabProps } from "../tab.ts";
import { pictureOf } from "./graph.ts";
import { Graph } from "./picture.tsx";

/** Age limit of refused waits. */
const REFUSED_MS = 3_600_000;

export default function Waits({ room }: TabProps) {
  const { room_id: roomId } = room;
  const path = `/v1/rooms/${part(roomId)}`;
  const isActive = room.state === "active";
  const found = useLoaded(
    `waits ${room.room_uid} ${isActive}`,
    async (signal) => (isActive ? await get<typeof roomWaits>(`${path}/waits`, {}, signal) : null),
    movesAgents,
  );
  useEffect(() => now.subscribe((state) => (state ? found.again() : undefined)), [room.room_uid]);
  const refused = useLoaded(
    `refused ${room.room_uid} ${isActive}`,
    async (signal) => {
      if (!isActive) return [];
      const since = new Date(Date.now() - REFUSED_MS).toISOString();
      const query = { outcome: "error", since, limit: 1000 };
      const { items } = await get<typeof auditList>(`${path}/audit`, query, signal);
      return items.filter(({ error_code }) => error_code === "deadlock_detected").slice(0, 20);
    },
    ({ error_code }) => error_code === "deadlock_detected",
  );
  return (
    <>
      <Shown of={found} rows={6}>
        {(answer) => {
          if (answer === null) return <Empty title="This room has ended: no agent waits any more." />;
          const { waits, cycles, truncated } = answer;
          if (waits.length === 0)
            return (
              <>
                <Passed waits={waits} room={roomId} />
                <Empty title="No agent is waiting.">
                  <p>Agents waiting for a reply, a barrier, messages or a command appear here.</p>
                </Empty>
              </>
            );
          const picture = pictureOf(waits, cycles);
          const agents = new Set(waits.map(({ agent_id }) => agent_id)).size;
          return (
            <>
              <Facts
                facts={[
                  ["Waiting", countText(agents)],
                  ["Waits", countText(waits.length)],
                  ["Deadlocks", countText(cycles.length)],
                ]}
              />
              {picture ? <Graph picture={picture} /> : null}
              <Passed waits={waits} room={roomId} />
              <WaitTable waits={waits} room={roomId} />
              {truncated ? <p class="muted">These are the oldest; there are more.</p> : null}
            </>
          );
        }}
      </Shown>
      <Shown of={refused} rows={1}>
        {(records) =>
          records.length === 0 ? null : (
            <>
              <h2>Prevented deadlocks (last hour)</h2>
              <ul class="plain">
                {records.map(({ seq, at, agent_id, details, event }) => (
                  <li key={seq}>
                    <Clock at={at} />{" "}
                    <b>
                      <Foreign text={agent_id ?? "somebody"} />
                    </b>{" "}
                    {event === "barrier.arrived" ? "at barrier " : "asking "}
                    <Foreign text={String(details.barrier_id ?? details.destination ?? "")} most={80} />
                  </li>
                ))}
              </ul>
            </>
          )
        }
      </Shown>
    </>
  );
}

function linkOf({ agent_id, type, id }: Wait, room_id: string): string {
  const placed = { room_id, agent_id };
  if (type === "reply" && id !== null) return pathOf({ type: "message", id, ...placed });
  if (type === "command" && id !== null) return pathOf({ type: "execution", id, ...placed });
  return pathOf({ type: "agent", id: agent_id, ...placed });
}

/** Notice that the barrier of the address has no waiting agents. */
function Passed({ waits, room }: { waits: readonly Wait[]; room: string }) {
  const barrier = place.value.query.get("barrier");
  if (barrier === null || waits.some(({ type, id }) => type === "barrier" && id === barrier)) return null;
  return (
    <p class="warning">
      No agent waits at the barrier <Foreign text={barrier} most={60} mono />. The{" "}
      <a href={`/audit?room=${part(room)}&event=barrier.`}>audit</a> has the arrivals at the room's barriers.
    </p>
  );
}

function WaitTable({ waits, room }: { waits: readonly Wait[]; room: string }) {
  const barrier = place.value.query.get("barrier");
  return (
    <Table
      classes={{ Since: "tight" }}
      rows={waits.map((wait) => {
        const { agent_id, type, id, on, since, held, about } = wait;
        return {
          key: `${agent_id} ${type} ${id}`,
          class: type === "barrier" && id === barrier ? "marked" : undefined,
          cells: {
            Who: (
              <a class="name" data-row href={linkOf(wait, room)}>
                <Foreign text={agent_id} most={60} />
              </a>
            ),
            "Waits for": (
              <>
                <State look="wait">{WAIT_WORDS[type]}</State>{" "}
                <Foreign text={type === "barrier" ? (id ?? "") : about} most={120} mono={type === "command"} />
              </>
            ),
            "Waiting on": on.length === 0 ? <span class="muted">–</span> : <Foreign text={on.join(", ")} most={160} />,
            Since: <Since at={since} />,
            "Call open": held ? "yes" : <span class="muted">no</span>,
          },
        };
      })}
    />
  );
}
