/** Frame of a room's pages: its name and state, five numbers, and the tabs. Each tab is a file in this folder. */

import { isReading } from "../../../shared/audit-reads.ts";
import { Empty, Head, Loading, Tabs, Trouble } from "../components/parts.tsx";
import { Foreign, Since } from "../components/text.tsx";
import { part, pathOf } from "../data/api.ts";
import { isAway, refusal } from "../data/live.ts";
import { useNow } from "../data/now.ts";
import { roomPath } from "../data/paths.ts";
import { useLoaded } from "../data/resource.ts";
import { Labels, RoomState } from "../rooms/table.tsx";
import { boot } from "../shell/boot.ts";
import { type Load, Lost, useProgram } from "../shell/lazy-page.tsx";
import { Live } from "../shell/live-state.tsx";
import type { PageProps } from "../shell/page.ts";
import { go, place } from "../shell/router.ts";
import { useTitle } from "../shell/title.ts";
import { Away } from "./away.tsx";
import { Deadlocks } from "./deadlocks.tsx";
import { endOf, loadRoom } from "./load.ts";
import type { TabProps } from "./tab.ts";

/** The first is the page at the room's own path. */
const TABS: readonly { path: string; name: string; load: Load<TabProps> }[] = [
  { path: "", name: "Overview", load: () => import("./overview.tsx") },
  { path: "timeline", name: "Timeline", load: () => import("./timeline/timeline.tsx") },
  { path: "waits", name: "Waits", load: () => import("./waits/waits.tsx") },
  { path: "messages", name: "Messages", load: () => import("./messages/messages.tsx") },
  { path: "drive", name: "Drive", load: () => import("./drive/drive.tsx") },
  { path: "ports", name: "Ports", load: () => import("./ports/ports.tsx") },
  { path: "checkpoints", name: "Checkpoints", load: () => import("./checkpoints/checkpoints.tsx") },
];

/** A room's uid, as the audit uses it. */
const UID = /^rom_[0-9A-Z]{26}$/;

export default function Room({ params: { room_id: roomId = "", tab = "" } }: PageProps) {
  const uid = place.value.query.get("uid");
  const room = useLoaded(
    `room ${roomId}`,
    async (signal) => {
      const found = await loadRoom(roomId, signal);
      if (!uid || found.room_uid === uid) return found;
      // The address means an earlier room of this name.
      go(roomPath(uid, tab), { replaces: true });
      return await loadRoom(uid, signal);
    },
    (record) => /^(?:room|sandbox|drive)\.|^exec\.finished$/.test(record.event) && !isReading(record),
  );
  const chosen = TABS.find(({ path }) => path === tab);
  const { Page: Shown, isLost } = useProgram(chosen?.load);
  const { data } = room;
  useNow(data);
  // A destroyed room may be addressed by its uid.
  const name = data?.room_id ?? roomId;
  useTitle(`${name}${tab ? ` · ${tab}` : ""}`);
  const away = [refusal.value, room.problem].find(isAway) ?? null;
  return (
    <>
      <Head title={<Foreign text={name} />}>
        {data ? (
          <>
            <RoomState room={data} />
            <span class="muted">
              for <Since at={endOf(data) ?? data.created_at} />
              {boot.has_hosts ? <OnHost host={data.host} /> : null} <Labels labels={data.labels} />
            </span>
          </>
        ) : null}
        <Live />
      </Head>
      {room.problem?.code === "room_not_found" ? (
        <Gone roomId={roomId} />
      ) : away ? (
        <Away problem={away} />
      ) : room.problem ? (
        <Trouble problem={room.problem} again={room.again} />
      ) : null}
      <Deadlocks roomId={name} />
      {room.problem?.code === "room_not_found" ? null : (
        <Tabs
          label="Room"
          at={roomPath(roomId, tab)}
          tabs={TABS.map(({ path, name }) => [roomPath(roomId, path), name])}
        />
      )}
      {!chosen ? (
        <Empty title="The page does not exist: a room has the pages above." />
      ) : isLost ? (
        <Lost />
      ) : data && Shown ? (
        <Shown room={data} again={room.again} />
      ) : room.problem || away ? null : (
        <Loading rows={6} />
      )}
    </>
  );
}

function OnHost({ host }: { host: string }) {
  return (
    <>
      {" "}
      on{" "}
      <a href={pathOf("/rooms", { host })} title="Rooms on this host">
        <Foreign text={host} />
      </a>
    </>
  );
}

function Gone({ roomId }: { roomId: string }) {
  const isUid = UID.test(roomId);
  return (
    <Empty title={isUid ? "This room is no longer known." : "There is no room of this name."}>
      <p>
        Past activity may still be in the audit log:{" "}
        <a href={isUid ? "/audit" : `/audit?room=${part(roomId)}`}>search it</a>, or go to <a href="/rooms">Rooms</a>.
      </p>
    </Empty>
  );
}
