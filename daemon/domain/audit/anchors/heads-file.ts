/**
 * File of chain heads: if it is on another disk or is copied to another host, a party that can change the database cannot also change this
 * file. Lines are only appended, and synced; an unchanged head is not written again. A file that has grown large is renamed to FILE.1, and
 * a new one starts with all heads.
 */
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { now, startTimer, stopTimer } from "../../../core/clock.ts";
import { DiskFailure, isOutOfSpace } from "../../../core/disk-failure.ts";
import type { Log } from "../../../core/log.ts";
import { inPieces, type Steps } from "../../../core/loop/index.ts";
import { describeError } from "../../../core/service-error.ts";
import { type Queries, stepsAtOneMoment } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import { type ChainKey, chainKey, orgOfChain } from "../chain/chain-key.ts";
import { walkOf } from "../chain/time-slices.ts";
import { chainStart, hashAt } from "../rows.ts";
import { chainHeads } from "../store.ts";
import { filesOf, headLine, readHeads, type Witnessed } from "./heads.ts";

const LARGE_BYTES = 8 * 1024 ** 2;

export interface HeadsFileDeps {
  database: Database;
  log: Log;
  file: string;
  /** Delay from the first new record to the write of its chain's head. */
  intervalMs: number;
  /** Terminates the service: lines that an earlier sync has reported as written may be lost. */
  onLost(error: DiskFailure): void;
}

export class HeadsFile {
  readonly #deps: HeadsFileDeps;
  /** Seq of each chain's last head in the file. */
  #written = new Map<ChainKey, number>();
  #timer: Timer | null = null;
  #writing: Promise<void>;
  #stopped = false;

  constructor(deps: HeadsFileDeps) {
    this.#deps = deps;
    this.#writing = this.#compare();
  }

  /** Chains have grown. */
  expect(): void {
    if (this.#stopped) return;
    this.#timer ??= startTimer(() => void this.settle(), this.#deps.intervalMs).unref();
  }

  /** Writes the changed heads. Never rejects. */
  settle(): Promise<void> {
    stopTimer(this.#timer);
    this.#timer = null;
    this.#writing = this.#writing.then(() =>
      this.#write().catch((error: unknown) => {
        this.#deps.log.error("failed to write heads of the audit", {
          file: this.#deps.file,
          error: describeError(error),
        });
        this.expect();
      }),
    );
    return this.#writing;
  }

  /** Writes for the last time. */
  stop(): Promise<void> {
    this.#stopped = true;
    return this.settle();
  }

  async #write(): Promise<void> {
    const { database, file } = this.#deps;
    // All that this commit reads is on disk when it completes: nothing is written that a power loss could undo.
    const heads = await database.commit((queries) => chainHeads(queries), false);
    const moved = () => [...heads].filter(([orgKey, { seq }]) => this.#written.get(orgKey) !== seq);
    if (moved().length === 0) return;
    await using handle = await open(file, "a+", 0o600);
    const { size } = await handle.stat();
    if (size > LARGE_BYTES) {
      await rename(file, `${file}.1`);
      this.#written.clear();
      return await this.#write();
    }
    const at = now();
    const text = moved().map(([orgKey, head]) => headLine(orgKey, head, at));
    const isLine = await endsLine(handle, size);
    try {
      await handle.appendFile(isLine ? text.join("") : `\n${text.join("")}`);
      await handle.sync();
      // The directory entry of a new file must be on disk as well.
      if (size === 0) await syncDirectory(dirname(file));
    } catch (error) {
      if (isOutOfSpace(error)) throw error;
      this.#deps.onLost(new DiskFailure(`failed to write heads of the audit to ${file}`, { cause: error }));
      return await new Promise<never>(() => {});
    }
    this.#written = new Map([...heads].map(([orgKey, { seq }]) => [orgKey, seq]));
  }

  /** Logs an error if the database does not match the file. Never rejects. */
  async #compare(): Promise<void> {
    const { database, log, file } = this.#deps;
    const pieces = walkOf(chainKey(null));
    try {
      const { witnessed } = await readHeads(filesOf(file), pieces);
      const lost = await inPieces(stepsAtOneMoment(database.queries, lostHeads(database.queries, witnessed)), pieces);
      for (const { org_id, seq } of lost) {
        log.error("the audit lacks a record that was there: run `roomd audit verify --host`", { org_id, seq });
      }
    } catch (error) {
      log.error("failed to read heads of the audit", { file, error: describeError(error) });
    }
  }
}

/** The last head of each chain that lacks it. A purged record is not missing. */
function* lostHeads(queries: Queries, witnessed: Witnessed): Steps<{ org_id: string | null; seq: number }[]> {
  const lost: { org_id: string | null; seq: number }[] = [];
  for (const [orgKey, chain] of witnessed) {
    const seq = chain.keys().reduce((last, each) => Math.max(last, each), 0);
    const isPurged = seq <= (chainStart(queries, orgKey)?.seq ?? 0);
    if (!isPurged && hashAt(queries, orgKey, seq) !== chain.get(seq)) lost.push({ org_id: orgOfChain(orgKey), seq });
    yield;
  }
  return lost;
}

/** Whether the file ends with a complete line: a crash or a full disk may leave a partial one, which the next line must not extend. */
async function endsLine(handle: Awaited<ReturnType<typeof open>>, size: number): Promise<boolean> {
  if (size === 0) return true;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer.toString() === "\n";
}
