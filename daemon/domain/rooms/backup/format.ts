/**
 * Owns the form of a room's backup file: that of a move (move/format.ts) with another first line, and with nothing in it but what the
 * database has and the drive. Anybody may have written one.
 *
 *   {"roomd_room_backup":1,"about":…}   what the room was
 *   {"file":"state",…} …                what the database has of it, a row in each line
 *   {"file":"entries",…} …              and the rest as in a move
 */
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { leftOut } from "../../../../shared/api/room-backups.ts";
import { labels } from "../../../../shared/api/rooms.ts";
import { NAME_PATTERN } from "../../../../shared/ids.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { isMoment } from "../../../db/foreign.ts";
import { NotWhole } from "../move/format.ts";

export const BACKUP_FORMAT = 1;
/** Of what the database has of a room, in its file, and of one row in it. */
export const MOST_STATE_BYTES = 512 * 1024 ** 2;
export const MOST_ROW_BYTES = 4 * 1024 ** 2;
/** What guests may have more on their drive than it may have, before they are stopped. */
export const BEYOND = { bytes: 64 * 1024 ** 2, entries: 10_000 };

const MOST_SECONDS = 31_536_000;

const backedUp = Type.Object(
  {
    room_id: Type.String({ pattern: NAME_PATTERN }),
    labels,
    /** How long it was to live; null: until it is ended. */
    ttl_seconds: Type.Union([Type.Null(), Type.Integer({ minimum: 1, maximum: MOST_SECONDS })]),
    made_at: Type.String({ maxLength: 32 }),
    drive_bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    left_out: leftOut,
  },
  { additionalProperties: false },
);
export type BackedUp = Static<typeof backedUp>;

export const opening = (about: BackedUp): object => ({ roomd_room_backup: BACKUP_FORMAT, about });

/** More is not told. */
const MOST_ERRORS = 20;

/** Throws NotWhole; invalid_body with all fields that are none. */
export function readOpening(line: string): BackedUp {
  const said = objectOf(line);
  const { roomd_room_backup: format, about } = said;
  if (!Number.isSafeInteger(format)) throw new NotWhole("it does not begin as a room's file does");
  if (format !== BACKUP_FORMAT) throw new NotWhole("it is of a form that this roomd does not know");
  const bad = [...Value.Errors(backedUp, about)].slice(0, MOST_ERRORS);
  if (bad.length > 0) {
    throw new ServiceError("invalid_body", {
      detail: "What the file says of its room is none that a roomd has written.",
      errors: bad.map(({ path, message }) => ({
        field: `about${path.replaceAll("/", ".")}`.slice(0, 128),
        code: "invalid_value",
        message,
      })),
    });
  }
  const known = about as BackedUp;
  const isPast = isMoment(known.made_at) && Date.parse(known.made_at) >= EARLIEST;
  if (!isPast) throw new NotWhole("it does not say when it was made");
  return known;
}

const EARLIEST = Date.parse("2020-01-01T00:00:00.000Z");

function objectOf(line: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(line));
  } catch (cause) {
    throw new NotWhole("it does not begin as a room's file does", { cause });
  }
}
