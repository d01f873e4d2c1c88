/** SQL of applications, grants, tokens and devices. */
import {
  and,
  count,
  desc,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  notExists,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import type { KeyId, OrgId, UserId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { apiKeys, type KeyRow } from "../orgs/index.ts";
import { users } from "../users/table.ts";
import {
  type ClientRow,
  clients,
  type DeviceRow,
  devices,
  type GrantRow,
  grants,
  type TokenRow,
  tokens,
} from "./table.ts";

export function insertClient(queries: Queries, row: ClientRow): void {
  queries.insert(clients).values(row).run();
}

export function getClient(queries: Queries, clientId: string): ClientRow | undefined {
  return queries.select().from(clients).where(eq(clients.client_id, clientId)).get();
}

export function countClients(queries: Queries): number {
  return queries.select({ clients: count() }).from(clients).get()?.clients ?? 0;
}

/** Deletes clients that were created before a moment and have no grant left. */
export function dropUnusedClients(queries: Queries, madeBefore: string): void {
  const granted = queries.select().from(grants).where(eq(grants.client_id, clients.client_id));
  queries
    .delete(clients)
    .where(and(lte(clients.created_at, madeBefore), notExists(granted)))
    .run();
}

export function insertGrant(queries: Queries, row: GrantRow): void {
  queries.insert(grants).values(row).run();
}

export function getGrant(queries: Queries, keyId: KeyId): GrantRow | undefined {
  return queries.select().from(grants).where(eq(grants.key_id, keyId)).get();
}

export function grantByCode(queries: Queries, code_sha256: string): GrantRow | undefined {
  return queries.select().from(grants).where(eq(grants.code_sha256, code_sha256)).get();
}

/** The newest first. */
export function grantsOf(queries: Queries, userId: UserId): GrantRow[] {
  return queries.select().from(grants).where(eq(grants.user_id, userId)).orderBy(desc(grants.key_id)).all();
}

/** Whether the user has authorized an application, by its id or a grant's. */
export function hasGrant(queries: Queries, userId: UserId, id: string): boolean {
  const condition = and(eq(grants.user_id, userId), or(eq(grants.key_id, id as KeyId), eq(grants.client_id, id)));
  return queries.select({ key_id: grants.key_id }).from(grants).where(condition).limit(1).get() !== undefined;
}

/** A grant with its key, and the name of the member that authorized it. */
export interface Application {
  grant: GrantRow;
  key: KeyRow;
  user_name: string;
}

function selectApplications(queries: Queries, orgId: OrgId) {
  const { org_id, kind, revoked_at, expires_at } = apiKeys;
  const isGood = and(isNull(revoked_at), or(isNull(expires_at), gt(expires_at, now())));
  const select = queries
    .select({ grant: grants, key: apiKeys, user_name: users.name })
    .from(apiKeys)
    .innerJoin(grants, eq(grants.key_id, apiKeys.key_id))
    .innerJoin(users, eq(users.user_id, grants.user_id));
  return (condition: SQL | undefined) => select.where(and(eq(org_id, orgId), eq(kind, "oauth"), isGood, condition));
}

/** Newest first, older than `before`. */
export function listApplications(queries: Queries, orgId: OrgId, before: string | null, limit: number): Application[] {
  const older = before === null ? undefined : lt(apiKeys.key_id, before as KeyId);
  return selectApplications(queries, orgId)(older).orderBy(desc(apiKeys.key_id)).limit(limit).all();
}

export function getApplication(queries: Queries, orgId: OrgId, keyId: string): Application | undefined {
  return selectApplications(queries, orgId)(eq(apiKeys.key_id, keyId as KeyId)).get();
}

/** Whether this is the first use of the code. */
export function useCode(queries: Queries, keyId: KeyId, at: string): boolean {
  const condition = and(eq(grants.key_id, keyId), isNull(grants.code_used_at));
  return (
    queries.update(grants).set({ code_used_at: at }).where(condition).returning({ id: grants.key_id }).all().length ===
    1
  );
}

/** Deletes all rows of an ended grant. */
export function dropGrant(queries: Queries, keyId: KeyId): void {
  queries.delete(tokens).where(eq(tokens.key_id, keyId)).run();
  queries.delete(grants).where(eq(grants.key_id, keyId)).run();
}

/** The next grants, by key. */
export function grantsAfter(queries: Queries, after: string, most: number): GrantRow[] {
  const isNext = gt(grants.key_id, after as KeyId);
  return queries.select().from(grants).where(isNext).orderBy(grants.key_id).limit(most).all();
}

export function insertToken(queries: Queries, row: TokenRow): void {
  queries.insert(tokens).values(row).run();
}

export function getToken(queries: Queries, token_sha256: string): TokenRow | undefined {
  return queries.select().from(tokens).where(eq(tokens.token_sha256, token_sha256)).get();
}

/** Looks up a token by its hash. */
export function prepareTokenLookup(queries: Queries) {
  return queries
    .select()
    .from(tokens)
    .where(eq(tokens.token_sha256, sql.placeholder("token_sha256")))
    .prepare();
}

export function markRotated(queries: Queries, token_sha256: string, rotated_at: string, salt: string): void {
  queries.update(tokens).set({ rotated_at, salt }).where(eq(tokens.token_sha256, token_sha256)).run();
}

/** Number of a grant's refresh tokens that were used since a moment. */
export function countRotated(queries: Queries, keyId: KeyId, since: string): number {
  const condition = and(eq(tokens.key_id, keyId), eq(tokens.kind, "refresh"), gt(tokens.rotated_at, since));
  return queries.select({ rotated: count() }).from(tokens).where(condition).get()?.rotated ?? 0;
}

/** Deletes all but the newest `keep` of a kind. */
export function dropOldTokens(queries: Queries, keyId: KeyId, kind: TokenRow["kind"], keep: number): void {
  const own = and(eq(tokens.key_id, keyId), eq(tokens.kind, kind));
  const all = queries
    .select()
    .from(tokens)
    .where(own)
    .orderBy(desc(tokens.created_at), isNotNull(tokens.rotated_at))
    .all();
  const beyond = all.slice(keep).map(({ token_sha256 }) => token_sha256);
  if (beyond.length > 0) queries.delete(tokens).where(inArray(tokens.token_sha256, beyond)).run();
}

export function dropExpiredTokens(queries: Queries, at: string): void {
  queries.delete(tokens).where(lte(tokens.expires_at, at)).run();
}

/** Whether the grant has a valid refresh token. */
export function canRefresh(queries: Queries, keyId: KeyId, at: string): boolean {
  const good = and(isNull(tokens.rotated_at), gt(tokens.expires_at, at));
  const condition = and(eq(tokens.key_id, keyId), eq(tokens.kind, "refresh"), good);
  return queries.select().from(tokens).where(condition).limit(1).get() !== undefined;
}

export function insertDevice(queries: Queries, row: DeviceRow): void {
  queries.insert(devices).values(row).run();
}

export function countDevices(queries: Queries): number {
  return queries.select({ devices: count() }).from(devices).get()?.devices ?? 0;
}

export function getDevice(queries: Queries, device_sha256: string): DeviceRow | undefined {
  return queries.select().from(devices).where(eq(devices.device_sha256, device_sha256)).get();
}

/** An undecided device that has not expired. */
export function openDevice(queries: Queries, user_code: string, at: string): DeviceRow | undefined {
  const open = and(isNull(devices.allowed), gt(devices.expires_at, at));
  return queries
    .select()
    .from(devices)
    .where(and(eq(devices.user_code, user_code), open))
    .get();
}

/** Undecided devices, the oldest first. */
export function undecidedDevices(queries: Queries): DeviceRow[] {
  return queries.select().from(devices).where(isNull(devices.allowed)).orderBy(devices.created_at).all();
}

/** Whether this is the first decision. */
export function decideDevice(queries: Queries, user_code: string, allowed: boolean, key_id: KeyId | null): boolean {
  const condition = and(eq(devices.user_code, user_code), isNull(devices.allowed));
  const decided = queries.update(devices).set({ allowed, key_id }).where(condition);
  return decided.returning({ code: devices.user_code }).all().length === 1;
}

export function dropDevice(queries: Queries, device_sha256: string): void {
  queries.delete(devices).where(eq(devices.device_sha256, device_sha256)).run();
}

export function dropExpiredDevices(queries: Queries, at: string): void {
  queries.delete(devices).where(lte(devices.expires_at, at)).run();
}

/** Whether a device is still waiting for the grant. */
export function isAwaited(queries: Queries, keyId: KeyId, at: string): boolean {
  const condition = and(eq(devices.key_id, keyId), or(isNull(devices.allowed), gt(devices.expires_at, at)));
  return queries.select().from(devices).where(condition).limit(1).get() !== undefined;
}
