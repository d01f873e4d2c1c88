/** Reads of the database that run in a reader thread: functions of a connection and an input, without any other state. */
import type { Queries } from "../client.ts";

/** Text of the answer, if the step has some. `rest` is the input of a run that would continue after it. */
export type Step<Input> = string | undefined | { text: string; rest: Input };

export interface Read<Input, Output> {
  /** Unique among all reads. */
  name: string;
  /**
   * Yields the answer as JSON text. Each step is at most some milliseconds of work and one transaction: other writes may come between two
   * steps.
   */
  run(queries: Queries, input: Input): Generator<Step<Input>, void>;
  /** Whether it shows records of calls, those that only read too. */
  isOfRecords: boolean;
  /** Type of the answer; never set. */
  readonly output?: Output;
}

/** Type of an answer in lines of JSON. */
export type Lines = "lines";

/** A read of some input and answer: in a list of them, or as it is found by its name. */
export interface AnyRead {
  name: string;
  isOfRecords: boolean;
  run(queries: Queries, input: unknown): Generator<Step<unknown>, void>;
}

/** A part is sent once it has this length, or has taken this long. */
export const PART_CHARACTERS = 64 * 1024;
export const PART_MS = 8;

/** A part of an answer. */
export interface Part {
  text: string;
  /** Input of the run that would continue after it, if the read can be continued there. */
  rest: unknown;
  isLast: boolean;
}

/** The next part. Its text may be empty if no output was found in its time. */
export function nextPart(steps: Iterator<Step<unknown>, void>, until: (text: string) => boolean): Part {
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
