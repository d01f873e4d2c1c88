/** execution_signal and execution_end: signals a running command, or ends it. */
import { executionEnd, executionSignal } from "../../../../shared/api/executions.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { endInGuest, signalInGuest } from "../../../host/guest-link/exec.ts";
import type { ExecutionDeps } from "./deps.ts";
import { ask, findExecution } from "./find.ts";
import { toExecutionRecord } from "./run/record.ts";
import { sendOnce } from "./send-once.ts";

export function makeSignal(deps: ExecutionDeps): Bound {
  return bind(executionSignal, {
    find: (call, params) => findExecution(deps, call, params),
    run: async (call, input, target) => {
      const signal = input.signal.startsWith("SIG") ? input.signal : `SIG${input.signal}`;
      call.audit.details = { exec_id: target.exec_id, signal };
      const state = await ask(deps, target, async (link, execId) => {
        await sendOnce(call.work, "Use another Idempotency-Key to send it anyway.");
        return await signalInGuest(link, execId, signal);
      });
      return { outcome: "ok", body: toExecutionRecord(state) };
    },
  });
}

export function makeEnd(deps: ExecutionDeps): Bound {
  return bind(executionEnd, {
    find: (call, params) => findExecution(deps, call, params),
    run: async (call, _input, target) => {
      call.audit.details = { exec_id: target.exec_id };
      const state = await ask(deps, target, endInGuest);
      return { outcome: "ended", body: toExecutionRecord(state) };
    },
  });
}
