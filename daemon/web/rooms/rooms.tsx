/** Owns the page of rooms: those that are active, and those that have ended and are still known; filters are in the address. */
import { useSignal } from "@preact/signals";
import type { RoomGlance } from "../../../shared/api/room-overview.ts";
import type { ROOM_STATES } from "../../../shared/api/rooms.ts";
import { useEvery } from "../data/every.ts";
import { useLoaded } from "../data/resource.ts";
import { Choices, Empty, Head, Line, Shown } from "../parts/parts.tsx";
import { Foreign } from "../parts/text.tsx";
import { boot } from "../shell/boot.ts";
import { Live } from "../shell/live-state.tsx";
import { place, setQuery } from "../shell/router.ts";
import { useTitle } from "../shell/title.ts";
import { changesGlances, GLANCE_PACE, loadGlances } from "./load.ts";
import { isUnknown, RoomTable } from "./table.tsx";

const PAGE = 100;
/** How soon it is seen that a silent host is back. */
const LOOK_MS = 5000;
const STATES = ["active", "destroying", "destroyed"] as const satisfies typeof ROOM_STATES;

export default function Rooms() {
  useTitle("Rooms");
  const { query } = place.value;
  const state = STATES.find((each) => each === query.get("state")) ?? "active";
  const label = query.get("label") ?? "";
  const host = query.get("host") ?? "";
  const most = useSignal(PAGE);
  const search = useSignal("");
  const rooms = useLoaded(
    `${state} ${label} ${host} ${most.value}`,
    (signal) => loadGlances({ state, label, host, page: PAGE, most: most.value }, signal),
    changesGlances,
    GLANCE_PACE,
  );
  // A host that is silent says nothing when it is back.
  useEvery(rooms.data?.items.some(isUnknown) ?? false, LOOK_MS, rooms.again);
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
          value={search.value}
          onInput={({ currentTarget }) => {
            search.value = currentTarget.value;
          }}
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
      <Shown of={rooms} rows={6}>
        {({ items, askedMs, isAll }) => {
          const found = items.filter((room) => matches(room, search.value));
          if (items.length === 0) return <NoRooms state={state} host={host} />;
          if (found.length === 0) return <Empty title={`No ${state} room is called so.`} />;
          return (
            <>
              <RoomTable items={found} askedMs={askedMs} />
              {isAll ? null : (
                <p>
                  <button
                    type="button"
                    class="button"
                    onClick={() => {
                      most.value += PAGE;
                    }}
                  >
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

function matches({ room_id, host, labels }: RoomGlance, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  return [
    room_id,
    ...(boot.has_hosts ? [host] : []),
    ...Object.entries(labels).map(([name, value]) => `${name}=${value}`),
  ].some((each) => each.toLowerCase().includes(wanted));
}

function NoRooms({ state, host }: { state: string; host: string }) {
  if (host) return <Empty title={`No room on this host is ${state}.`} />;
  if (state !== "active") return <Empty title={`No room is ${state}.`} />;
  return (
    <Empty title="No room is active.">
      <p>A room is made by your agent, or by a line:</p>
      <Line words={["room", "create", "build-42"]} />
      <p>
        <a href="/prompts">Prompts</a> has what to ask for.
      </p>
    </Empty>
  );
}
