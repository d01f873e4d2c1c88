/**
 * The `agent_wait` call: reads an agent's inbox, or all messages of a room, from the caller's own cursor on, and waits for the first.
 * Handed-out messages are marked; a message that needs an ack is handed out only once its redelivery time is stored.
 */
import { DEFAULT_PAGE, type InputOf, type OutputOf } from "../../../../shared/api/contract.ts";
import { agentWait } from "../../../../shared/api/fabric.ts";
import type { RoomUid } from "../../../../shared/ids.ts";
import { readCursor } from "../../../core/call/cursor.ts";
import { type Bound, bind, type KeyCall } from "../../../core/call/operation.ts";
import { findRoom, type RoomTarget } from "../../../core/call/room-target.ts";
import { now, wallMs } from "../../../core/clock.ts";
import type { MaybePromise } from "../../../core/concurrency/maybe-promise.ts";
import type { AgentWait } from "../../../core/concurrency/wait-graph.ts";
import { loopTime, type OwnerName, ownerOf, Pieces } from "../../../core/loop/index.ts";
import type { Steps } from "../../../core/loop/steps.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { readNow } from "../../../db/readers/here.ts";
import type { ReadResult } from "../../../db/readers/read.ts";
import { actingAs } from "../../agents/index.ts";
import { inboxBell, ROOM_BELL } from "../bells.ts";
import type { FabricDeps } from "../deps.ts";
import { type Facts, type HandedOut, type MessagesInput, readMessages } from "../reads.ts";
import { goneUpTo } from "../retention/budget.ts";
import { type Looked, lookFor, takesAll } from "../scan.ts";
import { findDelivery, handOut, hasUnread, markRead } from "../store.ts";
import { tellRead, traceOf } from "../trace.ts";

type Input = InputOf<typeof agentWait>;
type Output = OutputOf<typeof agentWait>;
/** A page that has messages. */
interface Page {
  bytes: Uint8Array;
  fresh: readonly HandedOut[];
}
/** The same in every room: an agent continues with its cursor in a room that was made from its own. */
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
      const page =
        agentId === null
          ? await readRoom(deps, call, room, input, after ?? 0, limit)
          : await readInbox(deps, call, room, agentId, input, after, limit);
      return page
        ? { outcome: "ok", json: { bytes: page.bytes } }
        : { outcome: "ok", body: { items: [], next_cursor: null, next_after: after ?? 0 } };
    },
  });
}

/** Searches for messages by one caller, in pieces of the event loop; a reader thread reads long pages. */
class Looks {
  readonly owner: OwnerName;
  readonly signal: AbortSignal;
  readonly #deps: FabricDeps;
  readonly #pieces: Pieces;

  constructor(deps: FabricDeps, { caller, signal }: KeyCall) {
    this.owner = ownerOf(caller.org_id);
    this.signal = signal;
    this.#deps = deps;
    this.#pieces = new Pieces(loopTime, this.owner, agentWait.name);
  }

  /** Returns a function that reads the requested page, null if absent; each call continues where the last search ended. */
  for(selection: MessagesInput): () => MaybePromise<Page | null> {
    let { after } = selection;
    const read = (found: Looked | null) => {
      if (found === null) return null;
      after = found.after;
      return found.page === "none" ? null : this.#read({ ...selection, after }, found.page);
    };
    return () => {
      const found = this.#look({ ...selection, after });
      return found instanceof Promise ? found.then(read) : read(found);
    };
  }

  #look(selection: MessagesInput): MaybePromise<Looked | null> {
    const steps = lookFor(this.#deps.database.queries, selection);
    const { done, value } = steps.next();
    return done ? value : this.#lookFurther(steps);
  }

  /** Null if the caller has disconnected. */
  async #lookFurther(steps: Steps<Looked>): Promise<Looked | null> {
    for (;;) {
      const turn = this.#pieces.next();
      if (turn) await turn;
      if (this.signal.aborted) return null;
      const { done, value } = steps.next();
      if (done) return value;
    }
  }

  #read(selection: MessagesInput, page: "short" | "long"): MaybePromise<Page | null> {
    const { database, reads } = this.#deps;
    // It may have gone since.
    const shown = ({ bytes, rest }: ReadResult<Output, Facts>) => (rest?.count ? { bytes, fresh: rest.fresh } : null);
    if (page === "short") return shown(readNow(readMessages, database.queries, selection));
    return reads.read(readMessages, selection, this).then(shown);
  }
}

