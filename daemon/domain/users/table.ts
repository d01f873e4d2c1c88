/** Drizzle tables of people. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Role } from "../../../shared/api/people/members.ts";
import type { IdentityId, LinkId, OrgId, PasskeyId, SessionId, UserId } from "../../../shared/ids.ts";

export const users = sqliteTable("users", {
  user_id: text().$type<UserId>().primaryKey(),
  /** In lower case. */
  email: text().notNull(),
  name: text().notNull(),
  password_hash: text(),
  created_at: text().notNull(),
  disabled_at: text(),
  /** Time at which the person proved to own the address. */
  verified_at: text(),
});

/** Sign-up requests that wait for the operator's approval. */
export const signupRequests = sqliteTable("signup_requests", {
  email: text().primaryKey(),
  name: text().notNull(),
  note: text().notNull(),
  created_at: text().notNull(),
});

/** Addresses that received their credits for signing up. */
export const signupGrants = sqliteTable("signup_grants", {
  address_sha256: text().primaryKey(),
  granted_at: text().notNull(),
});

export const memberships = sqliteTable(
  "memberships",
  {
    org_id: text().$type<OrgId>().notNull(),
    user_id: text().$type<UserId>().notNull(),
    role: text().$type<Role>().notNull(),
    created_at: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_id, table.user_id] })],
);

export const sessions = sqliteTable("sessions", {
  session_id: text().$type<SessionId>().primaryKey(),
  secret_sha256: text().notNull(),
  user_id: text().$type<UserId>().notNull(),
  /** The session's current organization. */
  org_id: text().$type<OrgId>().notNull(),
  created_at: text().notNull(),
  seen_at: text().notNull(),
  /** Time of the user's last proof of identity. */
  proved_at: text().notNull(),
  ip: text(),
  user_agent: text(),
  ended_at: text(),
});

/** Browsers in which a user has signed in. */
export const browsers = sqliteTable("browsers", {
  secret_sha256: text().notNull().primaryKey(),
  user_id: text().$type<UserId>().notNull(),
  created_at: text().notNull(),
});

export const links = sqliteTable("links", {
  link_id: text().$type<LinkId>().primaryKey(),
  token_sha256: text().notNull(),
  kind: text().$type<"setup" | "user" | "invitation" | "request" | "signup" | "email">().notNull(),
  user_id: text().$type<UserId>(),
  org_id: text().$type<OrgId>(),
  role: text().$type<Role>(),
  email: text(),
  created_by_type: text().notNull(),
  created_by_id: text().notNull(),
  created_at: text().notNull(),
  expires_at: text().notNull(),
  used_at: text(),
});

/** The public halves of passkeys. */
export const passkeys = sqliteTable("passkeys", {
  passkey_id: text().$type<PasskeyId>().primaryKey(),
  user_id: text().$type<UserId>().notNull(),
  /** Identifier assigned by its authenticator, in base64url. */
  credential_id: text().notNull(),
  /** As COSE, in base64url. */
  public_key: text().notNull(),
  /** Number of uses as counted by its authenticator. */
  counter: integer().notNull(),
  /** Comma-separated words: how browsers reach it. */
  transports: text().notNull(),
  /** Name of the service at which it is valid. */
  rp_id: text().notNull(),
  name: text().notNull(),
  is_synced: integer({ mode: "boolean" }).notNull(),
  created_at: text().notNull(),
  last_used_at: text(),
});

/** Accounts at identity providers, identified by issuer and subject alone. */
export const identities = sqliteTable("identities", {
  identity_id: text().$type<IdentityId>().primaryKey(),
  user_id: text().$type<UserId>().notNull(),
  issuer: text().notNull(),
  subject: text().notNull(),
  label: text().notNull(),
  created_at: text().notNull(),
  last_used_at: text(),
});

/** Tombstones: external accounts that do not make their person a member any more. */
export const departed = sqliteTable(
  "departed_subjects",
  {
    subject_sha256: text().notNull(),
    org_id: text().$type<OrgId>().notNull(),
    departed_at: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.subject_sha256, table.org_id] })],
);

export type UserRow = typeof users.$inferSelect;
export type MembershipRow = typeof memberships.$inferSelect;
export type SessionRow = typeof sessions.$inferSelect;
export type SignupRequestRow = typeof signupRequests.$inferSelect;
export type LinkRow = typeof links.$inferSelect;
export type IdentityRow = typeof identities.$inferSelect;
export type PasskeyRow = typeof passkeys.$inferSelect;
