/**
 * Format of a room's file, which holds a complete room: its database state, and its drive in the format of a store (drive-store.ts). It is
 * one stream of JSON lines and the bytes that a line announces:
 *
 *     {"roomd_room":1,"about":…}               description of the room
 *     {"file":"state","size":…}                its database state, in lines (checkpoints/room-state.ts)
 *     {"at":0,"bytes":…} bytes …               gaps between pieces are holes
 *     {"file":"entries","size":…} …            the list of the drive's entries
 *     {"file":17,"size":…} …                   contents of the drive's files, by their numbers in the list
 *     {"file":"snapshots/…","size":…} …        other files of the room, by their paths in it (artifacts.ts)
 *     {"link":"snapshots/…","to":"…"}          another name of the same file
 *     {"same":"sandboxes/…","digest":"…"}      a template file, which the other host has
 *     {"end":{"files":…,"sha256":"…"}}         over everything before it
 *
 * It contains no host paths: files of a drive have numbers, and names that guests have chosen are in the list alone.
 */

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { labels } from "../../../../shared/api/rooms.ts";
import { ROOM_UID_PATTERN } from "../../../../shared/ids.ts";
import { parseJson } from "../../../core/json.ts";

export const FORMAT = 2;
/** Maximum of one piece of a file. */
export const PIECE_BYTES = 1024 * 1024;
/** Maximum of one line: labels may be long. */
export const MAX_LINE_BYTES = 256 * 1024;

const moment = Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT[\\d:.]{8,16}Z$" });
const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const text = Type.String({ maxLength: 1024 });

/** Head of an audit chain. */
const head = Type.Union([Type.Null(), Type.Object({ seq: count, hash: Type.String({ maxLength: 64 }) })]);

export const about = Type.Object({
  room: Type.Object({
    room_uid: Type.String({ pattern: ROOM_UID_PATTERN }),
    room_id: text,
    org_id: text,
    labels,
    drive_limit_bytes: count,
    created_at: moment,
    updated_at: moment,
    expires_at: Type.Union([Type.Null(), moment]),
    created_by_type: text,
    created_by_id: text,
    keep_drive: Type.Boolean(),
    former_ids: Type.Array(text, { maxItems: 1000 }),
  }),
  /** Previous owner and its epoch. */
  from: text,
  epoch: count,
  head,
  drive_bytes: count,
  /** Bytes of its other files: snapshots, checkpoints, recordings, and sandboxes that are carried along. */
  other_bytes: count,
});
export type RoomHeader = Static<typeof about>;

const first = Type.Object({ roomd_room: Type.Literal(FORMAT), about });
/** Relative path that cannot leave the room's directory. */
const place = Type.String({
  pattern: "^(snapshots|checkpoints|recordings|sandboxes)(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}){1,5}$",
});
const sha256 = Type.String({ pattern: "^[0-9a-f]{64}$" });
const file = Type.Object({
  file: Type.Union([Type.Literal("state"), Type.Literal("entries"), count, place]),
  size: count,
});
const link = Type.Object({ link: place, to: place });
const same = Type.Object({ same: place, digest: sha256 });
const piece = Type.Object({ at: count, bytes: Type.Integer({ minimum: 1, maximum: PIECE_BYTES }) });
const end = Type.Object({ end: Type.Object({ files: count, sha256 }) });

const line = Type.Union([file, piece, link, same, end]);
export type Line = Static<typeof line>;
export type FileName = Static<typeof file>["file"];

export class NotWhole extends Error {
  override name = "NotWhole";
}

/** Throws NotWhole. */
export function readFirst(given: string): RoomHeader {
  const value = parsed(given);
  if (Value.Check(first, value)) return value.about;
  throw new NotWhole("the format of the room is unknown to this roomd");
}

/** Throws NotWhole. */
export function readLine(given: string): Line {
  const value = parsed(given);
  if (Value.Check(line, value)) return value;
  throw new NotWhole("a line of the room file is malformed");
}

function parsed(given: string): unknown {
  try {
    return parseJson(given);
  } catch (cause) {
    throw new NotWhole("a line of the room file is malformed", { cause });
  }
}
