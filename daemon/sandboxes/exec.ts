/** Owns the call that runs a command in a sandbox and waits for it. */
import { sandboxExec } from "../../shared/api/executions.ts";
import { type Bound, bind } from "../core/operation.ts";
import { requireActive } from "../core/room-target.ts";
import { ServiceError } from "../core/service-error.ts";
import { pathRule } from "../drive/path.ts";
import { type Executions, execRules } from "../executions/run.ts";
import { heldInstead, requireDriveFor } from "./drive-held.ts";
import { findTarget } from "./find.ts";
import type { SandboxDeps } from "./index.ts";
import { requireState } from "./state.ts";
import { STALLED_REASON } from "./supervisor.ts";
import type { Supervisors } from "./supervisors.ts";

/** How long to wait for a guest whose connection is just coming back. */
const LINK_DEADLINE_MS = 10_000;

export function makeExec(deps: SandboxDeps, supervisors: Supervisors, executions: Executions): Bound {
  return bind(sandboxExec, {
    find: (call, params) => {
      call.happened = { started: false };
      return findTarget(deps, call, params);
    },
    rules: (input) => [
      ...execRules(input),
      ...(input.output_to === undefined ? [] : pathRule("output_to", input.output_to)),
    ],
    run: async (call, input, { room, row }) => {
      requireActive(room);
      requireState(row, ["running"]);
      if (row.status_reason === STALLED_REASON) {
        throw new ServiceError("disk_full", { detail: row.status_message });
      }
      requireDriveFor(deps, room, input);
      const body = await supervisors.use(row.sandbox_id, async () => {
        const link = await supervisors
          .get(row.sandbox_id)
          ?.link(LINK_DEADLINE_MS)
          .catch((cause: unknown) => {
            if (cause instanceof ServiceError) throw cause;
            throw new ServiceError("guest_unreachable", { details: { started: false }, cause });
          });
        if (!link) throw new ServiceError("guest_unreachable", { details: { started: false } });
        const { body, save } = await executions.run(link, row.sandbox_id, input).catch((error: unknown) => {
          if (error instanceof ServiceError) call.happened = { started: error.options.details?.started ?? false };
          throw heldInstead(deps, room, error);
        });
        const { exec_id, exit_code, signal, timed_out } = body;
        call.happened = { started: true, exec_id, exit_code, signal, timed_out };
        if (save) await deps.saveOutput(room, save.path, save.streams);
        return body;
      });
      call.audit.details = {
        exec_id: body.exec_id,
        exit_code: body.exit_code,
        signal: body.signal,
        timed_out: body.timed_out,
        stdout_bytes: body.stdout_bytes,
        stderr_bytes: body.stderr_bytes,
      };
      return { outcome: "exited", body };
    },
  });
}
