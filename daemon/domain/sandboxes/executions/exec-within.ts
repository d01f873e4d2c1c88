/** sandbox_exec with wait_ms: starts a command as execution_start does, and waits for it up to a limit. */
import type { InputOf } from "../../../../shared/api/contract.ts";
import { executionStart, type sandboxExec } from "../../../../shared/api/executions.ts";
import { type KeyCall, keyBehind } from "../../../core/call/operation.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import { heldInstead, requireDriveFor } from "../drive-held.ts";
import type { SandboxTarget } from "../find.ts";
import { placeOf } from "../metering.ts";
import type { ExecutionDeps } from "./deps.ts";
import { guestAccessOf } from "./guest-access.ts";
import { beginnerOf } from "./record-end.ts";
import { begin, feedAll } from "./run/output.ts";
import { commandFacts } from "./run/redact.ts";
import { requestOf } from "./run/request.ts";
import { resultWithin } from "./run/run-within.ts";
import type { Stdin } from "./run/stdin.ts";
import { commandSpan } from "./span.ts";

/** Throws ServiceError. The call is recorded as the start of the command; the end has a separate record. */
export async function execWithin(
  deps: ExecutionDeps,
  call: KeyCall,
  input: InputOf<typeof sandboxExec>,
  target: SandboxTarget,
  stdin: Stdin | null,
) {
  const { supervisors, ends, bounds } = deps;
  const { room, row } = target;
  requireDriveFor(deps.sandboxes, room, input);
  const span = commandSpan(deps.sandboxes.traces, call, target, input);
  const request = requestOf(input, call.work, { trace: span.context, stdin });
  const { exec_id } = request.start;
  const facts = { exec_id, ...commandFacts(input, stdin) };
  Object.assign(call.audit, { event: executionStart.audit, details: facts });
  using _place = { [Symbol.dispose]: bounds.waiting.take(row.sandbox_id) };
  const fed = bounds.stdin_bytes.take(row.sandbox_id, request.stdin?.byteLength ?? 0);
  const reach = guestAccessOf(supervisors, row.sandbox_id);
  return await supervisors.use(row.sandbox_id, async () => {
    const { execution, existing } = await begin(reach, request).catch((error: unknown) => {
      fed();
      throw heldInstead(deps.sandboxes, room, error);
    });
    call.work.effect = { started: true, exec_id };
    call.audit.details = { ...facts, existing };
    if (!existing) {
      ends.begun(row, execution, beginnerOf(call, request, span));
      call.work.along(() => deps.sandboxes.meter.count(placeOf(row, keyBehind(call.caller)), { exec_count: 1 }));
      call.work.whenSettled((recorded) => recorded || ends.unmetered(row, exec_id));
    }
    void feedAll(reach, request, deps.stopping).finally(fed);
    using wait = timeout(input.wait_ms ?? 0);
    const over = AbortSignal.any([wait.signal, call.signal, deps.stopping]);
    const body = await resultWithin(reach, request, input, over);
    if (body.state === "running") deps.stopping.throwIfAborted();
    return { outcome: body.state, body };
  });
}

function timeout(ms: number) {
  const late = new AbortController();
  const timer = startTimer(() => late.abort(), ms);
  return { signal: late.signal, [Symbol.dispose]: () => stopTimer(timer) };
}
