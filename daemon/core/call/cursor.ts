/** Cursors of lists: opaque to clients, with a tag that detects edited ones. */
import { createHash } from "node:crypto";
import { ServiceError } from "../service-error.ts";

const TAG_LENGTH = 8;

/** Creates a cursor that is valid only for `readCursor` of the same kind. */
export function makeCursor(kind: string, position: string): string {
  return `${Buffer.from(position).toString("base64url")}.${tagOf(kind, position)}`;
}

/** The position in a cursor; null without a cursor. Throws invalid_cursor. */
export function readCursor(kind: string, cursor: string | undefined): string | null {
  if (cursor === undefined) return null;
  const [encoded = ""] = cursor.split(".");
  const position = Buffer.from(encoded, "base64url").toString();
  if (cursor !== makeCursor(kind, position)) throw new ServiceError("invalid_cursor");
  return position;
}

/**
 * A page of up to `limit` rows, from a query for `limit` + 1: the rows to show, and the cursor of the next page. `positionOf` returns a
 * row's position in the list's order.
 */
export function toPage<Row>(
  kind: string,
  rows: readonly Row[],
  limit: number,
  positionOf: (row: Row) => string,
): { rows: Row[]; next_cursor: string | null } {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return { rows: rows.slice(0, limit), next_cursor: last ? makeCursor(kind, positionOf(last)) : null };
}

function tagOf(kind: string, position: string): string {
  return createHash("sha256").update(`${kind}\0${position}`).digest("base64url").slice(0, TAG_LENGTH);
}
