/** SQL queries of sandboxes. */
import { and, asc, count, desc, eq, gt, inArray, ne, notInArray, or, type SQL, sql } from "drizzle-orm";
import type { SandboxState } from "../../../shared/api/sandboxes.ts";
import { GUEST_CID_MIN, GUEST_CIDS, type OrgId } from "../../../shared/ids.ts";
import { preparedBy, type Queries } from "../../db/client.ts";
import { RowCache } from "../../db/row-cache.ts";
import { hasOpen } from "../fabric/index.ts";
import { RESUMED_REASONS } from "./health.ts";
import { adoptions, type SandboxRow, sandboxes, UNDER_WAY } from "./table.ts";

export function insertSandbox(queries: Queries, row: SandboxRow): void {
  live.forget(queries);
  queries.insert(sandboxes).values(row).run();
}

export function updateSandbox(
  queries: Queries,
  sandboxId: SandboxRow["sandbox_id"],
  change: Partial<SandboxRow>,
): void {
  live.forget(queries);
  queries.update(sandboxes).set(change).where(eq(sandboxes.sandbox_id, sandboxId)).run();
}

/** By agent_id, a live sandbox before failed ones, or by sandbox_id; never a destroyed one. */
export function findSandbox(queries: Queries, roomUid: SandboxRow["room_uid"], name: string): SandboxRow | undefined {
  const { byAgent, byId } = lookupsOf(queries);
  return (name.startsWith("sbx_") ? byId : byAgent).get({ room_uid: roomUid, name });
}

/** The same, but falls back to a destroyed sandbox, as long as its row exists. */
export function findSandboxEver(
  queries: Queries,
  roomUid: SandboxRow["room_uid"],
  name: string,
): SandboxRow | undefined {
  const { room_uid, state, agent_id, sandbox_id } = sandboxes;
  const column: typeof agent_id | typeof sandbox_id = name.startsWith("sbx_") ? sandbox_id : agent_id;
  return queries
    .select()
    .from(sandboxes)
    .where(and(eq(room_uid, roomUid), sql`${column} = ${name}`))
    .orderBy(sql`${state} = 'destroyed'`, sql`${state} = 'failed'`, desc(sandbox_id))
    .limit(1)
    .get();
}

/** An organization's, however it ended. */
export function locateSandbox(queries: Queries, orgId: OrgId, sandboxId: string) {
  const { sandbox_id, org_id, room_uid, agent_id } = sandboxes;
  const isIt = and(eq(sandbox_id, sandboxId as SandboxRow["sandbox_id"]), eq(org_id, orgId));
  return queries.select({ room_uid, agent_id }).from(sandboxes).where(isIt).get();
}

/** The agent of each of an organization's sandboxes, for joins with data of sandboxes. */
export function sandboxesOfOrg(queries: Queries, orgId: OrgId) {
  const { sandbox_id, org_id, room_uid, agent_id } = sandboxes;
  return queries
    .select({ sandbox_id, room_uid, agent_id })
    .from(sandboxes)
    .where(eq(org_id, orgId))
    .as("sandboxes_of_org");
}

const lookupsOf = preparedBy(prepareLookups);

/** Prepared statements: every call about a sandbox needs one. */
function prepareLookups(queries: Queries) {
  const { room_uid, state, agent_id, sandbox_id } = sandboxes;
  const by = (column: typeof agent_id | typeof sandbox_id) =>
    queries
      .select()
      .from(sandboxes)
      .where(
        and(
          eq(room_uid, sql.placeholder("room_uid")),
          sql`${column} = ${sql.placeholder("name")}`,
          ne(state, "destroyed"),
        ),
      )
      .orderBy(sql`${state} = 'failed'`, sql`${sandbox_id} DESC`)
      .limit(1)
      .prepare();
  return { byAgent: by(agent_id), byId: by(sandbox_id) };
}

export function listSandboxes(
  queries: Queries,
  filter: {
    org_id: OrgId;
    /** Restricts the list to these rooms; null for all of the organization. */
    room_uids: readonly SandboxRow["room_uid"][] | null;
    /** Restricts the list to this agent; null for all. */
    agent_id: string | null;
    state?: SandboxState | undefined;
    label?: string | undefined;
    after: string | null;
    limit: number;
  },
): SandboxRow[] {
  const [name = "", ...rest] = filter.label?.split(":") ?? [];
  return queries
    .select()
    .from(sandboxes)
    .where(
      and(
        eq(sandboxes.org_id, filter.org_id),
        filter.room_uids === null ? undefined : inArray(sandboxes.room_uid, [...filter.room_uids]),
        filter.agent_id === null ? undefined : eq(sandboxes.agent_id, filter.agent_id),
        filter.state === undefined ? ne(sandboxes.state, "destroyed") : eq(sandboxes.state, filter.state),
        filter.label === undefined
          ? undefined
          : sql`EXISTS (SELECT 1 FROM json_each(${sandboxes.labels}) WHERE key = ${name} AND value = ${rest.join(":")})`,
        filter.after === null ? undefined : gt(sandboxes.sandbox_id, filter.after as SandboxRow["sandbox_id"]),
      ),
    )
    .orderBy(asc(sandboxes.sandbox_id))
    .limit(filter.limit)
    .all();
}

