/** SQL of exposed ports. An expired port counts as absent, even before its row is deleted. */
import { and, asc, count, eq, gt, isNotNull, isNull, not, or, type SQL, sql } from "drizzle-orm";
import type { KeyId, OrgId, RoomUid } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { isAmongOver } from "../orgs/index.ts";
import { endedPortMakers, type PortRow, ports } from "./table.ts";

const isEnded = sql`EXISTS (SELECT 1 FROM ended_port_makers WHERE ended_port_makers.ends_with = ${ports.ends_with})`;
const isCurrent = () => and(not(isEnded), or(isNull(ports.expires_at), gt(ports.expires_at, now())));

export function insertPort(queries: Queries, row: PortRow): void {
  // One of this number that has expired and was not removed yet makes place.
  deletePort(queries, row.sandbox_id, row.port);
  queries.insert(ports).values(row).run();
}

export function listPorts(queries: Queries, sandboxId: string): PortRow[] {
  const condition = and(eq(ports.sandbox_id, sandboxId), isCurrent());
  return queries.select().from(ports).where(condition).orderBy(asc(ports.port)).all();
}

export function findPort(queries: Queries, sandboxId: string, port: number): PortRow | undefined {
  const condition = and(eq(ports.sandbox_id, sandboxId), eq(ports.port, port), isCurrent());
  return queries.select().from(ports).where(condition).get();
}

export function findLabel(queries: Queries, label: string): PortRow | undefined {
  return queries
    .select()
    .from(ports)
    .where(and(eq(ports.label, label), isCurrent()))
    .get();
}

/** An organization's port, by its label. */
export function locateLabel(queries: Queries, orgId: OrgId, label: string): PortRow | undefined {
  const isIt = and(eq(ports.label, label), eq(ports.org_id, orgId), isCurrent());
  return queries.select().from(ports).where(isIt).get();
}

export function roomPorts(queries: Queries, roomUid: RoomUid): PortRow[] {
  return queries
    .select()
    .from(ports)
    .where(and(eq(ports.room_uid, roomUid), not(isEnded)))
    .all();
}

/** All rows, including expired ones. */
export function allPorts(queries: Queries): PortRow[] {
  return queries.select().from(ports).all();
}

export function movePortEnd(queries: Queries, label: string, expires_at: string | null): void {
  queries.update(ports).set({ expires_at }).where(eq(ports.label, label)).run();
}

export function changeMaker(queries: Queries, label: string, ends_with: PortRow["ends_with"]): void {
  queries.update(ports).set({ ends_with }).where(eq(ports.label, label)).run();
}

/** Makers with ports and the number of their ports, without ended makers. Bounded by MAX_PORTS of each live sandbox. */
export function makersWithPorts(queries: Queries, orgId: OrgId, isOver: (id: SQL) => SQL): MakerOfPorts[] {
  const { org_id, ends_with } = ports;
  const isIts = and(eq(org_id, orgId), isNotNull(ends_with)) as SQL;
  const makers = sql`SELECT DISTINCT ${ends_with} AS id FROM ${ports} WHERE ${isIts}
    AND ${ends_with} NOT IN (SELECT ends_with FROM ended_port_makers)`;
  const condition = and(isIts, isAmongOver(ends_with, makers, isOver));
  const rows = queries.select({ ends_with, count: count() }).from(ports).where(condition).groupBy(ends_with).all();
  return rows.flatMap(({ ends_with, count }) => (ends_with === null ? [] : [{ ends_with, count }]));
}

interface MakerOfPorts {
  ends_with: KeyId;
  count: number;
}

/** Ends all ports of a maker: there may be thousands, which no query finds from then on. */
export function endMaker(queries: Queries, ends_with: KeyId, ended_at: string): void {
  queries.insert(endedPortMakers).values({ ends_with, ended_at }).onConflictDoNothing().run();
}

/** Within the transaction that deleted a port: a maker without ports needs no row. */
export function forgetMaker(queries: Queries, ends_with: KeyId): void {
  const hasNone = sql`NOT EXISTS (SELECT 1 FROM ${ports} WHERE ${ports.ends_with} = ${ends_with})`;
  queries
    .delete(endedPortMakers)
    .where(and(eq(endedPortMakers.ends_with, ends_with), hasNone))
    .run();
}

/** Ports of a sandbox that end because their maker's access has ended. Bounded by MAX_PORTS. */
export function deleteEnded(queries: Queries, sandboxId: string): PortRow[] {
  const condition = and(eq(ports.sandbox_id, sandboxId), isEnded);
  return queries.delete(ports).where(condition).returning().all();
}

export function deletePort(queries: Queries, sandboxId: string, port: number): PortRow | undefined {
  const condition = and(eq(ports.sandbox_id, sandboxId), eq(ports.port, port));
  return queries.delete(ports).where(condition).returning().get();
}

export function deleteLabel(queries: Queries, label: string): PortRow | undefined {
  return queries.delete(ports).where(eq(ports.label, label)).returning().get();
}

export function deleteOfSandbox(queries: Queries, sandboxId: string): PortRow[] {
  return queries.delete(ports).where(eq(ports.sandbox_id, sandboxId)).returning().all();
}
