/** The page of a sandbox's API record, of its snapshots, and of the agent's previous sandboxes. */
import type { AuditRecord } from "../../../shared/api/audit.ts";
import type { SandboxRecord } from "../../../shared/api/sandboxes.ts";
import { Json } from "../components/json.tsx";
import { Copy, Empty, Line, Shown, State } from "../components/parts.tsx";
import { RecordTable } from "../components/records.tsx";
import { Table } from "../components/table.tsx";
import { Clock, Foreign, spanText } from "../components/text.tsx";
import { useLoaded } from "../data/resource.ts";
import { auditOf } from "../room/load.ts";
import { endedOf } from "./load.ts";
import { Snapshots } from "./snapshots.tsx";
import type { TabProps } from "./tab.ts";
import { causeWords } from "./words.ts";

const isOfLife = ({ event, source }: AuditRecord) =>
  source !== "web" && /^sandbox\.(?!read$|listed$|logs_read$|measured$)/.test(event);

export default function Record({ room, agentId, sandbox }: TabProps) {
  const earlier = useLoaded(
    `earlier ${room.room_uid} ${room.state} ${agentId} ${sandbox?.sandbox_id}`,
    async (signal) => {
      const [ended, audit] = await Promise.all([
        room.state === "active" ? endedOf(room.room_id, agentId, signal) : [],
        auditOf(room, { agent_id: agentId, event: "sandbox.", limit: 1000 }, signal),
      ]);
      return {
        ended: ended.filter((each) => each.sandbox_id !== sandbox?.sandbox_id),
        told: audit.items.filter(isOfLife),
      };
    },
    (record) => record.agent_id === agentId && isOfLife(record),
  );
  const text = JSON.stringify(sandbox, null, 2);
  return (
    <>
      {sandbox ? (
        <>
          <p class="output-head">
            <Copy text={text} label="Copy as JSON" />
            <span class="muted">
              <Foreign text={sandbox.sandbox_id} mono />
            </span>
          </p>
          <Json name="sandbox" value={sandbox} isOpen />
        </>
      ) : (
        <Empty title="No record of a sandbox is kept." />
      )}
      <Snapshots room={room} agentId={agentId} sandbox={sandbox} />
      <h2>Earlier sandboxes of this agent</h2>
      <Shown of={earlier}>
        {({ ended, told }) => (
          <>
            {ended.length === 0 ? <p class="muted">No earlier sandboxes.</p> : <Earlier sandboxes={ended} />}
            <h2>Lifecycle events</h2>
            {told.length === 0 ? <Empty title="No sandbox events in the audit." /> : <RecordTable records={told} />}
          </>
        )}
      </Shown>
      <h2>In a shell</h2>
      <Line words={["sandbox", "get", room.room_id, agentId, "--json"]} />
    </>
  );
}

function Earlier({ sandboxes }: { sandboxes: readonly SandboxRecord[] }) {
  return (
    <Table
      classes={{ Made: "tight", Ended: "tight", Lived: "num tight" }}
      rows={sandboxes.map(({ sandbox_id, created_at, exit, stopped_at }) => {
        const end = exit?.at ?? stopped_at;
        return {
          key: sandbox_id,
          cells: {
            Sandbox: <Foreign text={sandbox_id} mono />,
            Made: <Clock at={created_at} />,
            Ended: end === null ? "–" : <Clock at={end} />,
            Lived: end === null ? "–" : spanText(Date.parse(end) - Date.parse(created_at)),
            Why: exit ? (
              <State look={exit.cause === "user_requested" ? "quiet" : "bad"}>{causeWords(exit.cause)}</State>
            ) : (
              "–"
            ),
          },
        };
      })}
    />
  );
}
