/**
 * Scatter-gather calls: the entry host requests the parts of the other hosts with the caller's credentials, and merges them by the
 * operation's rule. A host that does not answer delays the caller only briefly, and is reported.
 *
 *     own part and theirs, in parallel ──▶ rule.merge ──▶ one response, as if there was one host
 */
import type { InputOf, Operation } from "../../../shared/api/contract.ts";
import type { ErrorCode } from "../../../shared/api/errors.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import type { Host } from "../../cluster/directory.ts";
import type { Cluster } from "../../cluster/postgres.ts";
import { bodyOf, type Caller, type Done } from "../../core/call/operation.ts";
import { timeoutSignal } from "../../core/clock.ts";
import type { MaybePromise } from "../../core/concurrency/maybe-promise.ts";
import { inPieces, loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import { AdaptiveTimeout } from "../hosts/adaptive-timeout.ts";
import { unreachable } from "../hosts/client.ts";
import type { Input, Own } from "../pipeline/placement.ts";
import type { PipelineRequest } from "../pipeline/request-context.ts";
import { type Asking, firstOutcome, ledBy, queryOf } from "./asking.ts";
import { type EventsDeps, GatheredEvents, type Reading } from "./events.ts";
import { exported } from "./export.ts";
import { chainNameOf } from "./places.ts";
import type { Finding, HostPart, Merging, Rule } from "./rule.ts";

/** How much longer than the caller waits a request stays open: a late response shows that the host is up. */
const LATE_MS = 2000;

export interface GatherDeps extends EventsDeps {
  rules: ReadonlyMap<string, Rule>;
  directory: EventsDeps["directory"] & Pick<Cluster, "placedOn" | "owner">;
}

type Member = Pick<Host, "host_id" | "joined_at">;

export class Gather {
  readonly #deps: GatherDeps;
  readonly #patience = new AdaptiveTimeout();
  readonly #events: GatheredEvents;

  constructor(deps: GatherDeps) {
    this.#deps = deps;
    this.#events = new GatheredEvents(deps);
  }

  /** How the operation is carried out on all hosts; null: on this one alone. */
  of(
    operation: Operation,
    caller: Caller | null,
    request: PipelineRequest,
  ): ((input: Input, own: Own) => MaybePromise<Done<Operation>>) | null {
    const { ask } = request;
    const rule = caller ? this.#deps.rules.get(operation.name) : undefined;
    if (!caller || !rule) return null;
    if (!ask) return request.hop ? this.#forHost(rule, caller, request) : null;
    if ("finding" in rule) return (input, own) => this.#find(rule.finding, operation, ask, input, own);
    if ("following" in rule) {
      return (input, own) => this.#events.ofAll(operation, ask, readingOf(caller, request), input, own);
    }
    const { merging } = rule;
    const { lines, patienceMs } = merging;
    if (!lines || !request.transfer.ndjson) {
      return (input, own) => this.#merge(merging, operation, ask, caller, input, own);
    }
    return (input, own) =>
      exported(
        { ...this.#deps, patience: this.#patience },
        { ...this.#partsOf(merging, caller, input), ...{ operation, lines, ask, caller, input, own, patienceMs } },
      );
  }

  /** This host's part for a host that gathers, if it differs from the verb's response. */
  #forHost(rule: Rule, caller: Caller, request: PipelineRequest) {
    if ("following" in rule) {
      return (input: Input, own: Own) => this.#events.forHost(readingOf(caller, request), input, own);
    }
    return "merging" in rule && rule.merging.lines && request.transfer.ndjson ? linesForHost : null;
  }

  async #merge(rule: Merging<Operation>, operation: Operation, ask: Asking, caller: Caller, input: Input, own: Own) {
    const { own: here, directory } = this.#deps;
    const { ownChain, ownPart, parts } = this.#partsOf(rule, caller, input);
    const requests = parts.map(({ host, part }) => this.#askOne(ask, host, queryOf(operation, part), rule.patienceMs));
    const responses: HostPart<Done<Operation>["body"]>[] = [];
    let absent: unknown = null;
    let done: Done<Operation> = { outcome: firstOutcome(operation) };
    try {
      if (ownPart !== null) {
        done = await own(ownPart);
        responses.push({ host: here, chain: ownChain, body: bodyOf(done) });
      }
    } catch (error) {
      if (!isAbsent(error, rule.absent)) throw error;
      absent = error;
    }
    const answers = await Promise.all(requests);
    for (const { host, chain, status, body } of answers) if (status === 200) responses.push({ host, chain, body });
    const isSilent = (status: number | null) => status !== 200 && !(rule.absent && status === 404);
    const silent = answers.flatMap(({ host, status }) => (isSilent(status) ? [host] : []));
    const [first, ...others] = responses;
    if (!first && silent[0] !== undefined) throw unreachable({ host_id: silent[0] }, NOT_ASKED);
    if (!first && absent === null && rule.none) return { ...done, body: rule.none() };
    if (!first) throw absent;
    const pieces = new Pieces(loopTime, ownerOf(caller.org_id), operation.name);
    const about = { caller, input: input as InputOf<Operation>, silent };
    const steps = rule.known?.(about, (hostId) => directory.placedOn(caller.org_id, hostId));
    const known = steps && silent.length > 0 ? await inPieces(steps, pieces) : [];
    // Parts of many items were parsed in this turn.
    await pieces.turn();
    const roomOwner = (roomUid: string) => directory.owner(roomUid as RoomUid)?.host_id ?? null;
    return withBody(done, rule.merge(first, others, { ...about, known, ownerOf: roomOwner }));
  }

  /** The input for each host; null: nothing is requested of this one. Throws invalid_cursor. */
  #partsOf(rule: Merging<Operation>, caller: Caller, input: Input) {
    const { own, directory } = this.#deps;
    const about = { caller, input: input as InputOf<Operation> };
    const partOf = (member: Member): Input | null => {
      const { host_id: host, joined_at } = member;
      return rule.part ? rule.part({ name: chainNameOf(member), host, is_own: host === own, joined_at }, about) : input;
    };
    const parts = directory.others().flatMap((host) => {
      const part = partOf(host);
      return part === null ? [] : [{ host, part }];
    });
    const self: Member = directory.host(own) ?? { host_id: own, joined_at: "" };
    return { ownChain: chainNameOf(self), ownPart: partOf(self), parts };
  }

  async #find({ absent, patienceMs }: Finding, operation: Operation, ask: Asking, input: Input, own: Own) {
    try {
      return await own(input);
    } catch (error) {
      if (!isAbsent(error, absent)) throw error;
      const query = queryOf(operation, input);
      const hosts = this.#deps.directory.others();
      const answers = await Promise.all(hosts.map((host) => this.#askOne(ask, host, query, patienceMs)));
      const found = answers.find(({ status }) => status !== null && status < 300);
      if (found) return { outcome: firstOutcome(operation), body: found.body };
      const silent = answers.find(({ status }) => status !== 404);
      // It may be there.
      throw silent ? unreachable({ host_id: silent.host }, NOT_ASKED) : error;
    }
  }

  /** Never rejects. */
  async #askOne(ask: Asking, host: Host, query: Record<string, string>, patienceMs: number) {
    const { host_id } = host;
    const pending = ask(host, query, timeoutSignal(patienceMs + LATE_MS));
    const answer = await this.#patience.until(host_id, pending, patienceMs);
    return { host: host_id, chain: chainNameOf(host), status: answer?.status ?? null, body: answer?.body };
  }
}

/** An answer with another body. */
function withBody({ json: _, ...done }: Done<Operation>, body: Done<Operation>["body"]): Done<Operation> {
  return { ...done, body };
}

function readingOf({ org_id }: Caller, { transfer, signal }: PipelineRequest): Reading {
  return { org_id, last_event_id: transfer.last_event_id, signal };
}

/** Matches may be rare: a leading ping shows the gathering host immediately that the response comes. */
async function linesForHost(input: Input, own: Own): Promise<Done<Operation>> {
  const done = await own(input);
  return done.events ? { ...done, events: ledBy({ id: null, data: { type: "ping" } }, done.events) } : done;
}

const NOT_ASKED = new Error("the requested resource may be on that host");

const isAbsent = (error: unknown, codes: readonly ErrorCode[] = []): boolean =>
  error instanceof ServiceError && codes.includes(error.code);
