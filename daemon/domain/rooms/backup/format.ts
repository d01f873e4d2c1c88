/**
 * Format of a room's backup file: that of a move (move/format.ts) with a different first line, and containing only the database state, the
 * drive, and the same of checkpoints. The file is untrusted.
 *
 *     {"roomd_room_backup":1,"about":…}   description of the room
 *     {"file":"state",…} …                its database state, a row in each line
 *     {"file":"entries",…} …              and the rest as in a move
 */

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { MAX_CHECKPOINTS } from "../../../../shared/api/checkpoints.ts";
import { leftOut } from "../../../../shared/api/room-backups.ts";
import { labels } from "../../../../shared/api/rooms.ts";
import { MAX_SNAPSHOT_SECONDS } from "../../../../shared/api/snapshots.ts";
import { NAME_PATTERN } from "../../../../shared/ids.ts";
import { wallMs } from "../../../core/clock.ts";
import { parseJson } from "../../../core/json.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { CLOCKS_APART_MS, isMomentBy } from "../../../db/untrusted-rows.ts";
import { NotWhole } from "../move/format.ts";

export const BACKUP_FORMAT = 1;
/** Limits of a room's database state in its file, and of one row in it. */
export const MAX_STATE_BYTES = 512 * 1024 ** 2;
/** Maximum rows of all tables together: one commit inserts them, which blocks the event loop for about a second. */
export const MAX_STATE_ROWS = 300_000;
export const MAX_ROW_BYTES = 4 * 1024 ** 2;
/** By how much guests may exceed the drive's limits before they are stopped. */
export const BEYOND = { bytes: 64 * 1024 ** 2, entries: 10_000 };

const MAX_SECONDS = 31_536_000;

const ID = "chk_[0-9A-Z]{26}";
/** Paths of a checkpoint's files that may be in a backup. */
export const OF_CHECKPOINT = new RegExp(
  `^checkpoints/${ID}/(state\\.ndjson|drive/entries\\.ndjson|drive/contents/[0-9a-f]{2}/(0|[1-9]\\d{0,14}))$`,
);

const savedCheckpoint = Type.Object(
  {
    checkpoint_id: Type.String({ pattern: `^${ID}$` }),
    name: Type.Union([Type.Null(), Type.String({ minLength: 1, maxLength: 128 })]),
    cut_at: Type.String({ maxLength: 32 }),
    /** Counted from the creation of the file. */
    expires_in_seconds: Type.Integer({ minimum: 1, maximum: MAX_SNAPSHOT_SECONDS }),
    drive_bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  },
  { additionalProperties: false },
);
export type SavedCheckpoint = Static<typeof savedCheckpoint>;

const backedUp = Type.Object(
  {
    room_id: Type.String({ pattern: NAME_PATTERN }),
    labels,
    /** Lifetime from creation to expiry; null: unlimited. */
    ttl_seconds: Type.Union([Type.Null(), Type.Integer({ minimum: 1, maximum: MAX_SECONDS })]),
    made_at: Type.String({ maxLength: 32 }),
    drive_bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    checkpoints: Type.Array(savedCheckpoint, { maxItems: MAX_CHECKPOINTS }),
    left_out: leftOut,
  },
  { additionalProperties: false },
);
export type BackedUp = Static<typeof backedUp>;

export const opening = (about: BackedUp): object => ({ roomd_room_backup: BACKUP_FORMAT, about });

/** Limit of errors that are reported. */
const MAX_ERRORS = 20;

/** Throws NotWhole; invalid_body with all invalid fields. */
export function readOpening(line: string): BackedUp {
  const header = objectOf(line);
  const { roomd_room_backup: format, about } = header;
  if (!Number.isSafeInteger(format)) throw new NotWhole("it does not begin with the header of a room file");
  if (format !== BACKUP_FORMAT) throw new NotWhole("its format is unknown to this roomd");
  const bad = [...Value.Errors(backedUp, about)].slice(0, MAX_ERRORS);
  if (bad.length > 0) {
    throw new ServiceError("invalid_body", {
      detail: "Not a valid room file: its room record is malformed.",
      errors: bad.map(({ path, message }) => ({
        field: `about${path.replaceAll("/", ".")}`.slice(0, 128),
        code: "invalid_value",
        message,
      })),
    });
  }
  const known = about as BackedUp;
  const latest = wallMs() + CLOCKS_APART_MS;
  if (!isBetween(EARLIEST, known.made_at, latest)) throw new NotWhole("its creation time is missing or impossible");
  if (!known.checkpoints.every(({ cut_at }) => isBetween(EARLIEST, cut_at, latest)))
    throw new NotWhole("the time of one of its checkpoints is impossible");
  if (new Set(known.checkpoints.map(({ checkpoint_id }) => checkpoint_id)).size < known.checkpoints.length)
    throw new NotWhole("it has two checkpoints with the same id");
  return known;
}

const EARLIEST = Date.parse("2020-01-01T00:00:00.000Z");

const isBetween = (least: number, moment: string, most: number) =>
  isMomentBy(most)(moment) && Date.parse(moment) >= least;

function objectOf(line: string): Record<string, unknown> {
  try {
    return Object(parseJson(line));
  } catch (cause) {
    throw new NotWhole("it does not begin with the header of a room file", { cause });
  }
}

/** For a room, or one of its checkpoints. Throws quota_exceeded. */
export function requireStateFits({ bytes, rows }: { bytes: number; rows: number }): void {
  if (bytes > MAX_STATE_BYTES) throw tooMuch(bytes);
  if (rows > MAX_STATE_ROWS) throw tooMany(rows);
}

function tooMany(rows: number): ServiceError {
  return new ServiceError("quota_exceeded", {
    detail: `The room has ${rows} messages, deliveries, barriers and agents; a room file can have ${MAX_STATE_ROWS} of them.`,
    details: { limit: "room_file", used: rows, cap: MAX_STATE_ROWS },
  });
}

function tooMuch(bytes: number): ServiceError {
  return new ServiceError("quota_exceeded", {
    detail: `The room's messages, barriers and agents take ${bytes} bytes; a room file can have ${MAX_STATE_BYTES} of them.`,
    details: { limit: "room_file", used: bytes, cap: MAX_STATE_BYTES },
  });
}
