/** All personal data of a person: export to the person or the operator, and deletion. */
import type { OutputOf } from "../../../shared/api/contract.ts";
import { accountDelete, accountExport } from "../../../shared/api/people/account.ts";
import type { OrgId, UserId } from "../../../shared/ids.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { inPieces, loopTime, Pieces, type Steps } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { forgetRows, nameOf, type PersonalTable, rowsAbout } from "../../db/personal.ts";
import { appendAudit } from "../audit/index.ts";
import { detailsOf, getOrg, type OrgChanges } from "../orgs/index.ts";
import { requireUser, whoIs } from "./account.ts";
import type { UserDeps } from "./deps.ts";
import { keysRevoked } from "./members/role-change.ts";
import { countOwners, deleteMembership, endSessions, membershipsOf } from "./store.ts";
import {
  browsers,
  identities,
  links,
  memberships,
  passkeys,
  sessions,
  signupRequests,
  type UserRow,
  users,
} from "./table.ts";

export const usersPersonal: readonly PersonalTable[] = [
  { table: users, ids: [users.user_id], secrets: ["password_hash"], end: "deleted" },
  { table: memberships, ids: [memberships.user_id], end: "deleted" },
  { table: sessions, ids: [sessions.user_id], secrets: ["secret_sha256"], end: "deleted" },
  { table: passkeys, ids: [passkeys.user_id], secrets: ["credential_id", "public_key"], end: "deleted" },
  { table: identities, ids: [identities.user_id], end: "deleted" },
  { table: signupRequests, ids: [], addresses: [signupRequests.email], end: "deleted" },
  { table: browsers, ids: [browsers.user_id], secrets: ["secret_sha256"], end: "deleted" },
  {
    table: links,
    ids: [links.user_id, links.created_by_id],
    addresses: [links.email],
    secrets: ["token_sha256"],
    end: "deleted",
  },
];

type PersonalDeps = Pick<UserDeps, "database" | "changes" | "personal" | "onEnded">;

export function makePersonal({ database, changes, personal, onEnded }: PersonalDeps): Bound[] {
  return [
    bind(accountExport, {
      run: async (call) => {
        const user = requireUser(database.queries, whoIs(call).user_id);
        const pieces = new Pieces(loopTime, loopTime.owner, accountExport.name, { signal: call.signal });
        const kept = await inPieces(keptOf(database.queries, personal, user), pieces);
        return { outcome: "ok", json: { bytes: await inPieces(bytesOf(kept), pieces) } };
      },
    }),

    bind(accountDelete, {
      find: (call) => requireUser(database.queries, whoIs(call).user_id),
      rules: ({ email }, user) =>
        email === undefined || email.toLowerCase() === user.email
          ? []
          : [{ field: "email", code: "differs", message: "is not the address of this account" }],
      run: async (call, _input, user) => {
        call.work.whenSettled(onEnded);
        const body = await forget(changes, personal, user, (_within, forgotten) => {
          call.audit.details = { ...forgotten };
          call.work.keep("ok", forgotten);
          return forgotten;
        });
        return { outcome: "ok", body };
      },
    }),
  ];
}

/** All rows about a person, by table. */
export function* keptOf(
  queries: Queries,
  personal: readonly PersonalTable[],
  user: UserRow,
): Steps<OutputOf<typeof accountExport>> {
  const kept: Record<string, Record<string, unknown>[]> = {};
  for (const table of personal) kept[nameOf(table)] = yield* rowsAbout(queries, table, user);
  return { user_id: user.user_id, exported_at: now(), kept };
}

/** As JSON, a row per line: a person may have made thousands of keys. */
function* bytesOf({ kept, ...rest }: OutputOf<typeof accountExport>): Steps<Uint8Array> {
  const parts: string[] = [];
  for (const [name, rows] of Object.entries(kept)) {
    const texts: string[] = [];
    for (const row of rows) {
      yield;
      texts.push(JSON.stringify(row));
    }
    parts.push(`${JSON.stringify(name)}:[${texts.join(",\n")}]`);
  }
  return Buffer.from(`${JSON.stringify(rest).slice(0, -1)},"kept":{${parts.join(",\n")}}}`);
}

interface Forgotten {
  user_id: UserId;
  organizations_left: number;
  keys_revoked: number;
}

/**
 * In one commit the person leaves every organization, like a removed member, and personal data is deleted. The remainder has the id alone.
 * Throws last_owner.
 */
export function forget<T>(
  changes: OrgChanges,
  personal: readonly PersonalTable[],
  user: UserRow,
  within: (queries: Queries, forgotten: Forgotten) => T,
): Promise<T> {
  const { user_id } = user;
  const require = (queries: Queries) => {
    requireSuccessors(queries, user_id);
    return membershipsOf(queries, user_id).map(({ org_id }) => org_id);
  };
  const change = (queries: Queries, org_id: OrgId) => deleteMembership(queries, org_id, user_id);
  return changes.endAccessEverywhere(user_id, { require, change }, (queries, ended) => {
    const keys_revoked = ended.reduce((sum, each) => sum + keysRevoked(each), 0);
    const result = within(queries, { user_id, organizations_left: ended.length, keys_revoked });
    for (const { org_id, ...each } of ended) {
      recordLeft(queries, org_id, {
        user_id,
        keys_revoked: keysRevoked(each),
        ...detailsOf(each.made),
        forgotten: true,
      });
    }
    endSessions(queries, user_id, now());
    for (const table of personal) forgetRows(queries, table, user);
    return result;
  });
}

function recordLeft(queries: Queries, org_id: string, details: Record<string, unknown>): void {
  const actor = { type: "system", id: "users", name: "users" };
  const event = "member.removed";
  appendAudit(queries, { event, outcome: "success", at: now(), org_id, actor, source: "reconciler", details });
}

/** Throws last_owner: every organization must keep an owner that may end it. */
function requireSuccessors(queries: Queries, userId: UserId): void {
  const soleOwned = membershipsOf(queries, userId)
    .filter(({ org_id, role }) => role === "owner" && countOwners(queries, org_id, userId) === 0)
    .map(({ org_id }) => getOrg(queries, org_id))
    .filter((org) => org?.ending_at === null);
  if (soleOwned.length === 0) return;
  const names = soleOwned.map((org) => org?.name).join(", ");
  throw new ServiceError("last_owner", {
    detail: `${soleOwned.length === 1 ? "This organization" : "These organizations"} would have no owner: ${names}.`,
    hint: "Make another member an owner first, or delete the organization.",
    details: { org_ids: soleOwned.map((org) => org?.org_id) },
  });
}
