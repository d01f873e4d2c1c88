/** A room's first page: its agents and their activity, and its latest events. */

import type { agentList } from "../../../shared/api/fabric.ts";
import type { topGet } from "../../../shared/api/overview/top.ts";
import { isReading } from "../../../shared/audit-reads.ts";
import { Ask } from "../components/ask.tsx";
import { Empty, Facts, Line, Shown, State } from "../components/parts.tsx";
import { RecordTable } from "../components/records.tsx";
import { SandboxState } from "../components/sandbox-state.tsx";
import { Table } from "../components/table.tsx";
import { Ago, countText, Foreign, sizeText } from "../components/text.tsx";
import { WAIT_WORDS } from "../components/waits.ts";
import { get, part, pathOf } from "../data/api.ts";
import { now, type RoomNow } from "../data/now.ts";
import { addressOf, agentPath, roomPath } from "../data/paths.ts";
import { useLoaded } from "../data/resource.ts";
import { useEvery, WAITS_MS } from "../data/use-interval.ts";
import { auditOf, endOf, movesAgents } from "./load.ts";
import type { TabProps } from "./tab.ts";

const FEW = 12;
const PAGE = 1000;

export default function Overview({ room }: TabProps) {
  const { room_id: roomId } = room;
  const isLive = room.state === "active";
  const made = useLoaded(`made ${room.room_uid} ${room.state}`, (signal) =>
    auditOf(room, { event: "room.created", outcome: "success", limit: 1 }, signal),
  );
  const from = made.data?.items[0]?.details ?? {};
  const last = useLoaded(
    `last ${room.room_uid} ${room.state}`,
    (signal) => auditOf(room, { limit: FEW, reads: false }, signal),
    (record) => !isReading(record),
  );
  return (
    <>
      {typeof from.of_room === "string" ? (
        <p>
          Made of room{" "}
          <a href={roomPath(from.of_room)}>
            <Foreign text={from.of_room} />
          </a>{" "}
          as of checkpoint{" "}
          <a href={pathOf(roomPath(from.of_room, "checkpoints"), { checkpoint: String(from.checkpoint_id) })}>
            <Foreign text={String(from.checkpoint_id)} mono />
          </a>
          .
        </p>
      ) : null}
      {isLive ? (
        <Agents room={room} />
      ) : (
        <Empty title="This room was destroyed.">
          <p>
            Its past activity is still in the <a href={roomPath(addressOf(room), "timeline")}>Timeline</a>.
          </p>
        </Empty>
      )}
      <h2>
        Recent activity <a href={pathOf("/audit", { room: roomId, until: endOf(room) })}>all</a>
      </h2>
      <Shown of={last}>
        {({ items }) => (items.length > 0 ? <RecordTable records={items} /> : <Empty title="No activity yet." />)}
      </Shown>
      {isLive ? <Ask names={["summarise-room", "find-deadlock"]} given={{ room: roomId }} /> : null}
    </>
  );
}

/** For an active room: its agents and their activity. */
function Agents({ room }: Pick<TabProps, "room">) {
  const { room_id: roomId } = room;
  const path = `/v1/rooms/${part(roomId)}`;
  const agents = useLoaded(
    `agents ${room.room_uid}`,
    async (signal) => {
      const [agents, top] = await Promise.all([
        get<typeof agentList>(`${path}/agents`, { limit: PAGE }, signal),
        get<typeof topGet>("/v1/top", { room_id: roomId }, signal),
      ]);
      return { agents: agents.items, top: top.items };
    },
    movesAgents,
  );
  useEvery(true, WAITS_MS, agents.again);
  return (
    <Shown of={agents}>
      {({ agents: present, top }) => (
        <>
          <Facts
            facts={[
              ["Agents", countText(present.length)],
              ["Waiting", now.value ? countText(waitingIn(now.value)) : "–"],
              ["Sandboxes", countText(room.sandbox_count)],
              ["Drive", sizeText(room.drive.used_bytes)],
            ]}
          />
          <h2>Agents</h2>
          {present.length === 0 ? (
            <Empty title="No agents in this room.">
              <p>An agent joins with its sandbox, or with its first message:</p>
              <Line words={["sandbox", "create", roomId, "worker"]} />
            </Empty>
          ) : (
            <Table
              classes={{ Inbox: "num", Memory: "num" }}
              rows={present.map(({ agent_id, sandbox_state, inbox_depth, last_seen_at }) => {
                const used = top.find((each) => each.agent_id === agent_id);
                return {
                  key: agent_id,
                  cells: {
                    Agent: (
                      <a class="name" data-row href={agentPath(roomId, agent_id)}>
                        <Foreign text={agent_id} />
                      </a>
                    ),
                    State: <SandboxState state={sandbox_state} />,
                    "Waits for": <WaitsFor agentId={agent_id} />,
                    Inbox: inbox_depth,
                    Memory: used ? (
                      <span
                        title={`${sizeText(used.memory.resident_bytes ?? 0)} on the host, with the virtual machine itself`}
                      >
                        {used.memory.memory_mib} MiB
                      </span>
                    ) : (
                      "–"
                    ),
                    "Last seen": <Ago at={last_seen_at} none="not yet" />,
                  },
                };
              })}
            />
          )}
        </>
      )}
    </Shown>
  );
}

const waitingIn = ({ waits }: RoomNow): number => new Set(waits.map(({ agent_id }) => agent_id)).size;

/** The waits of an agent, also between its calls. */
function WaitsFor({ agentId }: { agentId: string }) {
  const waits = (now.value?.waits ?? []).filter(({ agent_id }) => agent_id === agentId);
  if (waits.length === 0) return <span class="muted">–</span>;
  return (
    <>
      {waits.slice(0, FEW).map(({ type, id, on }) => (
        <State key={`${type} ${id}`} look="wait">
          {WAIT_WORDS[type]}{" "}
          {type === "barrier" ? (
            <Foreign text={id ?? ""} most={40} />
          ) : on.length > 0 ? (
            <>
              from <Foreign text={on.join(", ")} most={60} />
            </>
          ) : null}
        </State>
      ))}
    </>
  );
}
