/** Rooms in a temporary database, with agents without sandboxes, and calls on them as the pipeline makes them. */
import { sql } from "drizzle-orm";
import { type StartedWork, UnkeptEffects } from "../../../../daemon/core/call/call-effects.ts";
import { type Bound, bodyOf, type Caller, NO_TRANSFER, trialCall } from "../../../../daemon/core/call/operation.ts";
import type { RoomTarget } from "../../../../daemon/core/call/room-target.ts";
import { NO_TRACES } from "../../../../daemon/core/call/traces.ts";
import { Notifier } from "../../../../daemon/core/concurrency/notifier.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { wholly } from "../../../../daemon/core/loop/index.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import type { BranchedRoom } from "../../../../daemon/db/branch.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { ReadPool } from "../../../../daemon/db/readers/pool.ts";
import { forgetRows, newRows, ownRows, type RowsKey, rowsOf } from "../../../../daemon/db/room-rows.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { Agents } from "../../../../daemon/domain/agents/index.ts";
import { makeBarriers } from "../../../../daemon/domain/barriers/index.ts";
import { makeFabric } from "../../../../daemon/domain/fabric/index.ts";
import { BYTES_OF_ROW } from "../../../../daemon/domain/fabric/retention/budget.ts";
import type { MessageRecord } from "../../../../shared/api/fabric.ts";
import type { KeyId, OrgId, RoomUid } from "../../../../shared/ids.ts";
import { insertRow } from "../../../harness/durability/insert-row.ts";

const ORG = "org_1" as OrgId;

/** All fields that the verbs may return. */
export interface Body extends MessageRecord {
  items: MessageRecord[];
  next_after: number;
  next_cursor: string | null;
  state: string;
  generation: number;
  arrived: string[];
  inbox_depth: number;
  reply: MessageRecord;
}

export class Rooms {
  readonly database;
  readonly agents: Agents;
  readonly fabric;
  readonly barriers;
  /** Sandboxes that are gone, as room and agent. */
  readonly gone = new Set<string>();
  /** Inserts a row for a room. */
  readonly isMade: (room: string) => void;
  readonly #operations: Map<string, Bound>;
  readonly #bells = new Notifier();

  constructor({ keptBytes = 0, ackMs = 60_000, file = ":memory:" } = {}) {
    const connection = openConnection(file);
    migrate(connection);
    this.isMade = (room) => {
      connection.execute("PRAGMA foreign_keys = OFF");
      insertRow(connection, this.database, "rooms", { room_uid: uidOf(room), room_id: room, state: "active" });
    };
    this.database = makeDatabase(connection);
    const sandboxOf = (roomUid: RoomUid, agent_id: string) =>
      this.gone.has(`${roomUid} ${agent_id}`)
        ? { sandbox_id: "sbx_gone", agent_id, state: "destroyed", fabric_attached: true }
        : null;
    this.agents = new Agents({ database: this.database, sandboxOf, liveSandboxes: () => [], waitsChanged: () => {} });
    const deps = { database: this.database, findRoom, agents: this.agents, bells: this.#bells };
    const log = makeLog("error");
    const around = {
      log,
      reads: new ReadPool(this.database, null),
      meter: { count: () => {} },
      traces: NO_TRACES,
      delivered: () => {},
    };
    this.fabric = makeFabric({ ...deps, ...around, ackMs, keptBytes });
    this.barriers = makeBarriers(deps);
    this.#operations = new Map(
      [...this.fabric.operations, ...this.barriers.operations].map((bound) => [bound.operation.name, bound]),
    );
  }

  /** Response of a verb to an agent of a room; `begun` is the record that an earlier attempt of the call has left. */
  async call(
    room: string,
    agent: string,
    name: string,
    input: object,
    more: Record<string, string> = {},
    started?: StartedWork,
  ): Promise<Body> {
    const bound = this.#operations.get(name);
    if (!bound) throw new Error(`there is no operation ${name}`);
    const call = { ...trialCall(callerOf(agent)), work: Object.assign(new UnkeptEffects(), { begun: started }) };
    const target = await bound.find(call, { room_id: room, ...more });
    const bad = await bound.rules(input, target, []);
    if (bad.length > 0) throw new Error(JSON.stringify(bad));
    return bodyOf(await bound.run(call, input, target, NO_TRANSFER)) as unknown as Body;
  }

  /** The code of the error that a verb throws. */
  async codeOf(...call: Parameters<Rooms["call"]>): Promise<string> {
    const error = await this.call(...call).catch((thrown: unknown) => thrown);
    return error instanceof ServiceError ? error.code : "none";
  }

  /** The room is being destroyed. */
  end(room: string): void {
    this.#bells.end(uidOf(room), new ServiceError("room_destroying"));
  }

  /** A checkpoint's state of a room, as it is read back from a disk. */
  async take(room: string) {
    const state = await this.database.commit((queries) => ({
      fabric: wholly(this.fabric.branch.take(queries, uidOf(room))),
      barriers: wholly(this.barriers.branch.take(queries, uidOf(room))),
      agents: wholly(this.agents.branch.take(queries, uidOf(room))),
    }));
    return JSON.parse(JSON.stringify(state)) as typeof state;
  }

  async put(room: string, state: State, pausedMs = 0): Promise<void> {
    await this.stage(room, state, pausedMs);
    try {
      await this.#branch("put", toOf(room, pausedMs), state);
    } catch (error) {
      await this.forget(room);
      throw error;
    }
  }

