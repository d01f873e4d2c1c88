/**
 * Rules of a room's move: the decisions of daemon/domain/rooms/move, daemon/cluster/self-sync.ts and placements.ts as functions of a host's
 * knowledge. model.test.ts compares each with the code, in every situation that the search of the model reaches.
 */
import { withOneWay } from "../../../../../daemon/cluster/one-way.ts";
import type { Queries } from "../../../../../daemon/db/client.ts";
import { makeOwnership } from "../../../../../daemon/domain/rooms/ownership.ts";
import type { RoomUid } from "../../../../../shared/ids.ts";

export type HostId = "host-1" | "host-2";
export const HOSTS: readonly HostId[] = ["host-1", "host-2"];

export interface Directory {
  owner: Owner | null;
  /** The host that deleted the placement because the room has ended there, or the removal of the host. */
  freedBy: HostId | "removal" | null;
  gone: HostId | null;
}

export interface Move {
  to: HostId;
  epoch: number;
  claiming: boolean;
}

export interface Row {
  state: "active" | "destroyed";
  epoch: number;
  move: Move | null;
}

export interface Owner {
  host: HostId;
  epoch: number;
  contestedBy: HostId | null;
}

export interface Known {
  move: Move;
  rowEpoch: number;
  host: HostId;
  /** The epoch of the other host's row, as it replied; null: no request was sent. */
  said: number | null;
  owner: Owner | null;
  freedBy: Directory["freedBy"];
}

type Copy = Pick<Directory, "owner" | "gone">;
/** The steps of sendRoom. */
export type Order = readonly ("note" | "send" | "intend" | "claim" | "ask" | "retire")[];

const owned = (host: HostId, epoch: number): Owner => ({ host, epoch, contestedBy: null });
const placement = ({ host, epoch, contestedBy }: Owner) => ({ host_id: host, epoch, contested_by: contestedBy });

/** one-way.ts itself: hosts are brought into the copy before placements are compared (whole.ts). */
function merge(copy: Copy, directory: Copy): Copy {
  const here = new Map(rowsOf(copy).map(({ tbl, key, row }) => [`${tbl} ${key}`, row]));
  const read = ({ tbl, key }: { tbl: string; key: string }) => here.get(`${tbl} ${key}`) ?? null;
  for (const table of ["hosts", "placements"]) {
    const there = rowsOf(directory).filter(({ tbl }) => tbl === table);
    // It queries the database only for rows that grant access.
    const { rows } = withOneWay({} as Queries, { read }, there, true);
    for (const name of [...here.keys()]) if (name.startsWith(table)) here.delete(name);
    for (const { tbl, key, row } of rows) if (row !== null) here.set(`${tbl} ${key}`, row);
  }
  const merged = [...here.values()].map((row) => JSON.parse(row));
  const placed = merged.find((row) => "epoch" in row);
  const gone = merged.find(({ state }) => state === "gone")?.host_id ?? null;
  const owner = placed && { host: placed.host_id, epoch: placed.epoch, contestedBy: placed.contested_by };
  return { owner: owner ?? null, gone };
}

function rowsOf({ owner, gone }: Copy) {
  const hosts = HOSTS.map((host_id) => {
    const row = { host_id, state: host_id === gone ? "gone" : "active", joined_at: "" };
    return { tbl: "hosts", key: JSON.stringify([host_id]), row: JSON.stringify(row) };
  });
  if (!owner) return hosts;
  return [...hosts, { tbl: "placements", key: JSON.stringify(["rom_1"]), row: JSON.stringify(placement(owner)) }];
}

/** ownership.ts itself. */
function mayAnswer(epoch: number, owner: Owner | null, host: HostId, isMember: boolean): boolean {
  const { require } = makeOwnership({
    hostId: host,
    directory: {
      owner: () => owner && placement(owner),
      host: () => null,
      isMember: () => isMember,
      isOthers: () => owner !== null && owner.host !== host,
    },
  });
  try {
    require({ room_uid: "rom_1" as RoomUid, org_id: "org_1" as never, room_id: "r", epoch, branching: null });
    return true;
  } catch {
    return false;
  }
}

export const RULES = {
  order: ["note", "send", "intend", "claim", "ask", "retire"] as Order,
  merge,
  mayAnswer,

  mayLeave: (epoch: number, owner: Owner | null, host: HostId): boolean => owner?.host === host && owner.epoch >= epoch,

  mayCome: (owner: Owner | null, from: HostId, epoch: number, isHere: boolean): boolean =>
    owner?.host === from && owner.epoch === epoch && !isHere,

  claim: (owner: Owner | null, host: HostId, epoch: number, to: HostId, isGone: boolean): Owner | null =>
    owner?.host === host && owner.epoch === epoch && !isGone ? owned(to, epoch + 1) : null,

  refuse: (owner: Owner | null, epoch: number): Owner | null =>
    owner?.epoch === epoch ? owned(owner.host, epoch + 1) : owner,

  isOurs: (owner: Owner | null, host: HostId, epoch: number): boolean =>
    owner?.host === host && owner.epoch === epoch + 1,

  /** Whether the received room was put in place before. */
  hasCome: ({ state, epoch }: Row, sent: number): boolean => state === "active" || epoch > sent,

  /** How the directory distinguishes the removal of a host from the end of a room on it, also if the host removes itself. */
  freed: (_by: HostId | "operator", _host: HostId): Directory["freedBy"] => "removal",

  giveUp: (epoch: number, owner: Owner | null, host: HostId): Move | null =>
    owner && owner.host !== host && owner.epoch > epoch
      ? { to: owner.host, epoch: owner.epoch, claiming: false }
      : null,

  /** The owner that a host writes to the directory; undefined: unchanged. */
  say: (
    live: { epoch: number; isClaiming: boolean } | null,
    owner: Owner | null,
    host: HostId,
    isArriving: boolean,
  ): Owner | null | undefined => {
    if (!live) return owner?.host === host && !isArriving ? null : undefined;
    if (live.isClaiming) return undefined;
    if (owner === null || owner.epoch < live.epoch) return owned(host, live.epoch);
    const isContested = owner.epoch === live.epoch && owner.host !== host && owner.contestedBy !== host;
    return isContested ? { ...owner, contestedBy: host } : undefined;
  },

  /** Whether the other host has the room, by its reply, the epoch of its row. */
  isThere: (replyEpoch: number, epoch: number): boolean => replyEpoch > epoch,

  /** Whether the other host is queried before the owner is read. */
  asks: (move: Move): boolean => move.claiming,

  settle: ({ move, rowEpoch, host, said, owner, freedBy }: Known): { isHere: boolean; epoch: number } => {
    const hasNone = said !== null;
    const isForgotten = hasNone && owner?.host === move.to;
    const comesBack = owner === null && move.claiming && (hasNone || (freedBy !== null && freedBy !== move.to));
    const isOwnedThere = owner !== null && owner.host !== host && owner.epoch >= rowEpoch && !isForgotten;
    const isGone = owner === null ? move.claiming && !comesBack : isOwnedThere;
    if (isGone) return { isHere: false, epoch: rowEpoch };
    return {
      isHere: true,
      epoch: isForgotten ? Math.max(owner.epoch, rowEpoch) + 1 : comesBack ? move.epoch + 2 : rowEpoch,
    };
  },
};

export type Rules = typeof RULES;