/** Sandboxes of a room that are not destroyed. */
export function roomSandboxes(queries: Queries, roomUid: SandboxRow["room_uid"]): SandboxRow[] {
  return ofRoom(queries).all({ room_uid: roomUid });
}

const ofRoom = preparedBy((queries) =>
  queries
    .select()
    .from(sandboxes)
    .where(and(eq(sandboxes.room_uid, sql.placeholder("room_uid")), ne(sandboxes.state, "destroyed")))
    .orderBy(asc(sandboxes.sandbox_id))
    .prepare(),
);

/** Deletes the rows of a room's destroyed sandboxes. */
export function forgetEnded(queries: Queries, roomUid: SandboxRow["room_uid"]): void {
  queries
    .delete(sandboxes)
    .where(and(eq(sandboxes.room_uid, roomUid), eq(sandboxes.state, "destroyed")))
    .run();
}

/** Cached per room. */
const live = new RowCache<number>();

/** Outside of transactions. */
export function countLive(queries: Queries, roomUid: SandboxRow["room_uid"]): number {
  const ask = () => {
    const isLive = and(eq(sandboxes.room_uid, roomUid), notInArray(sandboxes.state, ["failed", "destroyed"]));
    return queries.select({ live: count() }).from(sandboxes).where(isLive).get()?.live;
  };
  return live.get(queries, roomUid, ask) ?? 0;
}

/** Sandboxes that are not destroyed, in the words of the index: most of all rows are destroyed ones. */
const isUndestroyed = sql`${sandboxes.state} <> 'destroyed'`;

/** Sandboxes that the previous daemon left unfinished. */
export function unfinished(queries: Queries): SandboxRow[] {
  return queries
    .select()
    .from(sandboxes)
    .where(sql`${isUndestroyed} AND (${sandboxes.state} <> 'failed' OR ${sandboxes.cid_held} = 1)`)
    .all();
}

/** Sandboxes that rest, or are in transition to or from rest, and have a queued message that wakes them. */
export function wokenByMessages(queries: Queries): string[] {
  const { sandbox_id, state, fabric_attached, wake_on, room_uid, agent_id } = sandboxes;
  const rests = sql`${isUndestroyed} AND ${inArray(state, ["pausing", "paused", "hibernating", "hibernated", "resuming"])}`;
  const hears = sql`EXISTS (SELECT 1 FROM json_each(${wake_on}) WHERE value = 'message')`;
  return queries
    .select({ sandbox_id })
    .from(sandboxes)
    .where(and(rests, eq(fabric_attached, true), hears, hasOpen(room_uid, agent_id, "queued")))
    .all()
    .map((row) => row.sandbox_id);
}

/** Whether a message that wakes the sandbox is in its agent's inbox; `since` restricts this to messages of that time or later. */
export function isCalled(
  queries: Queries,
  {
    room_uid,
    agent_id,
    fabric_attached,
    wake_on,
  }: Pick<SandboxRow, "room_uid" | "agent_id" | "fabric_attached" | "wake_on">,
  since?: string,
): boolean {
  if (!fabric_attached || !wake_on.includes("message")) return false;
  const isIn = hasOpen(sql`${room_uid}`, sql`${agent_id}`, since === undefined ? "any" : { since });
  return queries.all(sql`SELECT 1 WHERE ${isIn}`).length > 0;
}

/** All sandboxes that are not destroyed, on this host. */
export function undestroyed(queries: Queries): SandboxRow[] {
  return queries.select().from(sandboxes).where(isUndestroyed).all();
}

/** Columns of a sandbox's row for long lists. */
export type ListedSandbox = Pick<
  SandboxRow,
  "sandbox_id" | "room_uid" | "agent_id" | "state" | "vcpu_count" | "memory_mib" | "ready_at"
>;

/** An organization's sandboxes that are not destroyed, of these rooms and this agent (null: of all), failed ones last. */
export function listUndestroyed(
  queries: Queries,
  of: { org_id: OrgId; room_uids: readonly SandboxRow["room_uid"][] | null; agent_id: string | null },
): ListedSandbox[] {
  const { sandbox_id, room_uid, agent_id, state, vcpu_count, memory_mib, ready_at } = sandboxes;
  return queries
    .select({ sandbox_id, room_uid, agent_id, state, vcpu_count, memory_mib, ready_at })
    .from(sandboxes)
    .where(
      and(
        isUndestroyed,
        eq(sandboxes.org_id, of.org_id),
        of.room_uids === null ? undefined : inArray(room_uid, [...of.room_uids]),
        of.agent_id === null ? undefined : eq(agent_id, of.agent_id),
      ),
    )
    .orderBy(sql`${state} = 'failed'`, asc(sandbox_id))
    .all();
}

