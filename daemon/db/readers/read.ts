/** Database reads that run in a reader thread: functions of a connection and an input, without other state. */
import type { JsonBody } from "../../core/call/operation.ts";
import type { Queries } from "../client.ts";

/**
 * Text of the answer, if the step produced any. `rest`: for lines, the input of a run that would continue after this step; for a whole
 * answer, facts for the caller that are not part of the answer.
 */
export type Step<Rest> = string | undefined | { text: string; rest: Rest };

export interface Read<Input, Output, Rest = Input> {
  /** Unique among all reads. */
  name: string;
  /**
   * Yields the answer as JSON text. Each step takes at most some milliseconds and is one transaction: other writes may occur between two
   * steps.
   */
  run(queries: Queries, input: Input): Generator<Step<Rest>, void>;
  /** Whether it shows audit records of calls, including read-only calls. */
  isOfRecords: boolean;
  /** Type of the answer; never set. */
  readonly output?: Output;
}

/** Type of an answer in lines of JSON. */
export type Lines = "lines";

/** A read with erased types, as an element of a list or looked up by name. */
export interface AnyRead {
  name: string;
  isOfRecords: boolean;
  run(queries: Queries, input: unknown): Generator<Step<unknown>, void>;
}

/** A part is sent when it has this length, or has taken this long. */
export const PART_CHARACTERS = 64 * 1024;
export const PART_MS = 8;

/** A part of an answer. */
export interface ReadPart {
  text: string;
  /** The last of its steps. */
  rest: unknown;
  isLast: boolean;
}

/** A whole answer, and the last `rest` of its steps. */
export interface ReadResult<Output, Rest> extends JsonBody<Output> {
  rest: Rest | undefined;
}

/** The next part. Its text is empty if no output was found in its time. */
export function nextPart(steps: Iterator<Step<unknown>, void>, until: (text: string) => boolean): ReadPart {
  let text = "";
  let rest: unknown;
  do {
    const { done, value } = steps.next();
    if (done) return { text, rest, isLast: true };
    if (typeof value === "string") text += value;
    else if (value) {
      text += value.text;
      rest = value.rest;
    }
  } while (!until(text));
  return { text, rest, isLast: false };
}
