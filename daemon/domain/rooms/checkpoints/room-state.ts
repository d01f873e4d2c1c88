/**
 * Database state of a room at an instant: the states of all nouns, read at one moment and written back in one transaction, and the file
 * that holds them in between. Each line of the file has some of the rows, so that no line is long; the last line has the remaining state.
 */
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";
import { inPieces, loopTime, ownerOf, Pieces, type Steps } from "../../../core/loop/index.ts";
import type { Branch, BranchedRoom, Rows, Staging } from "../../../db/branch.ts";
import type { Queries } from "../../../db/client.ts";
import type { RowsKey } from "../../../db/room-rows.ts";
import type { Database } from "../../../db/transact.ts";

/** The nouns in the order in which they are staged; they are put and replaced in PUT_ORDER. */
export type Nouns = Readonly<Record<"agents" | "fabric" | "barriers", Branch<unknown>>>;

/** Branching of the calls that guests have made, by the sandbox that made them. */
export interface Calls {
  take(queries: Queries, sandboxIds: readonly string[]): Steps<unknown>;
  replace(state: unknown, guests: BranchedCalls, isVital?: boolean): Promise<void>;
  remove(sandboxIds: Iterable<string>): Promise<void>;
}

/** Transfer of all calls about a room together with the room. */
export interface MovingCalls {
  takeRoom(queries: Queries, room: MovedRoom): Steps<unknown>;
  putRoom(calls: unknown, room: MovedRoom, over: AbortSignal): Promise<void>;
}

type MovedRoom = { org_id: OrgId; room_id: string; room_uid: RoomUid };

export interface BranchedCalls extends Pick<BranchedRoom, "org_id" | "pausedMs"> {
  sandboxIds: ReadonlyMap<string, string>;
  pathOf(path: string): string;
}

export interface RoomState {
  nouns: Record<keyof Nouns, unknown>;
  calls: unknown;
}

export const NAMES = ["agents", "fabric", "barriers"] as const satisfies (keyof Nouns)[];

/** Messages first: their last number is that of the room's former rows. */
const PUT_ORDER = ["fabric", "agents", "barriers"] as const satisfies (typeof NAMES)[number][];

/** While nothing of the room runs. Throws quota_exceeded. */
export function* takeState(
  queries: Queries,
  { nouns, calls }: { nouns: Nouns; calls: Calls },
  roomUid: RoomUid,
  sandboxIds: readonly string[],
): Steps<RoomState> {
  return { nouns: yield* takeNouns(queries, nouns, roomUid), calls: yield* calls.take(queries, sandboxIds) };
}

/** Reads the current state of a room, in pieces charged to its organization. */
export function taking<State>(
  database: Pick<Database, "snapshot">,
  orgId: OrgId,
  take: (queries: Queries) => Steps<State>,
): Promise<State> {
  const pieces = new Pieces(loopTime, ownerOf(orgId), "room.rows");
  return database.snapshot((queries) => inPieces(take(queries), pieces));
}

export function* takeNouns(queries: Queries, nouns: Nouns, roomUid: RoomUid): Steps<RoomState["nouns"]> {
  const taken: [string, unknown][] = [];
  for (const name of NAMES) taken.push([name, yield* nouns[name].take(queries, roomUid)]);
  return Object.fromEntries(taken) as RoomState["nouns"];
}

/** Before the transaction that gives them to a room. Removes the rows if it rejects, as with the signal's reason. */
export async function stageNouns(
  nouns: Nouns,
  state: RoomState["nouns"],
  room: BranchedRoom,
  how: Staging,
): Promise<void> {
  try {
    for (const name of NAMES) await nouns[name].stage(state[name], room, how);
  } catch (error) {
    await dropNouns(nouns, room.rows);
    throw error;
  }
}

/** Removes rows that no room has, some in each commit. */
export async function dropNouns(nouns: Nouns, rows: RowsKey): Promise<void> {
  for (const name of NAMES) await nouns[name].drop(rows);
}

