/** execution_stream: the output of an execution, from any position, for any number of readers. */
import { executionStream } from "../../../../shared/api/executions.ts";
import { positionIn, untilEnd } from "../../../core/call/event-streams.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { inUse } from "../guest-access.ts";
import type { ExecutionDeps } from "./deps.ts";
import { findExecution } from "./find.ts";
import { guestAccessOf } from "./guest-access.ts";
import { eventsOf } from "./run/events.ts";
import { followFrom } from "./run/output.ts";

export function makeStream(deps: ExecutionDeps): Bound {
  const { supervisors, bounds } = deps;
  return bind(executionStream, {
    find: (call, params) => findExecution(deps, call, params),
    run: async (call, input, target, { last_event_id }) => {
      await deps.waking.requireAwake(target);
      const { row, exec_id } = target;
      const after = positionIn(last_event_id) ?? input.after ?? -1;
      const follow = input.follow ?? true;
      // A web session only observes: it must not slow the command down.
      const aside = call.caller.session !== undefined;
      const reach = guestAccessOf(supervisors, row.sandbox_id);
      // Sessions do not use up the slots of active clients either.
      const leave = bounds.readers.take(aside ? `${row.sandbox_id} aside` : row.sandbox_id);
      const cancellation = new AbortController();
      const nobody = AbortSignal.any([call.signal, cancellation.signal]);
      const signal = AbortSignal.any([nobody, deps.stopping]);
      try {
        const first = await followFrom(reach, exec_id, { after: Math.max(after, 0), follow, aside, over: signal });
        const over = Promise.withResolvers<void>();
        // Reading output counts as use of the sandbox.
        void inUse(supervisors, target, () => over.promise);
        over.promise.then(leave);
        // A response body that is never read must end too.
        const giveUp = () => {
          first.close();
          over.resolve();
        };
        if (nobody.aborted) giveUp();
        nobody.addEventListener("abort", giveUp, { once: true });
        const events = untilEnd(eventsOf(reach, first, { after, follow, aside, signal }), over.resolve);
        return { outcome: "ok", events: { events, cancel: () => cancellation.abort() } };
      } catch (error) {
        leave();
        throw error;
      }
    },
  });
}
