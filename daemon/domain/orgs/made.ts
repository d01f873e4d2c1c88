/**
 * Lasting things that give access or a feed, and the end of each with its maker. A maker is a person, or a line of keys that were rotated
 * one into another; its access is over once it could not make the thing again. Every change that ends an access calls `endMade` in its
 * transaction:
 *
 *     key revoked · member removed or given a smaller role · account deleted · user disabled · application signed out
 *       └─▶ changes.ts ──▶ endMade ──▶ each MadeKind: find things whose maker's access is over, end them
 *
 * The rule depends on the present state alone, so the same call covers expired keys, and is idempotent.
 * The list of kinds is in compose/made.ts.
 */
import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Scope } from "../../../shared/api/contract.ts";
import type { MadeName } from "../../../shared/api/made.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { locally } from "../../db/dry-run.ts";

/** Columns or values; `type` is the type of an actor. Actors other than users and keys belong to the host, or end with their sandbox. */
export interface Maker {
  org_id: SQLWrapper | string;
  type: SQLWrapper | string;
  id: SQLWrapper | string;
}

export interface MakerRule {
  /** Scope that the role of a person must still provide. */
  scope: Scope;
  /** A personal resource ends with the person's own key, even if another person has rotated that key since. */
  isPersonal: boolean;
}

/** SQL condition: the maker has lost access. */
export type IsOver = (maker: Maker, rule: MakerRule) => SQL;

export interface MadeKind<Row = unknown> {
  name: MadeName;
  table: SQLiteTable;
  /** Rows are local to each host. */
  isHere?: true;
  /** Explains how another caller becomes the maker; null: the resource is personal and ends with the person's access. */
  takeOver: string | null;
  /** Rows in force with a maker that has lost access. */
  find(queries: Queries, isOver: IsOver, orgId: OrgId): Row[];
  /** Absent: its things are only counted. */
  idOf?(row: Row): string;
  /** Number of things, if a row may be several. */
  count?(rows: readonly Row[]): number;
  /** Ends them, and appends an audit record of each. Within a transaction. */
  end(queries: Queries, rows: readonly Row[], at: string): void;
}

/**
 * Condition that a column is among the column `id` of a query of makers: each maker is checked once, independent of the number of its
 * resources.
 */
export const isAmongOver = (id: SQLWrapper, makers: SQL, over: (id: SQL) => SQL): SQL =>
  sql`${id} IN (WITH makers AS MATERIALIZED (${makers}) SELECT id FROM makers WHERE ${over(sql`makers.id`)})`;

/** Erases the row type of a kind. */
export const madeKind = <Row>(kind: MadeKind<Row>): MadeKind => kind as MadeKind;

interface Ended {
  count: number;
  /** None of ports: a label is a part of a URL, and there may be thousands. */
  ids: readonly string[];
}

/** The ended things, by kind. */
export type EndedMade = Readonly<Record<MadeName, Ended>>;

const NONE: Ended = { count: 0, ids: [] };

export const nothingEnded = (): EndedMade => ({ webhooks: NONE, ports: NONE, ssh_keys: NONE, applications: NONE });

/** For answers: how many of each kind. */
export function countsOf({ webhooks, ports, ssh_keys, applications }: EndedMade): Record<MadeName, number> {
  return {
    webhooks: webhooks.count,
    ports: ports.count,
    ssh_keys: ssh_keys.count,
    applications: applications.count,
  };
}

/** For the record of the call that ended an access. */
export function detailsOf({ webhooks, ports, ssh_keys, applications }: EndedMade): Record<string, unknown> {
  return {
    ...(ssh_keys.count === 0 ? {} : { ssh_key_ids: ssh_keys.ids }),
    ...(webhooks.count === 0 ? {} : { webhook_ids: webhooks.ids }),
    ...(applications.count === 0 ? {} : { grant_ids: applications.ids }),
    ...(ports.count === 0 ? {} : { ports_unexposed: ports.count }),
  };
}

export interface MadeEnds {
  /** Ends things in the organization with makers that have lost access. Within a transaction, after the change that ended the access. */
  endMade(queries: Queries, orgId: OrgId): EndedMade;
  /** Whether `endMade` would end anything. */
  isAnyOver(queries: Queries, orgId: OrgId): boolean;
}

export function makeMadeEnds(kinds: readonly MadeKind[], isOver: IsOver): MadeEnds {
  const endMade: MadeEnds["endMade"] = (queries, orgId) => {
    const at = now();
    const ended: Record<MadeName, Ended> = { ...nothingEnded() };
    for (const kind of kinds) {
      const found = kind.find(queries, isOver, orgId);
      const end = (within: Queries, rows: readonly unknown[]) => {
        if (rows.length > 0) kind.end(within, rows, at);
      };
      if (kind.isHere) locally(queries, (here) => end(here, kind.find(here, isOver, orgId)));
      else end(queries, found);
      const { idOf } = kind;
      ended[kind.name] = { count: kind.count?.(found) ?? found.length, ids: idOf ? found.map((row) => idOf(row)) : [] };
    }
    return ended;
  };
  const isAnyOver: MadeEnds["isAnyOver"] = (queries, orgId) =>
    kinds.some((kind) => kind.find(queries, isOver, orgId).length > 0);
  return { endMade, isAnyOver };
}

/** SQL condition: no key of its line is valid. */
const isLineOver = (keyId: Maker["id"]): SQL => sql`NOT EXISTS (
  SELECT 1 FROM api_keys AS own JOIN api_keys AS line
    ON line.key_id = ifnull(own.first_key_id, own.key_id) OR line.first_key_id = ifnull(own.first_key_id, own.key_id)
  WHERE own.key_id = ${keyId} AND line.revoked_at IS NULL AND (line.expires_at IS NULL OR line.expires_at > ${now()}))`;

const hasEndedWithPerson = (keyId: Maker["id"]): SQL =>
  sql`EXISTS (SELECT 1 FROM api_keys AS own WHERE own.key_id = ${keyId} AND own.ended_with_maker)`;

export const isKeyOver = (keyId: Maker["id"], { isPersonal }: Pick<MakerRule, "isPersonal">): SQL =>
  isPersonal ? sql`(${isLineOver(keyId)} OR ${hasEndedWithPerson(keyId)})` : isLineOver(keyId);
