/**
 * Placement of calls in a service of several hosts. A call about a room is carried out by the room's host, a call that makes a room by the
 * host chosen for it, a call with a ticket by its issuer; a call about the organization as a whole gathers the parts of all hosts.
 */
import type { InputOf, Operation } from "../../../shared/api/contract.ts";
import { errorKind } from "../../../shared/api/errors.ts";
import { hostEvacuate } from "../../../shared/api/hosts.ts";
import type { OrgId } from "../../../shared/ids.ts";
import type { Host } from "../../cluster/directory.ts";
import { Elsewhere } from "../../cluster/elsewhere.ts";
import type { Cluster } from "../../cluster/postgres.ts";
import type { InFlightCall, InFlightCalls } from "../../core/call/in-flight-calls.ts";
import type { Caller } from "../../core/call/operation.ts";
import { markOf, ticketMark } from "../../core/call/tickets.ts";
import type { MaybePromise } from "../../core/concurrency/maybe-promise.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { type Input, type Own, type PlacedCall, type Placement, wantedPlace } from "../pipeline/placement.ts";
import type { Outcome, RequestContext } from "../pipeline/request-context.ts";
import type { Gather } from "../scatter-gather/gather.ts";

export interface ClusterPlacementDeps {
  /** The name of this host. */
  own: string;
  /** Of this host's own database. */
  queries: Queries;
  cluster: Pick<
    Cluster,
    "behindSeconds" | "choose" | "doneBy" | "elsewhere" | "hasFollowed" | "host" | "isMember" | "others"
  >;
  gather: Pick<Gather, "of">;
  /** Calls in progress about a room, which delay its move. */
  calls: Pick<InFlightCalls, "enter">;
  /** Whether the room is arriving on this host. */
  isComing(orgId: OrgId, roomId: string): boolean;
  /** Maximum age of this host's copy of the keys; 0: unlimited. */
  staleAfterSeconds: number;
}

export class ClusterPlacement implements Placement {
  readonly #deps: ClusterPlacementDeps;

  constructor(deps: ClusterPlacementDeps) {
    this.#deps = deps;
  }

  requireFresh(): void {
    const { cluster, staleAfterSeconds } = this.#deps;
    if (staleAfterSeconds === 0 || cluster.behindSeconds() <= staleAfterSeconds) return;
    throw new ServiceError("cluster_unavailable", {
      detail:
        "This host has not synced with the cluster's database within cluster.stale_after, so it rejects all keys and sessions.",
    });
  }

  begin(context: RequestContext): PlacedCall {
    return new ClusterCall(this.#deps, context);
  }

  /** A change of shared rows is carried out once across all hosts; a change in a room concerns its host only. */
  requireFirst({ claim, request }: RequestContext): void {
    if (!claim || request.params.room_id !== undefined) return;
    const by = this.#deps.cluster.doneBy(this.#deps.queries, claim.call);
    if (by === null) return;
    if (by !== "here") throw new Elsewhere(by);
    throw new ServiceError("history_gone", {
      detail: "The same call was already executed, and its answer was lost when the service ended.",
    });
  }
}

class ClusterCall implements PlacedCall {
  readonly #deps: ClusterPlacementDeps;
  readonly #context: RequestContext;
  /** Its registration as a call about a room. */
  #inFlight: InFlightCall | null = null;

  constructor(deps: ClusterPlacementDeps, context: RequestContext) {
    this.#deps = deps;
    this.#context = context;
  }

  requireIssuer(): void {
    const { token, forward } = this.#context.request;
    const mark = token !== null && forward ? markOf(token) : null;
    if (mark === null) return;
    const issuer = this.#deps.cluster.others().find(({ host_id }) => ticketMark(host_id) === mark);
    if (issuer) throw new Elsewhere(issuer);
  }

