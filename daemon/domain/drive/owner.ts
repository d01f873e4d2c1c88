/** Owner in a write: numbers, since a drive has no user names. Guests see the same numbers. */
import type { RuleBreak } from "../../core/call/operation.ts";
import type { GuestOwner } from "../../host/files/open-file.ts";
import { DRIVE_RANGE } from "../../host/isolation/ids.ts";

/** `uid:gid`, or a uid that is also the gid. */
const NUMBERS = /^(\d{1,10})(?::(\d{1,10}))?$/;

/** Rule for an owner field; an absent field breaks none. */
export function ownerRule(owner: string | undefined): RuleBreak[] {
  if (owner === undefined) return [];
  const parsed = read(owner);
  if (parsed === null) {
    const message = `A drive knows no user names but root: send uid:gid, such as 1000:1000. \`id ${owner.split(":")[0]}\` in a sandbox shows them.`;
    return [{ field: "owner", code: "pattern", message }];
  }
  const most = DRIVE_RANGE - 1;
  if (Math.max(parsed.uid, parsed.gid) <= most) return [];
  return [{ field: "owner", code: "out_of_range", message: `uid and gid must be at most ${most}.`, min: 0, max: most }];
}

/** Parses a text that ownerRule has accepted. Undefined if absent: root of the guests. */
export function parseOwner(owner: string | undefined): GuestOwner | undefined {
  return owner === undefined ? undefined : (read(owner) ?? undefined);
}

function read(owner: string): GuestOwner | null {
  if (owner === "root" || owner === "root:root") return { uid: 0, gid: 0 };
  const [, uid, gid = uid] = NUMBERS.exec(owner) ?? [];
  return uid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}
