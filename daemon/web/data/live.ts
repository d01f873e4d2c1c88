/**
 * The one event stream of a tab: the records of a room, or of the organization, as they arrive. It is open while the tab is visible, and
 * resumes after the last received event. Connection handling is in follow.ts.
 */
import { signal } from "@preact/signals";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import { part, pathOf, signedOut } from "./api.ts";
import { type Following, follow as followStream, later } from "./follow.ts";
import { type Heard, LEAST_MS, latenessOf } from "./freshness.ts";

/** `off`: nothing is followed yet. `signed-out`: the session has ended. */
export type LiveState = Following | "off" | "signed-out";

export const liveState = signal<LiveState>("off");
/** Why the followed stream is currently refused; null: it is not. */
export const refusal = signal<Problem | null>(null);

/** Whether a room is temporarily unreachable: it moves to another host, or its host does not respond. */
export const isAway = (problem: Problem | null): problem is Problem =>
  problem?.code === "room_moving" || problem?.code === "host_unreachable";
/** When data or a ping last arrived. */
let heardAt = Date.now();
let lateMs = 0;
let lateTimer: ReturnType<typeof setTimeout> | undefined;
/** How far this browser's clock is ahead of the service's, to a second. */
let aheadMs = 0;

/** Receives records, the newest last; null: some were missed, so that all must be reloaded. */
export type Listener = (records: readonly AuditRecord[] | null) => void;

/** Without old records for this long, the page counts as up to date. */
const CAUGHT_UP_MS = 2000;
/** After an error of the stream that does not state whether a retry can help. */
const AGAIN_MS = 2000;

const listeners = new Set<Listener>();
/** Records that arrive between two frames are delivered together. */
let waiting: AuditRecord[] = [];
let isScheduled = false;

let followed: string | null = null;
let run: AbortController | null = null;
let opened = Promise.withResolvers<void>();

/** Returns how to stop listening. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** For the display of the lag. */
export const heardSoFar = (): Heard => ({ isOpen: liveState.peek() === "live", heardAt, lateMs });

/** Once this resolves, the stream delivers every event that the answer to a later request does not include. Waits a second at most. */
export function whenOpen(): Promise<unknown> {
  return Promise.race([opened.promise, new Promise((resolve) => setTimeout(resolve, 1000))]);
}

/** Follows a room, or the organization if null. */
export function follow(roomId: string | null): void {
  const path = roomId === null ? "/v1/orgs/self/events" : `/v1/rooms/${part(roomId)}/events`;
  if (followed === path) return;
  followed = path;
  refusal.value = null;
  run?.abort();
  waiting = [];
  run = new AbortController();
  opened = Promise.withResolvers();
  void keepFollowing(path, roomId !== null, run.signal);
}

async function keepFollowing(path: string, isOfRoom: boolean, left: AbortSignal): Promise<void> {
  let after: string | null = null;
  /** The room has moved to another host: that host serves the next events. */
  let hasMoved = false;
  /** The host that serves the stream. */
  let host: string | null = null;
  /** Whether the stream was open before. If it has delivered no event yet, the events during a disconnect are unknown. */
  let wasOpen = false;
  const follower: Parameters<typeof followStream>[0] = {
    path: () => pathOf(path, { after }),
    take: (event) => {
      // An event of a stream that is no longer followed.
      if (left.aborted) return true;
      const record = event as unknown as AuditRecord & { cursor: string };
      after = isOfRoom ? String(record.seq) : record.cursor;
      waiting.push(record);
      schedule();
      if (!isOfRoom || record.outcome !== "success") return false;
      hasMoved = /^room\.moved(?:_out)?$/.test(record.event);
      return hasMoved || record.event === "room.destroyed";
    },
    heal: async (code) => {
      if (code !== "history_gone" && code !== "invalid_cursor") return false;
      after = null;
      tell(null);
      return true;
    },
    refused: (problem) => {
      if (!left.aborted) refusal.value = problem;
    },
    opened: (headers) => {
      if (!left.aborted) refusal.value = null;
      const now = headers.get("x-roomd-host");
      // A room that has moved: each host has its own sequence.
      if (host !== null && host !== now) {
        after = null;
        tell(null);
      }
      host = now;
      const date = Date.parse(headers.get("date") ?? "");
      if (!Number.isNaN(date)) aheadMs = Date.now() - date;
    },
    heard: () => {
      heardAt = Date.now();
    },
    became: (state) => {
      if (left.aborted) return;
      if (state === "live") {
        heardAt = Date.now();
        if (wasOpen && after === null) tell(null);
        wasOpen = true;
      }
      // The reason for the end is unknown here: after an error the stream is reopened.
      if (state !== "over") liveState.value = state;
      if (state !== "connecting") opened.resolve();
    },
  };
  while (!left.aborted) {
    const over = await followStream(follower, left);
    if (left.aborted || !over) return;
    if (hasMoved) {
      hasMoved = false;
      after = null;
      continue;
    }
    liveState.value = signedOut.value ? "signed-out" : over.why === "error" ? "reconnecting" : "over";
    if (signedOut.value || over.why !== "error") return;
    await later(AGAIN_MS, left);
  }
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    const batch = waiting;
    waiting = [];
    noteLateness(batch);
    tell(batch);
  });
}

function noteLateness(records: readonly AuditRecord[]): void {
  const newest = records.at(-1);
  const ms = newest ? latenessOf(newest, Date.now(), aheadMs) : null;
  if (ms === null) return;
  clearTimeout(lateTimer);
  lateMs = ms;
  if (ms < LEAST_MS) return;
  lateTimer = setTimeout(() => {
    lateMs = 0;
  }, CAUGHT_UP_MS);
}

function tell(records: readonly AuditRecord[] | null): void {
  for (const listener of listeners) listener(records);
}
