/** Reads of the audit that run in reader threads. */
import type { AuditRecord, orgAuditList } from "../../../../shared/api/audit.ts";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import type { Lines, Read } from "../../../db/readers/read.ts";
import { chainKey } from "../chain/chain-key.ts";
import { type Checked, checkChain, checkRoom } from "../chain/check.ts";
import type { Walked } from "../chain/hash-chain.ts";
import { listPart } from "../rows.ts";
import type { AuditRow } from "../table.ts";
import { type LinesInput, linesOfRecords, type PageInput, pageOfRecords } from "./pages.ts";
import type { Scan } from "./scan.ts";
import { type RecordKey, searchRecord, type Within } from "./search.ts";
import { type Summary, summarize } from "./summarize.ts";

/** Records of one slice of an event stream. */
const STRETCH_RECORDS = 100;

export const readPage: Read<PageInput, OutputOf<typeof orgAuditList>> = {
  name: "audit.page",
  isOfRecords: true,
  *run(queries, input) {
    const { records: items, next_cursor } = yield* pageOfRecords(queries, input);
    yield JSON.stringify({ items, next_cursor });
  },
};

export const readLines: Read<LinesInput, Lines> = { name: "audit.lines", isOfRecords: true, run: linesOfRecords };

export const readSummary: Read<{ scan: Scan; about: string }, Summary> = {
  name: "audit.summary",
  isOfRecords: true,
  *run(queries, { scan, about }) {
    yield JSON.stringify(yield* summarize(queries, scan, about));
  },
};

/** Verdict on an organization's chain, or on its part from a room's first record to its last. */
export const readVerdict: Read<{ org_id: string; room_uid: string | null; walked: Walked | null }, Checked> = {
  name: "audit.verify",
  isOfRecords: true,
  *run(queries, { org_id, room_uid, walked }) {
    const checked: Checked =
      room_uid === null
        ? yield* checkChain(queries, chainKey(org_id), { walked })
        : { verdict: yield* checkRoom(queries, org_id, room_uid), closed: null, named: [] };
    yield JSON.stringify(checked);
  },
};

/** The requested record; null if it is not within the caller's limits. */
export const readRecord: Read<{ within: Within; wanted: RecordKey }, AuditRecord | null> = {
  name: "audit.locate",
  isOfRecords: true,
  *run(queries, { within, wanted }) {
    yield JSON.stringify(yield* searchRecord(queries, within, wanted));
  },
};

/** The first records of an organization's chain, or of a room, between two seqs; empty if absent. */
export const readStretch: Read<{ org_id: string; room_uid: string | null; after: number; last: number }, AuditRow[]> = {
  name: "audit.stretch",
  isOfRecords: true,
  *run(queries, { org_id, room_uid, after, last }) {
    const filter = { org_id, room_uid: room_uid ?? undefined, order: "asc", last, limit: STRETCH_RECORDS } as const;
    let rows: AuditRow[] = [];
    for (let from: number | null = after; from !== null && rows.length === 0; ) {
      const part = listPart(queries, { ...filter, after: from });
      rows = part.rows;
      from = part.next;
      yield;
    }
    yield JSON.stringify(rows);
  },
};

export const auditReads = [readPage, readLines, readSummary, readVerdict, readRecord, readStretch];
