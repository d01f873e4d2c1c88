/** Injected dependencies of the rooms module: the modules, settings and callbacks that it is given. */
import type { RoomUid } from "../../../shared/ids.ts";
import type { Directory, Host } from "../../cluster/directory.ts";
import type { CallStats } from "../../core/call/call-stats.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import type { MaybePromise } from "../../core/concurrency/maybe-promise.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Log } from "../../core/log.ts";
import type { ServiceError } from "../../core/service-error.ts";
import type { Database } from "../../db/transact.ts";
import type { Meter, Quota } from "../orgs/index.ts";
import type { FitsAnswer, FitsAsked, SandboxesBranch, SandboxesMove } from "../sandboxes/index.ts";
import type { Calls, MovingCalls, Nouns } from "./checkpoints/room-state.ts";
import type { Ownership } from "./ownership.ts";
import type { RoomRow } from "./table.ts";

/** Result of sending a room's file. */
export interface Arrived {
  /** Head of its organization's chain on that host. */
  head: { seq: number; hash: string } | null;
}

/** Outcome for a room that was sent, and the epoch in which it was last there; 0: it never was. */
export interface Settled {
  state: "arrived" | "not ours";
  epoch: number;
}

/** Requests of a room's host to the destination host of a move. */
export interface Peers {
  /** Sends a room's file; resolves once it is complete there. Rejects with the other host's error, or with host_unreachable. */
  send(host: Host, roomUid: RoomUid, file: AsyncIterable<Uint8Array>, over: AbortSignal): Promise<Arrived>;
  /** Requests which of these template files it has, and which machines it could load. */
  fits(host: Host, roomUid: RoomUid, request: FitsAsked, over: AbortSignal): Promise<FitsAnswer>;
  /** Makes it determine the room's owner. */
  settle(host: Host, roomUid: RoomUid, over: AbortSignal): Promise<Settled>;
}

export interface RoomDeps {
  database: Database;
  /** Ownership and placement of rooms. */
  directory: Pick<
    Directory,
    | "database"
    | "place"
    | "release"
    | "host"
    | "owner"
    | "trueOwner"
    | "placed"
    | "freedBy"
    | "claim"
    | "refuse"
    | "onChange"
    | "chooseOther"
    | "drain"
  >;
  /** Whether this host owns a room. */
  ownership: Ownership;
  /** Statistics of moves to other hosts. */
  moveTally: CallStats;
  /** Connections to other hosts. Throws on a standalone host. */
  peers(): Peers;
  /** Calls in progress about a room. */
  calls: {
    /** Resolves once at most `most` calls are in progress. Rejects with invalid_state if they take too long. */
    untilDone(room: Pick<RoomRow, "org_id" | "room_id">, most: number): Promise<void>;
  };
  /** `begin` ends the waits in a room with an error and refuses new ones; `end` permits them again. */
  pauses: {
    begin(roomUid: RoomUid, error: ServiceError): void;
    end(roomUid: RoomUid): void;
  };
  audit: {
    /** Schedules the anchoring of chain heads outside of this host. */
    anchor(): void;
    /** Ends the event streams of a room that moves. */
    endRoom(roomUid: RoomUid): void;
  };
  log: Log;
  paths: Paths;
  /** Limits of the organization's plan. */
  quota: Pick<Quota, "admit" | "require">;
  /** The name of this host. */
  hostId: string;
  driveLimitBytes: number;
  retentionSeconds: number;
  /** Frees some space on a full disk for an operation that frees more; false if absent to free. */
  giveUpSpace(): boolean;
  /** Host uid of root in the guests of a new room. */
  driveRoot(roomUid: RoomUid): number;
  /** The kernel's quota of a drive, if it supports one. */
  driveQuota: {
    begin(directory: string, seed: string, limits: { bytes: number; inodes: number }): void;
    renew(directory: string, limits: { bytes: number; inodes: number }): void;
    end(directory: string): void;
  };
  driveLimitEntries: number;
  meter: Pick<Meter, "closes">;
  drive: {
    measure(room: RoomTarget): MaybePromise<{ used_bytes: number; file_count: number }>;
    /** Access that the room's guests have to it. */
    modeOf(roomUid: RoomUid): "open" | "stopped" | "held";
    /** Blocks changes of the drive by calls until `work` is done. */
    holding<T>(roomUid: RoomUid, work: () => Promise<T>): Promise<T>;
    /** Like `holding`, for guests too: the drive is quiesced, and guests that use it wait. */
    still<T>(roomUid: RoomUid, work: () => Promise<T>): Promise<T>;
    /** Removes leftovers of a crash from the drive. */
    sweep(room: RoomTarget): Promise<void>;
    /** Continues to count the drive of a room that has ended. */
    keep(room: RoomTarget): void;
    /** Drops the cached state of a removed drive. */
    forget(roomUid: RoomUid): void;
  };
  fabric: {
    /** Ends the waits in a room with room_destroying. */
    endWaits(row: RoomRow): void;
    /** Removes the messages, barriers and agents of a room that was removed, or was not created. */
    forget(roomUid: RoomUid): Promise<void>;
  };
  /** Opens the exposed ports that have arrived with a room. */
  recoverPorts(): void;
  branch: {
    sandboxes: SandboxesBranch;
    nouns: Nouns;
    calls: Calls & MovingCalls;
  };
  /** Records an event of a room that no call requested. */
  onEvent(event: string, about: Pick<RoomRow, "org_id" | "room_uid">, details: Record<string, unknown>): void;
  sandboxes: {
    countLive(roomUid: RoomUid): number;
    destroyAll(roomUid: RoomUid): Promise<string[]>;
    /** Like `destroyAll`, because the room moves to another host; returns their agents. */
    evacuate(roomUid: RoomUid): Promise<string[]>;
    /** Transfer of sandboxes with a moving room. */
    moves: SandboxesMove;
    /** Removes the rows of the room's snapshots. */
    forgetSnapshots(roomUid: RoomUid): Promise<void>;
  };
}
