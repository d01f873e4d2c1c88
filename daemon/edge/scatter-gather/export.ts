/** Requests lines of JSON from all hosts, in the order of a list. A host that is unresponsive at the start is left out and reported. */
import type { InputOf, Operation } from "../../../shared/api/contract.ts";
import type { Host } from "../../cluster/directory.ts";
import type { Caller, Done, EventsReply } from "../../core/call/operation.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import { SLOW_READER } from "../../domain/audit/index.ts";
import type { AdaptiveTimeout } from "../hosts/adaptive-timeout.ts";
import type { Input, Own } from "../pipeline/placement.ts";
import { type Asking, firstOutcome, linesIn, queryOf } from "./asking.ts";
import { type HostLines, linesOfAll } from "./lines.ts";
import { chainNameOf } from "./places.ts";
import type { Lines } from "./rule.ts";

export interface ExportRequest {
  operation: Operation;
  lines: Lines<Operation>;
  ask: Asking;
  caller: Caller;
  input: Input;
  own: Own;
  ownChain: string;
  /** Input of this host's part; null: this host contributes nothing. */
  ownPart: Input | null;
  parts: readonly { host: Host; part: Input }[];
  /** How long a host may take to send its first line. */
  patienceMs: number;
}

export interface ExportDeps {
  patience: AdaptiveTimeout;
  /** A reader that leaves sent data unread for this long is disconnected. */
  slowReaderMs: number;
  log: Log;
}

/** Throws as the verb does. */
export async function exported(deps: ExportDeps, request: ExportRequest): Promise<Done<Operation>> {
  const { operation, lines, caller, input, own, ownPart } = request;
  const over = new AbortController();
  const openings = request.parts.map((each) => begin(deps, request, each, over.signal));
  try {
    const done = ownPart === null ? null : await own(ownPart);
    const opened = await Promise.all(openings);
    const silent = opened.flatMap(({ host, reply }) => (reply ? [] : [host.host_id]));
    const theirs = opened.flatMap(({ host, open, reply }): HostLines[] =>
      reply ? [{ chain: chainNameOf(host), open, reply }] : [],
    );
    const ours = done?.events ? [{ chain: request.ownChain, open: neverAgain, reply: done.events }] : [];
    const events = linesOfAll([...ours, ...theirs], {
      ...{ silent, order: lines.orderOf(input as InputOf<Operation>), slowMs: deps.slowReaderMs },
      limit: typeof input.limit === "number" ? input.limit : Number.POSITIVE_INFINITY,
      end: () => over.abort(),
      brokeOff: (error) => {
        if (!over.signal.aborted) deps.log.warn("failed to export lines of the audit", { error: describeError(error) });
      },
      cut: () => deps.log.info(SLOW_READER.export, { org_id: caller.org_id }),
    });
    return { ...(done ?? { outcome: firstOutcome(operation) }), events };
  } catch (error) {
    over.abort();
    throw error;
  }
}

/** Never rejects. */
async function begin(
  { patience }: ExportDeps,
  { operation, lines, ask, caller, input, patienceMs }: ExportRequest,
  { host, part }: ExportRequest["parts"][number],
  until: AbortSignal,
) {
  const open = async (after: number | null) => {
    const from = after === null ? part : lines.after(after, { caller, input: input as InputOf<Operation> });
    return linesIn(await ask(host, queryOf(operation, from), until, "lines"));
  };
  const opening = open(null);
  const reply = await patience.until(host.host_id, opening, patienceMs);
  // A late response can no longer be merged in order.
  if (!reply) opening.then((late) => late.cancel()).catch(() => {});
  return { host, open, reply };
}

const neverAgain = (): Promise<EventsReply> => Promise.reject(new Error("this host's own lines ended early"));
