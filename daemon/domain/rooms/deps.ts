/** What rooms need of others. */
import type { RoomUid } from "../../../shared/ids.ts";
import type { Directory, Host } from "../../cluster/directory.ts";
import type { Log } from "../../core/log.ts";
import type { Paths } from "../../core/paths.ts";
import type { RoomTarget } from "../../core/room-target.ts";
import type { ServiceError } from "../../core/service-error.ts";
import type { Soon } from "../../core/soon.ts";
import type { Tally } from "../../core/tally.ts";
import type { Database } from "../../db/transact.ts";
import type { Meter, Quota } from "../orgs/index.ts";
import type { FitsAnswer, FitsAsked, SandboxesBranch, SandboxesMove } from "../sandboxes/index.ts";
import type { Calls, MovingCalls, Nouns } from "./checkpoints/nouns.ts";
import type { Ownership } from "./ownership.ts";
import type { RoomRow } from "./table.ts";

/** What came of a room whose file was sent. */
export interface Arrived {
  /** Where the chain of its organization ends there. */
  head: { seq: number; hash: string } | null;
}

/** What became of a room that was sent, and in which epoch it was there last; 0: it never was. */
export interface Settled {
  state: "arrived" | "not ours";
  epoch: number;
}

/** What a room's host asks of the one that it goes to. */
export interface Peers {
  /** Sends a room's file; resolves once it is whole there. Rejects as the other host says, and with host_unreachable. */
  send(host: Host, roomUid: RoomUid, file: AsyncIterable<Uint8Array>, over: AbortSignal): Promise<Arrived>;
  /** Asks it which of these files of templates it has, and which machines it could load. */
  fits(host: Host, roomUid: RoomUid, asked: FitsAsked, over: AbortSignal): Promise<FitsAnswer>;
  /** Has it find out whose the room is. */
  settle(host: Host, roomUid: RoomUid, over: AbortSignal): Promise<Settled>;
}

export interface RoomDeps {
  database: Database;
  /** Whose room is where. */
  directory: Pick<
    Directory,
    | "database"
    | "place"
    | "release"
    | "host"
    | "owner"
    | "trueOwner"
    | "placedOn"
    | "freedBy"
    | "claim"
    | "refuse"
    | "onChange"
    | "chooseOther"
    | "drain"
  >;
  /** Whether this host answers for a room. */
  ownership: Ownership;
  /** How moves to other hosts go. */
  moveTally: Tally;
  /** How other hosts are asked; there once the doors are open. */
  peers(): Peers;
  /** The calls that are under way about a room. */
  calls: {
    /** Resolves once there are no more than so many. Rejects with invalid_state where they go on for long. */
    untilDone(room: Pick<RoomRow, "org_id" | "room_id">, most: number): Promise<void>;
  };
  /** Ends the waits in a room by an error, and has them begin anew. */
  pauses: {
    begin(roomUid: RoomUid, error: ServiceError): void;
    end(roomUid: RoomUid): void;
  };
  audit: {
    /** Has the ends of chains known elsewhere too, soon. */
    anchor(): void;
    /** Ends what is followed of a room that moves. */
    endRoom(roomUid: RoomUid): void;
  };
  log: Log;
  paths: Paths;
  /** What the organization's plan allows. */
  quota: Pick<Quota, "admit">;
  /** The name of this host. */
  hostId: string;
  driveLimitBytes: number;
  retentionSeconds: number;
  /** Makes some space on a full disk for what frees more; false when there is none to make. */
  giveUpSpace(): boolean;
  /** Who root of the guests of a new room is on the host. */
  driveRoot(roomUid: RoomUid): number;
  /** The quota that the kernel keeps of a drive, where it does. */
  driveQuota: {
    begin(directory: string, seed: string, limits: { bytes: number; inodes: number }): void;
    renew(directory: string, limits: { bytes: number; inodes: number }): void;
    end(directory: string): void;
  };
  driveLimitEntries: number;
  meter: Pick<Meter, "closes">;
  drive: {
    measure(room: RoomTarget): Soon<{ used_bytes: number; file_count: number }>;
    /** What the room's guests may do on it. */
    modeOf(roomUid: RoomUid): "open" | "stopped" | "held";
    /** Has no call change it until `work` is done. */
    holding<T>(roomUid: RoomUid, work: () => Promise<T>): Promise<T>;
    /** The same, and of its guests too: who uses it there waits. */
    still<T>(roomUid: RoomUid, work: () => Promise<T>): Promise<T>;
    /** Removes what a crash left on it. */
    sweep(room: RoomTarget): Promise<void>;
    /** Goes on counting the drive of a room that has ended. */
    keep(room: RoomTarget): void;
    /** Drops what is remembered of a drive that is gone. */
    forget(roomUid: RoomUid): void;
  };
  fabric: {
    /** Answers whoever waits in the room. */
    endWaits(row: RoomRow): void;
    /** Removes the messages, barriers and agents of a room that is gone, or was not made. */
    forget(roomUid: RoomUid): Promise<void>;
  };
  branch: {
    sandboxes: SandboxesBranch;
    nouns: Nouns;
    /** There once the doors are open. */
    calls(): Calls & MovingCalls;
  };
  /** Something became of a room that no call asked for. */
  onEvent(event: string, about: Pick<RoomRow, "org_id" | "room_uid">, details: Record<string, unknown>): void;
  sandboxes: {
    countLive(roomUid: RoomUid): number;
    destroyAll(roomUid: RoomUid): Promise<string[]>;
    /** The same, because the room goes to another host; returns their agents. */
    evacuate(roomUid: RoomUid): Promise<string[]>;
    /** How they go along. */
    moves: SandboxesMove;
    /** Their snapshots are none any more. */
    forgetSnapshots(roomUid: RoomUid): Promise<void>;
  };
}
