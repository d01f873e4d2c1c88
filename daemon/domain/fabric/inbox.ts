/**
 * Owns agent_wait: an agent's inbox, or all messages of a room, from the caller's own cursor on, and waiting for the first.
 * What is handed out is marked; a message that needs an ack is handed out only once it is known when it will come again.
 */
import { DEFAULT_PAGE, type InputOf } from "../../../shared/api/contract.ts";
import { agentWait } from "../../../shared/api/fabric.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { now, wallMs } from "../../core/clock.ts";
import { makeCursor, readCursor } from "../../core/cursor.ts";
import { loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { type Bound, bind, type KeyCall } from "../../core/operation.ts";
import type { RoomTarget } from "../../core/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import { textStream } from "../../core/text-stream.ts";
import type { AgentWait } from "../../core/wait-graph.ts";
import type { Queries } from "../../db/client.ts";
import { actingAs } from "../agents/index.ts";
import { inboxBell, ROOM_BELL } from "./bells.ts";
import { goneUpTo } from "./budget.ts";
import type { FabricDeps } from "./deps.ts";
import { findRoom } from "./find.ts";
import { allMessages, comingAgain, openMessages, type Row, roomMessages } from "./inbox-store.ts";
import { messageJson, toMessage } from "./record.ts";
import { type Part, Scan, takesAll } from "./scan.ts";
import { findDelivery, handOut, hasUnread, markRead } from "./store.ts";
import { tellRead, traceOf } from "./trace.ts";

type Input = InputOf<typeof agentWait>;
/** With payloads of up to so many bytes an answer is made in one go. */
const SHORT_BYTES = 64 * 1024;
const NOTHING: Part = { rows: [], more: false };
/** The same in every room: an agent goes on by its cursor in a room that was made from its own. */
const CURSOR = "messages";

export function makeInbox(deps: FabricDeps): Bound {
  return bind(agentWait, {
    find: (call, params) => findRoom(deps, call, params),
    run: async (call, input, room) => {
      const cursor = readCursor(CURSOR, input.cursor);
      const after = input.after ?? (cursor === null ? null : Number(cursor));
      const limit = input.limit ?? DEFAULT_PAGE;
      const bound = call.caller.agent_id !== null;
      const agentId = input.agent_id === undefined && !bound ? null : actingAs(call.caller, input.agent_id, "agent_id");
      const { rows, more } =
        agentId === null
          ? await readRoom(deps, call, room, input, after ?? 0, limit)
          : await readInbox(deps, call, room, agentId, input, after, limit);
      const next_after = Math.max(after ?? 0, ...rows.map(({ seq }) => seq));
      const next_cursor = more ? makeCursor(CURSOR, String(next_after)) : null;
      if (rows.reduce((sum, { size_bytes }) => sum + size_bytes, 0) > SHORT_BYTES) {
        const bytes = textStream(jsonOf(rows, { next_cursor, next_after }));
        return { outcome: "ok", stream: { type: "application/json", bytes } };
      }
      const items = rows.map((row) => toMessage(row, row.attempts ?? null));
      return { outcome: "ok", body: { items, next_cursor, next_after } };
    },
  });
}

function* jsonOf(rows: readonly Row[], next: object): Generator<string> {
  for (const [at, row] of rows.entries())
    yield (at === 0 ? '{"items":[' : ",") + messageJson(row, row.attempts ?? null);
  yield `],${JSON.stringify(next).slice(1)}`;
}

async function readRoom(
  deps: FabricDeps,
  call: KeyCall,
  { room_uid }: RoomTarget,
  input: Input,
  after: number,
  limit: number,
): Promise<Part> {
  const { queries } = deps.database;
  requireKept(queries, room_uid, after);
  const scan = new Scan(after, limit, input, roomMessages(queries, room_uid));
  const { owner, signal, pieces } = workOf(call);
  const deadlineMs = input.wait_ms ?? 0;
  const leave = deadlineMs > 0 ? deps.agents.waits.watch(room_uid) : null;
  try {
    const wait = { key: ROOM_BELL, owner, deadlineMs, signal };
    return (await deps.bells.wait(room_uid, wait, () => scan.look(pieces, signal))) ?? NOTHING;
  } finally {
    leave?.();
  }
}

/** Loop time and signal of the call. */
function workOf({ caller, signal }: KeyCall) {
  const owner = ownerOf(caller.org_id);
  return { owner, signal, pieces: new Pieces(loopTime, owner, agentWait.name) };
}

/** Throws history_gone: some of what came after this place has gone. From 0 on is all that there is. */
function requireKept(queries: Queries, roomUid: RoomUid, after: number): void {
  const gone = goneUpTo(queries, roomUid);
  if (after === 0 || after >= gone) return;
  throw new ServiceError("history_gone", {
    detail: `Messages up to ${gone} that no agent still had to read were removed to make space.`,
    details: { last_seq: gone },
    hint: "Read from 0 what is left, or from last_seq on.",
  });
}

async function readInbox(
  deps: FabricDeps,
  call: KeyCall,
  room: RoomTarget,
  agent_id: string,
  input: Input,
  after: number | null,
  limit: number,
): Promise<Part> {
  const { agents, bells, database } = deps;
  const { queries } = database;
  const { room_uid, state } = room;
  call.audit.agent_id = agent_id;
  // By this the record of a wait is known from that of a look.
  if (input.wait_ms) call.audit.details = { wait_ms: input.wait_ms };
  const passed = after !== null && takesAll(input) ? { room_uid, agent_id, seq: after } : null;
  if (passed && hasUnread(queries, passed)) {
    // Should it be lost, the same is marked the next time.
    database.commit((write) => markRead(write, passed), false).catch(() => {});
  }
  if (state === "active") await see(deps, room_uid, agent_id);
  const inbox = { room_uid, agent_id };
  const { owner, signal, pieces } = workOf(call);
  const scan = new Scan(after ?? 0, limit, input, (after === null ? openMessages : allMessages)(queries, inbox));
  const look = async (): Promise<Part | null> => {
    // What comes again has an answer of its own: what follows is read from the same place the next time.
    const repeated = after === null ? null : new Scan(0, limit, input, comingAgain(queries, inbox, after));
    const again = await repeated?.look(pieces, signal);
    if (again) return { ...again, more: true };
    const found = await scan.look(pieces, signal);
    if (!found) agents.requireAlive(room_uid, agent_id);
    return found;
  };
  const wait: AgentWait = {
    agents: [agent_id],
    on: () => [],
    about: () => null,
    since: now(),
    shown: { type: "inbox", id: null },
  };
  const deadlineMs = input.wait_ms ?? 0;
  try {
    if (deadlineMs > 0) agents.waits.enter(room_uid, wait);
    const { rows, more } =
      (await bells.wait(room_uid, { key: inboxBell(agent_id), owner, deadlineMs, signal }, look)) ?? NOTHING;
    const told = (row: Row) => tellRead(deps.traces, { agent_id, ...room, trace: call.trace }, row);
    return { rows: await markHandedOut(deps, agent_id, rows, told), more };
  } finally {
    agents.waits.leave(room_uid, wait);
  }
}

/** Who reads its inbox takes part. */
async function see(
  { agents, bells, database }: FabricDeps,
  roomUid: RoomTarget["room_uid"],
  agentId: string,
): Promise<void> {
  if (agents.isFresh(roomUid, agentId) || agents.isGone(roomUid, agentId)) return;
  await database.commit((queries) => {
    bells.requireOpen(roomUid);
    agents.touch(queries, roomUid, [agentId]);
  }, false);
  agents.learn(roomUid, [agentId]);
}

/** As they are once this has been handed out. */
async function markHandedOut(
  deps: FabricDeps,
  agentId: string,
  rows: Row[],
  isFirst: (row: Row) => void,
): Promise<Row[]> {
  const fresh = rows.filter(({ delivery_state }) => delivery_state === "queued");
  if (fresh.length === 0) return rows;
  const dueAtMs = wallMs() + deps.ackMs;
  const marked = deps.database.commit((queries) => {
    for (const row of fresh) {
      const place = { room_uid: row.room_uid, agent_id: agentId, seq: row.seq };
      // Another call may have handed it out meanwhile.
      if (traceOf(row.headers) && findDelivery(queries, place)?.state === "queued") isFirst(row);
      handOut(queries, place, dueAtMs);
    }
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
