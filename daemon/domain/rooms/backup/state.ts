/**
 * Reads a room's database state from an untrusted file: bounded line by line, and passed to the nouns, which validate it against what they
 * write.
 */
import { createReadStream } from "node:fs";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { JsonCount, MAX_VALUES } from "../../../core/json.ts";
import { errnoOf } from "../../../core/service-error.ts";
import type { Origin } from "../../../db/branch.ts";
import type { Values } from "../../../db/client.ts";
import { UntrustedRows } from "../../../db/untrusted-rows.ts";
import { NAMES, type Nouns, type RoomState, STATE_FORMAT, withRows } from "../checkpoints/room-state.ts";
import { NotWhole } from "../move/format.ts";
import { MAX_ROW_BYTES, MAX_STATE_BYTES, MAX_STATE_ROWS } from "./format.ts";

/** Agents, messages, deliveries, barriers, and a reserve for later formats. */
const MAX_TABLES = 8;
/** More columns than each of these tables has. */
const MAX_CELLS = 24;

const cell = Type.Union([Type.String(), Type.Number(), Type.Null()]);
const some = Type.Object({
  rows: Type.Integer({ minimum: 0, maximum: MAX_TABLES - 1 }),
  some: Type.Array(Type.Array(cell, { maxItems: MAX_CELLS }), { maxItems: 1 }),
});
const rest = Type.Object({
  format: Type.Literal(STATE_FORMAT),
  rest: Type.Object({ nouns: Type.Object(Object.fromEntries(NAMES.map((name) => [name, Type.Unknown()]))) }),
});

/** Throws NotWhole. */
export async function readForeignState(path: string, nouns: Nouns, origin: Origin): Promise<RoomState["nouns"]> {
  try {
    const state = await stateIn(path);
    const accepted: [string, unknown][] = [];
    for (const name of NAMES) accepted.push([name, await nouns[name].accept(state[name], origin)]);
    return Object.fromEntries(accepted) as RoomState["nouns"];
  } catch (error) {
    if (error instanceof UntrustedRows) throw new NotWhole(error.message, { cause: error });
    // JSON that is nested too deep throws these.
    if (error instanceof SyntaxError || error instanceof RangeError) throw notOurs(error);
    if (errnoOf(error) === "ENOENT") throw new NotWhole("it has no record of messages, barriers and agents");
    throw error;
  }
}

async function stateIn(path: string): Promise<Record<string, unknown>> {
  const tables = new Map<number, Values[]>();
  let found: Record<string, unknown> | null = null;
  let left = MAX_STATE_ROWS;
  for await (const bytes of linesOf(path)) {
    if (found) throw notOurs();
    const line: unknown = JSON.parse(bytes.toString("utf8"));
    if (Value.Check(some, line)) {
      left -= line.some.length;
      if (left < 0) throw new NotWhole(`it has more than ${MAX_STATE_ROWS} messages, barriers and agents`);
      const rows = tables.get(line.rows) ?? [];
      tables.set(line.rows, rows);
      rows.push(...(line.some as Values[]));
    } else if (Value.Check(rest, line)) found = withRows(line.rest.nouns, tables) as Record<string, unknown>;
    else throw notOurs();
  }
  if (!found) throw notOurs();
  return found;
}

async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let left = MAX_STATE_BYTES;
  let parts: Buffer[] = [];
  let held = 0;
  let count = new JsonCount();
  const add = (part: Buffer) => {
    parts.push(part);
    held += part.length;
    count.add(part);
    // Values of a line are the cells of rows, or the other state of the nouns.
    if (held > MAX_ROW_BYTES || count.exceeds(MAX_VALUES)) throw notOurs();
  };
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    left -= chunk.length;
    if (left < 0) throw notOurs();
    let at = 0;
    for (let end = chunk.indexOf(10, at); end !== -1; end = chunk.indexOf(10, at)) {
      add(chunk.subarray(at, end));
      yield Buffer.concat(parts);
      [parts, held, count, at] = [[], 0, new JsonCount(), end + 1];
    }
    add(chunk.subarray(at));
  }
  if (held > 0) throw notOurs();
}

function notOurs(cause?: unknown): NotWhole {
  return new NotWhole("its record of messages, barriers and agents is malformed", { cause });
}