async function readRoom(
  deps: FabricDeps,
  call: KeyCall,
  { room_uid }: RoomTarget,
  filter: Input,
  after: number,
  limit: number,
): Promise<Page | null> {
  requireKept(deps.database.queries, room_uid, after);
  const looks = new Looks(deps, call);
  const { owner, signal } = looks;
  const selection = { ...pageFrom(filter, limit, after), whose: { is: "room", room_uid }, after } as const;
  const deadlineMs = filter.wait_ms ?? 0;
  const leave = deadlineMs > 0 ? deps.agents.waits.watch(room_uid) : null;
  try {
    return await deps.bells.wait(room_uid, { key: ROOM_BELL, owner, deadlineMs, signal }, looks.for(selection));
  } finally {
    leave?.();
  }
}

const pageFrom = ({ topic, kind, source }: Input, limit: number, from: number) => ({
  filter: { topic, kind, source },
  limit,
  from,
  cursor: CURSOR,
  more: false,
});

/** Throws history_gone if some messages after this position were removed. From 0 on returns everything that exists. */
function requireKept(queries: Queries, roomUid: RoomUid, after: number): void {
  const removedSeq = goneUpTo(queries, roomUid);
  if (after === 0 || after >= removedSeq) return;
  throw new ServiceError("history_gone", {
    detail: `Messages up to ${removedSeq} that no agent still had to read were removed to make space.`,
    details: { last_seq: removedSeq },
    hint: "Read the remaining messages from 0, or continue from last_seq.",
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
): Promise<Page | null> {
  const { agents, bells, database } = deps;
  const { queries } = database;
  const { room_uid, state } = room;
  call.audit.agent_id = agent_id;
  // Distinguishes the record of a wait from that of a read without waiting.
  if (input.wait_ms) call.audit.details = { wait_ms: input.wait_ms };
  const passed = after !== null && takesAll(input) ? { room_uid, agent_id, seq: after } : null;
  if (passed && hasUnread(queries, passed)) {
    // If this commit fails, the next read marks the same messages.
    database.commit((write) => markRead(write, passed), false, ownerOf(room.org_id)).catch(() => {});
  }
  if (state === "active") await see(deps, room, agent_id);
  const inbox = { room_uid, agent_id };
  const looks = new Looks(deps, call);
  const { owner, signal } = looks;
  const page = pageFrom(input, limit, after ?? 0);
  const is = after === null ? "open" : "all";
  const selection = { ...page, whose: { ...inbox, is }, after: after ?? 0 } as const;
  // A response contains either redelivered or further messages: the next read starts at the same position.
  const repeated =
    after === null ? null : { ...page, whose: { ...inbox, is: "again", until: after } as const, after: 0, more: true };
  const further = looks.for(selection);
  const look = async (): Promise<Page | null> => {
    const found = (repeated && (await looks.for(repeated)())) ?? (await further());
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
    const found = await bells.wait(room_uid, { key: inboxBell(agent_id), owner, deadlineMs, signal }, look);
    const recordRead = (message: HandedOut) => tellRead(deps.traces, { agent_id, ...room, trace: call.trace }, message);
    if (found) await markHandedOut(deps, { owner, agent_id }, found.fresh, recordRead);
    return found;
  } finally {
    agents.waits.leave(room_uid, wait);
  }
}

/** An agent that reads its inbox takes part. */
async function see(
  { agents, bells, database }: FabricDeps,
  { org_id, room_uid: roomUid }: RoomTarget,
  agentId: string,
): Promise<void> {
  if (agents.isFresh(roomUid, agentId) || agents.isGone(roomUid, agentId)) return;
  await database.commit(
    (queries) => {
      bells.requireOpen(roomUid);
      agents.touch(queries, roomUid, [agentId]);
    },
    false,
    ownerOf(org_id),
  );
  agents.learn(roomUid, [agentId]);
}

async function markHandedOut(
  deps: FabricDeps,
  { owner, agent_id: agentId }: { owner: OwnerName; agent_id: string },
  fresh: readonly HandedOut[],
  isFirst: (message: HandedOut) => void,
): Promise<void> {
  if (fresh.length === 0) return;
  const dueAtMs = wallMs() + deps.ackMs;
  const marked = deps.database.commit(
    (queries) => {
      for (const message of fresh) {
        const place = { room_uid: message.room_uid, agent_id: agentId, seq: message.seq };
        // Another call may have handed it out in the meantime.
        if (traceOf(message.headers) && findDelivery(queries, place)?.state === "queued") isFirst(message);
        handOut(queries, place, dueAtMs);
      }
    },
    false,
    owner,
  );
  if (fresh.some(({ ack_required }) => ack_required)) {
    await marked;
    deps.due.expectAt(dueAtMs);
  } else {
    // A failed commit is harmless: the message stays in the inbox until the reader's cursor passes it.
    marked.catch(() => {});
  }
}
