/** SQL of people, their memberships, sessions, browsers and links. */
import { and, count, desc, eq, exists, gt, inArray, isNotNull, isNull, lte, ne, or, sql } from "drizzle-orm";
import type { OrgId, SessionId, UserId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import { RowCache } from "../../db/row-cache.ts";
import {
  browsers,
  type LinkRow,
  links,
  type MembershipRow,
  memberships,
  passkeys,
  type SessionRow,
  sessions,
  type UserRow,
  users,
} from "./table.ts";

/** Columns that a request needs of the session that it presents. */
export type SessionOf = SessionRow &
  Pick<UserRow, "email" | "name" | "disabled_at"> & { role: MembershipRow["role"] | null };
const known = new RowCache<SessionOf>();

export function insertUser(queries: Queries, row: UserRow): void {
  queries.insert(users).values(row).run();
}

export function getUser(queries: Queries, userId: UserId): UserRow | undefined {
  return queries.select().from(users).where(eq(users.user_id, userId)).get();
}

export function userByEmail(queries: Queries, email: string): UserRow | undefined {
  return queries.select().from(users).where(eq(users.email, email)).get();
}

export function listUsers(queries: Queries): UserRow[] {
  return queries.select().from(users).orderBy(users.user_id).all();
}

export function changeUser(queries: Queries, userId: UserId, change: Partial<UserRow>): UserRow {
  known.forget(queries);
  return queries.update(users).set(change).where(eq(users.user_id, userId)).returning().get();
}

export function insertMembership(queries: Queries, row: MembershipRow): void {
  known.forget(queries);
  queries.insert(memberships).values(row).run();
}

const isMember = (orgId: OrgId, userId: UserId) => and(eq(memberships.org_id, orgId), eq(memberships.user_id, userId));

export function getMembership(queries: Queries, orgId: OrgId, userId: UserId): MembershipRow | undefined {
  return queries.select().from(memberships).where(isMember(orgId, userId)).get();
}

/** The oldest first. */
export function membershipsOf(queries: Queries, userId: UserId): MembershipRow[] {
  return queries
    .select()
    .from(memberships)
    .where(eq(memberships.user_id, userId))
    .orderBy(memberships.created_at)
    .all();
}

/** The oldest first; only one if a user is named. */
export function listMembers(queries: Queries, orgId: OrgId, userId?: UserId): (MembershipRow & UserRow)[] {
  const rows = queries
    .select()
    .from(memberships)
    .innerJoin(users, eq(users.user_id, memberships.user_id))
    .where(userId === undefined ? eq(memberships.org_id, orgId) : isMember(orgId, userId))
    .orderBy(memberships.created_at)
    .all();
  return rows.map((row) => ({ ...row.users, ...row.memberships }));
}

export function countMembers(queries: Queries, orgId: OrgId): number {
  const condition = eq(memberships.org_id, orgId);
  return queries.select({ members: count() }).from(memberships).where(condition).get()?.members ?? 0;
}

/** Number of owners except one, counting only owners that can sign in. */
export function countOwners(queries: Queries, orgId: OrgId, but: UserId): number {
  const own = queries.select().from(passkeys).where(eq(passkeys.user_id, users.user_id));
  const isUsable = and(isNull(users.disabled_at), or(isNotNull(users.password_hash), exists(own)));
  return (
    queries
      .select({ owners: count() })
      .from(memberships)
      .innerJoin(users, and(eq(users.user_id, memberships.user_id), isUsable))
      .where(and(eq(memberships.org_id, orgId), eq(memberships.role, "owner"), ne(memberships.user_id, but)))
      .get()?.owners ?? 0
  );
}

export function setRole(queries: Queries, orgId: OrgId, userId: UserId, role: MembershipRow["role"]): void {
  known.forget(queries);
  queries.update(memberships).set({ role }).where(isMember(orgId, userId)).run();
}

export function deleteMembership(queries: Queries, orgId: OrgId, userId: UserId): void {
  known.forget(queries);
  queries.delete(memberships).where(isMember(orgId, userId)).run();
}

export function insertSession(queries: Queries, row: SessionRow): void {
  queries.insert(sessions).values(row).run();
}

export function changeSession(queries: Queries, sessionId: SessionId, change: Partial<SessionRow>): void {
  known.forget(queries);
  queries.update(sessions).set(change).where(eq(sessions.session_id, sessionId)).run();
}

/** Sessions that were not ended, the newest first; some may have expired. */
export function listSessions(queries: Queries, userId: UserId): SessionRow[] {
  const condition = and(eq(sessions.user_id, userId), isNull(sessions.ended_at));
  return queries.select().from(sessions).where(condition).orderBy(desc(sessions.session_id)).all();
}

/** Returns how many it were. */
export function endSessions(
  queries: Queries,
  userId: UserId,
  at: string,
  exclusions: { but?: SessionId | undefined; orgId?: OrgId | undefined } = {},
): number {
  known.forget(queries);
  const { but, orgId } = exclusions;
  const condition = and(
    eq(sessions.user_id, userId),
    isNull(sessions.ended_at),
    but === undefined ? undefined : ne(sessions.session_id, but),
    orgId === undefined ? undefined : eq(sessions.org_id, orgId),
  );
  return queries.update(sessions).set({ ended_at: at }).where(condition).returning({ id: sessions.session_id }).all()
    .length;
}

/** Deletes ended sessions, sessions that started before a moment, and of the others all but the newest `keep`. */
export function dropSessions(queries: Queries, userId: UserId, beganBefore: string, keep: number): void {
  known.forget(queries);
  const old = or(isNotNull(sessions.ended_at), lte(sessions.created_at, beganBefore));
  queries
    .delete(sessions)
    .where(and(eq(sessions.user_id, userId), old))
    .run();
  const beyond = listSessions(queries, userId).slice(keep);
  const ids = beyond.map(({ session_id }) => session_id);
  if (ids.length > 0) queries.delete(sessions).where(inArray(sessions.session_id, ids)).run();
}

/** With its user, and the role in its current organization. */
const selectSession = (queries: Queries) =>
  queries
    .select()
    .from(sessions)
    .innerJoin(users, eq(users.user_id, sessions.user_id))
    .leftJoin(memberships, and(eq(memberships.user_id, sessions.user_id), eq(memberships.org_id, sessions.org_id)));

interface SessionJoined {
  sessions: SessionRow;
  users: UserRow;
  memberships: MembershipRow | null;
}

function joined(row: SessionJoined | undefined): SessionOf | undefined {
  if (!row) return undefined;
  const { email, name, disabled_at } = row.users;
  return { ...row.sessions, email, name, disabled_at, role: row.memberships?.role ?? null };
}

/** Looks up a session by its secret's hash. */
export function prepareSessionLookup(queries: Queries) {
  const statement = selectSession(queries)
    .where(eq(sessions.secret_sha256, sql.placeholder("secret_sha256")))
    .prepare();
  return (secret_sha256: string): SessionOf | undefined =>
    known.get(queries, secret_sha256, () => joined(statement.get({ secret_sha256 })));
}

export function getSession(queries: Queries, sessionId: SessionId): SessionOf | undefined {
  return joined(selectSession(queries).where(eq(sessions.session_id, sessionId)).get());
}

/** Whether the user, or any user if null, has signed in with this browser. */
export function isBrowserOf(queries: Queries, userId: UserId | null, secret_sha256: string): boolean {
  const own = userId === null ? undefined : eq(browsers.user_id, userId);
  const condition = and(eq(browsers.secret_sha256, secret_sha256), own);
  return queries.select().from(browsers).where(condition).get() !== undefined;
}

/** Keeps the newest `keep`. */
export function addBrowser(queries: Queries, row: typeof browsers.$inferSelect, keep: number): void {
  queries.insert(browsers).values(row).run();
  const own = eq(browsers.user_id, row.user_id);
  const all = queries.select().from(browsers).where(own).orderBy(desc(browsers.created_at)).all();
  const beyond = all.slice(keep).map(({ secret_sha256 }) => secret_sha256);
  if (beyond.length > 0) queries.delete(browsers).where(inArray(browsers.secret_sha256, beyond)).run();
}

export function dropBrowsers(queries: Queries, userId: UserId): void {
  queries.delete(browsers).where(eq(browsers.user_id, userId)).run();
}

/** Adds a link; deletes used and expired links. */
export function insertLink(queries: Queries, row: LinkRow): void {
  queries
    .delete(links)
    .where(or(isNotNull(links.used_at), lte(links.expires_at, row.created_at)))
    .run();
  queries.insert(links).values(row).run();
}

export function linkByHash(queries: Queries, token_sha256: string): LinkRow | undefined {
  return queries.select().from(links).where(eq(links.token_sha256, token_sha256)).get();
}

/** Changes a valid link's token; undefined if the link is not valid. */
export function changeToken(
  queries: Queries,
  linkId: LinkRow["link_id"],
  token_sha256: string,
  at: string,
): LinkRow | undefined {
  return queries.update(links).set({ token_sha256 }).where(isGood(linkId, at)).returning().get();
}

export function goodLink(queries: Queries, linkId: LinkRow["link_id"], at: string): LinkRow | undefined {
  return queries.select().from(links).where(isGood(linkId, at)).get();
}

const isGood = (linkId: LinkRow["link_id"], at: string) =>
  and(eq(links.link_id, linkId), isNull(links.used_at), gt(links.expires_at, at));

/** Invitations that can be accepted, the newest first. */
export function listInvitations(queries: Queries, orgId: OrgId, at: string): LinkRow[] {
  const open = and(isNull(links.used_at), gt(links.expires_at, at));
  const condition = and(eq(links.org_id, orgId), eq(links.kind, "invitation"), open);
  return queries.select().from(links).where(condition).orderBy(desc(links.link_id)).all();
}

/** Whether this is its first use. */
export function useLink(queries: Queries, linkId: LinkRow["link_id"], at: string): boolean {
  const condition = and(eq(links.link_id, linkId), isNull(links.used_at));
  return (
    queries.update(links).set({ used_at: at }).where(condition).returning({ id: links.link_id }).all().length === 1
  );
}

/** Deletes unused links of this kind: those of a user, or of no user. */
export function dropLinks(queries: Queries, kind: LinkRow["kind"], userId: UserId | null): void {
  const userCondition = userId === null ? isNull(links.user_id) : eq(links.user_id, userId);
  queries
    .delete(links)
    .where(and(eq(links.kind, kind), userCondition, isNull(links.used_at)))
    .run();
}

/** Deletes invitations to an organization that were not accepted. */
export function dropInvitations(queries: Queries, orgId: OrgId): void {
  queries
    .delete(links)
    .where(and(eq(links.org_id, orgId), isNull(links.used_at)))
    .run();
}

/** Deletes a user's invitations that were not accepted. */
export function dropInvitationsBy(queries: Queries, orgId: OrgId, userId: UserId): void {
  const own = and(eq(links.created_by_id, userId), eq(links.org_id, orgId));
  queries
    .delete(links)
    .where(and(own, isNull(links.used_at)))
    .run();
}
