/** Owns the page of rooms: those that are active, and those that have ended and are still known; filters are in the address. */
import { useSignal } from "@preact/signals";
import type { RoomGlance } from "../../../shared/api/room-overview.ts";
import type { ROOM_STATES } from "../../../shared/api/rooms.ts";
import { useLoaded } from "../data/resource.ts";
import { Choices, Empty, Head, Line, Shown } from "../parts/parts.tsx";
import { Live } from "../shell/live-state.tsx";
import { place, setQuery } from "../shell/router.ts";
import { useTitle } from "../shell/title.ts";
import { changesGlances, GLANCE_PACE, loadGlances } from "./load.ts";
import { RoomTable } from "./table.tsx";

const PAGE = 100;
const STATES = ["active", "destroying", "destroyed"] as const satisfies typeof ROOM_STATES;

export default function Rooms() {
  useTitle("Rooms");
  const { query } = place.value;
  const state = STATES.find((each) => each === query.get("state")) ?? "active";
  const label = query.get("label") ?? "";
  const most = useSignal(PAGE);
  const search = useSignal("");
  const rooms = useLoaded(
    `${state} ${label} ${most.value}`,
    (signal) => loadGlances({ state, label, page: PAGE, most: most.value }, signal),
    changesGlances,
    GLANCE_PACE,
  );
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
      </search>
      <Shown of={rooms} rows={6}>
        {({ items, askedMs, isAll }) => {
          const found = items.filter((room) => matches(room, search.value));
          if (items.length === 0) return <NoRooms state={state} />;
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

function matches({ room_id, labels }: RoomGlance, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  return [room_id, ...Object.entries(labels).map(([name, value]) => `${name}=${value}`)].some((each) =>
    each.toLowerCase().includes(wanted),
  );
}

function NoRooms({ state }: { state: string }) {
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
