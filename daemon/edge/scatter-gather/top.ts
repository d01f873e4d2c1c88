/** Merges the current resource use of sandboxes on all hosts; use of the host itself is that of the entry host only. */
import { MAX_TOP, type topGet } from "../../../shared/api/overview/top.ts";
import type { Merging } from "./rule.ts";
import { withWarnings } from "./words.ts";

export const topOfAll: Merging<typeof topGet> = {
  absent: ["room_not_found"],
  patienceMs: 1000,
  merge: ({ body: own }, others, { silent }) => {
    const parts = [own, ...others.map(({ body }) => body)];
    const items = parts.flatMap((part) => part.items);
    const failed = items.filter(({ state }) => state === "failed");
    const sorted = [...items.filter(({ state }) => state !== "failed"), ...failed];
    const more = parts.reduce((sum, { not_shown }) => sum + not_shown, 0);
    return {
      ...own,
      items: sorted.slice(0, MAX_TOP),
      not_shown: more + Math.max(0, sorted.length - MAX_TOP),
      ...withWarnings(silent, "its sandboxes are not listed."),
    };
  },
};
