/** Line format in which heads of chains are stored outside of the database, and its parser. */
import { createReadStream, existsSync } from "node:fs";
import type { PieceTurns } from "../../../core/loop/index.ts";
import { type ChainKey, chainKey, orgOfChain } from "../chain/chain-key.ts";
import type { Head } from "../chain/hash-chain.ts";

/** Hashes of records by chain key and seq. */
export type Witnessed = Map<ChainKey, Map<number, string>>;

export function headLine(orgKey: ChainKey, { seq, hash }: Head, at: string): string {
  return `${JSON.stringify({ org_id: orgOfChain(orgKey), seq, hash, at })}\n`;
}

/** The rotated file and the current one, as far as they exist. */
export function filesOf(file: string): string[] {
  return [`${file}.1`, file].filter((each) => existsSync(each));
}

export interface ReadHeads {
  witnessed: Witnessed;
  /** Lines without a valid head, as `FILE:LINE`; a crash may leave a partial line. */
  unreadable: string[];
}

/** Rejects when a file cannot be read. */
export async function readHeads(files: readonly string[], pieces: Pick<PieceTurns, "next">): Promise<ReadHeads> {
  const witnessed: Witnessed = new Map();
  const unreadable: string[] = [];
  for (const file of files) {
    let number = 0;
    for await (const lines of linesOf(file)) {
      for (const line of lines) {
        number++;
        if (line === "") continue;
        const turn = pieces.next();
        if (turn) await turn;
        const head = parseHead(line);
        if (!head) {
          unreadable.push(`${file}:${number}`);
          continue;
        }
        const chain = witnessed.get(head.org_key) ?? new Map<number, string>();
        witnessed.set(head.org_key, chain);
        // If two heads with this seq differ, the first is the older one.
        if (!chain.has(head.seq)) chain.set(head.seq, head.hash);
      }
    }
  }
  return { witnessed, unreadable };
}

async function* linesOf(file: string): AsyncGenerator<string[]> {
  let rest = "";
  for await (const chunk of createReadStream(file, "utf8")) {
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    yield lines;
  }
  yield [rest];
}

function parseHead(line: string): (Head & { org_key: ChainKey }) | null {
  try {
    const { org_id, seq, hash } = JSON.parse(line) as Record<string, unknown>;
    const isHead =
      Number.isSafeInteger(seq) && typeof hash === "string" && (org_id === null || typeof org_id === "string");
    return isHead ? { org_key: chainKey(org_id), seq: seq as number, hash } : null;
  } catch {
    return null;
  }
}
