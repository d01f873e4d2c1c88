/** The page of a sandbox's terminals: their list, and the watched one. */

import { useRef } from "preact/hooks";
import type { terminalList } from "../../../../shared/api/terminals.ts";
import { Empty, Line, Shown, State } from "../../components/parts.tsx";
import { Table } from "../../components/table.tsx";
import { Ago, Foreign } from "../../components/text.tsx";
import { get, part } from "../../data/api.ts";
import { agentPath } from "../../data/paths.ts";
import { useLoaded } from "../../data/resource.ts";
import { place } from "../../shell/router.ts";
import { isThere, sandboxPath, type TabProps } from "../tab.ts";
import type { TerminalPlace } from "./place.ts";
import { TerminalView } from "./view.tsx";

type Terminal = Awaited<ReturnType<typeof get<typeof terminalList>>>["items"][number];

const CHANGES = /^exec\.terminal_(?:opened|closed|attached|detached|ended)$/;

export default function Terminals({ room, agentId, sandbox }: TabProps) {
  const requested = place.value.query.get("terminal");
  // The watched terminal stays, even if the sandbox has forgotten it, or is destroyed.
  const watched = useRef<TerminalPlace | null>(null);
  const terminals = useLoaded(
    `terminals ${sandbox?.sandbox_id} ${sandbox?.state}`,
    async (signal) =>
      sandbox?.state === "running"
        ? (await get<typeof terminalList>(`${sandboxPath(sandbox)}/terminals`, {}, signal)).items
        : [],
    ({ event, agent_id }) => agent_id === agentId && CHANGES.test(event),
  );
  const items = [...(terminals.data ?? [])].sort((one, other) => other.created_at.localeCompare(one.created_at));
  const newest = items.find(({ state }) => state === "running") ?? items[0];
  const selected = requested ?? watched.current?.terminal ?? newest?.terminal_id ?? null;
  if (selected !== null && selected !== watched.current?.terminal && isThere(sandbox)) {
    const path = `${sandboxPath(sandbox)}/terminals/${part(selected)}`;
    watched.current = { room: room.room_id, agent: agentId, terminal: selected, path };
  }
  const { current: shownPlace } = watched;
  const at = shownPlace?.terminal ?? null;
  const shown = items.find(({ terminal_id }) => terminal_id === at);
  return (
    <>
      <Shown of={terminals} rows={2}>
        {() =>
          items.length > 0 ? (
            <TerminalTable items={items} at={at} path={agentPath(room.room_id, agentId, "terminal")} />
          ) : at === null ? (
            <NoTerminal room={room.room_id} agent={agentId} isRunning={sandbox?.state === "running"} />
          ) : null
        }
      </Shown>
      {shownPlace === null ? null : (
        <TerminalView key={shownPlace.path} place={shownPlace} reason={shown?.end_reason ?? null} />
      )}
    </>
  );
}

function NoTerminal({ room, agent, isRunning }: { room: string; agent: string; isRunning: boolean }) {
  if (!isRunning) return <Empty title="Its sandbox is not running, and so has no terminal to watch." />;
  return (
    <Empty title="No terminal is open in this sandbox.">
      <p>Open terminals of this sandbox appear on this page. To open one:</p>
      <Line words={["shell", room, agent]} />
      <p>Or to type in a terminal on this page, with a ticket:</p>
      <Line words={["terminal", "token", room, agent]} />
    </Empty>
  );
}

function TerminalTable({ items, at, path }: { items: readonly Terminal[]; at: string | null; path: string }) {
  return (
    <Table
      classes={{ State: "tight", User: "tight", Opened: "tight" }}
      rows={items.map(({ terminal_id, command, state, attached, user, created_at, end_reason }) => ({
        key: terminal_id,
        class: terminal_id === at ? "opened" : undefined,
        cells: {
          Terminal: (
            <a
              data-row
              href={`${path}?terminal=${part(terminal_id)}`}
              aria-current={terminal_id === at ? "true" : undefined}
            >
              <Foreign text={command} most={100} mono />
            </a>
          ),
          State: <State look={state === "running" ? "ok" : "quiet"}>{end_reason ?? state}</State>,
          "In use": attached ? "yes" : "no",
          User: <Foreign text={user} most={40} />,
          Opened: <Ago at={created_at} />,
        },
      }))}
    />
  );
}
