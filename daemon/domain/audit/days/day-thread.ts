/** The thread that copies a closed day of the audit into a file: it takes one order, and answers once the file is on disk under its name. */
import { chmod, mkdir, open, readdir, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { monotonicMs, sleep } from "../../../core/clock.ts";
import { isDiskFailure, isDiskFull, isOutOfSpace, isOverQuota } from "../../../core/disk-failure.ts";
import { describeError } from "../../../core/service-error.ts";
import {
  COPIED_FROM,
  createUnchanging,
  openReading,
  type Queries,
  rawQuery,
  rawStatement,
} from "../../../db/client.ts";
import records from "../../../db/schema/audit-records.sql" with { type: "text" };
import type { CopiedDay, CopyAnswer, CopyOrder } from "./copy.ts";
import { type CutStretch, cutDay } from "./cut.ts";

declare const self: Worker;

/** Rows per read transaction of the database. Its log cannot restart during the read. */
const ROWS_AT_ONCE = 1000;
/** Rows after which the file is synced, so that syncs of other files never wait for all of it. */
const ROWS_OF_SYNC = 50_000;
const HASHED_AT_ONCE = 1024 ** 2;

/** A failure to write or sync the file. */
class WriteError extends Error {}

self.onmessage = ({ data }: MessageEvent<CopyOrder>) => {
  void answer(data).then((response: CopyAnswer) => postMessage(response));
};

async function answer(order: CopyOrder): Promise<CopyAnswer> {
  try {
    return { copied: await copy(order) };
  } catch (error) {
    const isFull = isDiskFull(error) || isOutOfSpace(error) || (isDiskFailure(error) && isOverQuota(order.database));
    const isLost = !isFull && (isDiskFailure(error) || error instanceof WriteError);
    return { failed: describeError(error), isLost };
  }
}

async function copy({ database, directory, before }: CopyOrder): Promise<CopiedDay | null> {
  const reading = openReading(database);
  try {
    await mkdir(directory, { mode: 0o700, recursive: true });
    const cut = cutDay(reading.queries, before, new Set(await readdir(directory)));
    if (!cut) return null;
    const file = `${directory}/${cut.name}`;
    const draft = `${file}.part`;
    // Opened before the first write: an earlier failure of writeback is reported to its sync.
    await using handle = await open(draft, "w+", 0o600);
    const stretches = await writeDay(database, draft, cut.stretches, () => handle.datasync());
    try {
      await handle.sync();
      await chmod(draft, 0o400);
      await rename(draft, file);
      await syncDirectory(directory);
      await syncDirectory(dirname(directory));
    } catch (error) {
      throw new WriteError(`failed to write ${file}`, { cause: error });
    }
    const hash = new Bun.CryptoHasher("sha256");
    const piece = Buffer.allocUnsafe(HASHED_AT_ONCE);
    let size_bytes = 0;
    for (;;) {
      const { bytesRead } = await handle.read(piece, 0, piece.length, size_bytes);
      if (bytesRead === 0) break;
      hash.update(piece.subarray(0, bytesRead));
      size_bytes += bytesRead;
    }
    return { name: cut.name, sha256: hash.digest("hex"), size_bytes, stretches };
  } finally {
    reading.close();
  }
}

async function writeDay(
  database: string,
  draft: string,
  cuts: readonly CutStretch[],
  sync: () => Promise<void>,
): Promise<CopiedDay["stretches"]> {
  const day = createUnchanging(draft, database);
  try {
    day.execute(records);
    const add = rawStatement(
      day.queries,
      `INSERT INTO main.audit SELECT * FROM ${COPIED_FROM}.audit WHERE org_key = ? AND seq > ? AND seq <= ?`,
    );
    let written = 0;
    for (const { org_key, after, last } of cuts) {
      for (let from = after; from < last; ) {
        const startedMs = monotonicMs();
        const to = Math.min(from + ROWS_AT_ONCE, last);
        add([org_key, from, to]);
        written += to - from;
        from = to;
        if (written >= ROWS_OF_SYNC) {
          written = 0;
          await synced(sync);
        }
        // Leaves half of a processor to other threads.
        await sleep(monotonicMs() - startedMs);
      }
    }
    return cuts.map((cut) => stretchIn(day.queries, cut));
  } finally {
    day.close();
  }
}

function stretchIn(day: Queries, { org_key, after, last }: CutStretch): CopiedDay["stretches"][number] {
  const [found] = rawQuery<{ first_at: string; last_at: string; last_hash: string }>(
    day,
    `SELECT min(at) AS first_at, max(at) AS last_at,
       (SELECT hash FROM main.audit WHERE org_key = ?1 AND seq = ?2) AS last_hash FROM main.audit WHERE org_key = ?1`,
  )([org_key, last]);
  if (!found) throw new Error("a closed day has no records of a chain");
  return { org_key, first_seq: after + 1, last_seq: last, ...found };
}

async function synced(sync: () => Promise<void>): Promise<void> {
  try {
    await sync();
  } catch (error) {
    throw new WriteError("failed to sync a closed day of the audit", { cause: error });
  }
}

async function syncDirectory(path: string): Promise<void> {
  await using handle = await open(path, "r");
  await handle.sync();
}
