/**
 * Phases of a call, and its remains for each failure.
 *
 *     arrived ──to its verb, with its Idempotency-Key claimed if it has one──▶ working ──its verb's own commit──▶ kept
 *        │                                                                        │                                │
 *        └──refused, or answered as before──▶ settled ◀──the verb is over─────────┴────────────────────────────────┘
 *
 * A claim is a row without a response, and held in memory by the daemon that works on it. It is released when the call is over, even if
 * nothing could be written: a row without a response that is not held is carried out again, as the same work. So effects are found by the
 * work's name (Work.ulid) or by the notes (Work.begun), and not repeated.
 */
import type { IdempotentCall } from "./idempotency-table.ts";

export interface Claimed {
  readonly call: IdempotentCall;
  /** Allows the same call to be made again. Idempotent. */
  letGo(): void;
}

export type Phase =
  /** Nothing of the call is on disk. */
  | { readonly is: "arrived" }
  /** The verb executes. The call's claim is on disk, without an answer. */
  | { readonly is: "working"; readonly claim: Claimed | null }
  /** A commit of the verb contains the call's record and answer. */
  | { readonly is: "kept"; readonly claim: Claimed | null }
  /** Everything of it that can be stored is stored. */
  | { readonly is: "settled" };

/** Possible failures of a call, in the order of its phases. */
export type Fault = keyof typeof LEAVES;

export interface Left {
  /** The phase in which the failure happens. */
  in: Phase["is"];
  /** The caller's response: that of the work, the reason of its refusal, or nothing. */
  answer: "answer" | "refusal" | "nothing";
  /** The audit records, in order. */
  record: readonly ("success" | "error" | "denied")[];
  /** The result of a retry with the same Idempotency-Key. */
  again: "carried out" | "the same work, continued" | "the same answer" | "refused";
}

export const LEAVES = {
  "it is refused before its verb": { in: "arrived", answer: "refusal", record: ["error"], again: "carried out" },
  "its claim cannot be written": { in: "arrived", answer: "refusal", record: ["error"], again: "carried out" },
  "the same call is under way": { in: "arrived", answer: "refusal", record: ["error"], again: "refused" },
  "it was answered before": { in: "arrived", answer: "answer", record: ["success"], again: "the same answer" },
  "the verb refuses it": { in: "working", answer: "refusal", record: ["error"], again: "the same answer" },
  "the refusal cannot be written": {
    ...{ in: "working", answer: "refusal", record: [] },
    again: "the same work, continued",
  },
  "the verb fails": { in: "working", answer: "refusal", record: ["error"], again: "the same work, continued" },
  "the verb's commit fails": {
    ...{ in: "working", answer: "refusal", record: ["error"] },
    again: "the same work, continued",
  },
  "the work is done and cannot be recorded": {
    ...{ in: "working", answer: "refusal", record: [] },
    again: "the same work, continued",
  },
  "its client has left, and the verb gives up": {
    ...{ in: "working", answer: "nothing", record: ["error"] },
    again: "the same work, continued",
  },
  "the key ends while the verb works": {
    ...{ in: "working", answer: "refusal", record: ["denied"] },
    again: "the same answer",
  },
  "the caller leaves while the verb works": {
    ...{ in: "working", answer: "refusal", record: ["error"] },
    again: "the same work, continued",
  },
  "the daemon ends while the verb works": {
    ...{ in: "working", answer: "nothing", record: [] },
    again: "the same work, continued",
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
