/** sandbox_exec: a command with a caller that waits until its end, or (exec-within.ts) for a limited time. */
import { sandboxExec } from "../../../../shared/api/executions.ts";
import { type Bound, bind, keyBehind } from "../../../core/call/operation.ts";
import { now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Following } from "../../../host/guest-link/exec.ts";
import { heldInstead, requireDriveFor } from "../drive-held.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { placeOf } from "../metering.ts";
import { commandCheck } from "./command-check.ts";
import type { ExecutionDeps } from "./deps.ts";
import { execWithin } from "./exec-within.ts";
import { guestAccessOf } from "./guest-access.ts";
import { beginnerOf, wasMetered } from "./record-end.ts";
import { commandFacts } from "./run/redact.ts";
import { requestOf } from "./run/request.ts";
import { runCommand } from "./run/run.ts";
import type { SaveStreams } from "./run/saving.ts";
import { Stdins, stdinIn } from "./run/stdin.ts";
import { commandSpan, endSpan } from "./span.ts";

export function makeExec(deps: ExecutionDeps): Bound {
  const { supervisors, ends, bounds } = deps;
  const { database, meter, traces } = deps.sandboxes;
  const { queries } = database;
  const stdins = new Stdins(sandboxExec.name);
  return bind(sandboxExec, {
    ...commandCheck(deps.sandboxes, stdins),
    run: async (call, input, target) => {
      await deps.waking.requireAwake(target);
      const { room, row } = target;
      const stdin = await stdins.of(input, stdinIn(input), row.org_id);
      if (input.wait_ms !== undefined) return await execWithin(deps, call, input, target, stdin);
      requireDriveFor(deps.sandboxes, room, input);
      const span = commandSpan(traces, call, target, input);
      const request = requestOf(input, call.work, { trace: span.context, stdin });
      const { exec_id } = request.start;
      const facts = { exec_id, ...commandFacts(input, stdin) };
      call.audit.details = facts;
      using places = new DisposableStack();
      places.defer(bounds.waiting.take(row.sandbox_id));
      places.defer(bounds.stdin_bytes.take(row.sandbox_id, request.stdin?.byteLength ?? 0));
      const since = now();
      const attendance = ends.attend(row, exec_id, beginnerOf(call, request, span));
      let ended = false;
      // If this call's record does not contain the end, the end is recorded like any other.
      call.work.whenSettled((recorded) =>
        attendance.leave({ began: call.work.effect?.started !== false, recorded: recorded && ended }),
      );
      // Unknown until the guest has answered; the call may end before that.
      call.work.effect = { started: "unknown" };
      return await whileWaited(supervisors, row.sandbox_id, call.signal, async () => {
        const leaves = () => deps.sandboxes.currentRoom(row.room_uid).is_moving;
        const reach = guestAccessOf(supervisors, row.sandbox_id, leaves);
        const save: SaveStreams = (streams) => deps.sandboxes.saveOutput(room, input.output_to ?? "", streams);
        let startedCommand: Pick<Following, "existing"> | undefined;
        const onStarted = (following: Pick<Following, "existing">) => {
          startedCommand = following;
          call.work.effect = { started: true, exec_id };
        };
        const body = await runCommand(reach, request, input, save, onStarted).catch((error: unknown) => {
          const known = error instanceof ServiceError ? (error.options.details?.started ?? false) : "unknown";
          if (!startedCommand) call.work.effect = { started: known };
          if (!startedCommand && known === false) attendance.leave({ began: false, recorded: false });
          throw heldInstead(deps.sandboxes, room, error);
        });
        ended = true;
        if (startedCommand?.existing === false) endSpan(span, body);
        // Only an execution that an earlier request started may be metered already; this lookup takes as long as the rest of the call.
        const mayBeMetered = !attendance.isRepeated && startedCommand?.existing !== false;
        if (mayBeMetered && (await wasMetered(queries, row, exec_id, since))) attendance.foundMetered();
        call.work.along(() => {
          if (attendance.meters()) meter.count(placeOf(row, keyBehind(call.caller)), { exec_count: 1 });
        });
        const { exit_code, signal, timed_out, oom, stdout_bytes, stderr_bytes, output } = body;
        const ending = { exit_code, signal, timed_out, ...(oom && { oom }) };
        const notSaved = output?.state === "failed" ? { not_saved: output.error_code } : {};
        call.work.effect = { started: true, exec_id, ...ending };
        call.audit.details = { ...facts, ...ending, stdout_bytes, stderr_bytes, ...notSaved };
        return { outcome: "exited" as const, body };
      });
    },
  });
}

/** Executes `work`; marks the sandbox as in use until `work` is done or the client disconnects. */
async function whileWaited<T>(
  supervisors: Supervisors,
  sandboxId: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const left = Promise.withResolvers<void>();
  const leave = () => left.resolve();
  signal.addEventListener("abort", leave, { once: true });
  const done = Promise.withResolvers<T>();
  const used = supervisors.use(sandboxId, async () => {
    work().then(done.resolve, done.reject);
    if (!signal.aborted) await Promise.race([done.promise.catch(() => {}), left.promise]);
  });
  await used;
  return await done.promise.finally(() => signal.removeEventListener("abort", leave));
}
