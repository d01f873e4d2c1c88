/** Owns reading a sandbox's logs: what its guest printed on the console, or of that what its agent said. */
import { sandboxLogs } from "../../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../../core/operation.ts";
import { readConsole } from "../../host/machine/console.ts";
import type { SandboxDeps } from "./deps.ts";
import { findTarget } from "./find.ts";

const MOST_LINES = 1000;
/** The agent marks its own lines on the console, which is the only way out before it is connected. */
const isAgentLine = (line: string) => line.startsWith("roomd-agent: ");

export function makeLogs(deps: SandboxDeps): Bound {
  return bind(sandboxLogs, {
    find: (call, params) => findTarget(deps, call, params),
    run: (_call, input, { row }) => {
      const source = input.source ?? "console";
      const { after = 0, limit = MOST_LINES } = input;
      const { console_log } = deps.paths.sandbox(row.sandbox_id);
      const isWanted = source === "agent" ? isAgentLine : () => true;
      const { lines, next } = readConsole(console_log, after, limit, isWanted);
      return { outcome: "ok", body: { source, items: lines, next_after: next } };
    },
  });
}
