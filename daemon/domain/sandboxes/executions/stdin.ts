/** execution_stdin: writes to a running command's standard input, in the order of the calls. */
import { executionStdin } from "../../../../shared/api/executions.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { feedInGuest } from "../../../host/guest-link/exec.ts";
import type { ExecutionDeps } from "./deps.ts";
import { ask, findExecution } from "./find.ts";
import { toExecutionRecord } from "./run/record.ts";
import { bytesFacts } from "./run/redact.ts";
import { type GivenStdin, Stdins } from "./run/stdin.ts";
import { sendOnce } from "./send-once.ts";

export function makeStdin(deps: ExecutionDeps): Bound {
  const stdins = new Stdins(executionStdin.name);
  const givenIn = (text: string): GivenStdin => ({ field: "data_b64", text, encoding: "base64" });
  return bind(executionStdin, {
    find: (call, params) => findExecution(deps, call, params),
    rules: (input, { row }) => stdins.rules(input, givenIn(input.data_b64 ?? ""), row.org_id),
    run: async (call, input, target) => {
      const { data_b64 = "", eof = false, offset = null } = input;
      const { sandbox_id } = target.row;
      using places = new DisposableStack();
      places.defer(deps.bounds.feeding.take(sandbox_id));
      places.defer(deps.bounds.stdin_bytes.take(sandbox_id, Buffer.byteLength(data_b64, "base64")));
      const stdin = await stdins.of(input, givenIn(data_b64), target.row.org_id);
      if (!stdin) throw new Error("standard input differs from the validated input");
      const { bytes } = stdin;
      call.audit.details = { exec_id: target.exec_id, ...bytesFacts(stdin), eof };
      const state = await ask(deps, target, async (link, exec_id) => {
        if (offset === null)
          await sendOnce(
            call.work,
            "The execution's stdin_bytes is the number of bytes that have arrived; send offset.",
          );
        return await feedInGuest(link, { exec_id, offset, eof }, bytes, call.signal);
      });
      return { outcome: "ok", body: toExecutionRecord(state) };
    },
  });
}
