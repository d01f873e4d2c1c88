/** Cursors of drive lists: the last path of a page. A checksum detects an edited cursor. */
import { ServiceError } from "../../core/service-error.ts";
import type { RawPath } from "../../host/files/raw-path.ts";

const CHECK_BYTES = 8;

/** A cursor that continues after `last` in the list identified by `list`. */
export function writeCursor(list: string, last: RawPath): string {
  return Buffer.concat([checksum(list, last), Buffer.from(last, "latin1")]).toString("base64url");
}

/** The last path of the previous page. Throws invalid_cursor. */
export function readCursor(list: string, cursor: string): RawPath {
  const bytes = Buffer.from(cursor, "base64url");
  const last = bytes.toString("latin1", CHECK_BYTES) as RawPath;
  const whole = bytes.length > CHECK_BYTES && bytes.toString("base64url") === cursor;
  if (!whole || !checksum(list, last).equals(bytes.subarray(0, CHECK_BYTES))) throw new ServiceError("invalid_cursor");
  return last;
}

function checksum(list: string, last: RawPath): Buffer {
  const hash = new Bun.CryptoHasher("sha256").update(JSON.stringify([list, last]));
  return Buffer.from(hash.digest()).subarray(0, CHECK_BYTES);
}
