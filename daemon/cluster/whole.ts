/**
 * Comparison of this host's whole copy with the cluster directory: for a host that joins or was unavailable for longer than changes are
 * kept, and for a directory that was set back. Runs in steps of one page, and continues after a failure.
 *
 *   read     all rows of the directory, table by table, as of one change; ends and epochs that it lacks stay as they are here (one-way.ts)
 *   remove   rows of the copy that the directory lacks, but for rows that others refer to, such as the organization of a room
 *   again    the rows that stay are put into the directory again (put-again.ts)
 *   done     the copy has the directory as of that change, and changes since follow in pages
 *
 * Each step requires the newest change of the earlier steps in the directory. Without it the directory was set back meanwhile, and the comparison is void.
 */
import type { Connections, Run } from "./connections.ts";
import type { Copy } from "./copy.ts";
import { withOneWay } from "./one-way.ts";
import type { Again } from "./put-again.ts";
import { COMPARING, isNothing, missingKeys, type Point, readSince, readTable } from "./replica.ts";

const PAGE_MS = 5_000;
const PAGE_KEYS = 1_000;

export class WholeComparison {
  /** Point of the copy, unchanged until the comparison is complete. */
  readonly from: Point;
  /** The change as of which the directory is read. */
  readonly to: Point;
  /** Whether the directory lost changes that the copy has; otherwise the copy is behind. */
  readonly isSetBack: boolean;
  /** Rows that must be put into the directory again. */
  readonly again: Again[] = [];
  /** The newest change as of which the directory was read; null: nothing was read. */
  seen: Point | null = null;
  /** The directory was set back since the comparison has begun, which has to begin again. */
  isVoid = false;
  readonly #connections: Connections;
  readonly #copy: Copy;
  /** Tables still to be read or compared, and the last processed key of the first of these tables. */
  readonly #toRead: string[];
  readonly #toRemove: string[];
  #after = "";
  #isBegun = false;

  constructor(connections: Connections, copy: Copy, from: Point, to: Point, isSetBack: boolean) {
    this.#connections = connections;
    this.#copy = copy;
    this.from = from;
    this.to = to;
    this.isSetBack = isSetBack;
    this.#toRead = [...copy.shared.names];
    // Referencing rows are removed first. The copy of a joining host is empty, unless an earlier comparison was interrupted.
    this.#toRemove = isNothing(from) && copy.isEmpty ? [] : [...copy.shared.names].reverse();
  }

  /** Returns whether all is compared. */
  async next(): Promise<boolean> {
    if (!this.#isBegun) await this.#copy.see(COMPARING);
    if (!this.#isBegun) await this.#copy.forgetUnfit(this.from);
    this.#isBegun = true;
    const [read] = this.#toRead;
    if (read !== undefined) {
      if (await this.#read(read)) this.#toRead.shift();
      return false;
    }
    const [remove] = this.#toRemove;
    if (remove !== undefined && (await this.#remove(remove))) this.#toRemove.shift();
    return this.#toRemove.length === 0;
  }

  /** Returns whether all rows of the table were read. */
  async #read(tbl: string): Promise<boolean> {
    const page = await this.#since((run) => readTable(run, tbl, this.#after));
    if (page === null) return false;
    const { rows, last } = page;
    const merged = withOneWay(this.#copy.queries, this.#copy.shared, rows, this.isSetBack);
    await this.#copy.bring(this.from, merged.rows, this.from);
    this.again.push(...merged.again.map(({ key }) => ({ tbl, key, isLacking: false })));
    this.#after = last ?? "";
    return last === null;
  }

  async #since<T>(read: (run: Run) => Promise<T>): Promise<T | null> {
    // The first page requires the change that becomes the point of the copy.
    const seen = this.seen ?? (isNothing(this.to) ? null : this.to);
    const page = await this.#connections.transaction((run) => readSince(run, seen, () => read(run)), PAGE_MS);
    this.isVoid = page === null;
    if (page === null) return null;
    this.seen = page.seen;
    return page.found;
  }

  async #remove(tbl: string): Promise<boolean> {
    const keys = this.#copy.shared.keysAfter(tbl, this.#after, PAGE_KEYS);
    if (keys.length === 0) {
      this.#after = "";
      return true;
    }
    const missing = await this.#since((run) => missingKeys(run, tbl, keys));
    if (missing === null) return false;
    const kept = await this.#copy.remove(this.from, tbl, missing, this.isSetBack);
    this.again.push(...kept.map((key) => ({ tbl, key, isLacking: true })));
    this.#after = keys.at(-1) ?? "";
    return false;
  }
}
