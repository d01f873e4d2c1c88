/**
 * Owns agent_wait: an agent's inbox, or all messages of a room, from the caller's own cursor on, and waiting for the first.
 * What is handed out is marked; a message that needs an ack is handed out only once it is known when it will come again.
 */
import { DEFAULT_PAGE, type InputOf } from "../../shared/api/contract.ts";
import { agentWait } from "../../shared/api/fabric.ts";
import { actingAs, matchesTopic } from "../agents/index.ts";
import { makeCursor, readCursor } from "../core/cursor.ts";
import { type Bound, bind, type KeyCall } from "../core/operation.ts";
import type { RoomTarget } from "../core/room-target.ts";
import type { AgentWait } from "../core/wait-graph.ts";
import { findRoom } from "./find.ts";
import { comingAgain, type Delivered, messagesFrom, openMessages, roomMessages } from "./inbox-store.ts";
import type { FabricDeps } from "./index.ts";
import { inboxBell, ROOM_BELL } from "./post.ts";
import { toMessage } from "./record.ts";
import { handOut, hasUnread, markRead } from "./store.ts";
import type { MessageRow } from "./table.ts";

type Input = InputOf<typeof agentWait>;
type Row = MessageRow & Partial<Pick<Delivered, "attempts" | "delivery_state">>;
type Filter = Pick<Input, "topic" | "kind" | "source">;

const SCAN_PAGE = 1000;
/** A body of so many payload bytes is enough for one answer; the rest is the next page. */
const MOST_BYTES = 8 * 1024 ** 2;

export function makeInbox(deps: FabricDeps): Bound {
  return bind(agentWait, {
    find: (call, params) => findRoom(deps, call, params),
    run: async (call, input, room) => {
      const cursor = readCursor(`messages ${room.room_uid}`, input.cursor);
      const after = input.after ?? (cursor === null ? null : Number(cursor));
      const limit = input.limit ?? DEFAULT_PAGE;
      const bound = call.caller.agent_id !== null;
      const agentId = input.agent_id === undefined && !bound ? null : actingAs(call.caller, input.agent_id, "agent_id");
      const rows =
        agentId === null
          ? await readRoom(deps, call, room, input, after ?? 0, limit)
          : await readInbox(deps, call, room, agentId, input, after, limit);
      const next_after = Math.max(after ?? 0, ...rows.map(({ seq }) => seq));
      const next_cursor = rows.length < limit ? null : makeCursor(`messages ${room.room_uid}`, String(next_after));
      const items = rows.map((row) => toMessage(row, row.attempts ?? null));
      return { outcome: "ok", body: { items, next_cursor, next_after } };
    },
  });
}

async function readRoom(
  deps: FabricDeps,
  call: KeyCall,
  { room_uid }: RoomTarget,
  input: Input,
  after: number,
  limit: number,
): Promise<Row[]> {
  const look = () =>
    found(
      filtered(after, limit, input, (from, most) =>
        roomMessages(deps.database.queries, { room_uid, after: from, limit: most }),
      ),
    );
  const wait = { key: ROOM_BELL, deadlineMs: input.wait_ms ?? 0, signal: call.signal };
  return (await deps.bells.wait(room_uid, wait, look)) ?? [];
}

async function readInbox(
  deps: FabricDeps,
  call: KeyCall,
  { room_uid }: RoomTarget,
  agent_id: string,
  input: Input,
  after: number | null,
  limit: number,
): Promise<Row[]> {
  const { agents, bells, database } = deps;
  const { queries } = database;
  call.audit.agent_id = agent_id;
  const passed = after !== null && takesAll(input) ? { room_uid, agent_id, seq: after } : null;
  if (passed && hasUnread(queries, passed)) {
    // Should it be lost, the same is marked the next time.
    database.commit((write) => markRead(write, passed), false).catch(() => {});
  }
  await see(deps, room_uid, agent_id);
  const look = () => {
    const page = (from: number, most: number) => ({ room_uid, agent_id, after: from, limit: most });
    const again = after === null ? [] : filtered(0, limit, input, () => comingAgain(queries, page(after, limit)));
    const read = after === null ? openMessages : messagesFrom;
    const rows = filtered(after ?? 0, limit - again.length, input, (from, most) => read(queries, page(from, most)));
    if (again.length + rows.length === 0) agents.requireAlive(room_uid, agent_id);
    return found([...again, ...rows]);
  };
  const wait: AgentWait = { agent_id, on: () => [], shown: { type: "inbox", id: null } };
  const deadlineMs = input.wait_ms ?? 0;
  try {
    if (deadlineMs > 0) agents.waits.enter(room_uid, wait);
    const rows =
      (await bells.wait(room_uid, { key: inboxBell(agent_id), deadlineMs, signal: call.signal }, look)) ?? [];
    return await markHandedOut(deps, agent_id, rows);
  } finally {
    agents.waits.leave(room_uid, wait);
  }
}

/** Who reads its inbox takes part. */
async function see({ agents, database }: FabricDeps, roomUid: RoomTarget["room_uid"], agentId: string): Promise<void> {
  if (agents.isFresh(roomUid, agentId) || agents.isGone(roomUid, agentId)) return;
  await database.commit((queries) => agents.touch(queries, roomUid, agentId), false);
}

/** As they are once this has been handed out. */
async function markHandedOut(deps: FabricDeps, agentId: string, rows: Row[]): Promise<Row[]> {
  const fresh = rows.filter(({ delivery_state }) => delivery_state === "queued");
  if (fresh.length === 0) return rows;
  const dueAtMs = Date.now() + deps.ackMs;
  const marked = deps.database.commit((queries) => {
    for (const { room_uid, seq } of fresh) handOut(queries, { room_uid, agent_id: agentId, seq }, dueAtMs);
  }, false);
  if (fresh.some(({ ack_required }) => ack_required)) {
    await marked;
    deps.due.expectAt(dueAtMs);
  } else {
    // It stays in the inbox until the reader's cursor is past it.
    marked.catch(() => {});
  }
  return rows.map((row) => (row.delivery_state === "queued" ? { ...row, attempts: (row.attempts ?? 0) + 1 } : row));
}

/** Rows in order that the filter lets through, as many as fit. */
function filtered(after: number, limit: number, filter: Filter, read: (after: number, limit: number) => Row[]): Row[] {
  const { topic, kind, source } = filter;
  const rows: Row[] = [];
  let bytes = 0;
  const every = takesAll(filter);
  for (let from = after; limit > 0; ) {
    const most = every ? limit : SCAN_PAGE;
    const page = read(from, most);
    for (const row of page) {
      if (kind !== undefined && row.kind !== kind) continue;
      if (source !== undefined && row.source !== source) continue;
      if (topic !== undefined && (row.topic === null || !matchesTopic(topic, row.topic))) continue;
      bytes += row.size_bytes;
      if (rows.length === limit || (rows.length > 0 && bytes > MOST_BYTES)) return rows;
      rows.push(row);
    }
    const last = page.at(-1);
    if (!last || page.length < most || every || last.seq <= from) break;
    from = last.seq;
  }
  return rows;
}

function takesAll({ topic, kind, source }: Filter): boolean {
  return topic === undefined && kind === undefined && source === undefined;
}

function found(rows: Row[]): Row[] | null {
  return rows.length === 0 ? null : rows;
}
