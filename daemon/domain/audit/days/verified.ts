/**
 * Closed days that this daemon has verified: the next verification continues after them as long as their files are unchanged. The first
 * one, and `roomd audit verify --host`, read all of them.
 */
import { stat } from "node:fs/promises";
import type { Queries } from "../../../db/client.ts";
import type { Walked } from "../chain/chain.ts";
import type { ChainKey } from "../chain/chain-key.ts";
import { stretchesOf } from "./parts.ts";

/** A file of a closed day by which file it is, its size and when it was last written. */
interface DayFile {
  path: string;
  /** The seq of the chain's last record in it. */
  last: number;
  state: string;
}

export class VerifiedDays {
  readonly #queries: Queries;
  readonly #verified = new Map<ChainKey, { walked: Walked; files: Map<string, string> }>();

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  /** Those of a chain, as they are; before they are verified. */
  async filesOf(key: ChainKey): Promise<DayFile[]> {
    const files = stretchesOf(this.#queries, key);
    return await Promise.all(files.map(async ({ path, last }) => ({ path, last, state: await stateOf(path) })));
  }

  /** Position up to which a chain was verified; null if one of these files has changed since. */
  verified(key: ChainKey, files: readonly DayFile[]): Walked | null {
    const known = this.#verified.get(key);
    if (!known) return null;
    const before = files.filter(({ last }) => last <= known.walked.last.seq);
    return before.every(({ path, state }) => known.files.get(path) === state) ? known.walked : null;
  }

  /** The chain is whole, and anchored, up to the last record of its closed days. */
  note(key: ChainKey, walked: Walked, files: readonly DayFile[]): void {
    if (walked.last.seq === 0) return;
    this.#verified.set(key, { walked, files: new Map(files.map(({ path, state }) => [path, state])) });
  }
}

async function stateOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs].join(" ");
  } catch {
    return "lost";
  }
}
