/** Merges received audit records into the shown ones: each once, the newest first. Pure. */
import type { AuditRecord } from "../../../shared/api/audit.ts";

/** Maximum number of records in memory; for more, filters or the export are better. */
export const MAX_RECORDS = 50_000;

export interface TailRecords {
  /** The newest first. */
  shown: readonly AuditRecord[];
  /** Received while the user looked at older ones; the newest first. */
  fresh: readonly AuditRecord[];
  /** Whether older records were dropped. */
  isCut: boolean;
}

export const NONE: TailRecords = { shown: [], fresh: [], isCut: false };

/** `heard` has the newest last. At the top they are shown immediately, otherwise they wait. */
export function withHeard(kept: TailRecords, received: readonly AuditRecord[], isAtTop: boolean): TailRecords {
  const last = kept.fresh[0]?.seq ?? kept.shown[0]?.seq ?? 0;
  const newer = received.filter(({ seq }) => seq > last).reverse();
  const fresh = [...newer, ...kept.fresh];
  if (isAtTop) return cut({ ...kept, shown: fresh.length > 0 ? [...fresh, ...kept.shown] : kept.shown, fresh: [] });
  return newer.length > 0 ? cut({ ...kept, fresh }) : kept;
}

/** Appends a loaded page of records that are older than all shown ones. */
export function withOlder(kept: TailRecords, page: readonly AuditRecord[]): TailRecords {
  const oldest = kept.shown.at(-1)?.seq ?? Number.POSITIVE_INFINITY;
  return cut({ ...kept, shown: [...kept.shown, ...page.filter(({ seq }) => seq < oldest)] });
}

/**
 * The first page, reloaded since some records were missed. If it does not reach the shown ones, it replaces them, and null is returned: the
 * pages after it have to be loaded, too.
 */
export function withMissed(kept: TailRecords, page: readonly AuditRecord[], isAtTop: boolean): TailRecords | null {
  const last = kept.fresh[0]?.seq ?? kept.shown[0]?.seq ?? 0;
  const reaches = (page.at(-1)?.seq ?? 0) <= last;
  return reaches ? withHeard(kept, page.toReversed(), isAtTop) : null;
}

function cut(kept: TailRecords): TailRecords {
  if (kept.shown.length <= MAX_RECORDS && kept.fresh.length <= MAX_RECORDS) return kept;
  return {
    shown: kept.shown.slice(0, MAX_RECORDS),
    fresh: kept.fresh.slice(0, MAX_RECORDS),
    isCut: kept.isCut || kept.shown.length > MAX_RECORDS,
  };
}
