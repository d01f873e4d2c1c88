/** The page of rooms: active ones, and destroyed ones that are still known; filters are in the address. */
import { useRef } from "preact/hooks";
import type { ROOM_STATES } from "../../../shared/api/rooms.ts";
import { Choices, Empty, Head, Line, Loading, Shown } from "../components/parts.tsx";
import { countText, Foreign } from "../components/text.tsx";
import { useLoaded } from "../data/resource.ts";
import { useEvery } from "../data/use-interval.ts";
import { boot } from "../shell/boot.ts";
import { Live } from "../shell/live-state.tsx";
import { place, setQuery } from "../shell/router.ts";
import { useTitle } from "../shell/title.ts";
import { changesGlances, GLANCE_MS, GLANCE_PACE, loadGlances } from "./load.ts";
import { byUrgency } from "./order.ts";
import { useScrollBack } from "./scroll-back.ts";
import { matches, searchOf } from "./search.ts";
import { isUnknown, RoomTable } from "./table.tsx";

/** Polling interval for the return of an unresponsive host. */
const LOOK_MS = 5000;
const STATES = ["active", "destroying", "destroyed"] as const satisfies typeof ROOM_STATES;

export default function Rooms() {
  useTitle("Rooms");
  const { query } = place.value;
  const state = STATES.find((each) => each === query.get("state")) ?? "active";
  const label = query.get("label") ?? "";
  const host = query.get("host") ?? "";
  const { text, page, most, more } = searchOf(query);
  const those = `${state} ${label} ${host}`;
  const rooms = useLoaded(
    `${those} ${most}`,
    (signal) => loadGlances({ state, label, host, page, most }, signal),
    changesGlances,
    GLANCE_PACE,
  );
  const data = useKept(those, rooms.data);
  // An unresponsive host raises no event when it is back.
  useEvery(true, data?.items.some(isUnknown) ? LOOK_MS : GLANCE_MS, rooms.again);
  useScrollBack(data !== undefined);
  return (
    <>
      <Head title="Rooms">
        <Live />
      </Head>
      <search class="filters">
        <Choices
          label="State"
          of={STATES.map((each) => [each, each] as const)}
          at={state}
          choose={(each) => setQuery({ state: each === "active" ? null : each })}
        />
        <input
          data-search
          type="search"
          aria-label="Search by name or label"
          placeholder="name or label"
          value={text}
          onInput={({ currentTarget }) => setQuery({ q: currentTarget.value })}
        />
        {host ? (
          <p class="on-host">
            On <Foreign text={host} />{" "}
            <button type="button" class="link" onClick={() => setQuery({ host: null })}>
              Show those of all hosts
            </button>
          </p>
        ) : null}
      </search>
      <Shown of={{ ...rooms, data }} rows={6}>
        {({ items, askedMs, isAll }) => {
          const found = items.filter((room) => matches(room, text, boot.has_hosts)).sort(byUrgency);
          if (items.length === 0) return <NoRooms state={state} host={host} />;
          if (found.length === 0 && rooms.data === undefined && rooms.problem === null) return <Loading rows={6} />;
          return (
            <>
              {found.length > 0 ? (
                <RoomTable items={found} askedMs={askedMs} isEnded={state === "destroyed"} />
              ) : isAll ? (
                <Empty title={`No ${state} room matches.`} />
              ) : (
                <Empty title={`None of the ${countText(items.length)} ${state} rooms loaded so far matches.`} />
              )}
              {isAll ? null : (
                <p>
                  <button type="button" class="button" onClick={() => setQuery({ most: String(more) })}>
                    Show more
                  </button>
                </p>
              )}
            </>
          );
        }}
      </Shown>
    </>
  );
}

/** Previous data stays while more of `those` are loading. */
function useKept<T>(those: string, data: T | undefined): T | undefined {
  const kept = useRef({ those, data });
  if (data !== undefined || kept.current.those !== those) kept.current = { those, data };
  return kept.current.data;
}

function NoRooms({ state, host }: { state: string; host: string }) {
  if (host) return <Empty title={`No room on this host is ${state}.`} />;
  if (state !== "active") return <Empty title={`No room is ${state}.`} />;
  return (
    <Empty title="No room is active.">
      <p>Your agent creates rooms, or you do with:</p>
      <Line words={["room", "create", "build-42"]} />
      <p>
        <a href="/prompts">Prompts</a> has examples for your agent.
      </p>
    </Empty>
  );
}
