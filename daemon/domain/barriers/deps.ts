/** Injected dependencies of the barriers module: the modules, settings and callbacks that it is given. */

import type { FindRoom } from "../../core/call/room-target.ts";
import type { Notifier } from "../../core/concurrency/notifier.ts";
import type { Database } from "../../db/transact.ts";
import type { Agents } from "../agents/index.ts";
import type { Meetings } from "./arrival-traces.ts";
import type { MissingParticipants } from "./missing-cache.ts";
import type { BarrierSpace } from "./space.ts";

export interface BarrierDeps {
  database: Database;
  findRoom: FindRoom;
  agents: Agents;
  bells: Notifier;
  meetings: Meetings;
  missing: MissingParticipants;
  space: BarrierSpace;
}
