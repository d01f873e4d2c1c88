/** Owns what a rule is: how the answers of all hosts to an operation become one. */
import type { InputOf, Operation, OutputOf } from "../../../shared/api/contract.ts";
import type { ErrorCode } from "../../../shared/api/errors.ts";
import type { PlacedRoom } from "../../cluster/directory.ts";
import type { Caller } from "../../core/operation.ts";

/** What a host has told of itself. */
export interface Told<Body> {
  host: string;
  /** The name of its chain, as cursors have it. */
  chain: string;
  body: Body;
}

/** Of a host. */
export interface Chain {
  /** As cursors have it. */
  name: string;
  host: string;
  /** Of the host that gathers. */
  is_own: boolean;
  /** When its host became a member. */
  joined_at: string;
}

export interface Whole<Op extends Operation> {
  caller: Caller;
  input: InputOf<Op>;
  /** Hosts that did not answer, or not with their part. */
  silent: readonly string[];
  /** The caller's organization's rooms on a host, as they were placed. */
  placedOn(hostId: string): PlacedRoom[];
}

/** How the parts of an answer are put together. */
export interface Merging<Op extends Operation> {
  /** What a host is asked for, where that is not what the caller asked for; null: nothing. Throws invalid_cursor. */
  part?(chain: Chain, about: Asked<Op>): Partial<InputOf<Op>> | null;
  /** The answer where no host is asked for anything. */
  none?(): OutputOf<Op>;
  merge(own: Told<OutputOf<Op>>, others: readonly Told<OutputOf<Op>>[], about: Whole<Op>): OutputOf<Op>;
  /** How a host says that it has nothing of what is asked for, and others may have it. */
  absent?: readonly ErrorCode[];
  /** How long a host may take. */
  patienceMs: number;
  /** How they are put together as lines of JSON. */
  lines?: Lines<Op>;
}

export type Asked<Op extends Operation> = Pick<Whole<Op>, "caller" | "input">;

export interface Lines<Op extends Operation> {
  orderOf(input: InputOf<Op>): "asc" | "desc";
  /** What a host is asked for that has told its lines up to a record. */
  after(seq: number, about: Asked<Op>): Partial<InputOf<Op>>;
}

/** Of a call that one host alone can answer: the others are asked when this one says that it has not got it. */
export interface Finding {
  absent: readonly ErrorCode[];
  patienceMs: number;
}

export type Rule = { merging: Merging<Operation> } | { finding: Finding } | { following: true };
