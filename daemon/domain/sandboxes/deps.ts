/** What sandboxes need of others. */

import type { Stream } from "../../../shared/agent-protocol/link.ts";
import type { ShownPort } from "../../../shared/api/shown-port.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { Directory } from "../../cluster/directory.ts";
import type { Log } from "../../core/log.ts";
import type { Paths } from "../../core/paths.ts";
import type { FindRoom, RoomTarget } from "../../core/room-target.ts";
import type { Traces } from "../../core/traces.ts";
import type { Database } from "../../db/transact.ts";
import type { LoadedOn } from "../../host/guest/moved.ts";
import type { GuestHost } from "../../host/guest/plan.ts";
import type { WarmPool } from "../../host/guest/pool.ts";
import type { Egress } from "../egress/index.ts";
import type { SaveStreams } from "../executions/saving.ts";
import type { Credits, Meter, Quota } from "../orgs/index.ts";
import type { TemplateGroups } from "../templates/groups.ts";
import type { Made } from "../templates/recent-use.ts";
import type { Templates } from "../templates/registry.ts";
import type { SandboxRow } from "./table.ts";

/** Whose event it is. */
type EventPlace = Pick<SandboxRow, "org_id" | "room_uid" | "agent_id" | "sandbox_id">;

export interface SandboxDeps {
  database: Database;
  directory: Pick<Directory, "database">;
  log: Log;
  paths: Paths;
  templates: Templates;
  /** By which groups organizations' templates are read. */
  templateGroups: Pick<TemplateGroups, "numberOf">;
  /** Whether the daemon before this one ended by a crash. */
  crashed: boolean;
  /** What guests start on; asked for each time, because a probe may still be finding out. */
  host(): GuestHost;
  /** Machines that wait for the next sandboxes. */
  pool: WarmPool;
  /** A sandbox is made of it, with so many processors and so much memory: the next one is likely to be too. */
  templateUsed(made: Made): void;
  findRoom: FindRoom;
  /** The room as it is now, within a transaction. */
  currentRoom(roomUid: RoomUid): RoomTarget;
  /** What the organization's plan allows. */
  quota: Pick<Quota, "admit" | "require" | "capsOf">;
  /** What the organization's drives and snapshots take on disk. */
  driveUsed(orgId: OrgId): Promise<number>;
  /** Whether the organization has credits for it. */
  credits: Pick<Credits, "admit">;
  limits: { memory_mib: number; vcpus: number; concurrent_creates: number };
  memoryOvercommitPercent: number;
  /** What machines take that the service has for itself. */
  otherMemoryMib(): number;
  /** A sandbox that is not ready by then has failed. */
  startLimitMs: number;
  egressDefault: "public" | "none";
  egress: Egress;
  meter: Meter;
  traces: Traces;
  /** Takes what a guest asks of its room. */
  roomCalls(sandbox: SandboxRow & { room_id: string }): (stream: Stream, request: object) => void;
  /** Something happened to a sandbox that no call asked for; an error unless it says otherwise. */
  onEvent(event: string, about: EventPlace, details: Record<string, unknown>, outcome?: "success" | "error"): void;
  /** A sandbox has a new state, or is new, which is committed. */
  onState(row: SandboxRow): void;
  /** A command of the room has begun or ended. */
  onCommands(roomUid: RoomUid): void;
  /** Something of a guest was on the host that belonged to no sandbox, and was removed. */
  onSwept(sandboxId: string): void;
  /** What the room's guests may do on its drive for the time being. */
  driveMode(roomUid: RoomUid): "open" | "stopped" | "held";
  /** What guests are loaded on here. */
  here(): LoadedOn;
  /** Some ports came with a room. */
  portsCame(): void;
  /** The sandbox's exposed ports, for its record. */
  portsOf(sandboxId: string): ShownPort[];
  /** Saves a command's full streams on the room's drive, as they come. */
  saveOutput(room: RoomTarget, path: string, streams: Parameters<SaveStreams>[0]): ReturnType<SaveStreams>;
}