/** Keys of rows that no room has. */
export function strayRows(queries: Queries, nouns: Nouns): Set<RowsKey> {
  return new Set(NAMES.flatMap((name) => nouns[name].strays(queries)));
}

/** Within a transaction; `how`: put into a room whose nouns were staged, or replace its present state. */
export function giveNouns(
  queries: Queries,
  nouns: Nouns,
  state: RoomState["nouns"],
  room: BranchedRoom,
  how: "put" | "replace" = "replace",
): void {
  for (const name of PUT_ORDER) nouns[name][how](queries, state[name], room);
}

export async function wakeNouns(nouns: Nouns, room: BranchedRoom): Promise<void> {
  for (const name of NAMES) await nouns[name].wake(room);
}

export const STATE_FORMAT = 1;
const ROWS_AT_ONCE = 500;
/** Maximum length of a line with several rows: creating or reading a line blocks the event loop. */
const LINE_CHARACTERS = 256 * 1024;

type Line = { rows: number; some: Rows["rows"] } | { format: number; rest: unknown };

/** Writes the state to a file and flushes it to disk; returns its bytes. */
export async function writeState(path: string, state: object, rowsAtOnce = ROWS_AT_ONCE): Promise<number> {
  const tables: Rows[] = [];
  const rest = JSON.stringify(state, (_key, value: unknown) => {
    if (!isRows(value)) return value;
    tables.push(value);
    return { $rows: tables.length - 1, columns: value.columns };
  });
  const file = await open(path, "wx", 0o600);
  try {
    let text = "";
    for (const line of linesOf(tables, rowsAtOnce)) {
      text += line;
      if (text.length < LINE_CHARACTERS) continue;
      await file.write(text);
      text = "";
    }
    await file.write(`${text}{"format":${STATE_FORMAT},"rest":${rest}}\n`);
    await file.sync();
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

function* linesOf(tables: readonly Rows[], rowsAtOnce: number): Generator<string> {
  for (const [number, { rows }] of tables.entries()) {
    let some: string[] = [];
    let length = 0;
    const line = () => `{"rows":${number},"some":[${some.join(",")}]}\n`;
    for (const row of rows) {
      const text = JSON.stringify(row);
      if (some.length === rowsAtOnce || (some.length > 0 && length + text.length > LINE_CHARACTERS)) {
        yield line();
        [some, length] = [[], 0];
      }
      some.push(text);
      length += text.length;
    }
    if (some.length > 0) yield line();
  }
}

/** Total number of rows in a state. */
export function rowsIn(state: unknown): number {
  if (isRows(state)) return state.rows.length;
  if (typeof state !== "object" || state === null) return 0;
  return Object.values(state).reduce((sum: number, each) => sum + rowsIn(each), 0);
}

/** Throws if it is incomplete, or in another format. */
export async function readState<State = RoomState>(path: string): Promise<State> {
  const tables = new Map<number, Rows["rows"]>();
  const pieces = new Pieces(loopTime, loopTime.owner, "room.rows");
  for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    const turn = pieces.next();
    if (turn) await turn;
    const line = JSON.parse(text) as Line;
    if ("some" in line) {
      const rows = tables.get(line.rows) ?? [];
      tables.set(line.rows, rows);
      for (const row of line.some) rows.push(row);
      continue;
    }
    if (line.format !== STATE_FORMAT) throw new Error("the checkpoint's format is unknown to this roomd");
    return withRows(line.rest, tables) as State;
  }
  throw new Error("the checkpoint's copy of database rows is incomplete");
}

function isRows(value: unknown): value is Rows {
  const { columns, rows } = Object(value);
  return Array.isArray(columns) && Array.isArray(rows);
}

export function withRows(value: unknown, tables: ReadonlyMap<number, Rows["rows"]>): unknown {
  if (Array.isArray(value)) return value.map((each) => withRows(each, tables));
  if (typeof value !== "object" || value === null) return value;
  const { $rows, columns } = value as { $rows?: number; columns?: string[] };
  if ($rows !== undefined && columns) return { columns, rows: tables.get($rows) ?? [] };
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withRows(each, tables)]));
}
