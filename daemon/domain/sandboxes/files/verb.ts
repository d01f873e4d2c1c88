/** The common steps of operations on files of a sandbox: wake it, mark it in use, take a slot among its calls, map errors. */
import type { Operation } from "../../../../shared/api/contract.ts";
import { FILE_CALL_WAIT_MS, MAX_FILE_CALLS } from "../../../../shared/api/sandbox-files.ts";
import { type Bound, bind, type Done, type KeyCall, type Verb } from "../../../core/call/operation.ts";
import { FairSemaphore } from "../../../core/concurrency/fair-semaphore.ts";
import { DeadlineError } from "../../../core/concurrency/published.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { GuestLink } from "../../../host/guest-link/handshake.ts";
import type { SandboxDeps } from "../deps.ts";
import { heldInstead, requireDriveFor } from "../drive-held.ts";
import { findTarget, type SandboxTarget } from "../find.ts";
import { inUse, linkOf } from "../guest-access.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { Waking } from "../lifecycle/waking.ts";
import { type FileCall, fileError } from "./errors.ts";

export interface FileDeps {
  sandboxes: SandboxDeps;
  supervisors: Supervisors;
  waking: Waking;
  places: FairSemaphore;
  /** Aborted, with a ServiceError, when the daemon stops. */
  stopping: AbortSignal;
}

/** An organization may use half of the service's slots. */
const ALL_CALLS = 1024;

export function makePlaces(): FairSemaphore {
  return new FairSemaphore({
    all: ALL_CALLS,
    org: ALL_CALLS / 2,
    sandbox: MAX_FILE_CALLS,
    waiting: 8 * MAX_FILE_CALLS,
  });
}

/** A sandbox during one call. */
export interface OpenSandbox {
  link: GuestLink;
  target: SandboxTarget;
  /** Keeps the sandbox in use, and the call's slot taken, until `over` settles: for streamed responses. */
  until(over: Promise<unknown>): void;
}

type Run<Op extends Operation> = Verb<Op, OpenSandbox>["run"];

interface FileVerb<Op extends Operation> {
  rules: NonNullable<Verb<Op, SandboxTarget>["rules"]>;
  /** Operation-specific meaning of errors. */
  kind?: FileCall;
  /** Paths that the operation uses; the call is refused for paths on a blocked drive. */
  paths(input: Parameters<Run<Op>>[1]): string[];
  run: Run<Op>;
}

export function bindFiles<Op extends Operation>(
  deps: FileDeps,
  operation: Op,
  { rules, kind = "any", paths, run }: FileVerb<NoInfer<Op>>,
): Bound {
  return bind<Op, SandboxTarget>(operation, {
    find: (call, params) => findTarget(deps.sandboxes, call as KeyCall, params),
    rules,
    run: async (call, input, target, transfer): Promise<Done<Op>> => {
      await deps.waking.requireAwake(target);
      for (const cwd of paths(input)) requireDriveFor(deps.sandboxes, target.room, { cwd });
      const leave = await placeOf(deps, target, call.signal);
      let streaming: Promise<unknown> | null = null;
      const done = Promise.withResolvers<void>();
      const used = inUse(deps.supervisors, target, async () => {
        const link = await linkOf(deps.supervisors, target.row.sandbox_id);
        const until = (over: Promise<unknown>) => {
          streaming = over;
        };
        return { answer: await run(call, input, { link, target, until }, transfer) };
      });
      try {
        const { answer } = await used;
        if (streaming) void inUse(deps.supervisors, target, () => done.promise);
        return answer;
      } catch (error) {
        const { owner } = input as { owner?: string };
        throw heldInstead(deps.sandboxes, target.room, fileError(error, kind, owner));
      } finally {
        const end = () => {
          leave();
          done.resolve();
        };
        void (streaming ?? Promise.resolve()).then(end, end);
      }
    },
  });
}

/** Throws rate_limited. */
async function placeOf({ places }: FileDeps, { row }: SandboxTarget, signal: AbortSignal): Promise<() => void> {
  try {
    return await places.take(row, FILE_CALL_WAIT_MS, signal);
  } catch (error) {
    if (!(error instanceof DeadlineError)) throw error;
    throw new ServiceError("rate_limited", {
      detail: `${MAX_FILE_CALLS} calls about files of this sandbox are in progress, which is the maximum.`,
      cause: error,
    });
  }
}
