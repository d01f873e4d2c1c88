/** execution_stdin: writes to a running command's standard input, in the order of sending. */
import { executionStdin } from "../../../../shared/api/executions.ts";
import { type Bound, bind } from "../../../core/operation.ts";
import { feedInGuest } from "../../../host/guest-link/exec.ts";
import { toExecutionRecord } from "../../executions/record.ts";
import { bytesFacts } from "../../executions/redact.ts";
import { base64Rules } from "../../executions/rules.ts";
import type { ExecutionDeps } from "./deps.ts";
import { ask, findExecution } from "./find.ts";
import { sendOnce } from "./send-once.ts";

export function makeStdin(deps: ExecutionDeps): Bound {
  return bind(executionStdin, {
    find: (call, params) => findExecution(deps, call, params),
    rules: ({ data_b64 }) => base64Rules("data_b64", data_b64),
    run: async (call, { data_b64 = "", eof = false, offset = null }, target) => {
      const bytes = Buffer.from(data_b64, "base64");
      call.audit.details = { exec_id: target.exec_id, ...bytesFacts(bytes), eof };
      const { sandbox_id } = target.row;
      using places = new DisposableStack();
      places.defer(deps.bounds.feeding.take(sandbox_id));
      places.defer(deps.bounds.stdin_bytes.take(sandbox_id, bytes.byteLength));
      const state = await ask(deps, target, async (link, exec_id) => {
        if (offset === null)
          await sendOnce(call.work, "stdin_bytes of the execution says what has arrived; send offset.");
        return await feedInGuest(link, { exec_id, offset, eof }, bytes, call.signal);
      });
      return { outcome: "ok", body: toExecutionRecord(state) };
    },
  });
}
