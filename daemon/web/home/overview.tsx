/**
 * Overview of an active organization on the home page: running sandboxes, blocked agents, remaining quota, host health, and latest
 * failures.
 */
import type { orgAuditList } from "../../../shared/api/audit.ts";
import type { RoomGlance } from "../../../shared/api/overview/room-overview.ts";
import type { RoomState, roomList } from "../../../shared/api/rooms.ts";
import type { usage } from "../../../shared/api/usage.ts";
import { isReading } from "../../../shared/audit-reads.ts";
import { Ask } from "../components/ask.tsx";
import { Empty, Facts, Shown, State } from "../components/parts.tsx";
import { RecordTable } from "../components/records.tsx";
import { countText, Foreign, sizeText } from "../components/text.tsx";
import { get } from "../data/api.ts";
import { roomPath } from "../data/paths.ts";
import { useLoaded } from "../data/resource.ts";
import { useEvery } from "../data/use-interval.ts";
import { changesGlances, GLANCE_MS, GLANCE_PACE, loadGlances } from "../rooms/load.ts";
import { byUrgency } from "../rooms/order.ts";
import { RoomTable } from "../rooms/table.tsx";
import { groupedFailures, isListed } from "./failures.ts";
import { HostHealth } from "./host-health.tsx";

/** Rows shown on a home page. */
const FEW = 8;

/** Records of each kind that are searched for failures: errors, refusals, and ends of commands. */
const LATEST = 100;
/** Maximum of active rooms that are summarized. */
const MAX_ROOMS = 1000;
/** Of other rooms only the count is shown, up to this number. */
const COUNTED = 100;

const loadUsage = (signal: AbortSignal) => get<typeof usage>("/v1/orgs/self/usage", {}, signal);

async function countRooms(state: RoomState, signal: AbortSignal): Promise<string> {
  const { items, next_cursor } = await get<typeof roomList>("/v1/rooms", { state, limit: COUNTED }, signal);
  return next_cursor === null ? countText(items.length) : `${COUNTED} or more`;
}

async function loadNow(signal: AbortSignal) {
  const [rooms, ending, ended, used] = await Promise.all([
    loadGlances({ state: "active", page: MAX_ROOMS, most: MAX_ROOMS }, signal),
    countRooms("destroying", signal),
    countRooms("destroyed", signal),
    loadUsage(signal),
  ]);
  return { rooms, ending, ended, used };
}

/** Credits, formatted as on the account page. */
const creditText = (credits: number) => credits.toLocaleString("en", { maximumFractionDigits: 3 });

export default function Overview() {
  const now = useLoaded("now", loadNow, changesGlances, GLANCE_PACE);
  useEvery(true, GLANCE_MS, now.again);
  const failed = useLoaded(
    "failed",
    async (signal) => {
      const list = (query: Record<string, string | number>) =>
        get<typeof orgAuditList>("/v1/orgs/self/audit", { ...query, reads: false }, signal);
      const found = await Promise.all([
        list({ outcome: "error", limit: LATEST }),
        list({ outcome: "denied", limit: LATEST }),
        list({ event: "exec.finished", limit: LATEST }),
      ]);
      const all = new Map(found.flatMap(({ items }) => items.map((record) => [record.audit_id, record])));
      return groupedFailures([...all.values()], FEW);
    },
    (record) => isListed(record) && !isReading(record),
  );
  return (
    <>
      <Shown of={now}>
        {({ rooms, ending, ended, used }) => {
          const { items, askedMs, isAll } = rooms;
          const first = items.toSorted(byUrgency);
          const { remaining } = used.credits;
          return (
            <>
              <Facts
                facts={[
                  ["Rooms", <Rooms key="rooms" active={items.length} isAll={isAll} ending={ending} ended={ended} />],
                  ["Sandboxes running", `${countText(sum(items, "running"))} of ${countText(used.sandboxes.hard_cap)}`],
                  ["Blocked now", <BlockedNow key="blocked" rooms={first} />],
                  ["Memory", `${sizeText(used.memory_mib.allocated * 1024 ** 2)}`],
                  ["Drives", sizeText(used.drive.used_bytes)],
                  ["Credits left", remaining === null ? "no limit" : creditText(remaining)],
                ]}
              />
              {used.warnings.map((text) => (
                <p key={text} class="warning">
                  {text}
                </p>
              ))}
              <h2>
                Active rooms <a href="/rooms">all</a>
              </h2>
              {items.length > 0 ? (
                <RoomTable items={first.slice(0, FEW)} askedMs={askedMs} />
              ) : (
                <Empty title="No active rooms">
                  <p>Your agent creates rooms. Copy a prompt below to start.</p>
                </Empty>
              )}
            </>
          );
        }}
      </Shown>
      <h2>
        Recent failures <a href="/audit?outcome=error">all</a>
      </h2>
      <Shown of={failed}>
        {(groups) => {
          if (groups.length === 0) return <Empty title="No recent failures." />;
          const times = new Map(groups.map((group) => [group.record, group.times]));
          const records = [...times.keys()];
          return <RecordTable records={records} showsRoom timesOf={(record) => times.get(record) ?? 1} />;
        }}
      </Shown>
      <Ask names={["what-is-going-on", "what-is-left"]} />
      <HostHealth />
    </>
  );
}

function Rooms({ active, isAll, ending, ended }: { active: number; isAll: boolean; ending: string; ended: string }) {
  return (
    <>
      {countText(active)}
      {isAll ? "" : " or more"} active
      {ending === "0" ? null : (
        <>
          , <a href="/rooms?state=destroying">{ending} ending</a>
        </>
      )}
      {ended === "0" ? null : (
        <>
          , <a href="/rooms?state=destroyed">{ended} ended</a>
        </>
      )}
    </>
  );
}

/** `rooms`: the most blocked first; the table has the details of each. */
function BlockedNow({ rooms }: { rooms: readonly RoomGlance[] }) {
  const count = sum(rooms, "blocked");
  const [first] = rooms;
  if (count === 0 || !first) return <>nobody</>;
  const look = rooms.some(({ in_circle }) => in_circle) ? "bad" : "wait";
  const places = rooms.filter(({ blocked }) => blocked > 0).length;
  return (
    <a href={roomPath(first.room_id, "waits")}>
      <State look={look}>
        <span>
          {countText(count)} in{" "}
          {places === 1 ? <Foreign text={first.room_id} most={24} /> : `${countText(places)} rooms`}
        </span>
      </State>
    </a>
  );
}

const sum = (rooms: readonly RoomGlance[], field: "running" | "blocked") =>
  rooms.reduce((all, room) => all + room[field], 0);
