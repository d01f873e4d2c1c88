/** Owns a request on its way along the road: what a door hands over, what is known of it between, what the door gets back. */
import type { Source } from "../../shared/api/audit.ts";
import type { Operation } from "../../shared/api/contract.ts";
import type { Problem } from "../../shared/api/errors.ts";
import type { Caller, Done, OpenCall, Transfer } from "../core/operation.ts";
import type { IdempotentCall } from "./idempotency.ts";
import type { Rate } from "./rate-limit.ts";

/** A request as a door hands it over. */
export interface RoadRequest {
  source: Source;
  request_id: string;
  ip: string | null;
  /** Whether it comes from the host itself, with nobody between; absent: it does not. */
  readonly isFromHost?: boolean;
  /** The Authorization header, or null. */
  authorization: string | null;
  /** A token of the noun's own, for operations that take one instead of a key. */
  token: string | null;
  /** Who calls, where the door knows it by another way than the header. Throws as authenticate does. */
  recognise?(): Caller;
  /** The path as it was asked for: part of the idempotency scope. */
  path: string;
  params: Record<string, string>;
  /** Reads the query. Throws invalid_query. */
  query(): Record<string, string>;
  /** Reads the body's fields. Throws body_too_large, unsupported_media_type, invalid_json, invalid_body. */
  body(maxBytes: number): Promise<{ fields: Record<string, unknown>; sha256: string }>;
  idempotency_key: string | null;
  transfer: Transfer;
  signal: AbortSignal;
}

export interface Walk {
  readonly operation: Operation;
  readonly request: RoadRequest;
  readonly call: OpenCall;
  /** When it began. */
  readonly at: string;
  readonly startedAt: number;
  /** What it has left its key; null without a key, and where there is no limit. */
  rate: Rate | null;
  /** What its Idempotency-Key stands for, where its answer is to be kept. */
  claimed: IdempotentCall | null;
  /** Whether the verb has kept its record and its answer. */
  isKept: boolean;
}

export const durationOf = ({ startedAt }: Walk): number => performance.now() - startedAt;

export type Outcome =
  | { kind: "done"; status: number; done: Done<Operation>; location: string | null; replayed: boolean }
  | { kind: "problem"; status: number; problem: Problem; retry_after_seconds: number | null; replayed: boolean };

export type RoadReply = Outcome & { rate: Rate | null };

/** The verb's work is done. */
export function doneAs(walk: Walk, done: Done<Operation>): Outcome {
  const { outcome, body } = done;
  return { kind: "done", status: statusOf(walk, outcome), done, location: locationOf(walk, body), replayed: false };
}

export const statusOf = ({ operation }: Walk, outcome: string): number => operation.outcomes[outcome] ?? 200;

/** Fills `{name}` in the operation's location from the answer and the path. */
export function locationOf({ operation, request }: Walk, body: unknown): string | null {
  if (!operation.location) return null;
  const fields = { ...request.params, ...(body as Record<string, unknown> | undefined) };
  return operation.location.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(fields[name])));
}
