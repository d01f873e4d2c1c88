/** Reads that run on the event loop, in pieces: without reader threads, and in commands concurrent with the daemon. */
import { loopTime, type OwnerName, Pieces } from "../../core/loop/index.ts";
import { atOneMoment, type Queries } from "../client.ts";
import { nextPart, PART_CHARACTERS, type Read, type ReadPart, type ReadResult } from "./read.ts";

export interface Reader {
  owner: OwnerName;
  /** Aborts the read when the client has disconnected or its key is revoked. */
  signal: AbortSignal;
}

/** The whole answer of a read, executed on the event loop in pieces. */
export async function readHere<Input, Output, Rest>(
  read: Read<Input, Output, Rest>,
  queries: Queries,
  input: Input,
  by: Reader,
): Promise<ReadResult<Output, Rest>> {
  let text = "";
  let rest: unknown;
  for await (const part of partsHere(read, queries, input, by)) {
    text += part.text;
    rest = part.rest ?? rest;
  }
  return { bytes: Buffer.from(text), rest: rest as Rest | undefined };
}

/** The whole answer of a short read, within the current piece of the event loop. */
export function readNow<Input, Output, Rest>(
  read: Read<Input, Output, Rest>,
  queries: Queries,
  input: Input,
): ReadResult<Output, Rest> {
  const { text, rest } = nextPart(read.run(queries, input), () => false);
  return { bytes: Buffer.from(text), rest: rest as Rest | undefined };
}

/** Parts of the answer of a read executed on the event loop. */
export async function* partsHere<Input>(
  read: Read<Input, unknown, unknown>,
  queries: Queries,
  input: Input,
  { owner, signal }: Reader,
): AsyncGenerator<ReadPart> {
  const pieces = new Pieces(loopTime, owner, "db.read", { signal });
  await pieces.turn();
  const steps = read.run(queries, input);
  for (let isLast = false; !isLast; ) {
    let turn: Promise<void> | null = null;
    const isFull = (text: string) => {
      turn = pieces.next();
      return turn !== null || text.length >= PART_CHARACTERS;
    };
    const part = atOneMoment(queries, () => nextPart(steps, isFull));
    isLast = part.isLast;
    if (part.text !== "" || isLast) yield part;
    if (turn) await turn;
  }
}
