/**
 * Placement of calls: the host of the service that carries out each. The pipeline calls this interface only.
 *
 *   standalone              below: a service of one host, which carries out all calls
 *   ../hosts/placement.ts   several hosts: calls are forwarded to the host of their room, or gathered from all
 */
import type { Operation } from "../../../shared/api/contract.ts";
import { roomFromBackup } from "../../../shared/api/room-backups.ts";
import { roomCreate } from "../../../shared/api/rooms.ts";
import { noSuchHost } from "../../cluster/choose-host.ts";
import type { WantedPlace } from "../../cluster/directory.ts";
import type { Caller, Done, Transfer } from "../../core/call/operation.ts";
import type { MaybePromise } from "../../core/concurrency/maybe-promise.ts";
import type { Outcome, RequestContext } from "./request-context.ts";

export type Input = Record<string, unknown>;
/** Runs the verb on this host; `transfer` if it differs from the caller's. */
export type Own = (input: Input, transfer?: Transfer) => MaybePromise<Done<Operation>>;

export interface Placement {
  /** Throws cluster_unavailable if this host's copy of the keys may be stale. */
  requireFresh(): void;
  /** A call has arrived. */
  begin(context: RequestContext): PlacedCall;
  /** Within the verb's commit. Throws if the same call was carried out before: Elsewhere, history_gone. */
  requireFirst(context: RequestContext): void;
}

/** Placement of one call. The pipeline calls the methods in this order. */
export interface PlacedCall {
  /** The caller is not authenticated yet. Throws Elsewhere if another host has issued the request's ticket. */
  requireIssuer(): void;
  /** The caller is authorized. Throws not_a_member if this host may not change data. */
  enter(caller: Caller): void;
  /** The target was found: reads the fields until `over` aborts. Throws cluster_unavailable if the target may have moved since. */
  read<T>(reading: (over?: AbortSignal) => MaybePromise<T>): MaybePromise<T>;
  /** The input is valid. Throws Elsewhere if another host is to carry out the call, or the reason that no host can. */
  requireHere(operation: Operation, caller: Caller, input: Input): void;
  /** Carries out the verb on this host, or on all hosts if the call concerns all. */
  run(input: Input, own: Own): MaybePromise<Done<Operation>>;
  /** A step has thrown: resolves with the response of the host that can carry out the call, or the error to return. Never rejects. */
  forward(error: unknown): MaybePromise<Outcome | { failure: unknown }>;
  /** The call is settled. */
  leave(): void;
}

/** Placement requirements of the room that the call makes; null: it makes none. */
export function wantedPlace({ name }: Operation, { org_id }: Caller, input: Input): WantedPlace | null {
  if (name !== roomCreate.name && name !== roomFromBackup.name) return null;
  return { org_id, ...(input as Omit<WantedPlace, "org_id">) };
}

export function standalone(hostId: string): Placement {
  const placed: PlacedCall = {
    requireIssuer: () => {},
    enter: () => {},
    read: (reading) => reading(),
    requireHere: (operation, caller, input) => {
      const wanted = wantedPlace(operation, caller, input);
      if (!wanted) return;
      const { host = hostId, host_labels = {} } = wanted;
      if (host !== hostId) throw noSuchHost();
      if (Object.keys(host_labels).length > 0) throw noSuchHost("host_labels");
    },
    run: (input, own) => own(input),
    forward: (failure) => ({ failure }),
    leave: () => {},
  };
  return { requireFresh: () => {}, begin: () => placed, requireFirst: () => {} };
}
