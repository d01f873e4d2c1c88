/** The page of an agent's commands: running and past ones, and the output of the opened one. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { executionList } from "../../../shared/api/executions.ts";
import { Ask } from "../components/ask.tsx";
import { Empty, Line, Shown, Trouble } from "../components/parts.tsx";
import { get } from "../data/api.ts";
import { now as roomNow } from "../data/now.ts";
import { agentPath } from "../data/paths.ts";
import { useLoaded } from "../data/resource.ts";
import { auditOf } from "../room/load.ts";
import { place } from "../shell/router.ts";
import { Opened } from "./command.tsx";
import { loadOrProblem } from "./or-problem.ts";
import { RunTable } from "./run-table.tsx";
import { horizonOf, isOfCommands, mergeRuns, type Run, withRunning } from "./runs.ts";
import { isThere, sandboxPath, type TabProps } from "./tab.ts";

const PAGE = 200;
/** Maximum number of shown starts, and of shown ends, of commands; older ones are in the audit. */
const MOST = 1000;

export default function Commands({ room, agentId, sandbox }: TabProps) {
  const opened = place.value.query.get("exec");
  const search = useSignal("");
  const most = useRef(PAGE);
  const now = useRef(sandbox);
  now.current = sandbox;
  const runs = useLoaded(
    `commands ${room.room_uid} ${room.state} ${agentId}`,
    async (signal) => {
      const limit = most.current;
      const { current: sandbox } = now;
      const [kept, started, ended] = await Promise.all([
        loadOrProblem(async () =>
          isThere(sandbox) && sandbox.state === "running"
            ? (await get<typeof executionList>(`${sandboxPath(sandbox)}/executions`, { limit: MOST }, signal)).items
            : [],
        ),
        auditOf(room, { agent_id: agentId, event: "exec.started", limit }, signal),
        auditOf(room, { agent_id: agentId, event: "exec.finished", limit }, signal),
      ]);
      const from = horizonOf([started, ended]);
      const all = mergeRuns(kept.data ?? [], [...started.items, ...ended.items]);
      return {
        items: all.filter(({ isKept, startedAt }) => isKept || Date.parse(startedAt) >= from),
        isAll: started.next_cursor === null && ended.next_cursor === null,
        problem: kept.problem,
      };
    },
    (record) => isOfCommands(record) && record.agent_id === agentId,
  );
  // Reloads the list when the sandbox changes; an opened command stays open.
  useEffect(() => runs.again(), [sandbox?.sandbox_id, sandbox?.state]);
  const running = (roomNow.value?.commands ?? []).filter(({ agent_id }) => agent_id === agentId);
  const runningIds = running.map(({ exec_id }) => exec_id).join(" ");
  // The sandbox has more details of a command that has started or ended.
  useEffect(() => runs.again(), [runningIds]);
  return (
    <Shown of={runs} rows={6}>
      {({ items: known, isAll, problem }) => {
        const items = withRunning(known, running);
        const run = items.find(({ id }) => id === opened);
        const found = items.filter((each) => matches(each, search.value));
        return (
          <>
            {problem ? <Trouble problem={problem} again={runs.again} /> : null}
            {opened === null ? null : (
              <Opened key={opened} execId={opened} run={run} room={room} agentId={agentId} sandbox={sandbox} />
            )}
            {items.length === 0 ? (
              <NoCommand room={room.room_id} agent={agentId} isThere={isThere(sandbox)} />
            ) : (
              <>
                <search class="filters">
                  <input
                    data-search
                    type="search"
                    aria-label="Search in commands"
                    placeholder="part of a command"
                    value={search.value}
                    onInput={({ currentTarget }) => {
                      search.value = currentTarget.value;
                    }}
                  />
                </search>
                {found.length === 0 ? (
                  <Empty title="No matching commands." />
                ) : (
                  <RunTable runs={found} opened={opened} path={agentPath(room.room_id, agentId, "commands")} />
                )}
                {isAll || most.current >= MOST ? null : (
                  <p>
                    <button
                      type="button"
                      class="button"
                      onClick={() => {
                        most.current = Math.min(MOST, most.current + PAGE * 2);
                        runs.again();
                      }}
                    >
                      Show older
                    </button>
                  </p>
                )}
              </>
            )}
            <Ask
              names={isThere(sandbox) ? ["run-it-again", "why-does-it-wait"] : ["summarise-room"]}
              given={{ room: room.room_id, agent: agentId }}
            />
          </>
        );
      }}
    </Shown>
  );
}

const matches = ({ command, id }: Run, text: string) => {
  const query = text.trim().toLowerCase();
  return command.toLowerCase().includes(query) || id.toLowerCase() === query;
};

function NoCommand({ room, agent, isThere: is }: { room: string; agent: string; isThere: boolean }) {
  if (!is) return <Empty title="No commands in the audit." />;
  return (
    <Empty title="No commands yet.">
      <p>Its agent runs commands, or you do with:</p>
      <Line words={["exec", room, agent, "--", "uname", "-a"]} />
    </Empty>
  );
}
