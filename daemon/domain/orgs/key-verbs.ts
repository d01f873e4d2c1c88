/** Operations on an organization's API keys: create, list, rotate, revoke. */

import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import { DEFAULT_GRACE_SECONDS, keyCreate, keyList, keyRevoke, keyRotate } from "../../../shared/api/orgs.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { readCursor, toPage } from "../../core/call/cursor.ts";
import { type Bound, bind, type Caller, type KeyCall } from "../../core/call/operation.ts";
import { after, now } from "../../core/clock.ts";
import { loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { grantBy, isSeenBy, requireGivable } from "./grant.ts";
import { newKey, rotationOf, toRecord } from "./keys.ts";
import { countsOf, detailsOf } from "./made.ts";
import type { OrgChanges } from "./org-changes.ts";
import { getKeyOf, listKeysBefore } from "./store.ts";
import type { KeyRow } from "./table.ts";

const CURSOR = "keys";

export interface KeyVerbDeps {
  database: Database;
  changes: OrgChanges;
  /** Row of a key with its last use. */
  withUse(row: KeyRow): KeyRow;
  /** Called when a key has ended, and the audit record is written. */
  onEnded(): void;
}

/** A person without `keys:write` sees the keys that the person made, also if another person has rotated them. */
export function isKeySeen(queries: Queries, caller: Caller, row: KeyRow): boolean {
  const { session } = caller;
  if (!session || session.gives.includes("keys:write")) return isSeenBy(caller, row);
  const first = row.first_key_id === null ? row : getKeyOf(queries, caller.org_id, row.first_key_id);
  return first?.created_by_id === caller.key_id;
}

export function makeKeyVerbs({ database, changes, withUse, onEnded }: KeyVerbDeps): Bound[] {
  const shown = (row: KeyRow) => toRecord(withUse(row));
  /** Also for a key bound to rooms: it sees the keys within them. */
  const find = ({ caller }: KeyCall, params: Record<string, string>): OrgId => {
    const { org_id } = params;
    if (org_id !== "self" && org_id !== caller.org_id) throw new ServiceError("org_not_found");
    return caller.org_id;
  };
  const isSeen = (caller: Caller, row: KeyRow) => isKeySeen(database.queries, caller, row);
  const findKey = (call: KeyCall, params: Record<string, string>): KeyRow => {
    const row = getKeyOf(database.queries, find(call, params), String(params.key_id));
    if (!row || row.kind === "oauth" || row.revoked_at !== null || !isSeen(call.caller, row)) {
      throw new ServiceError("key_not_found", { detail: `There is no key ${params.key_id}.` });
    }
    return row;
  };
  return [
    bind(keyCreate, {
      find,
      run: async (call, { name, expires_in_seconds, ...requested }, org_id) => {
        const { caller } = call;
        const expires_at = expires_in_seconds === undefined ? undefined : after(now(), expires_in_seconds);
        const grant = grantBy(caller, { ...requested, expires_at });
        const { key, row } = newKey({ ...grant, org_id, name, kind: "api", maker: makerOf(caller) });
        const body = await changes.addKey(row, () => {
          const made = { ...toRecord(row), key };
          call.audit.details = { key_id: row.key_id, name, ...grant };
          call.work.keep("created", made);
          return made;
        });
        return { outcome: "created", body };
      },
    }),

    bind(keyList, {
      find,
      run: async ({ caller }, { limit = DEFAULT_PAGE, cursor }, orgId) => {
        const pieces = new Pieces(loopTime, ownerOf(orgId), keyList.name);
        const seen: KeyRow[] = [];
        let before = readCursor(CURSOR, cursor);
        // Invisible keys leave no gap in the page.
        for (;;) {
          const rows = listKeysBefore(database.queries, orgId, before, limit + 1);
          seen.push(...rows.filter((row) => isSeen(caller, row)));
          before = rows.at(-1)?.key_id ?? null;
          if (rows.length <= limit || seen.length > limit) break;
          // There may be any number of ended keys in between.
          await pieces.next();
        }
        const { rows, next_cursor } = toPage(CURSOR, seen, limit, (row) => row.key_id);
        return { outcome: "ok", body: { items: rows.map(shown), next_cursor } };
      },
    }),

    bind(keyRotate, {
      find: findKey,
      run: async (call, { grace_seconds = DEFAULT_GRACE_SECONDS }, { key_id, ...grant }) => {
        const { caller } = call;
        call.audit.details = { key_id, grace_seconds };
        requireGivable(caller, grant);
        call.work.whenSettled(onEnded);
        const rotate = (old: KeyRow) => rotationOf(old, grace_seconds, makerOf(caller));
        const body = await changes.rotateKey(key_id, rotate, (_queries, { key, row, replaced }) => {
          const made = { ...toRecord(row), key, replaces: shown(replaced) };
          call.audit.details = { key_id, new_key_id: row.key_id, grace_seconds };
          call.work.keep("created", made);
          return made;
        });
        return { outcome: "created", body };
      },
    }),

    bind(keyRevoke, {
      find: findKey,
      run: async (call, _, { key_id, name }) => {
        call.audit.details = { key_id, name };
        const { key, made } = await changes.revokeKey(key_id, (_queries, revocation) => {
          call.audit.details = { key_id, name, ...detailsOf(revocation.made) };
          return revocation;
        });
        // Not sooner: the revoked key may be the caller's.
        call.work.whenSettled(onEnded);
        return { outcome: "ok", body: { ...shown(key), ended: countsOf(made) } };
      },
    }),
  ];
}

const makerOf = ({ kind, key_id }: Caller) => ({ type: kind ?? "key", id: key_id });
