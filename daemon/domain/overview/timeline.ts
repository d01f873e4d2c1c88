/** Owns room_timeline: pages of a room's audit as items, and what goes on now. */
import { DEFAULT_TIMELINE_PAGE, roomTimeline } from "../../../shared/api/overview.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import type { TimelineItem, TimelineType } from "../../../shared/timeline/item.ts";
import { selectionOf } from "../../../shared/timeline/selection.ts";
import { toItem } from "../../../shared/timeline/to-item.ts";
import { STANDBY } from "../../../shared/timeline/words.ts";
import { now } from "../../core/clock.ts";
import { type Bound, bind } from "../../core/operation.ts";
import { momentRules, pageOfAudit, scanOf } from "../audit/index.ts";
import type { OverviewDeps } from "./deps.ts";
import { findRoom } from "./find.ts";
import { going } from "./gather.ts";

/** Waits and commands that are shown as going on. */
const MOST_OPEN = 1000;

export function makeTimeline(deps: OverviewDeps): Bound {
  return bind(roomTimeline, {
    find: (call, params) => findRoom(deps, call, params),
    rules: momentRules,
    run: async (call, input, { room_id, room_uid }) => {
      const { types: asked, ...query } = input;
      const types = asked?.split(",") as TimelineType[] | undefined;
      const scan = { ...scanOf(query, call.caller.org_id, room_uid), selection: selectionOf(types) };
      const page = await pageOfAudit(
        deps.queries,
        "timeline",
        { limit: DEFAULT_TIMELINE_PAGE, ...query },
        scan,
        call.signal,
      );
      const items = page.items.flatMap((record) => toItem(record) ?? []);
      const isShown = ({ agent_id, type, at }: TimelineItem) =>
        (input.agent_id === undefined || agent_id === input.agent_id) &&
        (types === undefined || types.includes(type)) &&
        (scan.until === undefined || at <= scan.until);
      const open = input.cursor === undefined ? openItems(deps, room_uid).filter(isShown).slice(0, MOST_OPEN) : [];
      return {
        outcome: "ok",
        body: { room_id, at: now(), items, open, next_cursor: page.next_cursor, trace_url: deps.trace_url },
      };
    },
  });
}

/** What goes on now, the oldest first. */
function openItems(deps: OverviewDeps, roomUid: RoomUid): TimelineItem[] {
  const { commands, standby } = deps.sandboxes.going(roomUid);
  const traces = new Map(commands.map(({ exec_id, trace_id }) => [exec_id, trace_id]));
  const waits = going(deps, roomUid).flatMap(({ agent_id, type, id, on, since, calledAt, about }): TimelineItem[] => {
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

/** Of what goes on. */
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