  enter({ org_id }: Caller): void {
    const { operation, request } = this.#context;
    if (isChange(operation) && !this.#deps.cluster.isMember()) throw new ServiceError("not_a_member");
    const room_id = roomIdOf(request.params);
    if (room_id !== undefined) this.#inFlight = this.#deps.calls.enter({ org_id, room_id });
  }

  read<T>(reading: (over?: AbortSignal) => MaybePromise<T>): MaybePromise<T> {
    const { operation } = this.#context;
    if (!this.#inFlight) return reading();
    if (isChange(operation) && !this.#deps.cluster.hasFollowed()) {
      throw new ServiceError("cluster_unavailable", {
        detail:
          "This host has not read the cluster's database since it started, so it does not know whether it still owns the room.",
      });
    }
    const hasFields = operation.body !== null && operation.body !== "bytes";
    return hasFields ? this.#inFlight.coming(async (over) => await reading(over)) : reading();
  }

  requireHere(operation: Operation, caller: Caller, input: Input): void {
    if (this.#context.request.hop !== undefined) return;
    const wanted = wantedPlace(operation, caller, input);
    const host = wanted ? this.#deps.cluster.choose(wanted) : this.#evacuated(operation, input);
    if (host) throw new Elsewhere(host);
  }

  /** The other host that is to evacuate itself. The verb reports the absence of one that is gone. */
  #evacuated({ name }: Operation, input: Input): Host | null {
    if (name !== hostEvacuate.name) return null;
    const { host } = input as InputOf<typeof hostEvacuate>;
    const found = host === this.#deps.own ? null : this.#deps.cluster.host(host);
    return found?.state === "gone" ? null : found;
  }

  run(input: Input, own: Own): ReturnType<Own> {
    const { operation, request, call } = this.#context;
    const inFlight = operation.body === "bytes" ? this.#inFlight : null;
    const here: Own = inFlight
      ? (asked, transfer) =>
          inFlight.coming(async (over) => {
            this.#context.bodyOver = over;
            return await own(asked, transfer);
          })
      : own;
    const onAll = this.#deps.gather.of(operation, call.caller, request);
    return onAll ? onAll(input, here) : here(input);
  }

  async forward(error: unknown): Promise<Outcome | { failure: unknown }> {
    const { host, failure } = await this.#hostFor(error);
    const { forward } = this.#context.request;
    // A verb that has started here is not repeated elsewhere, unless another host has carried out the same call.
    const mayForward = this.#context.phase.is === "arrived" || error instanceof Elsewhere;
    if (!host || !forward || !mayForward) return { failure };
    this.#context.release();
    this.leave();
    // The other host runs the whole pipeline for it, and stores its records.
    return await forward(host).then(unlessMoved, (refused: unknown) => ({ failure: refused }));
  }

  /** The host of the resource that is missing here, and the error to return if the request cannot be forwarded. */
  async #hostFor(error: unknown): Promise<{ host: Host | null; failure: unknown }> {
    if (error instanceof Elsewhere) return { host: error.host, failure: misdirected(error.host) };
    const { call, request } = this.#context;
    const room_id = roomIdOf(request.params);
    const isMissing = error instanceof ServiceError && error.code === "room_not_found";
    if (!isMissing || !call.caller || room_id === undefined) return { host: null, failure: error };
    const { org_id, room_ids } = call.caller;
    // A key that is bound to other rooms does not learn which host has this one.
    if (room_ids?.includes(room_id) === false) return { host: null, failure: error };
    try {
      const host = await this.#deps.cluster.elsewhere(org_id, room_id);
      if (host) return { host, failure: misdirected(host) };
      return { host, failure: this.#deps.isComing(org_id, room_id) ? new ServiceError("room_moving") : error };
    } catch (failure) {
      return { host: null, failure };
    }
  }

  leave(): void {
    this.#inFlight?.leave();
    this.#inFlight = null;
  }
}

const isChange = ({ method, watched }: Operation) => method !== "GET" && !watched;

const roomIdOf = ({ room_id, source_room_id }: Record<string, string>) => room_id ?? source_room_id;

const MISDIRECTED = errorKind("misdirected").status;

/** If the other host has just handed the room on, the request is not redirected a second time. */
const unlessMoved = (outcome: Outcome) =>
  outcome.status === MISDIRECTED ? { failure: new ServiceError("room_moving") } : outcome;

/** The error for a request that cannot be forwarded: another host has forwarded it, or the transport does not support it. */
function misdirected({ host_id, url }: Host): ServiceError {
  return new ServiceError("misdirected", {
    detail: `The room is on ${host_id}.`,
    details: { host: host_id, url },
    hint: `Ask ${url}.`,
  });
}
