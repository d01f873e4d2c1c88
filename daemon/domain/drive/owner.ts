/** The owner that a write names: numbers, as a drive has no user names of its own. Guests see the same numbers. */
import type { RuleBreak } from "../../core/call/operation.ts";
import type { GuestOwner } from "../../host/files/open-file.ts";
import { DRIVE_RANGE } from "../../host/isolation/ids.ts";

/** `uid:gid`, or a uid that is the gid too. */
const NUMBERS = /^(\d{1,10})(?::(\d{1,10}))?$/;

/** The rule for a field that names an owner; an absent field breaks none. */
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

/** Undefined if absent: root of the guests then. Of text that the rule has let through. */
export function parseOwner(owner: string | undefined): GuestOwner | undefined {
  return owner === undefined ? undefined : (read(owner) ?? undefined);
}

function read(owner: string): GuestOwner | null {
  if (owner === "root" || owner === "root:root") return { uid: 0, gid: 0 };
  const [, uid, gid = uid] = NUMBERS.exec(owner) ?? [];
  return uid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}
