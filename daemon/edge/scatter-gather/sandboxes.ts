/** The merge rule for lists of an organization's sandboxes: every host has the same order, by sandbox_id, and the same cursors. */
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import type { orgSandboxList, SandboxRecord } from "../../../shared/api/sandboxes.ts";
import { cursorAfterSandbox } from "../../domain/sandboxes/index.ts";
import type { Merging } from "./rule.ts";
import { withWarnings } from "./words.ts";

export const listOfSandboxes: Merging<typeof orgSandboxList> = {
  absent: ["room_not_found"],
  patienceMs: 1000,
  merge: ({ body: own }, others, { caller, input, silent }) => {
    const { limit = DEFAULT_PAGE } = input;
    const pages = [own, ...others.map(({ body }) => body)];
    const found = new Map<string, SandboxRecord>();
    for (const { items } of pages) for (const item of items) found.set(item.sandbox_id, item);
    const items = [...found.values()].sort((a, b) => (a.sandbox_id < b.sandbox_id ? -1 : 1));
    const isMore = items.length > limit || pages.some(({ next_cursor }) => next_cursor !== null);
    const shown = items.slice(0, limit);
    const last = shown.at(-1);
    return {
      items: shown,
      next_cursor: isMore && last ? cursorAfterSandbox(caller.org_id, last.sandbox_id) : null,
      ...withWarnings(silent, "its sandboxes are not listed."),
    };
  },
};
