/**
 * Shared state that only advances: ends, revocations and epochs. A cluster directory that was rolled back has lost some of it; the copy of
 * a host that has it keeps it, and it is written to the cluster directory again.
 */
import { ROLES, type Role } from "../../shared/api/people/members.ts";
import { parseJson } from "../core/json.ts";
import type { Queries } from "../db/client.ts";
import type { SharedRow, SharedRows } from "../db/shared-rows.ts";
import { removedAmong } from "./tombstones.ts";

type Row = Record<string, unknown>;

/** Columns of this host's row that the cluster directory's row must also have; null: none. */
type Merge = (here: Row, there: Row) => Row | null;

/** A timestamp that is set once and never cleared. */
const onceSet =
  (column: string): Merge =>
  (here, there) =>
    here[column] != null && there[column] == null ? { [column]: here[column] } : null;

const ONE_WAY: Readonly<Record<string, Merge>> = {
  api_keys: onceSet("revoked_at"),
  sessions: onceSet("ended_at"),
  orgs: onceSet("ended_at"),
  links: onceSet("used_at"),
  oauth_grants: onceSet("code_used_at"),
  oauth_tokens: onceSet("rotated_at"),
  // A host that joined again under the same name has another `joined_at`.
  hosts: (here, there) =>
    here.state === "gone" && there.state !== "gone" && here.joined_at === there.joined_at ? { state: "gone" } : null,
  placements: (here, there) =>
    Number(here.epoch) > Number(there.epoch)
      ? {
          host_id: here.host_id,
          epoch: here.epoch,
          contested_by: here.contested_by ?? null,
          moved_use: here.moved_use ?? null,
        }
      : null,
};

/**
 * Restrictions that can be lifted: a copy that is merely behind does not restore them. If the directory was set back, the copy is newer:
 * the stricter of both applies, and a restriction lifted since must be lifted again.
 */
const RESTRICTIONS: Readonly<Record<string, Merge>> = {
  api_keys: (here, there) => joined(onceSet("revoked_at")(here, there), earlierEnd(here, there)),
  ssh_keys: (here, there) => earlierEnd(here, there),
  users: onceSet("disabled_at"),
  memberships: (here, there) => (rank(here.role) > rank(there.role) ? { role: here.role } : null),
};

const earlierEnd: Merge = (here, there) =>
  here.expires_at != null && (there.expires_at == null || String(here.expires_at) < String(there.expires_at))
    ? { expires_at: here.expires_at }
    : null;
const joined = (one: Row | null, other: Row | null): Row | null => (one || other ? { ...one, ...other } : null);
/** Greater for fewer rights; unknown roles rank as having the fewest. */
const rank = (role: unknown): number => (ROLES.includes(role as Role) ? ROLES.indexOf(role as Role) : ROLES.length);

const parsed = (row: string) => parseJson(Buffer.from(row)) as Row;

/** Tables that lose a host's rows when it is removed (join-and-leave.ts). */
const OF_HOSTS: readonly string[] = ["placements", "org_use"];

/**
 * Merges rows of the directory into the rows for this host, and returns the rows that must be put into the directory again. A removed host
 * has no placements and no use: such rows are kept neither here nor there. Hosts must precede these rows. `isSetBack`: the copy has changes
 * that the directory lost, rather than being behind. Outside of a transaction.
 */
export function withOneWay<R extends SharedRow>(
  queries: Queries,
  shared: Pick<SharedRows, "read">,
  rows: readonly R[],
  isSetBack: boolean,
): { rows: R[]; again: R[] } {
  const again: R[] = [];
  const known = new Map<unknown, boolean>();
  const isGone = (hostId: unknown): boolean => {
    const host = known.has(hostId) ? null : shared.read({ tbl: "hosts", key: JSON.stringify([hostId]) });
    if (host !== null) known.set(hostId, parsed(host).state === "gone");
    return known.get(hostId) ?? false;
  };
  const merged = (row: R): R => {
    const kept = (isSetBack ? RESTRICTIONS[row.tbl] : undefined) ?? ONE_WAY[row.tbl];
    const here = kept && row.row !== null ? shared.read(row) : null;
    if (!kept || here === null || row.row === null) return row;
    const [there, own] = [parsed(row.row), parsed(here)];
    const fields = kept(own, there);
    if (fields === null || isGone(fields.host_id)) return row;
    const whole = { ...row, row: JSON.stringify({ ...there, ...fields }) };
    again.push(whole);
    return whole;
  };
  const removed = removedAmong(queries, rows);
  const isOver = (row: R): boolean =>
    removed.has(row) || (row.row !== null && OF_HOSTS.includes(row.tbl) && isGone(parsed(row.row).host_id));
  const left = (row: R): R => {
    if (!isOver(row)) return row;
    const none = { ...row, row: null };
    again.push(none);
    return none;
  };
  return { rows: rows.map((row) => left(merged(row))), again };
}
