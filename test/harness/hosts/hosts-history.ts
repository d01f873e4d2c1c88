/** A history of clients' requests to several hosts, and its invariants, which must hold whatever fails. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { SHARED_TABLES } from "../../../daemon/cluster/table.ts";
import type { TestDaemon } from "../daemon.ts";
import type { Postgres } from "./postgres.ts";

/** done: acknowledged; refused: no part of it was done; unknown: no client got an answer. */
export type Fate = "done" | "refused" | "unknown";

export interface Asked {
  what: "create" | "destroy" | "key" | "revoke";
  /** Of a room, or a key_id. */
  name: string;
  host: string;
  began: number;
  ended: number;
  fate: Fate;
  /** A room's uid, or a key. */
  got: string | null;
  said: string;
}

interface Held {
  uid: string;
  name: string;
  /** From when to when it was there for certain. */
  from: number;
  until: number;
}

/** The time in which a room existed for certain: from the answer to its creation to the first request to destroy it. */
export function heldRooms(history: readonly Asked[]): Held[] {
  return history.flatMap(({ what, fate, name, got, began, ended }) => {
    if (what !== "create" || fate !== "done" || got === null) return [];
    const ends = history.filter(
      (each) =>
        each.what === "destroy" &&
        each.name === name &&
        each.ended > began &&
        (each.fate === "unknown" || each.got === got),
    );
    return [
      { uid: got, name, from: ended, until: Math.min(Number.POSITIVE_INFINITY, ...ends.map((end) => end.began)) },
    ];
  });
}

/** Pairs of rooms that had the same name at the same time; empty if all is well. */
export function sharedNames(history: readonly Asked[]): string[] {
  const held = heldRooms(history).sort((a, b) => a.from - b.from);
  return held.flatMap((a, index) =>
    held
      .slice(index + 1)
      .filter((b) => a.name === b.name && a.uid !== b.uid && b.from < a.until && a.from < b.until)
      .map((b) => `${a.name}: ${a.uid} from ${a.from} to ${a.until}, ${b.uid} from ${b.from} to ${b.until}`),
  );
}

/** Rooms that are acknowledged and absent, or present although refused, compared with the hosts' final lists. */
export function wrongRooms(history: readonly Asked[], listed: ReadonlyMap<string, string>): string[] {
  const absent = heldRooms(history)
    .filter(({ until, uid, name }) => until === Number.POSITIVE_INFINITY && listed.get(name) !== uid)
    .map(({ name, uid }) => `${name}: ${uid} was made, and ${listed.get(name) ?? "nothing"} is there`);
  const surplus = [...listed].flatMap(([name, uid]) => {
    const creates = history.filter((each) => each.what === "create" && each.name === name);
    if (creates.some(({ got, fate }) => got === uid || fate === "unknown")) {
      const ended = history.some(({ what, fate, got }) => what === "destroy" && fate === "done" && got === uid);
      return ended ? [`${name}: ${uid} was destroyed, and is there`] : [];
    }
    return [`${name}: ${uid} is there, and nobody was told that it is made`];
  });
  return [...absent, ...surplus];
}

/** Rows of a host's copy that differ from the directory's; empty once it has caught up. */
export async function differencesOf(daemon: TestDaemon, postgres: Postgres): Promise<string[]> {
  const output = await postgres.sql(
    `SELECT json_agg(json_build_array(tbl, key, "row")) FROM roomd.rows WHERE "row" IS NOT NULL`,
  );
  const truth = new Map(
    (JSON.parse(output) as [string, string, object][]).map(([tbl, key, row]) => [`${tbl} ${key}`, sorted(row)]),
  );
  const here = new Map(copyOf(daemon));
  const wrong = [...truth].filter(([key, row]) => here.get(key) !== row).map(([key]) => `differs: ${key}`);
  return [...wrong, ...[...here.keys()].filter((key) => !truth.has(key)).map((key) => `surplus: ${key}`)];
}

function copyOf(daemon: TestDaemon): [string, string][] {
  const database = new Database(join(daemon.dataDir, "roomd.db"), { readonly: true });
  try {
    database.run("PRAGMA busy_timeout = 5000");
    return SHARED_TABLES.flatMap(({ name, but }) => {
      const info = database.query(`SELECT name, pk FROM pragma_table_info('${name}')`).all() as Column[];
      const keys = info.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
      const condition = but ? `WHERE ${but.column} <> '${but.is}'` : "";
      const columns = info.map(({ name: column }) => `'${column}', ${column}`).join(", ");
      const rows = database.query(
        `SELECT json_array(${keys.map((key) => key.name).join(", ")}) AS key, json_object(${columns}) AS row FROM ${name} ${condition}`,
      );
      return (rows.all() as { key: string; row: string }[]).map(({ key, row }): [string, string] => [
        `${name} ${key}`,
        sorted(JSON.parse(row) as object),
      ]);
    });
  } finally {
    database.close();
  }
}

interface Column {
  name: string;
  pk: number;
}

const sorted = (row: object) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
