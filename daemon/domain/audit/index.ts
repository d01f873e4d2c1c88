/** Audit: an append-only chain of records per organization, and the calls that read it. */
import type { Bound } from "../../core/call/operation.ts";
import { Anchors } from "./anchors/anchors.ts";
import { HeadsFile, type HeadsFileDeps } from "./anchors/heads-file.ts";
import { gatherHeads } from "./chain/chain-head.ts";
import { notifyReaders } from "./chain/chain-notifier.ts";
import { Chains } from "./chain/forward-records.ts";
import { makeVerify } from "./chain/verify.ts";
import type { AuditDeps } from "./deps.ts";
import { startFlushing } from "./flush-aggregates.ts";
import { makeEvents } from "./reading/events.ts";
import { makeList } from "./reading/list.ts";
import { Readers } from "./reading/readers.ts";
import { makeSummary } from "./reading/summary.ts";
import { keepRetention } from "./retention.ts";
import { limitRecords, takeGrown } from "./store.ts";

export { lostAnchors } from "./anchors/anchored.ts";
export { filesOf as headsFilesOf } from "./anchors/heads.ts";
export { headToName, lostHeads } from "./chain/compare-named.ts";
export type { Chains } from "./chain/forward-records.ts";
export type { Head } from "./chain/hash-chain.ts";
export { MAX_NAMED } from "./chain/named-heads.ts";
export type { VerdictPart } from "./chain/verify.ts";
export { verifyAll } from "./chain/verify-all.ts";
export type { AuditEntry } from "./entry.ts";
export { cursorAfterRecord, listService, pageOf } from "./reading/list.ts";
export { locateRecord, type RecordKey, type Within } from "./reading/locate.ts";
export { momentRules, scanOf } from "./reading/query.ts";
export { Readers, SLOW_READER } from "./reading/readers.ts";
export { mostOf, summaryText } from "./reading/summarize.ts";
export { cursorAfterEvent, notAnEvent, seqOfEvent } from "./reading/timeline-cursor.ts";
export { forgetFormerEvents, forgetNumbers, giveEvents, type MovedEvents, RoomNumbers } from "./room-numbers.ts";
export { listAudit } from "./rows.ts";
export { appendAudit, appendAudits, countRecords, executionRecords, recordsAbout } from "./store.ts";

export interface AuditOptions {
  /** Retention of records, in ms; 0: unlimited. */
  keepMs: number;
  heads: Omit<HeadsFileDeps, "database" | "log">;
  /** File of the database; its directory contains the closed days. */
  file: string;
  /** Records of an organization per day, above which some are counted together; 0: unlimited. */
  perDay: number;
  /** Interval at which counts become records. */
  countedMs: number;
}

export interface Audit {
  operations: Bound[];
  /** For subscribers that forward records. */
  chains: Chains;
  /** Stores the heads of changed chains as anchors, without waiting for the next period. Never rejects. */
  anchor(): Promise<void>;
  /** Ends the streams of a room that moves to another host. */
  endRoom(roomUid: string): void;
  /** Number of chains that lack an anchored record; null: unknown. */
  chainsLost(): number | null;
  stop(): Promise<void>;
}

export function makeAudit(deps: AuditDeps, { keepMs, heads, file, perDay, countedMs }: AuditOptions): Audit {
  const { log, database } = deps;
  const { queries } = database;
  const headsFile = new HeadsFile({ database, log, ...heads });
  const { anchors: store } = deps;
  const anchors = store && new Anchors({ database, log, store, intervalMs: heads.intervalMs });
  const readers = new Readers();
  if (perDay > 0) limitRecords(queries, perDay);
  gatherHeads(database);
  takeGrown(queries);
  database.onCommit(() => {
    const chains = takeGrown(queries);
    if (chains.size === 0) return;
    notifyReaders(deps.bells, chains);
    headsFile.expect();
    anchors?.expect();
  });
  // For records that were added while no daemon ran.
  headsFile.expect();
  void anchors?.settle();
  const events = makeEvents(deps, readers);
  const endRetention = keepRetention({ database, log, file }, keepMs, heads.onLost);
  const endSettling = startFlushing(database, log, countedMs);
  return {
    chains: new Chains(queries, deps.reads, deps.bells),
    anchor: async () => await anchors?.settle(),
    chainsLost: () => anchors?.lost ?? null,
    operations: [...makeList(deps, readers), ...makeSummary(deps), ...makeVerify(deps), ...events.operations],
    endRoom: events.endRoom,
    stop: async () => {
      endRetention();
      endSettling();
      await Promise.all([headsFile.stop(), anchors?.stop()]);
    },
  };
}
