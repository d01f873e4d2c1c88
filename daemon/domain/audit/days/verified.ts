/**
 * Closed days that this daemon has verified: the next verification continues after them as long as their files are unchanged. The first
 * one, and `roomd audit verify --host`, read all of them.
 */
import { stat } from "node:fs/promises";
import type { Queries } from "../../../db/client.ts";
import type { ChainKey } from "../chain/chain-key.ts";
import { GENESIS, type Head, type Walked } from "../chain/hash-chain.ts";
import { chainStart } from "../rows.ts";
import { stretchesOf } from "./parts.ts";

/** A chain's stretch in the file of a closed day. */
interface DayFile {
  path: string;
  /** The seq of the chain's last record in it. */
  last: number;
  /** The stretch as recorded, and the file's inode, size and time of the last write; a backup's hard link changes none of them. */
  state: string;
}

interface Verified {
  walked: Walked;
  files: readonly DayFile[];
  /** The last purged record of the chain. */
  start: Head;
}

export class VerifiedDays {
  readonly #queries: Queries;
  readonly #verified = new Map<ChainKey, Verified>();

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  /** Files of a chain with their current state. To be called before they are verified. */
  async filesOf(key: ChainKey): Promise<DayFile[]> {
    const stretches = stretchesOf(this.#queries, key);
    return await Promise.all(
      stretches.map(async ({ path, last, row }) => ({ path, last, state: `${row} ${await stateOf(path)}` })),
    );
  }

  /** Position up to which a chain was verified; null if one of these files has changed since, or one is missing that was not purged. */
  verified(key: ChainKey, files: readonly DayFile[]): Walked | null {
    const known = this.#verified.get(key);
    if (!known) return null;
    const start = this.#startOf(key);
    const isSetBack = start.seq < known.start.seq || (start.seq === known.start.seq && start.hash !== known.start.hash);
    if (isSetBack) return null;
    const before = files.filter(({ last }) => last <= known.walked.last.seq);
    const kept = known.files.filter(({ last }) => last > start.seq);
    const states = new Map(kept.map(({ path, state }) => [path, state]));
    const areSame = before.length === kept.length && before.every(({ path, state }) => states.get(path) === state);
    return areSame ? known.walked : null;
  }

  /** Notes that the chain is intact, and matches its anchors, up to the last record of its closed days. */
  note(key: ChainKey, walked: Walked, files: readonly DayFile[]): void {
    const { seq } = walked.last;
    if (seq === 0) return;
    const verified = files.filter(({ last }) => last <= seq);
    this.#verified.set(key, { walked, files: verified, start: this.#startOf(key) });
  }

  #startOf(key: ChainKey): Head {
    return chainStart(this.#queries, key) ?? { seq: 0, hash: GENESIS };
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
