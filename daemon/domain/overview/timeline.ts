/** The call room_timeline: pages of a room's audit as items, and work in progress. */

import { DEFAULT_TIMELINE_PAGE, roomTimeline } from "../../../shared/api/overview/overview.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import type { TimelineItem, TimelineType } from "../../../shared/timeline/item.ts";
import { STANDBY } from "../../../shared/timeline/words.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { findRoom } from "../../core/call/room-target.ts";
import { inPieces, loopTime, ownerOf, Pieces, type Steps } from "../../core/loop/index.ts";
import { momentRules, pageOf, scanOf } from "../audit/index.ts";
import type { OverviewDeps } from "./deps.ts";
import { going } from "./gather.ts";
import { readTimeline } from "./reads.ts";

/** Limit of waits and commands that are shown as in progress. */
const MAX_OPEN = 1000;

export function makeTimeline(deps: OverviewDeps): Bound {
  return bind(roomTimeline, {
    find: (call, params) => findRoom(deps, call, params),
    rules: momentRules,
    run: async (call, input, { room_id, room_uid }) => {
      const { types: typeList, ...query } = input;
      const types = typeList?.split(",") as TimelineType[] | undefined;
      const scan = scanOf(query, call.caller.org_id, room_uid);
      const isShown = ({ agent_id, type, at }: TimelineItem) =>
        (input.agent_id === undefined || agent_id === input.agent_id) &&
        (types === undefined || types.includes(type)) &&
        (scan.until === undefined || at <= scan.until);
      const page = pageOf("timeline", { limit: DEFAULT_TIMELINE_PAGE, ...query }, scan);
      // Read first: an item that ends in the meantime is shown twice rather than not at all.
      const owner = ownerOf(call.caller.org_id);
      const pieces = new Pieces(loopTime, owner, roomTimeline.name, { signal: call.signal });
      const items = input.cursor === undefined ? await inPieces(openItems(deps, room_uid), pieces) : [];
      const open = items.filter(isShown).slice(0, MAX_OPEN);
      const timeline = { room_id, page, types, open, trace_url: deps.trace_url };
      const by = { owner, signal: call.signal };
      return { outcome: "ok", json: await deps.reads.read(readTimeline, timeline, by) };
    },
  });
}

/** Waits, commands and standbys in progress, the oldest first. */
function* openItems(deps: OverviewDeps, roomUid: RoomUid): Steps<TimelineItem[]> {
  const { commands, standby } = deps.sandboxes.going(roomUid);
  const traces = new Map(commands.map(({ exec_id, trace_id }) => [exec_id, trace_id]));
  const gathered = yield* going(deps, roomUid);
  const waits = gathered.flatMap(({ agent_id, type, id, on, since, calledAt, about }): TimelineItem[] => {
    if (type === "command") {
      const ref = id === null ? null : { type: "execution", id };
      const trace_id = traces.get(id ?? "") ?? null;
      return [{ ...REST, agent_id, type, at: since, title: about, to: [], ref, trace_id }];
    }
    const ref = id === null ? null : { type: type === "reply" ? "message" : "barrier", id };
    const at = calledAt ?? since;
    return [{ ...REST, agent_id, type: "wait", at, title: TITLES[type](id), to: on.slice(0, 16), ref }];
  });
  const resting = standby.map(({ agent_id, sandbox_id, since, onDisk }): TimelineItem => {
    const title = onDisk ? STANDBY.onDisk : STANDBY.begun;
    const ref = { type: "sandbox", id: sandbox_id };
    return { ...REST, agent_id, type: "standby", at: since, title, to: [], ref };
  });
  return [...waits, ...resting].sort((a, b) => (a.at < b.at ? -1 : 1));
}

/** Common fields of items in progress. */
const REST = {
  seq: null,
  lane: "agent",
  kind: "span",
  until: null,
  outcome: "success",
  exit_code: null,
  trace_id: null,
} as const;

const TITLES = {
  reply: () => "waits for a reply",
  barrier: (id: string | null) => `waits at barrier ${id}`,
  inbox: () => "waits for messages",
} as const;
