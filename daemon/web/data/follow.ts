/**
 * Follows a stream of the API, such as events, a command's output or a terminal: lines of JSON, resumed after a disconnect, and closed
 * while the tab is hidden.
 *
 *     connecting ──▶ live ◀──▶ reconnecting        any ──▶ hidden (the tab) ──▶ connecting
 *                      └──▶ over
 */
import type { Problem } from "../../../shared/api/errors.ts";
import { backoffMs } from "../../../shared/backoff.ts";
import { Refused } from "./api.ts";
import { openStream } from "./socket.ts";
import { turn } from "./yield.ts";

export type Following = "connecting" | "live" | "reconnecting" | "hidden" | "over";

/** Why nothing more comes. */
export type Over = { why: "end" } | { why: "refused"; problem: Problem } | { why: "error"; detail: string };

export interface StreamLine {
  type: string;
  [field: string]: unknown;
}

export interface Follower {
  /** The path to request, from the reached position on. */
  path(): string;
  /** Returns true if it is the last event. The next event waits for a returned promise. */
  take(event: StreamLine): boolean | Promise<boolean>;
  /** Whether a refusal, or an error of the stream, was handled, so that the request is retried. */
  heal?(code: string): Promise<boolean>;
  became(state: Following): void;
  /** The request was refused, temporarily or permanently. */
  refused?(problem: Problem): void;
  /** The response has begun, with these headers. */
  opened?(headers: Headers): void;
  /** Data or a ping has arrived. */
  heard?(): void;
}

/** The daemon sends at least a ping every 15 s. */
const SILENCE_MS = 40_000;
/** After this much uninterrupted work the page yields for drawing and input. */
const BREATH_MS = 12;
const RETRY_MS = { first: 500, most: 10_000 } as const;

/** Resolves when the stream has ended; with null if `left` is aborted. */
export async function follow(follower: Follower, left: AbortSignal): Promise<Over | null> {
  let attempt = 0;
  while (!left.aborted) {
    if (document.hidden) {
      follower.became("hidden");
      await untilSeen(left);
      continue;
    }
    follower.became(attempt === 0 ? "connecting" : "reconnecting");
    const broken = new AbortController();
    const onHidden = () => broken.abort();
    document.addEventListener("visibilitychange", onHidden);
    try {
      const over = await readOnce(follower, AbortSignal.any([left, broken.signal]), broken, () => {
        attempt = 0;
      });
      if (over) {
        follower.became("over");
        return over;
      }
    } catch (error) {
      if (left.aborted) return null;
      if (error instanceof Refused && error.problem.status !== 0) {
        const { problem } = error;
        follower.refused?.(problem);
        if (await follower.heal?.(problem.code).catch(() => false)) continue;
        if (!problem.retryable) {
          follower.became("over");
          return { why: "refused", problem };
        }
      }
    } finally {
      document.removeEventListener("visibilitychange", onHidden);
    }
    if (left.aborted || document.hidden) continue;
    follower.became("reconnecting");
    await later(backoffMs(RETRY_MS, attempt++), left);
  }
  return null;
}

/** Null: the stream broke before its end. */
async function readOnce(
  follower: Follower,
  signal: AbortSignal,
  broken: AbortController,
  onReceived: () => void,
): Promise<Over | null> {
  let timer = setTimeout(() => broken.abort(), SILENCE_MS);
  try {
    const { headers, body } = await openStream(follower.path(), signal);
    follower.opened?.(headers);
    follower.became("live");
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of body) {
      clearTimeout(timer);
      timer = setTimeout(() => broken.abort(), SILENCE_MS);
      onReceived();
      follower.heard?.();
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      let since = performance.now();
      for (const line of lines) {
        if (line === "") continue;
        const event = JSON.parse(line) as StreamLine;
        if (event.type === "error") {
          if (event.retryable === true || (await follower.heal?.(String(event.code)).catch(() => false))) return null;
          return { why: "error", detail: String(event.detail) };
        }
        if (event.type !== "ping" && (await follower.take(event))) return { why: "end" };
        if (performance.now() - since < BREATH_MS) continue;
        await turn();
        since = performance.now();
      }
    }
    return null;
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves once the tab is visible again, or `left` is aborted. */
export function untilSeen(left: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      document.removeEventListener("visibilitychange", done);
      left.removeEventListener("abort", done);
      resolve();
    };
    document.addEventListener("visibilitychange", done);
    left.addEventListener("abort", done);
  });
}

/** Resolves after a delay, or when the network is back. */
export function later(ms: number, left: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      left.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
    left.addEventListener("abort", done);
  });
}
