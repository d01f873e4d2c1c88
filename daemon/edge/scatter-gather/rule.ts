/** Merge rules: how the responses of all hosts to an operation become one. */
import type { InputOf, Operation, OutputOf } from "../../../shared/api/contract.ts";
import type { ErrorCode } from "../../../shared/api/errors.ts";
import type { PlacedRoom } from "../../cluster/directory.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { Steps } from "../../core/loop/index.ts";

/** A host's part. */
export interface HostPart<Body> {
  host: string;
  /** Name of the host's chain in cursors. */
  chain: string;
  body: Body;
}

/** An audit chain of a host. */
export interface Chain {
  /** As cursors have it. */
  name: string;
  host: string;
  /** Whether it is a chain of the host that gathers. */
  is_own: boolean;
  /** Time at which the host became a member. */
  joined_at: string;
}

export interface Whole<Op extends Operation> {
  caller: Caller;
  input: InputOf<Op>;
  /** Hosts that did not answer, or answered without their part. */
  silent: readonly string[];
  /** Rooms of hosts that did not answer, according to the cluster directory; none without `known` in the rule. */
  known: readonly KnownRoom[];
  /** The host of a room. */
  ownerOf(roomUid: string): string | null;
}

/** A room according to the cluster directory. */
export interface KnownRoom extends PlacedRoom {
  host: string;
}

/** Merge rule for the parts of an answer. */
export interface Merging<Op extends Operation> {
  /** The input for a host if it differs from the caller's; null: nothing is requested of it. Throws invalid_cursor. */
  part?(chain: Chain, about: MergeRequest<Op>): Partial<InputOf<Op>> | null;
  /** The response if no host is queried. */
  none?(): OutputOf<Op>;
  /** Rooms of hosts that did not answer, from all rooms of the caller's organization that are placed on a host. */
  known?(
    about: Pick<Whole<Op>, "caller" | "input" | "silent">,
    placedOn: (hostId: string) => Iterable<PlacedRoom[]>,
  ): Steps<KnownRoom[]>;
  merge(own: HostPart<OutputOf<Op>>, others: readonly HostPart<OutputOf<Op>>[], about: Whole<Op>): OutputOf<Op>;
  /** Error codes by which a host reports that it has no match, while others may. */
  absent?: readonly ErrorCode[];
  /** Timeout for a host's part. */
  patienceMs: number;
  /** Merge rule for an answer as lines of JSON. */
  lines?: Lines<Op>;
}

export type MergeRequest<Op extends Operation> = Pick<Whole<Op>, "caller" | "input">;

export interface Lines<Op extends Operation> {
  orderOf(input: InputOf<Op>): "asc" | "desc";
  /** The input for a host to continue after the last record that was read. */
  after(seq: number, about: MergeRequest<Op>): Partial<InputOf<Op>>;
}

/** For a call that one host alone can answer: the others are queried if this one does not have the resource. */
export interface Finding {
  absent: readonly ErrorCode[];
  patienceMs: number;
}

export type Rule = { merging: Merging<Operation> } | { finding: Finding } | { following: true };
