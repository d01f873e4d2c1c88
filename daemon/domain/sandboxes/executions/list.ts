/** execution_list and execution_get: the executions that a sandbox's guest retains. */

import type { ExecState } from "../../../../shared/agent-protocol/messages.ts";
import { DEFAULT_PAGE } from "../../../../shared/api/contract.ts";
import { executionGet, executionList } from "../../../../shared/api/executions.ts";
import { readCursor, toPage } from "../../../core/call/cursor.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { getInGuest, listInGuest } from "../../../host/guest-link/exec.ts";
import { findTarget } from "../find.ts";
import type { ExecutionDeps } from "./deps.ts";
import { ask, findExecution } from "./find.ts";
import { toExecutionRecord } from "./run/record.ts";

const KIND = "executions";

export function makeList(deps: ExecutionDeps): Bound {
  return bind(executionList, {
    find: (call, params) => findTarget(deps.sandboxes, call, params),
    run: async (_call, input, target) => {
      const limit = input.limit ?? DEFAULT_PAGE;
      const after = Number(readCursor(KIND, input.cursor) ?? 0);
      const found = await ask(deps, { ...target, exec_id: "" }, async (link) => {
        const states: ExecState[] = [];
        // Each reply contains as many as fit into a frame, at least one.
        while (states.length <= limit) {
          const from = states.at(-1)?.number ?? after;
          const more = (await listInGuest(link, from, limit + 1 - states.length)).filter(({ number }) => number > from);
          if (more.length === 0) break;
          states.push(...more);
        }
        return states;
      });
      const { rows, next_cursor } = toPage(KIND, found, limit, ({ number }) => String(number));
      return { outcome: "ok", body: { items: rows.map(toExecutionRecord), next_cursor } };
    },
  });
}

export function makeGet(deps: ExecutionDeps): Bound {
  return bind(executionGet, {
    find: (call, params) => findExecution(deps, call, params),
    run: async (_call, _input, target) => {
      return { outcome: "ok", body: toExecutionRecord(await ask(deps, target, getInGuest)) };
    },
  });
}
