/** Injected dependencies of the fabric (messages between agents), and the objects that its verbs share. */
import type { RoomUid } from "../../../shared/ids.ts";
import type { FindRoom } from "../../core/call/room-target.ts";
import type { Traces } from "../../core/call/traces.ts";
import type { Notifier } from "../../core/concurrency/notifier.ts";
import type { Log } from "../../core/log.ts";
import type { Reads } from "../../db/readers/pool.ts";
import type { Database } from "../../db/transact.ts";
import type { Agents } from "../agents/index.ts";
import type { Meter } from "../orgs/index.ts";
import type { InboxCapacity } from "./inbox/inbox-capacity.ts";
import type { MessageRate } from "./message-rate.ts";
import type { Budget } from "./retention/budget.ts";
import type { History } from "./retention/removal-schedule.ts";
import type { Sequence } from "./sequence.ts";
import type { Spreads } from "./spread.ts";
import type { MessageTimers } from "./timers.ts";

export interface FabricOptions {
  database: Database;
  reads: Reads;
  log: Log;
  findRoom: FindRoom;
  agents: Agents;
  bells: Notifier;
  meter: Pick<Meter, "count">;
  traces: Traces;
  /** Called when a message is in the agent's inbox, on disk. Never throws. */
  delivered(roomUid: RoomUid, agentId: string): void;
  /** Time after which a message that needs an ack is redelivered. */
  ackMs: number;
  /** Bytes that the messages of an organization may take; 0: unlimited. */
  keptBytes: number;
}

export interface FabricDeps extends FabricOptions {
  budget: Budget;
  due: MessageTimers;
  history: History;
  lately: MessageRate;
  order: Sequence;
  space: InboxCapacity;
  spreads: Spreads;
}
