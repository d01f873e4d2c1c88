/**
 * Owns where a call is on its way, and what is left of it wherever it fails.
 *
 *   arrived ──to its verb, with its Idempotency-Key claimed if it has one──▶ working ──its verb's own commit──▶ kept
 *      │                                                                        │                                │
 *      └──refused, or answered as before──▶ settled ◀──the verb is over─────────┴────────────────────────────────┘
 *
 * A claim is a row without an answer, and held in memory by the daemon that works on it. Whoever is over lets go of it, whether or
 * not anything could be written: a row without an answer that nobody holds is carried out again, as the same work. So what has
 * had an effect is found by its name (Work.ulid) or by what was noted (Work.begun), and not done a second time.
 */
import type { IdempotentCall } from "./idempotency-table.ts";

export interface Claimed {
  readonly call: IdempotentCall;
  /** Lets the same call be made again; twice is nothing. */
  letGo(): void;
}

export type Phase =
  /** Nothing of it is on disk. */
  | { readonly is: "arrived" }
  /** The verb has it. Its claim is on disk, without an answer. */
  | { readonly is: "working"; readonly claim: Claimed | null }
  /** A commit of the verb's has its record and its answer. */
  | { readonly is: "kept"; readonly claim: Claimed | null }
  /** What can be kept of it is. */
  | { readonly is: "settled" };

/** What can go wrong with a call, in the order of its way. */
export type Fault = keyof typeof LEAVES;

export interface Left {
  /** The phase in which it happens. */
  in: Phase["is"];
  /** What the caller hears: the work's answer, why there is none, or nothing. */
  answer: "answer" | "refusal" | "nothing";
  /** What is on record, in order. */
  record: readonly ("success" | "error" | "denied")[];
  /** What the same call with the same Idempotency-Key comes to. */
  again: "carried out" | "the same work, gone on with" | "the same answer" | "refused";
}

export const LEAVES = {
  "it is refused before its verb": { in: "arrived", answer: "refusal", record: ["error"], again: "carried out" },
  "its claim cannot be written": { in: "arrived", answer: "refusal", record: ["error"], again: "carried out" },
  "the same call is under way": { in: "arrived", answer: "refusal", record: ["error"], again: "refused" },
  "it was answered before": { in: "arrived", answer: "answer", record: ["success"], again: "the same answer" },
  "the verb refuses it": { in: "working", answer: "refusal", record: ["error"], again: "the same answer" },
  "the refusal cannot be written": {
    ...{ in: "working", answer: "refusal", record: [] },
    again: "the same work, gone on with",
  },
  "the verb fails": { in: "working", answer: "refusal", record: ["error"], again: "the same work, gone on with" },
  "the verb's commit fails": {
    ...{ in: "working", answer: "refusal", record: ["error"] },
    again: "the same work, gone on with",
  },
  "the work is done and cannot be recorded": {
    ...{ in: "working", answer: "refusal", record: [] },
    again: "the same work, gone on with",
  },
  "its client has left, and the verb gives up": {
    ...{ in: "working", answer: "nothing", record: ["error"] },
    again: "the same work, gone on with",
  },
  "the key ends while the verb works": {
    ...{ in: "working", answer: "refusal", record: ["denied"] },
    again: "the same answer",
  },
  "the caller leaves while the verb works": {
    ...{ in: "working", answer: "refusal", record: ["error"] },
    again: "the same work, gone on with",
  },
  "the daemon ends while the verb works": {
    ...{ in: "working", answer: "nothing", record: [] },
    again: "the same work, gone on with",
  },
  "the verb fails after its own commit": {
    ...{ in: "kept", answer: "refusal", record: ["success", "error"] },
    again: "the same answer",
  },
  "the daemon ends after the verb's own commit": {
    ...{ in: "kept", answer: "nothing", record: ["success"] },
    again: "the same answer",
  },
} as const satisfies Record<string, Left>;