/** Number of sandboxes on this host in each state except destroyed, and the memory promised to them. */
export function countStates(queries: Queries): { state: SandboxState; held: number; memory_mib: number }[] {
  return statesCounted(queries).all();
}

const statesCounted = preparedBy((queries) => {
  const memory_mib = sql<number>`coalesce(sum(${sandboxes.memory_mib}), 0)`;
  return queries
    .select({ state: sandboxes.state, held: count(), memory_mib })
    .from(sandboxes)
    .where(isUndestroyed)
    .groupBy(sandboxes.state)
    .prepare();
});

/** Neither failed nor destroyed; same text as the condition of the partial index. */
const isLive = sql`${sandboxes.state} NOT IN ('failed', 'destroyed')`;
/** Hibernated sandboxes that the daemon does not resume automatically; it resumes the others without another quota check. */
const rests = sql<number>`(${sandboxes.state} = 'hibernated' AND ${notInArray(sandboxes.status_reason, [...RESUMED_REASONS])})`;

/** Quota use of an organization without sandboxes. */
export const NO_SANDBOXES = { sandboxes: 0, memory_mib: 0, disk_gib: 0, hibernated_rooms: 0 };

/**
 * An organization's live sandboxes as its quota counts them: a hibernated one has no memory, and a room with only hibernated sandboxes has
 * only their disks. `hibernated_rooms` is the number of such rooms. Sandboxes saved for a restart of their host or a move of their room
 * count as running.
 */
export function orgSandboxes(queries: Queries, orgId: OrgId): typeof NO_SANDBOXES {
  return heldBy(prepareHeld(queries).inOrg.all({ org_id: orgId })).get(orgId) ?? NO_SANDBOXES;
}

/** The same of one room. */
export function heldInRoom(queries: Queries, roomUid: SandboxRow["room_uid"]): typeof NO_SANDBOXES {
  const [held = NO_SANDBOXES] = heldBy(prepareHeld(queries).inRoom.all({ room_uid: roomUid })).values();
  return held;
}

/** The same of all organizations that have sandboxes. */
export const sandboxesByOrg = (queries: Queries): Map<OrgId, typeof NO_SANDBOXES> =>
  heldBy(prepareHeld(queries).all.all());

const prepareHeld = preparedBy((queries: Queries) => ({
  all: heldSandboxes(queries, undefined).prepare(),
  inOrg: heldSandboxes(queries, eq(sandboxes.org_id, sql.placeholder("org_id"))).prepare(),
  inRoom: heldSandboxes(queries, eq(sandboxes.room_uid, sql.placeholder("room_uid"))).prepare(),
}));

const heldBy = (held: readonly ({ org_id: OrgId } & typeof NO_SANDBOXES)[]) =>
  new Map(held.map(({ org_id, ...of }) => [org_id, of]));

function heldSandboxes(queries: Queries, condition: SQL | undefined) {
  const byRoom = queries
    .select({
      org_id: sandboxes.org_id,
      held: count().as("held"),
      memory_mib: sql<number>`sum(iif(${rests}, 0, ${sandboxes.memory_mib}))`.as("memory_mib"),
      disk_mib: sql<number>`sum(${sandboxes.disk_mib})`.as("disk_mib"),
      hibernates: sql<number>`min(${rests})`.as("hibernates"),
    })
    .from(sandboxes)
    .where(and(condition, isLive))
    .groupBy(sandboxes.org_id, sandboxes.room_uid)
    .as("by_room");
  return queries
    .select({
      org_id: byRoom.org_id,
      sandboxes: sql<number>`sum(iif(${byRoom.hibernates}, 0, ${byRoom.held}))`,
      memory_mib: sql<number>`sum(${byRoom.memory_mib})`,
      disk_gib: sql<number>`sum(${byRoom.disk_mib}) / 1024.0`,
      hibernated_rooms: sql<number>`sum(${byRoom.hibernates})`,
    })
    .from(byRoom)
    .groupBy(byRoom.org_id);
}

