/**
 * Owns the seam between one host and several. What is true for the service as a whole, unlike rooms and all that is in them, is changed by
 * a Directory: organizations, people, keys, and which host has which room. Reading is no part of it: each host reads its own tables,
 * where all of that is too.
 *
 *   alone.ts      a host by itself: its tables are what is true
 *   postgres.ts   several: a PostgreSQL database is, and the tables of each are a copy
 */
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import type { Queries } from "../db/client.ts";
import type { Database } from "../db/transact.ts";
import type { NamedCall } from "./done-calls.ts";

/** Which room of whose, by its name. */
export interface PlacedRoom {
  room_uid: RoomUid;
  org_id: OrgId;
  room_id: string;
  labels: Record<string, string>;
  created_at: string;
}

/** One that this host has, and in which epoch. */
export interface HeldRoom extends PlacedRoom {
  epoch: number;
}

/** A room of this host, and what the directory has of it: the owner of the room, and the room of its name. */
export interface MisplacedRoom extends HeldRoom {
  owner: Owner | null;
  named: { room_uid: RoomUid; host_id: string } | null;
}

/** Another host, as it is to be reached. */
export interface Host {
  host_id: string;
  state: HostState;
  /** For hosts, as host:port. */
  address: string;
  /** What it shows there, as PEM. */
  certificate: string;
  /** For clients. */
  url: string;
  labels: Record<string, string>;
  joined_at: string;
}

/** degraded: it runs, and its last sandboxes did not start; unreachable: it has said nothing for a while. */
export type HostState = "active" | "degraded" | "draining" | "unreachable" | "gone";

/** Which host a new room wants. */
export interface WantedPlace {
  org_id: OrgId;
  room_id: string;
  host?: string | undefined;
  host_labels?: Record<string, string> | undefined;
}

/** What an organization has on a host. */
export interface OrgUse {
  rooms: number;
  sandboxes: number;
  memory_mib: number;
  disk_gib: number;
}

/** The same, with what it has used of its credits, in millionths of one. */
export interface HostUse extends OrgUse {
  used_micro: number;
}

/** Which host has a room. The epoch is counted up with every change of it, and whoever changes it must know the last. */
export interface Owner {
  host_id: string;
  epoch: number;
  /** Another host that has the room in the same epoch. */
  contested_by?: string | null;
}

/** The host that freed a room's place. `isRemoval`: it removed itself, by the same change. */
export interface Freed {
  host_id: string;
  isRemoval: boolean;
}

export interface Directory {
  /**
   * This host's database, by whose commits what is shared may be changed too. Where there are several hosts these reject with
   * cluster_unavailable when the directory is away; what such a commit changes that is this host's alone stands in `locally` or `twice`.
   */
  readonly database: Database;
  /** Within a commit of that: the room is this host's from here on. Throws room_id_in_use. */
  place(queries: Queries, room: PlacedRoom): void;
  /**
   * Where a new room is to be: null, here. Throws host_unreachable, or insufficient_capacity where no host is as it is wanted. Who has
   * the name already is told again, or that it has it.
   */
  choose(wanted: WantedPlace): Host | null;
  /** Where a room of this host is to go. Throws insufficient_capacity, host_unreachable. */
  chooseOther(room: WantedPlace): Host;
  /** No room is placed on this host any more. Rejects with cluster_unavailable. */
  drain(): Promise<void>;
  /** Its name is free. Never rejects: it is tried until it is done. */
  release(roomUid: RoomUid): Promise<void>;
  /** Which host has a room that is not here; null: none. Rejects with cluster_unavailable where that is not known. */
  elsewhere(orgId: OrgId, roomId: string): Promise<Host | null>;
  /** The other hosts that are members. */
  others(): Host[];
  /** An organization's rooms that another host has, as far as is known here. */
  placedOn(orgId: OrgId, hostId: string): PlacedRoom[];
  /** Within a commit of that: what an organization has here, and on all hosts together. */
  withOthers(queries: Queries, orgId: OrgId, here: OrgUse): OrgUse;
  /** What it has used of its credits on other hosts, in millionths of one, as they said last. */
  usedElsewhere(queries: Queries, orgId: OrgId): number;
  /** Whether this host is a member of its service, as far as it knows. */
  isMember(): boolean;
  /** Whether this host has read the directory since it started. */
  hasFollowed(): boolean;
  /** Whether the directory has placed a room of this host elsewhere, or its name is another room's. */
  isOthers(room: Pick<PlacedRoom, "room_uid" | "org_id" | "room_id">): boolean;
  /** Another host as this one knows it; null: there is none of this name. */
  host(hostId: string): Host | null;
  /** The owner of a room in this host's copy; null: none. Outside of transactions. */
  owner(roomUid: RoomUid): Owner | null;
  /** The same as it is true, after all that was being changed when this was called. Rejects with cluster_unavailable. */
  trueOwner(roomUid: RoomUid): Promise<Owner | null>;
  /** The change that freed the place of a room that no host has; null: that is not known any more. Rejects with cluster_unavailable. */
  freedBy(roomUid: RoomUid): Promise<Freed | null>;
  /** Has another host own a room that this one owned in an epoch. Rejects with invalid_state where it does not any more, and then nothing has changed. */
  claim(roomUid: RoomUid, epoch: number, to: string): Promise<Owner>;
  /** From here on nobody can claim a room by an epoch that another host owns it in; where that is another by now nothing changes. */
  refuse(roomUid: RoomUid, epoch: number): Promise<void>;
  /**
   * Within a commit of that: which host has done this call before, `here` for this one; null: nobody, and it is noted that this one
   * does, where the commit changes what is shared.
   */
  doneBy(queries: Queries, call: NamedCall): Host | "here" | null;
  /** Calls `listener` when something that is shared was changed by another host. */
  onChange(listener: () => void): void;
  close(): Promise<void>;
}
