/** Owns what all pages of a room have: its name and state, five numbers, and the tabs. Each tab is a file beside this one. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { RoomRecord, roomGet, roomList } from "../../../shared/api/rooms.ts";
import { get, part, Refused } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { Empty, Head, Loading, Tabs, Trouble } from "../parts/parts.tsx";
import { Foreign, Since } from "../parts/text.tsx";
import { Labels, RoomState } from "../rooms/table.tsx";
import { Live } from "../shell/live-state.tsx";
import type { PageProps } from "../shell/page.ts";
import { useTitle } from "../shell/title.ts";
import type { TabProps } from "./tab.ts";

type Program = Promise<{ default: FunctionComponent<TabProps> }>;

/** The first is what a room's own path shows. */
const TABS: readonly { path: string; name: string; load(): Program }[] = [
  { path: "", name: "Overview", load: () => import("./overview.tsx") },
  { path: "timeline", name: "Timeline", load: () => import("./timeline/timeline.tsx") },
  { path: "waits", name: "Waits", load: () => import("./waits/waits.tsx") },
  { path: "messages", name: "Messages", load: () => import("./messages/messages.tsx") },
];

const roomPath = (roomId: string, tab = "") => `/rooms/${part(roomId)}${tab ? `/${tab}` : ""}`;

export default function Room({ params: { room_id: roomId = "", tab = "" } }: PageProps) {
  useTitle(`${roomId}${tab ? ` · ${tab}` : ""}`);
  const room = useLoaded(
    `room ${roomId}`,
    (signal) => loadRoom(roomId, signal),
    ({ event }) => /^(?:room|sandbox)\./.test(event),
  );
  const chosen = TABS.find(({ path }) => path === tab);
  const [Shown, show] = useState<FunctionComponent<TabProps> | null>(null);
  useEffect(() => {
    let isOver = false;
    show(null);
    void chosen?.load().then(({ default: Tab }) => {
      if (!isOver) show(() => Tab);
    });
    return () => {
      isOver = true;
    };
  }, [chosen]);
  const { data } = room;
  return (
    <>
      <Head title={<Foreign text={roomId} />}>
        {data ? (
          <>
            <RoomState room={data} />
            <span class="muted">
              for <Since at={data.created_at} /> <Labels labels={data.labels} />
            </span>
          </>
        ) : null}
        <Live />
      </Head>
      {room.problem?.code === "room_not_found" ? (
        <Gone roomId={roomId} />
      ) : room.problem ? (
        <Trouble problem={room.problem} again={room.again} />
      ) : null}
      <Tabs
        label="Room"
        at={roomPath(roomId, tab)}
        tabs={TABS.map(({ path, name }) => [roomPath(roomId, path), name])}
      />
      {!chosen ? (
        <Empty title="A room has no such page." />
      ) : data && Shown ? (
        <Shown room={data} />
      ) : room.problem ? null : (
        <Loading rows={6} />
      )}
    </>
  );
}

/** By its name where it lives, else as the newest of those that ended and are still known. */
async function loadRoom(roomId: string, signal: AbortSignal): Promise<RoomRecord> {
  try {
    return await get<typeof roomGet>(`/v1/rooms/${part(roomId)}`, {}, signal);
  } catch (error) {
    if (!(error instanceof Refused) || error.problem.code !== "room_not_found") throw error;
    for (let cursor: string | null = null, pages = 0; pages < 10; pages++) {
      const page: Awaited<ReturnType<typeof get<typeof roomList>>> = await get<typeof roomList>(
        "/v1/rooms",
        { state: "destroyed", limit: 1000, cursor },
        signal,
      );
      const found = page.items.filter((each) => each.room_id === roomId || each.room_uid === roomId);
      const newest = found.sort((one, other) => other.created_at.localeCompare(one.created_at))[0];
      if (newest) return newest;
      cursor = page.next_cursor;
      if (cursor === null) break;
    }
    throw error;
  }
}

function Gone({ roomId }: { roomId: string }) {
  return (
    <Empty title="There is no room of this name.">
      <p>
        Its record is kept for as long as the audit is: <a href={`/audit?room=${part(roomId)}`}>look there</a>, or go to{" "}
        <a href="/rooms">Rooms</a>.
      </p>
    </Empty>
  );
}
