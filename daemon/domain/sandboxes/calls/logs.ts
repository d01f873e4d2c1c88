/** Reading of a sandbox's logs: the guest's console output, or only the guest agent's lines of it. */
import { sandboxLogs } from "../../../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { loopTime, ownerOf, Pieces } from "../../../core/loop/index.ts";
import { readConsole } from "../../../host/machine/console.ts";
import type { SandboxDeps } from "../deps.ts";
import { findTarget } from "../find.ts";

const MAX_LINES = 1000;
/** Prefix of the agent's lines on the console, its only output before it is connected. */
const AGENT_PREFIX = "roomd-agent: ";

export function makeLogs(deps: SandboxDeps): Bound {
  return bind(sandboxLogs, {
    find: (call, params) => findTarget(deps, call, params),
    run: async ({ caller }, input, { row }) => {
      const source = input.source ?? "console";
      const { after = 0, limit = MAX_LINES } = input;
      const { console_log } = deps.paths.sandbox(row.sandbox_id);
      const pieces = new Pieces(loopTime, ownerOf(caller.org_id), sandboxLogs.name);
      const prefix = source === "agent" ? AGENT_PREFIX : "";
      const { lines, next } = await readConsole(console_log, after, { limit, prefix, pieces });
      return { outcome: "ok", body: { source, items: lines, next_after: next } };
    },
  });
}
