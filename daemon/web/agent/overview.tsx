/** An agent's first page: its sandbox, its current activity, and its latest events. */

import { useEffect } from "preact/hooks";
import type { executionList } from "../../../shared/api/executions.ts";
import { isReading } from "../../../shared/audit-reads.ts";
import { Ask } from "../components/ask.tsx";
import { Empty, Line, Shown, Trouble } from "../components/parts.tsx";
import { RecordTable } from "../components/records.tsx";
import { Ago, countText } from "../components/text.tsx";
import { get, part } from "../data/api.ts";
import { now as roomNow } from "../data/now.ts";
import { agentPath } from "../data/paths.ts";
import { useLoaded } from "../data/resource.ts";
import { auditOf } from "../room/load.ts";
import { findPresent } from "./load.ts";
import { loadOrProblem } from "./or-problem.ts";
import { RunTable } from "./run-table.tsx";
import { mergeRuns } from "./runs.ts";
import { SandboxFacts } from "./sandbox-facts.tsx";
import { isThere, sandboxPath, type TabProps } from "./tab.ts";
import { loadWaits, WaitsOf } from "./waits.tsx";

const FEW = 12;
const PAGE = 1000;

export default function Overview({ room, agentId, sandbox }: TabProps) {
  const last = useLoaded(
    `last of ${room.room_uid} ${room.state} ${agentId}`,
    (signal) => auditOf(room, { agent_id: agentId, limit: 200 }, signal),
    (record) => record.agent_id === agentId && !isReading(record),
  );
  return (
    <>
      {room.state === "active" ? <Now room={room} agentId={agentId} sandbox={sandbox} /> : null}
      {sandbox ? (
        <>
          <h2>
            Sandbox <a href={agentPath(room.room_id, agentId, "record")}>its record</a>
          </h2>
          <SandboxFacts sandbox={sandbox} />
        </>
      ) : room.state === "active" ? (
        <>
          <h2>Sandbox</h2>
          <Empty title="It has no sandbox in this room.">
            <p>It uses messages and the drive through the API. To give it a sandbox:</p>
            <Line words={["sandbox", "create", room.room_id, agentId]} />
          </Empty>
        </>
      ) : null}
      <h2>
        Recent activity <a href={`/audit?room=${part(room.room_id)}&agent=${part(agentId)}`}>all</a>
      </h2>
      <Shown of={last}>
        {({ items }) => {
          const shown = items.filter((each) => !isReading(each)).slice(0, FEW);
          return shown.length > 0 ? <RecordTable records={shown} /> : <Empty title="No activity in the audit." />;
        }}
      </Shown>
      <Ask names={promptsFor(sandbox)} given={{ room: room.room_id, agent: agentId }} />
    </>
  );
}

function Now({ room, agentId, sandbox }: TabProps) {
  const now = useLoaded(
    `now of ${room.room_uid} ${agentId} ${sandbox?.sandbox_id} ${sandbox?.state}`,
    async (signal) => {
      const [present, waits, runs] = await Promise.all([
        findPresent(room.room_id, agentId, signal),
        loadWaits(room.room_id, signal),
        loadOrProblem(async () =>
          sandbox?.state === "running"
            ? (await get<typeof executionList>(`${sandboxPath(sandbox)}/executions`, { limit: PAGE }, signal)).items
            : [],
        ),
      ]);
      return { present, waits, runs };
    },
    (record) => /^(?:message\.(?:sent|read|acked)|barrier\.|exec\.(?:started|finished|killed))/.test(record.event),
  );
  // Only of an active room, while it is shown.
  useEffect(() => roomNow.subscribe((state) => (state ? now.again() : undefined)), [room.room_uid]);
  return (
    <>
      <h2>
        Now <a href={agentPath(room.room_id, agentId, "commands")}>all commands</a>
      </h2>
      <Shown of={now}>
        {({ present, waits, runs }) => {
          const running = mergeRuns(
            (runs.data ?? []).filter(({ state }) => state === "running"),
            [],
          );
          return (
            <>
              <WaitsOf waits={waits} room={room.room_id} agent={agentId} />
              {present ? (
                <p class="muted">
                  {countText(present.inbox_depth)} in its inbox · last seen{" "}
                  <Ago at={present.last_seen_at} none="not yet" />
                  {present.topics.length > 0 ? ` · subscribed to ${present.topics.length} topics` : ""}
                </p>
              ) : null}
              {runs.problem ? <Trouble problem={runs.problem} /> : null}
              {running.length > 0 ? (
                <RunTable runs={running} path={agentPath(room.room_id, agentId, "commands")} />
              ) : runs.problem ? null : (
                <p class="muted">No running commands.</p>
              )}
            </>
          );
        }}
      </Shown>
    </>
  );
}

function promptsFor(sandbox: TabProps["sandbox"]): string[] {
  if (!isThere(sandbox)) return ["summarise-room"];
  if (sandbox.state === "failed") return ["why-did-it-fail"];
  return ["why-does-it-wait", "unblock", "run-it-again", "show-me-the-result"];
}
