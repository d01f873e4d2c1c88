/** The owner that a request names: a user of the guest, or numeric ids. */
import { StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { InvalidRequest } from "../exec/request.ts";
import { findImageUser, userFor } from "../exec/user.ts";
import { FileRefusal } from "./file-error.ts";

export interface Owner {
  uid: number;
  gid: number;
}

/** Null if the request names none. Throws InvalidRequest, FileRefusal. */
export function ownerOf(value: unknown): Owner | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== "string" || value === "") throw new InvalidRequest("owner must be a user, user:group, or null");
  const user = findImageUser(value);
  if (!user) throw new FileRefusal(StreamErrorCode.user_not_found, `no user ${value}`);
  return { uid: user.uid, gid: user.gid };
}

/** The default user of commands. */
export function usualOwner(): Owner {
  return userFor(null) ?? { uid: 0, gid: 0 };
}

/** Permission bits of a request; null if it has none. Throws InvalidRequest. */
export function modeOf(value: unknown): number | null {
  if (value === null || value === undefined) return null;
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0o7777) return value as number;
  throw new InvalidRequest("mode must be permission bits");
}
