/** SQL of exposed ports. An expired port counts as absent, even before its row is deleted. */
import { and, asc, eq, gt, isNotNull, isNull, or, sql } from "drizzle-orm";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { type PortRow, ports } from "./table.ts";

const isCurrent = () => and(isNull(ports.ended_at), or(isNull(ports.expires_at), gt(ports.expires_at, now())));

/** `ended_at` is absent in the row of a room that an earlier version has sent. */
export function insertPort(queries: Queries, row: Omit<PortRow, "ended_at"> & Partial<PortRow>): void {
  // One of this number that has expired and was not removed yet makes place.
  deletePort(queries, row.sandbox_id, row.port);
  queries.insert(ports).values(row).run();
}

export function listPorts(queries: Queries, sandboxId: string): PortRow[] {
  const where = and(eq(ports.sandbox_id, sandboxId), isCurrent());
  return queries.select().from(ports).where(where).orderBy(asc(ports.port)).all();
}

export function findPort(queries: Queries, sandboxId: string, port: number): PortRow | undefined {
  const where = and(eq(ports.sandbox_id, sandboxId), eq(ports.port, port), isCurrent());
  return queries.select().from(ports).where(where).get();
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
  return queries.select().from(ports).where(eq(ports.room_uid, roomUid)).all();
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

export function markEnded(queries: Queries, labels: readonly string[], ended_at: string): void {
  const isOne = sql`${ports.label} IN (SELECT value FROM json_each(${JSON.stringify(labels)}))`;
  queries.update(ports).set({ ended_at }).where(isOne).run();
}

/** Ports of a sandbox that end because their maker's access has ended. Bounded by MAX_PORTS. */
export function deleteEnded(queries: Queries, sandboxId: string): PortRow[] {
  const where = and(eq(ports.sandbox_id, sandboxId), isNotNull(ports.ended_at));
  return queries.delete(ports).where(where).returning().all();
}

export function deletePort(queries: Queries, sandboxId: string, port: number): PortRow | undefined {
  const where = and(eq(ports.sandbox_id, sandboxId), eq(ports.port, port));
  return queries.delete(ports).where(where).returning().get();
}

export function deleteLabel(queries: Queries, label: string): PortRow | undefined {
  return queries.delete(ports).where(eq(ports.label, label)).returning().get();
}

export function deleteOfSandbox(queries: Queries, sandboxId: string): PortRow[] {
  return queries.delete(ports).where(eq(ports.sandbox_id, sandboxId)).returning().all();
}
