/** Calls that list audit records of a room or an organization: paginated, or all of them as JSON lines. */

import { auditList, DEFAULT_AUDIT_PAGE, orgAuditList } from "../../../../shared/api/audit.ts";
import { makeCursor, readCursor } from "../../../core/call/cursor.ts";
import {
  type Bound,
  bind,
  type EventsReply,
  type KeyCall,
  parsed,
  type StreamEvent,
} from "../../../core/call/operation.ts";
import { type OwnerName, ownerOf } from "../../../core/loop/index.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { readHere } from "../../../db/readers/here.ts";
import { chainKey } from "../chain/chain-key.ts";
import type { AuditDeps } from "../deps.ts";
import { findRoom } from "../find.ts";
import type { PageInput } from "./pages.ts";
import { momentRules, type Query, scanOf } from "./query.ts";
import { type Readers, SLOW_READER } from "./readers.ts";
import { readLines, readPage } from "./reads.ts";
import type { Scan } from "./scan.ts";

/** Names its cursors. */
const LIST = "audit";

export function makeList(deps: AuditDeps, readers: Readers): Bound[] {
  const list = async (call: KeyCall, query: Query, scan: Scan, ndjson: boolean) => {
    if (ndjson) return { outcome: "ok" as const, events: exported(deps, readers, call, query, scan) };
    const by = { owner: ownerOf(call.caller.org_id), signal: call.signal };
    return { outcome: "ok" as const, json: await deps.reads.read(readPage, pageOf(LIST, query, scan), by) };
  };
  return [
    bind(auditList, {
      find: (call, params) => findRoom(deps, call, params),
      rules: momentRules,
      run: (call, input, { room_uid }, { ndjson }) =>
        list(call, input, scanOf(input, call.caller.org_id, room_uid), ndjson),
    }),
    bind(orgAuditList, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      rules: momentRules,
      run: (call, input, orgId, { ndjson }) => list(call, input, scanOf(input, orgId), ndjson),
    }),
  ];
}

/** A page of the records without an organization: failed logins, operators' actions. Throws validation_failed, invalid_cursor. */
export async function listService(queries: Queries, query: Query) {
  const errors = momentRules(query);
  if (errors.length > 0) throw new ServiceError("validation_failed", { errors });
  const by = { owner: "host" as const, signal: new AbortController().signal };
  return parsed(await readHere(readPage, queries, pageOf(LIST, query, scanOf(query, null)), by));
}

/** Input for reading a page. A cursor is invalid in a list of another name. Throws invalid_cursor. */
export function pageOf(list: string, query: Pick<Query, "cursor" | "limit">, scan: Scan): PageInput {
  const { kind, after } = placeOf(list, query, scan);
  return { kind, scan: { ...scan, after }, limit: query.limit ?? DEFAULT_AUDIT_PAGE };
}

const kindOf = (list: string, orgId: string | null, roomUid: string | undefined, order: string) =>
  `${list} ${chainKey(orgId)} ${roomUid ?? ""} ${order}`;

/** Cursor of the page after a record of an organization's list; each host issues it for its own chain. */
export function cursorAfterRecord(orgId: string, order: "asc" | "desc", seq: number): string {
  return makeCursor(kindOf(LIST, orgId, undefined, order), String(seq));
}

/** Throws invalid_cursor. */
function placeOf(list: string, { cursor }: Pick<Query, "cursor">, { org_id, room_uid, order }: Scan) {
  const kind = kindOf(list, org_id, room_uid, order);
  const position = readCursor(kind, cursor);
  return { kind, after: position === null ? undefined : Number(position) };
}

/** Throws invalid_cursor, rate_limited. */
function exported(deps: AuditDeps, readers: Readers, call: KeyCall, query: Query, scan: Scan): EventsReply {
  const from = { ...scan, after: placeOf(LIST, query, scan).after };
  const cancellation = new AbortController();
  const cancel = () => cancellation.abort();
  const signal = AbortSignal.any([call.signal, cancellation.signal]);
  readers.add(call.caller, signal, cancel);
  const { org_id } = call.caller;
  const cut = () => {
    deps.log.info(SLOW_READER.export, { org_id, key_id: call.caller.key_id });
    cancel();
  };
  const read = () =>
    linesOf(deps, { scan: from, limit: query.limit ?? null }, { owner: ownerOf(org_id), signal }, cancel);
  return { events: eventsIn(read()), lines: read(), cancel, slow: { ms: deps.slowReaderMs, cut } };
}

/** Never throws. */
async function* linesOf(
  { reads, log }: AuditDeps,
  input: { scan: Scan; limit: number | null },
  by: { owner: OwnerName; signal: AbortSignal },
  over: () => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* reads.lines(readLines, input, by);
  } catch (error) {
    if (by.signal.aborted) return;
    log.error("failed to export the audit", { error: describeError(error) });
    yield Buffer.from(`${JSON.stringify({ type: "error", code: "internal" })}\n`);
  } finally {
    over();
  }
}

async function* eventsIn(lines: AsyncGenerator<Uint8Array>): AsyncGenerator<readonly StreamEvent[]> {
  for await (const bytes of lines) {
    const texts = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString().split("\n");
    yield texts.filter((text) => text !== "").map((text) => eventOf(JSON.parse(text) as { seq?: number }));
  }
}

const eventOf = (data: { seq?: number }): StreamEvent => ({ id: data.seq ?? null, data });
