/** Reads that run on the event loop, in pieces: without reader threads, and in commands beside the daemon. */
import { loopTime, type OwnerName, Pieces } from "../../core/loop/index.ts";
import type { JsonBody } from "../../core/operation.ts";
import type { Queries } from "../client.ts";
import { nextPart, PART_CHARACTERS, type Part, type Read } from "./read.ts";

export interface Reader {
  owner: OwnerName;
  /** Ends the read when the client has left or its key is revoked. */
  signal: AbortSignal;
}

/** The whole answer of a read, read here. */
export async function readHere<Input, Output>(
  read: Read<Input, Output>,
  queries: Queries,
  input: Input,
  by: Reader,
): Promise<JsonBody<Output>> {
  let text = "";
  for await (const part of partsHere(read, queries, input, by)) text += part.text;
  return { bytes: Buffer.from(text) };
}

/** Parts of an answer that is read here. */
export async function* partsHere<Input>(
  read: Read<Input, unknown>,
  queries: Queries,
  input: Input,
  { owner, signal }: Reader,
): AsyncGenerator<Part> {
  const pieces = new Pieces(loopTime, owner, "db.read", { signal });
  await pieces.turn();
  const steps = read.run(queries, input);
  for (let isLast = false; !isLast; ) {
    let turn: Promise<void> | null = null;
    const part = nextPart(steps, (text) => {
      turn = pieces.next();
      return turn !== null || text.length >= PART_CHARACTERS;
    });
    isLast = part.isLast;
    if (part.text !== "" || isLast) yield part;
    if (turn) await turn;
  }
}
