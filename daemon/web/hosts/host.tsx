/** Card of one host: its state, its allocated capacity, its rooms, and advice. */
import type { roomList } from "../../../shared/api/rooms.ts";
import { type Advice, adviceFor, isOlderThanOthers, type ListedHost } from "../../../shared/host-advice.ts";
import { Line, type Look, State, Trouble } from "../components/parts.tsx";
import { Properties } from "../components/static.tsx";
import { Clock, countText, Foreign, Since, sizeText } from "../components/text.tsx";
import { get, pathOf } from "../data/api.ts";
import { roomPath } from "../data/paths.ts";
import { type Pace, useLoaded } from "../data/resource.ts";
import { Labels } from "../rooms/table.tsx";
import { Bar } from "../usage/bar.tsx";

export const LOOKS = {
  active: "ok",
  degraded: "wait",
  draining: "busy",
  unreachable: "bad",
  gone: "quiet",
} as const satisfies Record<ListedHost["state"], Look>;

const MIB = 1024 ** 2;
/** From this share on, a bar warns. */
const HIGH = 0.9;
/** Number of rooms listed by name; the rooms page lists all. */
const NAMED = 12;
const ROOM_PACE: Pace = { firstMs: 1000, steadyMs: 10_000 };

interface CardProps {
  host: ListedHost;
  all: readonly ListedHost[];
  /** Whether its data may be stale. */
  isStale: boolean;
}

export function HostCard({ host: each, all, isStale }: CardProps) {
  const { host, is_self, state, since, url, labels, version, joined_at } = each;
  const isOld = isOlderThanOthers(each, all);
  return (
    <section class="host-card" aria-label={host}>
      <header>
        <h2>
          <Foreign text={host} />
        </h2>
        <State look={isStale && !is_self ? "quiet" : LOOKS[state]}>
          <span>
            {state}
            {since === null ? null : (
              <>
                {" "}
                for <Since at={since} />
              </>
            )}
          </span>
        </State>
        <Labels labels={labels} />
        {is_self ? <span class="muted">answers this page</span> : null}
      </header>
      {(isStale ? [] : adviceFor(each, all)).map((advice) => (
        <ToDo key={advice.text} advice={advice} />
      ))}
      <Given host={each} />
      <Properties
        of={{
          "Your rooms": <Rooms host={host} state={state} />,
          Version: (
            <>
              {version ?? <span class="muted">not known</span>}
              {isOld ? <span class="muted"> older than others</span> : null}
            </>
          ),
          Address: <Foreign text={url} most={120} mono />,
          Joined: joined_at === null ? undefined : <Clock at={joined_at} />,
        }}
      />
    </section>
  );
}

function ToDo({ advice: { text, lines, where } }: { advice: Advice }) {
  return (
    <div class="warning">
      <p>{text}</p>
      {lines.map((words) => (
        <Line key={words.join(" ")} words={words} />
      ))}
      {lines.length > 0 && where === "anywhere" ? (
        <p class="muted">On any host of the service, as its operator.</p>
      ) : null}
    </div>
  );
}

/** Its allocated and total capacity: numbers with bars. */
function Given({ host: { capacity, state } }: { host: ListedHost }) {
  if (capacity === null) {
    return <p class="muted">Its capacity is known once it has run.</p>;
  }
  const { memory_mib, disk, cpus, sandboxes, rooms, templates } = capacity;
  return (
    <>
      {state === "unreachable" ? <p class="muted">Last known values:</p> : null}
      <dl class="host-given">
        <Share
          name="Memory promised"
          used={memory_mib.promised * MIB}
          of={memory_mib.total * MIB}
          title="To guests, of the memory that they may be promised"
        />
        {disk ? (
          <Share
            name="Disk used"
            used={disk.size_bytes - disk.free_bytes}
            of={disk.size_bytes}
            title="Of the file system of data_dir"
          />
        ) : null}
        <div>
          <dt>Sandboxes</dt>
          <dd>{countText(sandboxes)}</dd>
        </div>
        <div>
          <dt>Rooms, of all organizations</dt>
          <dd>{countText(rooms)}</dd>
        </div>
        <div>
          <dt>Processors</dt>
          <dd>{countText(cpus)}</dd>
        </div>
        <div>
          <dt>Templates</dt>
          <dd>
            {templates.length === 0 ? (
              <span class="muted">none</span>
            ) : (
              <Foreign text={templates.join(", ")} most={80} />
            )}
          </dd>
        </div>
      </dl>
    </>
  );
}

function Share({ name, used, of, title }: { name: string; used: number; of: number; title: string }) {
  const share = of > 0 ? used / of : 0;
  return (
    <div title={title}>
      <dt>{name}</dt>
      <dd>
        <Bar share={share} isHigh={share >= HIGH} />
        <span class="tight">
          {sizeText(used)} of {sizeText(of)}
        </span>
      </dd>
    </div>
  );
}

/** The organization's rooms on the host; for an unresponsive host the names are known. */
function Rooms({ host, state }: Pick<ListedHost, "host" | "state">) {
  const found = useLoaded(
    `rooms of ${host} ${state}`,
    (signal) => get<typeof roomList>("/v1/rooms", { host, state: "active", limit: NAMED }, signal),
    ({ event }) => /^room\.(?:created|destroyed|moved)/.test(event),
    ROOM_PACE,
  );
  if (found.problem) return <Trouble problem={found.problem} again={found.again} />;
  if (!found.data) return <span class="muted">…</span>;
  const { items, next_cursor } = found.data;
  if (items.length === 0) return <span class="muted">none</span>;
  return (
    <>
      {items.map(({ room_id, room_uid }, n) => (
        <span key={room_uid}>
          {n > 0 ? ", " : ""}
          <a href={roomPath(room_id)}>
            <Foreign text={room_id} />
          </a>
        </span>
      ))}
      {next_cursor === null ? null : (
        <>
          {" "}
          and more: <a href={pathOf("/rooms", { host })}>all of them</a>
        </>
      )}
    </>
  );
}