/** Additional quota use once this sandbox runs; `isNew`: its row was inserted within this transaction. */
export function countedWith(
  queries: Queries,
  { room_uid, sandbox_id, memory_mib, state, status_reason }: SandboxRow,
  isNew: boolean,
): { rooms: number; sandboxes: number; memory_mib: number } {
  if (state === "hibernated" && RESUMED_REASONS.includes(status_reason))
    return { rooms: 0, sandboxes: 0, memory_mib: 0 };
  const others = queries
    .select({ held: count(), hibernated: sql<number>`coalesce(sum(${rests}), 0)` })
    .from(sandboxes)
    .where(and(eq(sandboxes.room_uid, room_uid), ne(sandboxes.sandbox_id, sandbox_id), isLive))
    .get() ?? { held: 0, hibernated: 0 };
  if (others.hibernated < others.held) return { rooms: 0, sandboxes: isNew ? 1 : 0, memory_mib };
  // The whole room hibernated; a room without sandboxes was counted.
  return { rooms: isNew && others.held === 0 ? 0 : 1, sandboxes: others.held + 1, memory_mib };
}

/** The sandbox has a CID; same text as the condition of the partial index. */
const isHeld = sql`${sandboxes.cid_held} = 1`;

/** Number of CIDs of an organization's sandboxes. */
export function orgCids(queries: Queries, orgId: OrgId): number {
  const held = and(eq(sandboxes.org_id, orgId), isHeld);
  return queries.select({ held: count() }).from(sandboxes).where(held).get()?.held ?? 0;
}

/** Memory promised to guests that have not ended. */
export function memoryPromised(queries: Queries): Pick<SandboxRow, "sandbox_id" | "memory_mib">[] {
  return queries
    .select({ sandbox_id: sandboxes.sandbox_id, memory_mib: sandboxes.memory_mib })
    .from(sandboxes)
    .where(sql`${isUndestroyed} AND ${sandboxes.state} NOT IN ('failed', 'hibernated')`)
    .all();
}

export function heldCids(queries: Queries): Set<number> {
  const rows = queries.select({ cid: sandboxes.guest_cid }).from(sandboxes).where(isHeld).all();
  return new Set(rows.map((row) => row.cid));
}

/** The CIDs after `wanted`, with wrap-around, that no sandbox holds. */
export function* unheldCids(queries: Queries, startCid: number): Iterable<number> {
  const held = heldCids(queries);
  for (let step = 1; step <= GUEST_CIDS; step++) {
    const cid = GUEST_CID_MIN + ((startCid - GUEST_CID_MIN + step) % GUEST_CIDS);
    if (!held.has(cid)) yield cid;
  }
}

/** Agents of sandboxes that failed for this reason and are not destroyed. */
export function failedFor(queries: Queries, reason: string): string[] {
  const { agent_id, state, status_reason } = sandboxes;
  const failed = and(isUndestroyed, eq(state, "failed"), eq(status_reason, reason));
  return queries
    .select({ agent_id })
    .from(sandboxes)
    .where(failed)
    .all()
    .map((row) => row.agent_id);
}

/** It is about to be adopted. */
export function noteAdoption(queries: Queries, sandbox_id: SandboxRow["sandbox_id"]): void {
  queries
    .insert(adoptions)
    .values({ sandbox_id, crashes: 0, under_way: UNDER_WAY.now })
    .onConflictDoUpdate({ target: adoptions.sandbox_id, set: { under_way: UNDER_WAY.now } })
    .run();
}

/** Others continue while it is still being adopted; a deleted note stays deleted. */
export function noteLateAdoption(queries: Queries, sandboxId: SandboxRow["sandbox_id"]): void {
  queries.update(adoptions).set({ under_way: UNDER_WAY.late }).where(eq(adoptions.sandbox_id, sandboxId)).run();
}

/** The service has lived on. */
export function forgetAdoption(queries: Queries, sandboxId: SandboxRow["sandbox_id"]): void {
  queries.delete(adoptions).where(eq(adoptions.sandbox_id, sandboxId)).run();
}

/** Notes of the previous daemon, whether it crashed or not: the number of crashes during each sandbox's adoption. */
export function countAdoptions(queries: Queries, crashed: boolean): Map<string, number> {
  const { crashes, under_way, sandbox_id } = adoptions;
  if (crashed) {
    // Late adoptions are blamed only if there is no other.
    const blamed = sql`(SELECT min(under_way) FROM adoptions WHERE under_way <> ${UNDER_WAY.no})`;
    queries
      .update(adoptions)
      .set({ crashes: sql`${crashes} + 1` })
      .where(eq(under_way, blamed))
      .run();
  }
  queries.update(adoptions).set({ under_way: UNDER_WAY.no }).run();
  const live = queries
    .select({ id: sandboxes.sandbox_id })
    .from(sandboxes)
    .where(sql`${isUndestroyed} AND ${sandboxes.state} <> 'failed'`);
  queries
    .delete(adoptions)
    .where(or(eq(crashes, 0), notInArray(sandbox_id, live)))
    .run();
  const rows = queries.select().from(adoptions).all();
  return new Map(rows.map((row) => [row.sandbox_id, row.crashes]));
}
