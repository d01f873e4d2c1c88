/**
 * Order of a list: names by their bytes, a directory before its content. Looks ahead by no more paths than the page still needs, whatever
 * the size of the directories: each is read once and only its first names are kept in memory.
 */
import type { PieceTurns } from "../../../core/loop/index.ts";
import type { Beneath } from "../../../host/files/beneath.ts";
import { readEntries } from "../../../host/files/entries.ts";
import { HERE, joinRaw, type RawPath } from "../../../host/files/raw-path.ts";
import { isTemporaryName } from "../../../host/files/temporary.ts";

export class ListOrder {
  readonly #top: Beneath;
  /** Longer paths cannot be requested, so they are not listed. */
  readonly #longestPath: number;
  readonly #pieces: PieceTurns;
  #ahead: RawPath[] = [];
  #cut = false;

  constructor(top: Beneath, longestPath: number, pieces: PieceTurns) {
    this.#pieces = pieces;
    this.#top = top;
    this.#longestPath = longestPath;
  }

  /** Whether more paths may follow. */
  get more(): boolean {
    return this.#cut || this.#ahead.length > 0;
  }

  take(): RawPath | undefined {
    return this.#ahead.shift();
  }

  /** Moves to the position of a list after `last`. */
  async seek(last: RawPath, recursive: boolean, limit: number): Promise<void> {
    let directory = HERE;
    for (const name of last.split("/") as RawPath[]) {
      await this.enter(directory, limit, name);
      directory = joinRaw(directory, name);
    }
    if (recursive) await this.enter(last, limit);
  }

  /** The content of `directory` comes next, from the name after `after`; at most `wanted` paths are held in total. */
  async enter(directory: RawPath, limit: number, after: RawPath | null = null): Promise<void> {
    using opened = this.#top.plainDirectory(directory);
    if (!opened) return;
    const { names, cut } = await firstNames(opened, after, limit, this.#pieces);
    const inside = names.map((name) => joinRaw(directory, name)).filter((path) => path.length <= this.#longestPath);
    const all = [...inside, ...this.#ahead];
    this.#ahead = all.slice(0, limit);
    this.#cut ||= cut || all.length > limit;
  }
}

/** The first `most` names after `after`, in order, and whether there are more. */
async function firstNames(directory: Beneath, after: RawPath | null, most: number, pieces: PieceTurns) {
  const names: RawPath[] = [];
  let bound = null as RawPath | null;
  let cut = false;
  const trim = () => {
    names.sort();
    if (names.length <= most) return;
    names.length = most;
    bound = names.at(-1) ?? null;
    cut = true;
  };
  for await (const entries of readEntries(directory, pieces)) {
    for (const { name } of entries) {
      if ((after !== null && name <= after) || isTemporaryName(name)) continue;
      if (bound !== null && name >= bound) continue;
      names.push(name);
      if (names.length >= 2 * most) trim();
    }
  }
  trim();
  return { names, cut };
}
