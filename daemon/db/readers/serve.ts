/**
 * Work of a reader thread: runs reads on a dedicated read-only connection, in parts of at most some milliseconds, each in one transaction.
 */
import { monotonicMs } from "../../core/clock.ts";
import { type Running, serveThread } from "../../core/threads/serve.ts";
import { openReading, type Reading } from "../client.ts";
import { type AnyRead, nextPart, PART_CHARACTERS, PART_MS } from "./read.ts";

/** Bytes of a part of a read's output, and the input with which the read continues after it. */
export interface ReadPart {
  bytes: Uint8Array;
  rest: unknown;
}

/** Input of a read's task. */
export interface ReadOrder {
  given: unknown;
  /** Whether all parts of the answer are sent as one. */
  isWhole: boolean;
}

/** Starts answering the messages of the event loop. The thread's opening input is the database's file. */
export function serveReads(reads: readonly AnyRead[]): void {
  const byName = new Map(reads.map((read) => [read.name, read]));
  serveThread((file) => {
    const reading = openReading(String(file));
    return {
      start: (name, order) => {
        const read = byName.get(name);
        if (!read) throw new Error(`${name} cannot be read here`);
        return inParts(read, reading, order as ReadOrder);
      },
      close: () => reading.close(),
    };
  });
}

function inParts(read: AnyRead, { within, queries }: Reading, { given, isWhole }: ReadOrder): Running {
  const steps = read.run(queries, given);
  const earlier: Uint8Array<ArrayBuffer>[] = [];
  let rest: unknown;
  return {
    next: () => {
      const until = monotonicMs() + PART_MS;
      const isFull = (text: string) => text.length >= PART_CHARACTERS || monotonicMs() > until;
      const part = within(() => nextPart(steps, isFull));
      const { isLast } = part;
      rest = part.rest ?? (isWhole ? rest : undefined);
      if (part.text === "" && !isLast) return { value: undefined, isLast };
      const encoded = new TextEncoder().encode(part.text);
      if (isWhole && !isLast) {
        earlier.push(encoded);
        return { value: undefined, isLast };
      }
      const bytes = earlier.length === 0 ? encoded : Bun.concatArrayBuffers([...earlier, encoded], Infinity, true);
      return { value: { bytes, rest } satisfies ReadPart, isLast, transfer: [bytes.buffer] };
    },
    end: () => void steps.return(),
  };
}
