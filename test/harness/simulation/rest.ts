/** Invariants of a simulation at rest, once all its faults are healed. */
import { SHARED_TABLES } from "../../../daemon/cluster/table.ts";
import { type Queries, rawQuery, rawValues } from "../../../daemon/db/client.ts";
import { liveRooms } from "../../../daemon/domain/rooms/index.ts";
import { messagesOf } from "./daemon.ts";
import type { SimulatedHost } from "./host.ts";
import { type Placement, placementsOf, type Service } from "./service.ts";

interface Rest {
  service: Service;
  /** The members. */
  hosts: readonly SimulatedHost[];
  placements: readonly Placement[];
  wrong: string[];
}

/** Violations. */
export function atRest(service: Service): string[] {
  const hosts = service.hosts.filter((host) => !host.isRetired && !service.isGone(host));
  const rest: Rest = { service, hosts, placements: placementsOf(service.server.state), wrong: [] };
  for (const host of hosts) if (!service.isHolder(host)) rest.wrong.push(`${host.name} is no member`);
  copiesAreWhole(rest);
  roomsArePlaced(rest);
  nothingIsLost(rest);
  keysAreRight(rest);
  return rest.wrong;
}

/** Each host has the rows of the directory, and no others. */
function copiesAreWhole({ service, hosts, wrong }: Rest): void {
  const there = new Map<string, unknown>();
  for (const [id, { row }] of service.server.state.rows) if (row !== null) there.set(id, row);
  for (const host of hosts) {
    const here = host.daemon ? sharedRows(host.daemon.queries) : new Map<string, unknown>();
    for (const id of new Set([...there.keys(), ...here.keys()])) {
      const rows = [there.get(id), here.get(id)];
      if (Bun.deepEquals(rows[0], rows[1])) continue;
      const [directory, own] = rows.map((row) => JSON.stringify(row));
      wrong.push(`${host.name} has another row ${id}: ${own}, and the directory ${directory}`);
    }
  }
}

let selectShared: string | null = null;

/** All rows that hosts share, as a host has them, by table and key. */
function sharedRows(queries: Queries): Map<string, unknown> {
  selectShared ??= SHARED_TABLES.map(({ name, but }) => {
    const info = rawQuery<{ name: string; pk: number }>(
      queries,
      `SELECT name, pk FROM pragma_table_info('${name}')`,
    )([]);
    const keys = info.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    const row = info.map((column) => `'${column.name}', ${column.name}`).join();
    const condition = but ? ` WHERE ${but.column} <> '${but.is}'` : "";
    return `SELECT '${name} ' || json_array(${keys.map((key) => key.name).join()}), json_object(${row}) FROM ${name}${condition}`;
  }).join(" UNION ALL ");
  const rows = rawValues(queries, selectShared)([]);
  return new Map(rows.map(([id, row]) => [String(id), JSON.parse(String(row)) as unknown]));
}

/** A room that the directory has placed is on that host, and each room of a host is placed there. */
function roomsArePlaced({ service, hosts, placements, wrong }: Rest): void {
  const placed = new Map(placements.map((each) => [each.room_uid, each]));
  for (const host of hosts) {
    const { host_id } = host.member;
    const rooms = host.daemon ? liveRooms(host.daemon.queries) : [];
    for (const { room_uid, room_id, epoch, state } of rooms) {
      const at = placed.get(room_uid);
      // Its name is another's, as the directory or the host has forgotten that it was this one's.
      if (!at && !service.isWhole && placements.some((each) => each.room_id === room_id))
        service.ledger.lose((room) => room.room_uid === room_uid, "its name is another's");
      if (state !== "active" || service.ledger.rooms.get(room_uid)?.lostBy) continue;
      if (at?.host_id !== host_id || at.epoch < epoch)
        wrong.push(`${host_id} has ${room_uid} in epoch ${epoch}, and the directory ${JSON.stringify(at)}`);
    }
    const live = new Set<string>(rooms.map(({ room_uid }) => room_uid));
    const missing = placements.filter((each) => each.host_id === host_id && !live.has(each.room_uid));
    for (const { room_uid } of missing) wrong.push(`${host_id} lacks ${room_uid}, which is placed there`);
  }
}

/** Revoked keys are absent, granted keys are present. */
function keysAreRight({ service, wrong }: Rest): void {
  const { granted, revoked } = service.ledger;
  const row = (id: string) => service.server.state.rows.get(`ssh_keys ${JSON.stringify([id])}`)?.row ?? null;
  for (const id of revoked.keys()) if (row(id) !== null) wrong.push(`the key ${id} was revoked, and is there again`);
  if (service.isWhole) for (const id of granted) if (row(id) === null) wrong.push(`the key ${id} is lost`);
}

function nothingIsLost({ service, hosts, placements, wrong }: Rest): void {
  for (const room of service.ledger.rooms.values()) {
    if (room.lostBy !== null) continue;
    const at = placements.find(({ room_uid }) => room_uid === room.room_uid);
    if (!at) {
      if (!room.mayBeDestroyed) wrong.push(`${room.room_uid} is lost`);
      continue;
    }
    // It may have ended, and be back on a host that was set back.
    if (room.mayBeDestroyed && !service.isWhole) continue;
    const host = hosts.find(({ member }) => member.host_id === at.host_id);
    const messages = new Set(host?.daemon ? messagesOf(host.daemon.queries, room.room_uid) : []);
    const lost = [...room.acknowledged.keys()].filter((message) => !messages.has(message));
    if (lost.length > 0) wrong.push(`${room.room_uid} on ${at.host_id} lacks ${lost.join(", ")}, which are durable`);
  }
}