  /** Writes the rows of a state, ahead of `put`. */
  async stage(room: string, state: State, pausedMs = 0): Promise<void> {
    await this.#stage(toOf(room, pausedMs), state, true);
  }

  async #stage(to: BranchedRoom, state: State, isOther: boolean): Promise<void> {
    const how = { over: new AbortController().signal, isOther, requiresSpace: isOther };
    await this.fabric.branch.stage(state.fabric, to, how);
    await this.barriers.branch.stage(state.barriers, to, how);
    await this.agents.branch.stage(state.agents, to, how);
  }

  /** Removes all rows of a room. */
  async forget(room: string): Promise<void> {
    await this.fabric.forget(uidOf(room));
    await this.barriers.forget(uidOf(room));
    await this.agents.forget(uidOf(room));
    await this.database.commit((queries) => forgetRows(queries, uidOf(room)));
  }

  /** Exchanges the rows of a room for those of a state. */
  async replace(room: string, state: State, pausedMs = 0): Promise<void> {
    const exchange = await this.prepare(room, state, pausedMs);
    await exchange();
  }

  /** Writes the rows of a state; the returned function exchanges the room's rows for them. */
  async prepare(room: string, state: State, pausedMs = 0): Promise<() => Promise<void>> {
    const to = { ...toOf(room, pausedMs), rows: newRows(uidOf(room)) };
    try {
      await this.#stage(to, state, false);
    } catch (error) {
      await this.#drop(to.rows);
      throw error;
    }
    return async () => {
      const former = rowsOf(this.database.queries, uidOf(room));
      await this.#branch("replace", to, state);
      await this.#drop(former);
    };
  }

  async #drop(rows: RowsKey): Promise<void> {
    for (const { branch } of [this.fabric, this.barriers, this.agents]) await branch.drop(rows);
  }

  /** Resolves if there is space for a state that replaces the room's; rejects otherwise. */
  async requireSpace(room: string, state: State): Promise<void> {
    const to = { ...toOf(room), rows: newRows(uidOf(room)) };
    const how = { over: new AbortController().signal, isOther: false, requiresSpace: true };
    try {
      await this.fabric.branch.stage(state.fabric, to, how);
    } finally {
      await this.fabric.branch.drop(to.rows);
    }
  }

  async #branch(how: "put" | "replace", to: BranchedRoom, state: State): Promise<void> {
    const parts = [this.fabric, this.barriers, this.agents];
    await this.database.commit((queries) => {
      this.fabric.branch[how](queries, state.fabric, to);
      this.barriers.branch[how](queries, state.barriers, to);
      this.agents.branch[how](queries, state.agents, to);
    });
    for (const { branch } of parts) await branch.wake(to);
  }

  /** Resolves when writes that no caller awaits are done as well: those of delivered messages. */
  async settled(): Promise<void> {
    await this.database.commit(() => {});
  }

  /** Every row that a room has. */
  rowsOf(room: string): Record<string, unknown[]> {
    const tables = ["messages", "deliveries", "barriers", "agents", "message_rooms"];
    const key = rowsOf(this.database.queries, uidOf(room));
    const rows = (table: string) =>
      this.database.queries.all(
        sql.raw(`SELECT * FROM ${table} WHERE room_uid = '${table === "message_rooms" ? uidOf(room) : key}'`),
      );
    return Object.fromEntries(tables.map((table) => [table, rows(table)]));
  }

  /** Space of a room's messages: as stored, and computed from the rows. */
  bytesOf(room: string): { kept: number; rows: number } {
    const one = (text: string) => this.database.queries.all<{ bytes: number }>(sql.raw(text))[0]?.bytes ?? 0;
    const key = rowsOf(this.database.queries, uidOf(room));
    return {
      kept: one(`SELECT bytes FROM message_rooms WHERE room_uid = '${uidOf(room)}'`),
      rows: one(`SELECT ifnull(sum(${BYTES_OF_ROW}), 0) AS bytes FROM messages WHERE room_uid = '${key}'`),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.fabric.stop();
    await this.database.close();
  }
}

export type State = Awaited<ReturnType<Rooms["take"]>>;

export const uidOf = (room: string) => `rom_${room}` as RoomUid;

/** A room that gets rows of its own. */
export const toOf = (room: string, pausedMs = 0): BranchedRoom => ({
  ...{ room_uid: uidOf(room), org_id: ORG, pausedMs },
  rows: ownRows(uidOf(room)),
});

function findRoom(_caller: Caller, roomId: string): RoomTarget {
  const [drive_directory, drive_limit_bytes] = ["", 0];
  const drive = { drive_directory, drive_limit_bytes };
  return {
    room_id: roomId,
    room_uid: uidOf(roomId),
    org_id: ORG,
    state: "active",
    is_turning: false,
    is_moving: false,
    ...drive,
  };
}

/** A caller; the name "*" is a caller that is no agent of a room. */
function callerOf(agent: string): Caller {
  const agent_id = agent === "*" ? null : agent;
  const [name, plan, scopes, key_id] = [agent, "standard", ["fabric:read", "fabric:write"] as const, agent as KeyId];
  return { kind: "sandbox", org_id: ORG, key_id, name, plan, scopes, room_ids: null, agent_id, expires_at: null };
}
