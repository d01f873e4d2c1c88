/**
 * End of an organization:
 *
 *     requested → all access ends: one commit → its rooms end, with their drives → the remainder is deleted: one commit
 *
 * The first commit is the promise: all later steps run automatically, after a crash too, and are retried until done. The owner that
 * requested it remains until the last commit, to follow the progress. Audit records and usage are retained as for any organization.
 */
import { orgDelete } from "../../../../shared/api/people/org-end.ts";
import type { OrgId, UserId } from "../../../../shared/ids.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { now, startTimer } from "../../../core/clock.ts";
import { repeat } from "../../../core/concurrency/repeat.ts";
import type { Log } from "../../../core/log.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { appendAudit } from "../../audit/index.ts";
import { getOrg, listEndingOrgs, type OrgChanges } from "../../orgs/index.ts";
import { whoIs } from "../account.ts";
import { deleteMembership, dropInvitations, endSessions, listMembers } from "../store.ts";
import { requireOwner } from "./roles.ts";

/** Delay before a failed end is retried. */
const AGAIN_MS = 60_000;
/** Poll interval for ends that another process has requested. */
const LOOK_MS = 500;

export interface OrgEndDeps {
  database: Database;
  changes: OrgChanges;
  log: Log;
  rooms: {
    /** Number of its rooms that are not destroyed. */
    left(queries: Queries, orgId: OrgId): number;
    /** Whether another host still has rooms of the organization. */
    leftElsewhere(queries: Queries, orgId: OrgId): boolean;
    /** Organizations that another host found to have ended, and that still have rooms on this host. */
    leftBehind(queries: Queries): OrgId[];
  };
  /** Called when sessions and keys have ended, and the audit record is written. */
  onEnded(): void;
}

export function makeOrgDelete({ database, changes, rooms, onEnded }: OrgEndDeps): Bound {
  return bind(orgDelete, {
    find: ({ caller }, { org_id }) => {
      const org = getOrg(database.queries, caller.org_id);
      if (!org || (org_id !== "self" && org_id !== caller.org_id)) throw new ServiceError("org_not_found");
      requireOwner(database.queries, caller);
      return org;
    },
    rules: ({ org_name }, { name }) =>
      org_name === undefined || org_name === name
        ? []
        : [{ field: "org_name", code: "differs", message: "is not the organization's name" }],
    run: async (call, _input, { org_id }) => {
      const { user_id } = whoIs(call);
      call.work.whenSettled(onEnded);
      const body = await beginOrgEnd(
        changes,
        org_id,
        { but: user_id, require: (within) => requireOwner(within, call.caller) },
        (within, ended) => {
          const ending = { org_id, state: "ending" as const, rooms_left: rooms.left(within, org_id), ...ended };
          call.audit.details = ending;
          call.work.keep("ending", ending);
          return ending;
        },
      );
      return { outcome: "ending", body };
    },
  });
}

interface StartedOrgEnd {
  keys_revoked: number;
  members_removed: number;
}

/**
 * First commit of an organization's end. `but` is a user that remains a member, to follow its progress. Throws org_not_found, and the
 * errors of `require`.
 */
export function beginOrgEnd<T>(
  changes: OrgChanges,
  orgId: OrgId,
  { but, require }: { but: UserId | null; require(queries: Queries): void },
  within: (queries: Queries, started: StartedOrgEnd) => T,
): Promise<T> {
  return changes.endOrg(orgId, require, (queries, { keys_revoked }) => {
    const others = listMembers(queries, orgId).filter(({ user_id }) => user_id !== but);
    for (const { user_id } of others) removeFrom(queries, orgId, user_id);
    dropInvitations(queries, orgId);
    return within(queries, { keys_revoked, members_removed: others.length });
  });
}

function removeFrom(queries: Queries, orgId: OrgId, userId: UserId): void {
  deleteMembership(queries, orgId, userId);
  endSessions(queries, userId, now(), { orgId });
}

/**
 * Completes the requested ends of organizations until the returned function is called. `endAll` ends all rooms and other resources of an
 * organization on this host; rejects if one could not be ended.
 */
export function keepEndingOrgs(
  { database, changes, log, rooms, onEnded }: OrgEndDeps,
  endAll: (orgId: OrgId) => Promise<void>,
): () => void {
  const underWay = new Set<OrgId>();
  const finish = async (orgId: OrgId) => {
    await endAll(orgId);
    // Each host ends its own rooms; the host that finds none left on any host ends the organization.
    if (rooms.leftElsewhere(database.queries, orgId)) return;
    if (getOrg(database.queries, orgId)?.ended_at !== null) return;
    await changes.dropOrgKeys(orgId);
    await changes.finishOrg(orgId, (queries) => {
      for (const { user_id } of listMembers(queries, orgId)) removeFrom(queries, orgId, user_id);
      appendAudit(queries, {
        event: "org.ended",
        outcome: "success",
        at: now(),
        org_id: orgId,
        actor: { type: "system", id: "orgs", name: "orgs" },
        source: "reconciler",
        details: {},
      });
    });
    onEnded();
  };
  return repeat(LOOK_MS, async () => {
    const ending = listEndingOrgs(database.queries).map(({ org_id }) => org_id);
    for (const org_id of [...ending, ...rooms.leftBehind(database.queries)]) {
      if (underWay.has(org_id)) continue;
      underWay.add(org_id);
      finish(org_id).then(
        () => void startTimer(() => underWay.delete(org_id), LOOK_MS).unref(),
        (error: unknown) => {
          log.error("failed to end an organization", { org_id, error: describeError(error) });
          startTimer(() => underWay.delete(org_id), AGAIN_MS).unref();
        },
      );
    }
  });
}
