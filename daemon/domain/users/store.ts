/** Owns the SQL of people, their memberships, sessions and links. */
import { and, count, desc, eq, gt, isNull, ne, sql } from "drizzle-orm";
import type { OrgId, SessionId, UserId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import { Remembered } from "../../db/remembered.ts";
import {
  type LinkRow,
  links,
  type MembershipRow,
  memberships,
  type SessionRow,
  sessions,
  type UserRow,
  users,
} from "./table.ts";

/** What a request has to know of the session that it comes with. */
export type SessionOf = SessionRow &
  Pick<UserRow, "email" | "name" | "disabled_at"> & { role: MembershipRow["role"] | null };
const known = new Remembered<SessionOf>();

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

export function getMembership(queries: Queries, orgId: OrgId, userId: UserId): MembershipRow | undefined {
  const where = and(eq(memberships.org_id, orgId), eq(memberships.user_id, userId));
  return queries.select().from(memberships).where(where).get();
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

export function listMembers(queries: Queries, orgId: OrgId): (MembershipRow & UserRow)[] {
  const rows = queries
    .select()
    .from(memberships)
    .innerJoin(users, eq(users.user_id, memberships.user_id))
    .where(eq(memberships.org_id, orgId))
    .orderBy(memberships.created_at)
    .all();
  return rows.map((row) => ({ ...row.users, ...row.memberships }));
}

/** Owners that can sign in. */
export function countOwners(queries: Queries, orgId: OrgId, but: UserId): number {
  const where = and(eq(memberships.org_id, orgId), eq(memberships.role, "owner"), ne(memberships.user_id, but));
  const rows = queries
    .select({ owners: count() })
    .from(memberships)
    .innerJoin(users, and(eq(users.user_id, memberships.user_id), isNull(users.disabled_at)))
    .where(where)
    .get();
  return rows?.owners ?? 0;
}

export function setRole(queries: Queries, orgId: OrgId, userId: UserId, role: MembershipRow["role"]): void {
  known.forget(queries);
  const where = and(eq(memberships.org_id, orgId), eq(memberships.user_id, userId));
  queries.update(memberships).set({ role }).where(where).run();
}

export function deleteMembership(queries: Queries, orgId: OrgId, userId: UserId): void {
  known.forget(queries);
  queries
    .delete(memberships)
    .where(and(eq(memberships.org_id, orgId), eq(memberships.user_id, userId)))
    .run();
}

export function insertSession(queries: Queries, row: SessionRow): void {
  queries.insert(sessions).values(row).run();
}

export function changeSession(queries: Queries, sessionId: SessionId, change: Partial<SessionRow>): void {
  known.forget(queries);
  queries.update(sessions).set(change).where(eq(sessions.session_id, sessionId)).run();
}

/** Those that nobody has ended, the newest first; some may have expired. */
export function listSessions(queries: Queries, userId: UserId): SessionRow[] {
  const where = and(eq(sessions.user_id, userId), isNull(sessions.ended_at));
  return queries.select().from(sessions).where(where).orderBy(desc(sessions.session_id)).all();
}

/** Returns how many it were. */
export function endSessions(
  queries: Queries,
  userId: UserId,
  at: string,
  which: { but?: SessionId | undefined; orgId?: OrgId | undefined } = {},
): number {
  known.forget(queries);
  const { but, orgId } = which;
  const where = and(
    eq(sessions.user_id, userId),
    isNull(sessions.ended_at),
    but === undefined ? undefined : ne(sessions.session_id, but),
    orgId === undefined ? undefined : eq(sessions.org_id, orgId),
  );
  return queries.update(sessions).set({ ended_at: at }).where(where).returning({ id: sessions.session_id }).all()
    .length;
}

/** Looks a session up by its secret's hash, with its person and the role in the organization that it looks at. */
export function prepareSessionLookup(queries: Queries) {
  const statement = queries
    .select()
    .from(sessions)
    .innerJoin(users, eq(users.user_id, sessions.user_id))
    .leftJoin(memberships, and(eq(memberships.user_id, sessions.user_id), eq(memberships.org_id, sessions.org_id)))
    .where(eq(sessions.secret_sha256, sql.placeholder("secret_sha256")))
    .prepare();
  return (secret_sha256: string): SessionOf | undefined =>
    known.get(queries, secret_sha256, () => {
      const row = statement.get({ secret_sha256 });
      if (!row) return undefined;
      const { email, name, disabled_at } = row.users;
      return { ...row.sessions, email, name, disabled_at, role: row.memberships?.role ?? null };
    });
}

export function getSession(queries: Queries, sessionId: SessionId): SessionOf | undefined {
  const row = queries
    .select()
    .from(sessions)
    .innerJoin(users, eq(users.user_id, sessions.user_id))
    .leftJoin(memberships, and(eq(memberships.user_id, sessions.user_id), eq(memberships.org_id, sessions.org_id)))
    .where(eq(sessions.session_id, sessionId))
    .get();
  if (!row) return undefined;
  const { email, name, disabled_at } = row.users;
  return { ...row.sessions, email, name, disabled_at, role: row.memberships?.role ?? null };
}

export function insertLink(queries: Queries, row: LinkRow): void {
  queries.insert(links).values(row).run();
}

export function linkByHash(queries: Queries, token_sha256: string): LinkRow | undefined {
  return queries.select().from(links).where(eq(links.token_sha256, token_sha256)).get();
}

/** Invitations that can be taken, the newest first. */
export function listInvitations(queries: Queries, orgId: OrgId, at: string): LinkRow[] {
  const open = and(isNull(links.used_at), gt(links.expires_at, at));
  const where = and(eq(links.org_id, orgId), eq(links.kind, "invitation"), open);
  return queries.select().from(links).where(where).orderBy(desc(links.link_id)).all();
}

export function useLink(queries: Queries, linkId: LinkRow["link_id"], at: string): void {
  queries.update(links).set({ used_at: at }).where(eq(links.link_id, linkId)).run();
}

/** Links of this user, and setup links, that nobody has used: a new one takes their place. */
export function dropLinks(queries: Queries, kind: LinkRow["kind"], userId: UserId | null): void {
  const whose = userId === null ? isNull(links.user_id) : eq(links.user_id, userId);
  queries
    .delete(links)
    .where(and(eq(links.kind, kind), whose, isNull(links.used_at)))
    .run();
}
