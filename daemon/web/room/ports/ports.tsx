/** The page of a room's exposed ports. It never shows tokens, only the command line that prints one. */

import { useRef } from "preact/hooks";
import type { sandboxList } from "../../../../shared/api/sandboxes.ts";
import { isReading } from "../../../../shared/audit-reads.ts";
import { Empty, Line, Shown, State } from "../../components/parts.tsx";
import { Table } from "../../components/table.tsx";
import { Ago, Clock, countText, Foreign, sizeText } from "../../components/text.tsx";
import { get, part } from "../../data/api.ts";
import { agentPath } from "../../data/paths.ts";
import { useLoaded } from "../../data/resource.ts";
import { useEvery } from "../../data/use-interval.ts";
import { place } from "../../shell/router.ts";
import type { TabProps } from "../tab.ts";

const PAGE = 1000;
/** Traffic of a port raises no event: it is polled while the page is visible, more often while it changes. */
const MOVING_MS = 5000;
const QUIET_MS = 30_000;

export default function Ports({ room }: TabProps) {
  const { room_id: roomId } = room;
  const isActive = room.state === "active";
  const found = useLoaded(
    `ports ${room.room_uid}`,
    async (signal) => {
      if (!isActive) return [];
      const { items } = await get<typeof sandboxList>(`/v1/rooms/${part(roomId)}/sandboxes`, { limit: PAGE }, signal);
      return items.flatMap(({ agent_id, ports }) => ports.map((port) => ({ agent_id, ...port })));
    },
    (record) => /^(?:port|sandbox)\./.test(record.event) && !isReading(record),
  );
  useEvery(isActive && (found.data?.length ?? 0) > 0, useMoves(found.data) ? MOVING_MS : QUIET_MS, found.again);
  const selectedLabel = place.value.query.get("label");
  const isWanted = (pathUrl: string) => selectedLabel !== null && labelOf(pathUrl) === selectedLabel;
  if (!isActive) return <Empty title="This room has ended, and its ports with it." />;
  return (
    <Shown of={found}>
      {(ports) =>
        ports.length === 0 ? (
          <Empty title="No port is exposed.">
            <p>A server in a sandbox is reached by a URL once its port is exposed:</p>
            <Line words={["port", "expose", roomId, "worker", "8000"]} />
          </Empty>
        ) : (
          <>
            {selectedLabel === null || ports.some(({ path_url }) => isWanted(path_url)) ? null : (
              <p class="warning">
                The port with the label <Foreign text={selectedLabel} most={60} mono /> is no longer exposed.
              </p>
            )}
            <Table
              classes={{ Port: "num", Calls: "num", Sent: "num tight", Received: "num tight", Since: "tight" }}
              rows={ports.map(({ agent_id, port, visibility, url, path_url, created_at, expires_at, traffic }) => ({
                key: `${agent_id} ${port}`,
                class: isWanted(path_url) ? "marked" : undefined,
                "aria-current": isWanted(path_url) ? "true" : undefined,
                cells: {
                  Port: port,
                  Agent: (
                    <a
                      class="name"
                      data-row
                      href={agentPath(roomId, agent_id)}
                      ref={isWanted(path_url) ? seenOnce : null}
                    >
                      <Foreign text={agent_id} most={60} />
                    </a>
                  ),
                  Access:
                    visibility === "public" ? (
                      <State look="busy">public</State>
                    ) : (
                      <State look="quiet">with token</State>
                    ),
                  Where:
                    visibility === "public" ? (
                      <a href={url} target="_blank" rel="noopener noreferrer">
                        <Foreign text={url} most={120} mono />
                      </a>
                    ) : (
                      <Foreign text={url} most={120} mono />
                    ),
                  Calls: (
                    <>
                      {countText(traffic.connections)}
                      {traffic.open_connections > 0 ? `, ${countText(traffic.open_connections)} open` : ""}
                    </>
                  ),
                  Sent: sizeText(traffic.sent_bytes),
                  Received: sizeText(traffic.received_bytes),
                  Since: <Ago at={created_at} />,
                  Ends: expires_at === null ? <span class="muted">with its sandbox</span> : <Clock at={expires_at} />,
                },
              }))}
            />
            <p class="muted">
              Traffic is counted since the service last started, or since the port was exposed. It is refreshed while
              you watch.
            </p>
            <p class="muted">To get the token and check whether a server listens, with a key:</p>
            <Line words={["port", "list", roomId, ports[0]?.agent_id ?? "worker"]} />
          </>
        )
      }
    </Shown>
  );
}

type PortTraffic = readonly {
  traffic: { connections: number; open_connections: number; sent_bytes: number; received_bytes: number };
}[];

/** Whether there is traffic, judged from two consecutive answers. */
function useMoves(ports: PortTraffic | undefined): boolean {
  const known = useRef<{ ports: PortTraffic | undefined; sum: number; moves: boolean }>({
    ports,
    sum: 0,
    moves: false,
  });
  const { current } = known;
  if (ports && ports !== current.ports) {
    const sum = ports.reduce(
      (all, { traffic: { connections, sent_bytes, received_bytes } }) =>
        all + connections + sent_bytes + received_bytes,
      0,
    );
    const isOpen = ports.some(({ traffic }) => traffic.open_connections > 0);
    known.current = { ports, sum, moves: isOpen || (current.ports !== undefined && sum !== current.sum) };
  }
  return known.current.moves;
}

/** Extracts the port's label from the path. */
const labelOf = (pathUrl: string): string | undefined => /\/p\/([^/]+)\//.exec(pathUrl)?.[1];

/** Once: later updates do not scroll the user back. */
const seen = new WeakSet<Element>();
function seenOnce(row: Element | null): void {
  if (row === null || seen.has(row)) return;
  seen.add(row);
  row.scrollIntoView({ block: "nearest" });
}
