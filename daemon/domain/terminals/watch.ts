/** Operation that watches a terminal: its output, for any number of read-only watchers. */
import { terminalWatch } from "../../../shared/api/terminals.ts";
import { positionIn, untilEnd } from "../../core/call/event-streams.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import type { Broadcasts } from "./broadcasts.ts";
import type { TerminalDeps } from "./deps.ts";
import { beyond } from "./errors.ts";
import { requireTerminal } from "./get.ts";

/** A client that takes no data for this long is disconnected, to free its slot. */
const UNTAKEN_MS = 60_000;

/** `stopping` is aborted, with a ServiceError, when the daemon stops. */
export function makeWatch({ sandboxes, log }: TerminalDeps, broadcasts: Broadcasts, stopping: AbortSignal): Bound {
  return bind(terminalWatch, {
    find: (call, params) => sandboxes.find(call, params),
    run: async (call, { terminal_id, ...input }, found, { last_event_id }) => {
      call.audit.details = { terminal_id };
      // A watcher only observes.
      const target = { ...found, isLookedAt: true };
      const after = positionIn(last_event_id) ?? input.after ?? 0;
      const { broadcast, leave } = await broadcasts.join(call, target, terminal_id);
      const cancellation = new AbortController();
      const nobody = AbortSignal.any([call.signal, cancellation.signal]);
      try {
        // A client at the terminal may be ahead of this broadcast.
        if (after > broadcast.end && after > (await requireTerminal(sandboxes, target, terminal_id)).offset) {
          throw beyond("after");
        }
      } catch (error) {
        leave();
        throw error;
      }
      // A response body that is never read must end too.
      if (nobody.aborted) leave();
      nobody.addEventListener("abort", leave, { once: true });
      const cut = () => {
        log.info("disconnected a slow watcher of a terminal", { terminal_id });
        cancellation.abort();
      };
      const events = untilEnd(broadcast.watch(after, AbortSignal.any([nobody, stopping])), leave);
      return { outcome: "ok", events: { events, cancel: () => cancellation.abort(), slow: { ms: UNTAKEN_MS, cut } } };
    },
  });
}
