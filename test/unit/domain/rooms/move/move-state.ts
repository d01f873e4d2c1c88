/**
 * State of the model of a room's move: two hosts, one room and the directory, with the processes that a crash ends. Changes of the directory go by
 * rounds, as in daemon/cluster/rounds.ts.
 */
import { type Directory, HOSTS, type HostId, type Owner, type Row, type Rules } from "./move-rules.ts";

export const other = (host: HostId): HostId => (host === "host-1" ? "host-2" : "host-1");

/** A room's file on the host that it goes to: the epoch of its sender, and whether it has all acknowledged writes. */
export interface File {
  epoch: number;
  isFresh: boolean;
  /** The sender waits for the answer. */
  isOpen: boolean;
}

/** A process of sendRoom: its next step, by the rules' order. */
export interface Leaving {
  next: number;
  epoch: number;
  said: number | null;
}

/** A process of settleMove. `isCertain`: the owner is read from the directory and not from the copy. */
export interface Settling {
  at: "asking" | "owner" | "decided";
  isCertain: boolean;
  said: number | null;
  decision: { isHere: boolean; epoch: number } | null;
}

/** A process of Arrivals.settle; `isAsked`: the other host waits for the answer. */
export interface Taking {
  at: "first" | "refuse" | "again" | "place" | "clean";
  isAsked: boolean;
}

export interface Host {
  isUp: boolean;
  hasFollowed: boolean;
  copy: Pick<Directory, "owner" | "gone">;
  row: Row | null;
  /** The data of the row have all acknowledged writes. */
  isFresh: boolean;
  reading: File | null;
  arriving: File | null;
  leaving: Leaving | null;
  settling: Settling | null;
  taking: Taking | null;
}

export interface State {
  directory: Directory;
  /** The state to which the directory can be rolled back. */
  before: Directory | null;
  hosts: Readonly<Record<HostId, Host>>;
  hasEnded: boolean;
  /** The host with the only whole copy was removed by force. */
  isLost: boolean;
  moves: number;
  forgets: number;
  removals: number;
  crashes: number;
}

/** How many moves, directories that are set back, removals and crashes there are at most. */
export type Budget = Pick<State, "moves" | "forgets" | "removals" | "crashes">;

export interface Step {
  name: string;
  host: HostId;
  /** A fault, or an action of a user: a state has to reach an end without these. */
  isChoice: boolean;
  to: State;
}

export function startState(budget: Budget): State {
  const owner = { host: "host-1", epoch: 1, contestedBy: null } as const;
  const idle = { isUp: true, hasFollowed: true, copy: { owner, gone: null }, isFresh: false, reading: null };
  const host: Host = { ...idle, row: null, arriving: null, leaving: null, settling: null, taking: null };
  return {
    ...{ directory: { owner, freedBy: null, gone: null }, before: null, hasEnded: false, isLost: false, ...budget },
    hosts: { "host-1": { ...host, isFresh: true, row: { state: "active", epoch: 1, move: null } }, "host-2": host },
  };
}

export const withHost = (state: State, host: HostId, change: Partial<Host>): State => ({
  ...state,
  hosts: { ...state.hosts, [host]: { ...state.hosts[host], ...change } },
});

export function withDirectory(state: State, change: Partial<Directory>): State {
  const directory = { ...state.directory, ...change };
  if (JSON.stringify(directory) === JSON.stringify(state.directory)) return state;
  const next = { ...state, directory, before: state.forgets > 0 ? state.directory : null };
  return directory.gone !== null && state.directory.gone === null ? withLoss(state, next, directory.gone) : next;
}

/** The removal of a host that has the room, or has read that the room is its own, loses the room, and the end of the room too. */
function withLoss(before: State, after: State, host: HostId): State {
  const { row, taking } = before.hosts[host];
  const isOwner = before.directory.owner?.host === host;
  const hadIt = (row?.state === "active" && row.move?.claiming !== true) || taking?.at === "place";
  const isLost = before.isLost || !isKept(after) || hadIt || (isOwner && before.hasEnded);
  return { ...after, isLost, hasEnded: before.hasEnded && !isOwner };
}

export const placed = (state: State, owner: Owner | null, by: HostId): State =>
  withDirectory(state, { owner, freedBy: owner === null ? by : null });

/** Brings a host's copy up to date; a member writes rows again that the directory has lost. */
export function followed(state: State, host: HostId, rules: Rules): State {
  const { directory, hosts } = state;
  const merged = rules.merge(hosts[host].copy, directory);
  const isFreed = merged.owner === null && directory.owner !== null;
  const freedBy = isFreed ? rules.freed(host, directory.owner?.host ?? host) : directory.freedBy;
  const next = directory.gone === host ? state : withDirectory(state, { ...merged, freedBy });
  return withHost(next, host, { copy: merged, hasFollowed: true });
}

/** A change of the directory by a host; null: it is no member. */
export function round(
  state: State,
  host: HostId,
  rules: Rules,
  change: (state: State) => State = (same) => same,
): State | null {
  if (state.directory.gone === host) return null;
  const before = followed(state, host, rules);
  if (before.directory.gone === host) return null;
  const after = change(before);
  const { owner, gone } = after.directory;
  return withHost(after, host, { copy: { owner, gone } });
}

/** Whether a host answers calls about the room: calls that change something, or reads. */
export function answers(state: State, host: HostId, rules: Rules, isChange: boolean): boolean {
  const { isUp, row, copy, hasFollowed } = state.hosts[host];
  if (!isUp || row?.state !== "active" || row.move !== null) return false;
  const isMember = copy.gone !== host;
  if (isChange && !(isMember && hasFollowed)) return false;
  return rules.mayAnswer(row.epoch, copy.owner, host, isMember);
}

/** Whether a member has the room, or is the owner of its file. */
export function isKept({ hosts, directory: { gone, owner } }: State): boolean {
  return HOSTS.some((host) => {
    const { row, arriving } = hosts[host];
    return gone !== host && (row?.state === "active" || (arriving !== null && owner?.host === host));
  });
}
