/** Watched terminals and their numbers of watchers: the first watcher starts a broadcast, and it stops when the last one leaves. */
import { MAX_WATCHERS, MAX_WATCHERS_OF_ORG } from "../../../shared/api/terminals.ts";
import type { KeyCall } from "../../core/call/operation.ts";
import { ConcurrencyLimit } from "../../core/concurrency/concurrency-limit.ts";
import { ServiceError } from "../../core/service-error.ts";
import { Broadcast } from "./broadcast.ts";
import type { SandboxAccess, TerminalTarget } from "./deps.ts";
import { asServiceError } from "./errors.ts";
import { placeOf, type Writers } from "./writers.ts";

interface Shared {
  broadcast: Promise<Broadcast>;
  watchers: number;
}

export interface Seat {
  broadcast: Broadcast;
  /** Again is nothing. */
  leave(): void;
}

export class Broadcasts {
  readonly #sandboxes: SandboxAccess;
  readonly #typists: Writers;
  readonly #all = new Map<string, Shared>();
  readonly #ofTerminals = places(MAX_WATCHERS, "this terminal");
  readonly #ofOrgs = places(MAX_WATCHERS_OF_ORG, "terminals of this organization");

  constructor(sandboxes: SandboxAccess, typists: Writers) {
    this.#sandboxes = sandboxes;
    this.#typists = typists;
  }

  /** Throws too_many_executions, execution_not_found, and errors of a call to its guest. */
  async join({ caller }: KeyCall, target: TerminalTarget, terminalId: string): Promise<Seat> {
    const place = placeOf(target.row.sandbox_id, terminalId);
    const leaveOrg = this.#ofOrgs.take(caller.org_id);
    let leaveTerminal = () => {};
    try {
      leaveTerminal = this.#ofTerminals.take(place);
      const shared = this.#all.get(place) ?? this.#begin(place, target, terminalId);
      shared.watchers++;
      let hasLeft = false;
      const leave = () => {
        if (hasLeft) return;
        hasLeft = true;
        leaveOrg();
        leaveTerminal();
        shared.watchers--;
        if (shared.watchers > 0) return;
        this.#forget(place, shared);
        shared.broadcast.then(
          (broadcast) => broadcast.stop(),
          () => {},
        );
      };
      return { broadcast: await shared.broadcast, leave };
    } catch (error) {
      leaveTerminal();
      leaveOrg();
      throw error;
    }
  }

  #begin(place: string, target: TerminalTarget, terminal_id: string): Shared {
    const { sandbox_id } = target.row;
    const deps = {
      terminal_id,
      reach: (over: AbortSignal) => this.#sandboxes.reach(sandbox_id, over),
      asError: (error: unknown) => asServiceError(error, target, { terminal_id, watches: true }),
      typist: () => this.#typists.of(place),
    };
    const broadcast = this.#sandboxes
      .withLink(target, (link) => Broadcast.begin(deps, link))
      .catch((error: unknown) => {
        throw asServiceError(error, target, { terminal_id, watches: true });
      });
    const shared: Shared = { broadcast, watchers: 0 };
    this.#all.set(place, shared);
    void broadcast.then(
      async (started) => {
        const hearNoMore = this.#typists.hear(place, () => started.wake());
        await started.over;
        hearNoMore();
        this.#forget(place, shared);
      },
      () => this.#forget(place, shared),
    );
    return shared;
  }

  /** The next watcher starts another broadcast. */
  #forget(place: string, shared: Shared): void {
    if (this.#all.get(place) === shared) this.#all.delete(place);
  }
}

function places(most: number, of: string): ConcurrencyLimit {
  const refusal = () =>
    new ServiceError("too_many_executions", { detail: `${most} watch ${of}, which is the maximum.` });
  return new ConcurrencyLimit(most, refusal);
}
