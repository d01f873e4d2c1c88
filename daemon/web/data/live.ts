/**
 * Owns the one stream of events that a tab has: the records of a room, or of the organization, as they come. It is open while the tab
 * is seen, and goes on after the last event that was heard.
 *
 *   off ──▶ connecting ──▶ live ◀──▶ reconnecting        any ──▶ hidden (the tab) ──▶ connecting
 *                            └──▶ over (the room has ended), signed-out
 */
import { signal } from "@preact/signals";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { ask, pathOf, Refused, signedOut } from "./api.ts";

export type LiveState = "off" | "connecting" | "live" | "reconnecting" | "hidden" | "over" | "signed-out";

export const liveState = signal<LiveState>("off");
/** When something was last heard, pings too. */
export const heardAt = signal(Date.now());

/** The daemon says something every 15 s. */
const SILENCE_MS = 40_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;

/** What is heard: records, the newest last; null: some were missed, so that all must be asked for anew. */
export type Listener = (records: readonly AuditRecord[] | null) => void;

const listeners = new Set<Listener>();
/** What comes between two frames is told at once. */
let waiting: AuditRecord[] = [];
let isScheduled = false;

let followed: { path: string; after: string | null; room: boolean } | null = null;
let run: AbortController | null = null;
let opened = Promise.withResolvers<void>();

/** Returns how to stop listening. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** What is asked once this has resolved is older than no event that is not heard. It waits a second at most. */
export function whenOpen(): Promise<unknown> {
  return Promise.race([opened.promise, new Promise((resolve) => setTimeout(resolve, 1000))]);
}

/** Follows a room, or the organization where it is null. */
export function follow(roomId: string | null): void {
  const path = roomId === null ? "/v1/orgs/self/events" : `/v1/rooms/${encodeURIComponent(roomId)}/events`;
  if (followed?.path === path) return;
  followed = { path, after: null, room: roomId !== null };
  restart();
}

function restart(): void {
  run?.abort();
  run = null;
  opened = Promise.withResolvers();
  if (!followed) return;
  if (document.hidden) {
    liveState.value = "hidden";
    opened.resolve();
    return;
  }
  run = new AbortController();
  void keepFollowing(followed, run.signal);
}

document.addEventListener("visibilitychange", restart);
// A laptop that wakes up has a connection that nobody else knows of.
addEventListener("online", restart);

async function keepFollowing(what: NonNullable<typeof followed>, signal: AbortSignal): Promise<void> {
  let retryMs = FIRST_RETRY_MS;
  liveState.value = "connecting";
  while (!signal.aborted) {
    try {
      const end = await readOnce(what, signal, () => {
        retryMs = FIRST_RETRY_MS;
      });
      if (end === "over") {
        liveState.value = "over";
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      const code = error instanceof Refused ? error.problem.code : null;
      if (signedOut.value) {
        liveState.value = "signed-out";
        opened.resolve();
        return;
      }
      if (code === "room_not_found") {
        liveState.value = "over";
        opened.resolve();
        return;
      }
      if (code === "history_gone" || code === "invalid_cursor") {
        what.after = null;
        tell(null);
        continue;
      }
    }
    if (signal.aborted) return;
    liveState.value = "reconnecting";
    opened.resolve();
    await later(retryMs * (0.75 + Math.random() / 2), signal);
    retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
  }
}

/** Until it breaks. Where nothing was heard before, what happened meanwhile is not known. */
async function readOnce(
  what: NonNullable<typeof followed>,
  signal: AbortSignal,
  heard: () => void,
): Promise<"over" | "broken"> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const isAgain = liveState.value === "reconnecting";
  try {
    const either = AbortSignal.any([signal, silence.signal]);
    const response = await ask(pathOf(what.path, { after: what.after }), { Accept: "application/x-ndjson" }, either);
    liveState.value = "live";
    heardAt.value = Date.now();
    opened.resolve();
    if (isAgain && what.after === null) tell(null);
    let rest = "";
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      heardAt.value = Date.now();
      heard();
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const event = JSON.parse(line);
        if (event.type === "error") return "broken";
        if (event.type !== undefined) continue;
        what.after = what.room ? String(event.seq) : event.cursor;
        waiting.push(event);
        if (what.room && event.event === "room.destroyed" && event.outcome === "success") {
          schedule();
          return "over";
        }
      }
      if (waiting.length > 0) schedule();
    }
    return "broken";
  } finally {
    clearTimeout(timer);
  }
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    const heard = waiting;
    waiting = [];
    tell(heard);
  });
}

function tell(records: readonly AuditRecord[] | null): void {
  for (const listener of listeners) listener(records);
}

function later(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
