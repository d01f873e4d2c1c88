/** execution_start: starts a command and leaves it running. */
import { executionStart } from "../../../../shared/api/executions.ts";
import { type Bound, bind, keyBehind } from "../../../core/call/operation.ts";
import { heldInstead, requireDriveFor } from "../drive-held.ts";
import { placeOf } from "../metering.ts";
import { commandCheck } from "./command-check.ts";
import type { ExecutionDeps } from "./deps.ts";
import { guestAccessOf } from "./guest-access.ts";
import { beginnerOf } from "./record-end.ts";
import { begin, feedAll } from "./run/output.ts";
import { toExecutionRecord } from "./run/record.ts";
import { commandFacts } from "./run/redact.ts";
import { backgroundRequestOf } from "./run/request.ts";
import { Stdins, stdinIn } from "./run/stdin.ts";
import { commandSpan } from "./span.ts";

export function makeStart(deps: ExecutionDeps): Bound {
  const { supervisors, ends, bounds } = deps;
  const stdins = new Stdins(executionStart.name);
  return bind(executionStart, {
    ...commandCheck(deps.sandboxes, stdins),
    run: async (call, input, target) => {
      await deps.waking.requireAwake(target);
      const { room, row } = target;
      requireDriveFor(deps.sandboxes, room, input);
      const span = commandSpan(deps.sandboxes.traces, call, target, input);
      const stdin = await stdins.of(input, stdinIn(input), row.org_id);
      const request = backgroundRequestOf(input, call.work, { trace: span.context, stdin });
      const known = { exec_id: request.start.exec_id, ...commandFacts(input, stdin) };
      call.audit.details = known;
      const fed = bounds.stdin_bytes.take(row.sandbox_id, request.stdin?.byteLength ?? 0);
      const { execution, existing } = await supervisors.use(row.sandbox_id, () =>
        begin(guestAccessOf(supervisors, row.sandbox_id), request).catch((error: unknown) => {
          fed();
          throw heldInstead(deps.sandboxes, room, error);
        }),
      );
      call.work.effect = { started: true, exec_id: execution.exec_id };
      call.audit.details = { ...known, existing };
      if (!existing) {
        ends.begun(row, execution, beginnerOf(call, request, span));
        call.work.along(() => deps.sandboxes.meter.count(placeOf(row, keyBehind(call.caller)), { exec_count: 1 }));
        call.work.whenSettled((recorded) => recorded || ends.unmetered(row, execution.exec_id));
      }
      // On retries too: the daemon that received it first may have exited. Input that has arrived is skipped.
      void feedAll(guestAccessOf(supervisors, row.sandbox_id), request, deps.stopping).finally(fed);
      return { outcome: existing ? "existing" : "started", body: toExecutionRecord(execution) };
    },
  });
}
