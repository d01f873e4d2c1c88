/** Injected dependencies of the sandboxes module: the modules, settings and callbacks that it is given. */

import type { Stream } from "../../../shared/agent-protocol/link.ts";
import type { ShownPort } from "../../../shared/api/shown-port.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { Directory } from "../../cluster/directory.ts";
import type { FindRoom, RoomTarget } from "../../core/call/room-target.ts";
import type { Traces } from "../../core/call/traces.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { GuestHost } from "../../host/guest/plan.ts";
import type { WarmPool } from "../../host/guest/pool.ts";
import type { LoadedOn } from "../../host/guest/transfer.ts";
import type { Egress } from "../egress/index.ts";
import type { Credits, Meter, Quota } from "../orgs/index.ts";
import type { TemplateGroups } from "../templates/groups.ts";
import type { CreatedSandbox } from "../templates/recent-use.ts";
import type { Templates } from "../templates/registry.ts";
import type { SaveStreams } from "./executions/run/saving.ts";
import type { SandboxRow } from "./table.ts";

/** The sandbox of an event. */
type EventPlace = Pick<SandboxRow, "org_id" | "room_uid" | "agent_id" | "sandbox_id">;

export interface SandboxDeps {
  database: Database;
  directory: Pick<Directory, "database">;
  log: Log;
  paths: Paths;
  templates: Templates;
  /** User groups with read access to organizations' templates. */
  templateGroups: Pick<TemplateGroups, "numberOf">;
  /** Whether the previous daemon crashed. */
  crashed: boolean;
  /** Host properties for starting guests; called each time, because a probe may be in progress. */
  host(): GuestHost;
  /** Pooled machines for the next sandboxes. */
  pool: WarmPool;
  /**
   * Reports a sandbox created from a host's template, with its number of vCPUs and amount of memory: the next one is likely to be the same.
   */
  templateUsed(made: CreatedSandbox): void;
  findRoom: FindRoom;
  /** The room's current state, within a transaction. */
  currentRoom(roomUid: RoomUid): RoomTarget;
  /** Limits of the organization's plan. */
  quota: Pick<Quota, "admit" | "require" | "capsOf">;
  /** Disk space of the organization's drives and snapshots. */
  driveUsed(orgId: OrgId): Promise<number>;
  /** Checks the organization's credits. */
  credits: Pick<Credits, "admit">;
  limits: { memory_mib: number; vcpus: number; concurrent_creates: number };
  memoryOvercommitPercent: number;
  /** Memory of the daemon's own machines. */
  otherMemoryMib(): number;
  /** A sandbox that is not ready within this time has failed. */
  startLimitMs: number;
  egressDefault: "public" | "none";
  egress: Egress;
  meter: Meter;
  traces: Traces;
  /** Handles the guest's calls about its room. */
  roomCalls(sandbox: SandboxRow & { room_id: string }): (stream: Stream, request: object) => void;
  /** Records an event of a sandbox that no call caused; outcome `error` by default. */
  onEvent(event: string, about: EventPlace, details: Record<string, unknown>, outcome?: "success" | "error"): void;
  /** Called when a new sandbox, or a sandbox's new state, is committed. */
  onState(row: SandboxRow): void;
  /** Called when a command of the room has started or ended. */
  onCommands(roomUid: RoomUid): void;
  /** Called when leftovers of a guest without a sandbox were removed from the host. */
  onSwept(sandboxId: string): void;
  /** Current access of the room's guests to its drive. */
  driveMode(roomUid: RoomUid): "open" | "stopped" | "held";
  /** Properties of this host that decide which saved guests it can load. */
  here(): LoadedOn;
  /** The sandbox's exposed ports, for its record. */
  portsOf(sandboxId: string): ShownPort[];
  /** Saves a command's full streams on the room's drive while it produces them. */
  saveOutput(room: RoomTarget, path: string, streams: Parameters<SaveStreams>[0]): ReturnType<SaveStreams>;
}
