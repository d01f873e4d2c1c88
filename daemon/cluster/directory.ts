/**
 * Interface between a host and the cluster directory. A Directory changes the state of the service as a whole, unlike rooms and their
 * contents: organizations, people, keys, and the placement of rooms. Reads are not part of it: each host reads its own tables, which
 * contain all of that too.
 *
 *   standalone.ts      a standalone host: its tables are authoritative
 *   postgres.ts   several: a PostgreSQL database is, and the tables of each are a copy
 */
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import type { Queries } from "../db/client.ts";
import type { Database } from "../db/transact.ts";

/** A room with its organization and name. */
export interface PlacedRoom {
  room_uid: RoomUid;
  org_id: OrgId;
  room_id: string;
  labels: Record<string, string>;
  created_at: string;
}

/** A room of this host, and its epoch. */
export interface HeldRoom extends PlacedRoom {
  epoch: number;
}

/** A room of this host, and the cluster directory's records: the owner of the room, and the room with its name. */
export interface MisplacedRoom extends HeldRoom {
  owner: Owner | null;
  named: { room_uid: RoomUid; host_id: string } | null;
}

/** Another host, with its addresses. */
export interface Host {
  host_id: string;
  state: HostState;
  /** For hosts, as host:port. */
  address: string;
  /** The certificate that it presents there, as PEM. */
  certificate: string;
  /** For clients. */
  url: string;
  labels: Record<string, string>;
  joined_at: string;
}

/** degraded: it runs, and its last sandboxes did not start; unreachable: its lease has expired. */
export type HostState = "active" | "degraded" | "draining" | "unreachable" | "gone";

/** Placement requirements of a new room. */
export interface WantedPlace {
  org_id: OrgId;
  room_id: string;
  host?: string | undefined;
  host_labels?: Record<string, string> | undefined;
}

/** Use of an organization on a host. */
export interface OrgUse {
  rooms: number;
  sandboxes: number;
  memory_mib: number;
  disk_gib: number;
}

/** The same, with the credits it has used, in millionths of one. */
export interface HostUse extends OrgUse {
  used_micro: number;
}

/** Owner of a room. Every change increments the epoch, and must name the last one. */
export interface Owner {
  host_id: string;
  epoch: number;
  /** Another host that has the room in the same epoch. */
  contested_by?: string | null;
}

/** The host that freed a room's placement. `isRemoval`: that host removed itself from the cluster by the same change. */
export interface Freed {
  host_id: string;
  isRemoval: boolean;
}

export interface Directory {
  /**
   * This host's database; its commits may also change shared rows. On a host of several such a commit rejects with cluster_unavailable if
   * the directory is unavailable; its local changes belong in `locally` or `twice`.
   */
  readonly database: Database;
  /** Places the room on this host, within a commit of `database`. Throws room_id_in_use. */
  place(queries: Queries, room: PlacedRoom): void;
  /** Destination for a room of this host. Throws insufficient_capacity, host_unreachable. */
  chooseOther(room: WantedPlace): Host;
  /** Prevents new placements on this host. Rejects with cluster_unavailable. */
  drain(): Promise<void>;
  /** Frees the room's name. Never rejects: retries until it succeeds. */
  release(roomUid: RoomUid): Promise<void>;
  /** The organization and name of a room, according to this host's copy; null: it is not placed. */
  placed(roomUid: RoomUid): PlacedRoom | null;
  /** Within a commit of `database`: an organization's use here, and on all hosts together. */
  withOthers(queries: Queries, orgId: OrgId, here: OrgUse): OrgUse;
  /** Its credits used on other hosts, in millionths of one, by their last reports. */
  usedElsewhere(queries: Queries, orgId: OrgId): number;
  /** Whether this host is a member of its service, by its last information. */
  isMember(): boolean;
  /** Whether the cluster directory has placed a room of this host elsewhere, or has given the room's name to another room. */
  isOthers(room: Pick<PlacedRoom, "room_uid" | "org_id" | "room_id">): boolean;
  /** Another host by this one's copy; null: unknown name. */
  host(hostId: string): Host | null;
  /** The owner of a room according to this host's copy; null: none. Outside of transactions. */
  owner(roomUid: RoomUid): Owner | null;
  /**
   * The owner of a room according to the directory, after all changes in progress at the time of the call. Rejects with
   * cluster_unavailable.
   */
  trueOwner(roomUid: RoomUid): Promise<Owner | null>;
  /**
   * The change that freed the placement of a room without a host; null if the directory has forgotten that change. Rejects with
   * cluster_unavailable.
   */
  freedBy(roomUid: RoomUid): Promise<Freed | null>;
  /**
   * Makes another host the owner of a room that this one owned in `epoch`. Rejects with invalid_state if it no longer does, and then
   * nothing has changed.
   */
  claim(roomUid: RoomUid, epoch: number, to: string): Promise<Owner>;
  /** From now on no host can claim a room by this epoch, in which another host owns it; if the epoch has changed, nothing happens. */
  refuse(roomUid: RoomUid, epoch: number): Promise<void>;
  /** Calls `listener` after another host has changed shared rows. */
  onChange(listener: () => void): void;
  close(): Promise<void>;
}
