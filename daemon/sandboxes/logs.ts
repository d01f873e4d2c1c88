/** Owns reading a sandbox's logs: what its guest printed on the console, and what QEMU and its helpers said. */
import { sandboxLogs } from "../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../core/operation.ts";
import { readConsole } from "../host/machine/console.ts";
import { findTarget } from "./find.ts";
import type { SandboxDeps } from "./index.ts";

const MOST_LINES = 1000;
/** The agent marks its own lines on the console, which is the only way out before it is connected. */
const AGENT_LINE = /^roomd-agent: /;

export function makeLogs(deps: SandboxDeps): Bound {
  return bind(sandboxLogs, {
    find: (call, params) => findTarget(deps, call, params),
    run: (_call, input, { row }) => {
      const source = input.source ?? "console";
      const { lines, next } = readConsole(
        deps.paths.sandbox(row.sandbox_id).console_log,
        input.after ?? 0,
        input.limit ?? MOST_LINES,
      );
      const items = source === "agent" ? lines.filter(({ line }) => AGENT_LINE.test(line)) : lines;
      return { outcome: "ok", body: { source, items, next_after: next } };
    },
  });
}
