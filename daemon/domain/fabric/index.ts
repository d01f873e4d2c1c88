/** The fabric: messages between the agents of a room. No accepted message is lost by a crash of any component. */

import type { RoomUid } from "../../../shared/ids.ts";
import type { Bound } from "../../core/call/operation.ts";
import { rowsOf } from "../../db/room-rows.ts";
import { makeAck } from "./ack.ts";
import { makeBranch } from "./branch.ts";
import type { FabricDeps, FabricOptions } from "./deps.ts";
import { makeGet } from "./get.ts";
import { makeInbox } from "./inbox/inbox.ts";
import { InboxCapacity } from "./inbox/inbox-capacity.ts";
import { MessageRate } from "./message-rate.ts";
import { makePresence } from "./presence.ts";
import { makeReply } from "./reply.ts";
import { Budget } from "./retention/budget.ts";
import { History } from "./retention/removal-schedule.ts";
import { makeSend } from "./send.ts";
import { makeSendMany } from "./send-many.ts";
import { Sequence } from "./sequence.ts";
import { Spreads } from "./spread.ts";
import { deleteSpread } from "./store.ts";
import { makeSubscribe } from "./subscribe.ts";
import { MessageTimers } from "./timers.ts";

export { type OpenRequest, openRequests } from "./open-requests.ts";
export { hasOpen, locateMessage } from "./store.ts";

export function makeFabric(options: FabricOptions) {
  const { database, log } = options;
  const due = new MessageTimers(options);
  const budget = new Budget(database, options.keptBytes);
  const history = new History(database, budget, log);
  const lately = new MessageRate();
  const order = new Sequence(database);
  const spreads = new Spreads({ database, order });
  const space = new InboxCapacity(database);
  const deps: FabricDeps = { ...options, budget, due, history, lately, order, space, spreads };
  const branch = makeBranch(deps);
  /** Removes all messages of a room that is gone, some at a time, so that others are answered in between. */
  const forget = async (roomUid: RoomUid) => {
    deps.order.forget(roomUid);
    deps.space.forget(roomUid);
    lately.forget(roomUid);
    await branch.drop(rowsOf(database.queries, roomUid));
    await database.commit((queries) => {
      deleteSpread(queries, roomUid);
      budget.forget(queries, roomUid);
    });
  };
  return {
    operations: [
      makeSend(deps),
      makeSendMany(deps),
      makeInbox(deps),
      makeGet(deps),
      makeAck(deps),
      makeReply(deps),
      makeSubscribe(deps),
      makePresence(deps),
    ] as Bound[],
    branch,
    /** Removes deliveries of messages that a daemon before this one has not kept; before rooms are served. */
    recover: () => spreads.start(),
    /** Starts the timer for redeliveries and expirations, including those that became due since the previous daemon. */
    start: () => deps.due.start(),
    /** Number of messages stored in a room during the last minute. */
    lately: (roomUid: RoomUid) => lately.of(roomUid),
    forget,
    stop: () => {
      deps.due.stop();
      deps.history.stop();
    },
  };
}
