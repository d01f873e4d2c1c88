/** All viewers at screens: their limits, disconnection when a key, a session or a sandbox ends, and the audit record of driving viewers. */
import { MAX_VIEWERS, MAX_VIEWERS_OF_ORG } from "../../../shared/api/screen.ts";
import type { KeyCall } from "../../core/call/operation.ts";
import { monotonicMs } from "../../core/clock.ts";
import { ConcurrencyLimit } from "../../core/concurrency/concurrency-limit.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { ScreenDeps, ScreenTarget } from "./deps.ts";
import { recordOf } from "./record.ts";
import type { Viewer } from "./viewer.ts";

export class Viewers {
  readonly #deps: ScreenDeps;
  readonly #all = new Set<Viewer>();
  readonly #ofScreens = places(MAX_VIEWERS, "this screen");
  readonly #ofOrgs = places(MAX_VIEWERS_OF_ORG, "screens of this organization");

  constructor(deps: ScreenDeps) {
    this.#deps = deps;
  }

  /** Takes a slot for one more; the returned function releases it, and is idempotent. Throws insufficient_capacity. */
  enter({ row: { sandbox_id, org_id } }: ScreenTarget): () => void {
    const leaveOrg = this.#ofOrgs.take(org_id);
    try {
      const leaveScreen = this.#ofScreens.take(sandbox_id);
      return () => {
        leaveScreen();
        leaveOrg();
      };
    } catch (error) {
      leaveOrg();
      throw error;
    }
  }

  /** Tracks a viewer until it is over, and calls `leave` then. Only a driving viewer keeps the sandbox from being idle. */
  keep(call: KeyCall, sandboxId: string, viewer: Viewer, { drives, leave }: { drives: boolean; leave(): void }): void {
    const { sandboxes, hold, log } = this.#deps;
    const over = new AbortController();
    this.#all.add(viewer);
    const { session, key_id } = call.caller;
    const credential = session ? "session" : "key";
    const letGo = hold(session ?? key_id, () => viewer.end("unauthorized", `the ${credential} is no longer valid`));
    void sandboxes
      .stopped(sandboxId, over.signal)
      .then((state) => viewer.end("sandbox_stopped", `the sandbox is ${state}`));
    const startedAt = monotonicMs();
    const until = () => viewer.over;
    const done = (drives ? sandboxes.use(sandboxId, until) : until()).then(async (end) => {
      over.abort();
      letGo();
      leave();
      this.#all.delete(viewer);
      // Input and output are private; only their amounts are recorded.
      if (drives) await recordOf(this.#deps, call, "screen.driven", end, monotonicMs() - startedAt);
    });
    done.catch((error: unknown) => log.error("failed to write an audit record", { error: String(error) }));
  }

  stop(): void {
    for (const viewer of [...this.#all]) viewer.end("going_away", "the service is stopping");
  }

  /** Before any input: the driver is in the audit even if no later record can be written. */
  async recordBegun(call: KeyCall): Promise<void> {
    await recordOf(this.#deps, call, "screen.drive_begun", {}, 0);
  }
}

function places(most: number, target: string): ConcurrencyLimit {
  return new ConcurrencyLimit(
    most,
    () => new ServiceError("insufficient_capacity", { detail: `${most} viewers already watch ${target} already.` }),
  );
}
