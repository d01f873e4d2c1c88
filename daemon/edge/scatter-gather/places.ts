/**
 * Positions of a reader in the chains of all hosts. A cursor has a position for each chain, by a short name. A host that was removed and
 * has joined again starts another chain, which has another name.
 */

import { createHash } from "node:crypto";
import type { Host } from "../../cluster/directory.ts";
import { makeCursor, readCursor } from "../../core/call/cursor.ts";
import { parseJson } from "../../core/json.ts";
import { ServiceError } from "../../core/service-error.ts";

/** The seq of the last known record, by chain name. */
export type Places = Record<string, number>;

export interface Position {
  places: Places;
  /** Time in ms from which a chain without a position is read; null: from its beginning. */
  since: number | null;
}

/** By host. */
const names = new Map<string, string>();

export function chainNameOf({ host_id, joined_at }: Pick<Host, "host_id" | "joined_at">): string {
  const host = `${host_id} ${joined_at}`;
  const name = names.get(host) ?? createHash("sha256").update(host).digest("base64url").slice(0, 6);
  names.set(host, name);
  return name;
}

/** Sorts in an order that is the same at every host: records of equal time are listed in it. */
export function byChain<Of extends { chain: string }>(all: readonly Of[]): Of[] {
  return all.toSorted((a, b) => (a.chain < b.chain ? -1 : 1));
}

/** A cursor that every host can read. */
export function cursorOf(kind: string, { places, since }: Position): string {
  return makeCursor(kind, JSON.stringify([since, places]));
}

/** Throws invalid_cursor. */
export function positionIn(kind: string, cursor: string): Position {
  const text = readCursor(kind, cursor) ?? "";
  try {
    const [since, places] = parseJson(text) as [unknown, unknown];
    if (isPlaces(places) && (since === null || (isCount(since) && since <= LAST_MS))) return { places, since };
  } catch (cause) {
    throw new ServiceError("invalid_cursor", { cause });
  }
  // The tag of a cursor is no secret: a client can forge it.
  throw new ServiceError("invalid_cursor");
}

/** The largest time that a date with a four-digit year can express. */
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function isPlaces(value: unknown): value is Places {
  return typeof value === "object" && value !== null && Object.values(value).every(isCount);
}
