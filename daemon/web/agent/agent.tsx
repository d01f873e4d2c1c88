/** Frame of an agent's pages: its name, a summary of its sandbox, and the tabs. Each tab is a file in this folder. */

import { useRef } from "preact/hooks";
import { AGENT_PATTERN } from "../../../shared/ids.ts";
import { Empty, Head, Loading, State, Tabs, Trouble } from "../components/parts.tsx";
import { SandboxState } from "../components/sandbox-state.tsx";
import { Foreign, Since } from "../components/text.tsx";
import { part } from "../data/api.ts";
import { useNow } from "../data/now.ts";
import { agentPath, roomPath } from "../data/paths.ts";
import { useLoaded } from "../data/resource.ts";
import { Deadlocks } from "../room/deadlocks.tsx";
import { type Load, Lost, useProgram } from "../shell/lazy-page.tsx";
import { Live } from "../shell/live-state.tsx";
import type { PageProps } from "../shell/page.ts";
import { useTitle } from "../shell/title.ts";
import { loadAgent } from "./load.ts";
import type { TabProps } from "./tab.ts";

/** The first is the page at the agent's own path. */
const TABS: readonly { path: string; name: string; load: Load<TabProps> }[] = [
  { path: "", name: "Overview", load: () => import("./overview.tsx") },
  { path: "commands", name: "Commands", load: () => import("./commands.tsx") },
  { path: "terminal", name: "Terminal", load: () => import("./terminal/terminals.tsx") },
  { path: "screen", name: "Screen", load: () => import("./screen/screen.tsx") },
  { path: "network", name: "Network", load: () => import("./network.tsx") },
  { path: "usage", name: "Usage", load: () => import("./usage.tsx") },
  { path: "console", name: "Console", load: () => import("./console.tsx") },
  { path: "record", name: "Record", load: () => import("./record.tsx") },
];

const NAME = new RegExp(AGENT_PATTERN);
const CHANGES = /^(?:room\.|sandbox\.(?!read|listed|logs_read|measured)|egress\.changed|port\.(?:un)?exposed)/;

export default function Agent({ params: { room_id: roomId = "", agent_id: agentId = "", tab = "" } }: PageProps) {
  useTitle(`${agentId} in ${roomId}${tab ? ` · ${tab}` : ""}`);
  const isUnknown = useRef(false);
  const agent = useLoaded(
    `agent ${roomId} ${agentId}`,
    (signal) => loadAgent(roomId, agentId, signal),
    ({ event, agent_id }) =>
      (CHANGES.test(event) && (agent_id === null || agent_id === agentId)) ||
      (agent_id === agentId && isUnknown.current),
  );
  const chosen = TABS.find(({ path }) => path === tab);
  const { Page: Shown, isLost } = useProgram(chosen?.load);
  const { data, problem } = agent;
  isUnknown.current = data?.isKnown === false;
  useNow(data?.room);
  // The name comes from the URL, which can contain anything, and is part of lines that users copy.
  if (!NAME.test(agentId)) return <Empty title="No agent can have this name." />;
  return (
    <>
      <Head title={<Foreign text={agentId} />}>
        <span class="muted">
          in{" "}
          <a href={roomPath(roomId)}>
            <Foreign text={data?.room.room_id ?? roomId} />
          </a>
        </span>
        {data?.isKnown ? <InALine {...data} /> : null}
        <Live />
      </Head>
      {problem?.code === "room_not_found" ? (
        <Empty title="There is no room of this name.">
          <p>
            Past activity may still be in the audit log:{" "}
            <a href={`/audit?room=${part(roomId)}&agent=${part(agentId)}`}>search it</a>, or go to{" "}
            <a href="/rooms">Rooms</a>.
          </p>
        </Empty>
      ) : problem ? (
        <Trouble problem={problem} again={agent.again} />
      ) : null}
      {data ? <Deadlocks roomId={data.room.room_id} /> : null}
      {data && !data.isKnown ? (
        <Empty title="This room has never had an agent of this name.">
          <p>
            Its agents are on the <a href={roomPath(roomId)}>room's page</a>. This page updates when the agent joins.
          </p>
        </Empty>
      ) : problem?.code === "room_not_found" ? null : (
        <Tabs
          label="Agent"
          at={agentPath(roomId, agentId, tab)}
          tabs={TABS.map(({ path, name }) => [agentPath(roomId, agentId, path), name])}
        />
      )}
      {data && data.room.state !== "active" ? (
        <p class="warning above">
          The room has ended, and its sandboxes with it. Audit records of this agent are still shown.
        </p>
      ) : null}
      {data?.isKnown === false ? null : !chosen ? (
        <Empty title="The page does not exist: an agent has the pages above." />
      ) : isLost ? (
        <Lost />
      ) : data && Shown ? (
        <Shown room={data.room} agentId={agentId} sandbox={data.sandbox} />
      ) : problem ? null : (
        <Loading rows={6} />
      )}
    </>
  );
}

function InALine({ room, sandbox }: Pick<TabProps, "room" | "sandbox">) {
  if (!sandbox) return <State look="quiet">{room.state === "active" ? "no sandbox" : "room ended"}</State>;
  const { state, ready_at, stopped_at, memory_mib, vcpu_count, template_id } = sandbox;
  return (
    <>
      <SandboxState state={state} />
      <span class="muted">
        {memory_mib} MiB · {vcpu_count} {vcpu_count === 1 ? "processor" : "processors"} · <Foreign text={template_id} />
        {ready_at !== null && stopped_at === null && state !== "destroyed" ? (
          <>
            {" "}
            · up <Since at={ready_at} />
          </>
        ) : null}
      </span>
    </>
  );
}
