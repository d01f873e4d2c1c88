/**
 * Owns calls about all hosts together: whichever is asked asks the others for their part, by the caller's own credentials, and puts
 * the parts together as the operation's rule says. A host that does not answer keeps nobody waiting for long, and is told of.
 *
 *   own part and theirs, side by side ──▶ rule.merge ──▶ one answer, as if there was one host
 */
import type { InputOf, Operation, OutputOf } from "../../../shared/api/contract.ts";
import type { ErrorCode } from "../../../shared/api/errors.ts";
import type { Directory, Host, PlacedRoom } from "../../cluster/directory.ts";
import type { Caller, Done } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Soon } from "../../core/soon.ts";
import { unreachable } from "../hosts/client.ts";
import { Patience } from "../hosts/patience.ts";
import type { RoadRequest } from "../walk.ts";

/** What a host has told of itself. */
export interface Told<Body> {
  host: string;
  body: Body;
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
  part?(hostId: string, about: Pick<Whole<Op>, "caller" | "input">): Partial<InputOf<Op>> | null;
  merge(own: Told<OutputOf<Op>>, others: readonly Told<OutputOf<Op>>[], about: Whole<Op>): OutputOf<Op>;
  /** How a host says that it has nothing of what is asked for, and others may have it. */
  absent?: readonly ErrorCode[];
  /** How long a host may take. */
  patienceMs: number;
}

/** Of a call that one host alone can answer: the others are asked when this one says that it has not got it. */
export interface Finding {
  absent: readonly ErrorCode[];
  patienceMs: number;
}

export type Rule = { merging: Merging<Operation> } | { finding: Finding };

/** So much longer than it is waited for a host is asked: what it says late tells that it is there. */
const LATE_MS = 2000;

export interface GatherDeps {
  /** The name of this host. */
  own: string;
  rules: ReadonlyMap<string, Rule>;
  directory: Pick<Directory, "others" | "placedOn">;
}

type Asking = NonNullable<RoadRequest["ask"]>;
type Input = Record<string, unknown>;
type Own = (input: Input) => Soon<Done<Operation>>;

export class Gather {
  readonly #deps: GatherDeps;
  readonly #patience = new Patience();

  constructor(deps: GatherDeps) {
    this.#deps = deps;
  }

  /** How the operation is carried out on all hosts; null: on this one alone. */
  of(
    operation: Operation,
    caller: Caller | null,
    request: RoadRequest,
  ): ((input: Input, own: Own) => Soon<Done<Operation>>) | null {
    const { ask } = request;
    const rule = ask && caller ? this.#deps.rules.get(operation.name) : undefined;
    // Lines of JSON are told as they are read, of this host alone.
    if (!ask || !caller || !rule || (request.transfer.ndjson && operation.bytesOutput)) return null;
    return (input, own) =>
      "finding" in rule
        ? this.#find(rule.finding, operation, ask, input, own)
        : this.#merge(rule.merging, operation, ask, caller, input, own);
  }

  async #merge(rule: Merging<Operation>, operation: Operation, ask: Asking, caller: Caller, input: Input, own: Own) {
    const here = this.#deps.own;
    const partOf = (hostId: string) =>
      rule.part ? rule.part(hostId, { caller, input: input as InputOf<Operation> }) : input;
    const ownPart = partOf(here) ?? input;
    const asked = this.#deps.directory.others().flatMap((host) => {
      const part = partOf(host.host_id);
      return part === null ? [] : [this.#askOne(ask, host, queryOf(operation, part), rule.patienceMs)];
    });
    const told: Told<Done<Operation>["body"]>[] = [];
    let absent: unknown = null;
    let done: Done<Operation> = { outcome: firstOutcome(operation) };
    try {
      done = await own(ownPart);
      told.push({ host: here, body: done.body });
    } catch (error) {
      if (!isAbsent(error, rule.absent)) throw error;
      absent = error;
    }
    const answers = await Promise.all(asked);
    for (const { host, status, body } of answers) if (status === 200) told.push({ host, body });
    const isSilent = (status: number | null) => status !== 200 && !(rule.absent && status === 404);
    const silent = answers.flatMap(({ host, status }) => (isSilent(status) ? [host] : []));
    const [first, ...others] = told;
    if (!first) throw silent[0] === undefined ? absent : unreachable({ host_id: silent[0] }, NOT_ASKED);
    const placedOn = (hostId: string) => this.#deps.directory.placedOn(caller.org_id, hostId);
    const about = { caller, input: input as InputOf<Operation>, silent, placedOn };
    return { ...done, body: rule.merge(first, others, about) };
  }

  async #find({ absent, patienceMs }: Finding, operation: Operation, ask: Asking, input: Input, own: Own) {
    try {
      return await own(input);
    } catch (error) {
      if (!isAbsent(error, absent)) throw error;
      const query = queryOf(operation, input);
      const hosts = this.#deps.directory.others();
      const answers = await Promise.all(hosts.map((host) => this.#askOne(ask, host, query, patienceMs)));
      const found = answers.find(({ status }) => status === 200);
      if (found) return { outcome: firstOutcome(operation), body: found.body };
      const silent = answers.find(({ status }) => status !== 404);
      // It may be there.
      throw silent ? unreachable({ host_id: silent.host }, NOT_ASKED) : error;
    }
  }

  /** Never rejects. */
  async #askOne(ask: Asking, host: Host, query: Record<string, string>, patienceMs: number) {
    const { host_id } = host;
    const asked = ask(host, query, AbortSignal.timeout(patienceMs + LATE_MS));
    const answer = await this.#patience.until(host_id, asked, patienceMs);
    return { host: host_id, status: answer?.status ?? null, body: answer?.body };
  }
}

const NOT_ASKED = new Error("what is asked for may be there");

const firstOutcome = ({ outcomes }: Operation): string => Object.keys(outcomes)[0] ?? "ok";

const isAbsent = (error: unknown, codes: readonly ErrorCode[] = []): boolean =>
  error instanceof ServiceError && codes.includes(error.code);

/** An input as it stands in a URL. */
function queryOf({ params }: Operation, input: Input): Record<string, string> {
  const said = Object.entries(input).filter(
    ([name, value]) => value !== undefined && !Object.hasOwn(params.properties, name),
  );
  return Object.fromEntries(said.map(([name, value]) => [name, String(value)]));
}
