/** The page of a sandbox's network: its connections and refusals, next to its allowlist. */
import { useSignal } from "@preact/signals";
import type { egressGet, sandboxNetwork } from "../../../shared/api/egress.ts";
import { Ask } from "../components/ask.tsx";
import { Choices, Empty, Facts, Line, Shown, State } from "../components/parts.tsx";
import { Table } from "../components/table.tsx";
import { Ago, Clock, countText, Foreign, sizeText } from "../components/text.tsx";
import { get, part } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { place, setQuery } from "../shell/router.ts";
import { allowWords, type Destination, entryFor, placeText, reasonWords } from "./places.ts";
import { isThere, sandboxPath, type TabProps } from "./tab.ts";
import { egressWords } from "./words.ts";

const SHOWN = [
  ["all", "all"],
  ["refused", "refused"],
  ["allowed", "allowed"],
] as const;
/** Maximum of lines to copy. */
const MAX_LINES = 5;

export default function Network({ room, agentId, sandbox }: TabProps) {
  const chosen = SHOWN.find(([each]) => each === place.value.query.get("show"))?.[0] ?? "all";
  const search = useSignal("");
  const network = useLoaded(
    `network ${sandbox?.sandbox_id}`,
    async (signal) => {
      if (!sandbox) return null;
      const path = sandboxPath(sandbox);
      const [seen, egress] = await Promise.all([
        get<typeof sandboxNetwork>(`${path}/network`, {}, signal),
        isThere(sandbox) ? get<typeof egressGet>(`${path}/egress`, {}, signal) : null,
      ]);
      return { seen, egress };
    },
    ({ event, agent_id }) => agent_id === agentId && /^egress\.(?:denied|changed)$|^exec\.finished$/.test(event),
  );
  if (!sandbox) {
    return (
      <Empty title="No sandbox of this agent is known, and so no connections.">
        <p>
          Refused connections are also{" "}
          <a href={`/audit?room=${part(room.room_id)}&agent=${part(agentId)}&event=egress.`}>in the audit</a>.
        </p>
      </Empty>
    );
  }
  return (
    <Shown of={network} rows={6}>
      {(data) => {
        if (!data) return null;
        const { seen, egress } = data;
        const items = seen.items.filter(
          (each) => (chosen === "all" || each.allowed === (chosen === "allowed")) && matches(each, search.value),
        );
        return (
          <>
            {egress ? (
              <Facts
                facts={[
                  ["Open now", countText(egress.open_connections)],
                  ["Connections", countText(egress.connections)],
                  ["Sent", sizeText(egress.sent_bytes)],
                  ["Received", sizeText(egress.received_bytes)],
                ]}
              />
            ) : null}
            <h2>May connect</h2>
            <p>
              {egressWords(egress ?? sandbox.egress)}{" "}
              {(egress ?? sandbox.egress).allowlist.map((entry) => (
                <span key={entry} class="label">
                  <Foreign text={entry} most={100} mono />
                </span>
              ))}{" "}
              <span class="muted">revision {(egress ?? sandbox.egress).revision}</span>
            </p>
            <h2>Connections</h2>
            {seen.items.length === 0 ? (
              <Empty title="No connections and no refusals yet." />
            ) : (
              <>
                <search class="filters">
                  <Choices
                    label="Which"
                    of={SHOWN}
                    at={chosen}
                    choose={(each) => setQuery({ show: each === "all" ? null : each })}
                  />
                  <input
                    data-search
                    type="search"
                    aria-label="Search by name or address"
                    placeholder="name or address"
                    value={search.value}
                    onInput={({ currentTarget }) => {
                      search.value = currentTarget.value;
                    }}
                  />
                  <button type="button" class="link" onClick={network.again}>
                    Refresh
                  </button>
                </search>
                {items.length === 0 ? <Empty title="No matching connections." /> : <Destinations items={items} />}
                <p class="muted">
                  Since <Clock at={seen.since} />
                  {seen.other.allowed + seen.other.refused > 0
                    ? `. Not listed: ${countText(seen.other.allowed)} connections and ${countText(seen.other.refused)} refusals of destinations that were evicted by newer destinations`
                    : ""}
                  .
                </p>
              </>
            )}
            {isThere(sandbox) && egress ? (
              <Allow
                items={seen.items}
                given={{ room: room.room_id, agent: agentId, list: egress.allowlist, revision: egress.revision }}
              />
            ) : null}
            <Ask names={["mend-the-network", "what-left-the-house"]} given={{ room: room.room_id, agent: agentId }} />
          </>
        );
      }}
    </Shown>
  );
}

const matches = ({ host, ip }: Destination, text: string) => {
  const query = text.trim().toLowerCase();
  return [host, ip].some((each) => each?.toLowerCase().includes(query));
};

function Destinations({ items }: { items: readonly Destination[] }) {
  return (
    <Table
      classes={{
        Port: "num",
        Connections: "num",
        Sent: "num tight",
        Received: "num tight",
        First: "tight",
        Last: "tight",
      }}
      rows={items.map((each) => ({
        key: `${each.allowed} ${placeText(each)} ${each.port} ${each.reason}`,
        cells: {
          Where: (
            <>
              <Foreign text={placeText(each)} most={120} mono />{" "}
              {each.host !== null && each.ip !== null ? <span class="muted mono">{each.ip}</span> : null}
            </>
          ),
          Port: each.port ?? "–",
          Let: <State look={each.allowed ? "ok" : "bad"}>{each.allowed ? "allowed" : reasonWords(each.reason)}</State>,
          Connections: countText(each.connections),
          Sent: each.allowed ? sizeText(each.sent_bytes) : "–",
          Received: each.allowed ? sizeText(each.received_bytes) : "–",
          First: <Clock at={each.first_at} />,
          Last: <Ago at={each.last_at} />,
        },
      }))}
    />
  );
}

function Allow({ items, given }: { items: readonly Destination[]; given: Parameters<typeof allowWords>[0] }) {
  const entries = new Set(items.flatMap((each) => entryFor(each) ?? []));
  if (entries.size === 0) return null;
  return (
    <>
      <h2>Allow refused destinations</h2>
      <p class="muted">
        The names were chosen by programs in the sandbox: allow only names that you know. Each command replaces the
        whole allowlist, adding one entry.
      </p>
      {[...entries].slice(0, MAX_LINES).map((entry) => (
        <Line key={entry} words={allowWords(given, entry)} />
      ))}
    </>
  );
}
