/**
 * Merges ledgers of credits: grants are in every host's ledger, spending is in the ledger of the host on which it occurred. All have the
 * same order and the same cursors.
 */
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import type { creditList, LedgerEntry } from "../../../shared/api/people/credits.ts";
import { cursorAfterEntry } from "../../domain/orgs/index.ts";
import type { Merging } from "./rule.ts";
import { withWarnings } from "./words.ts";

export const ledgerOfAll: Merging<typeof creditList> = {
  patienceMs: 1000,
  merge: ({ body: own }, others, { input, silent }) => {
    const { limit = DEFAULT_PAGE } = input;
    const parts = [own, ...others.map(({ body }) => body)];
    const entries = new Map<string, LedgerEntry>(
      parts.flatMap(({ items }) => items.map((entry) => [entry.entry_id, entry] as const)),
    );
    const items = [...entries.values()].sort((a, b) => (a.entry_id > b.entry_id ? -1 : 1));
    const last = items[limit - 1];
    const isMore = items.length > limit || parts.some(({ next_cursor }) => next_cursor !== null);
    return {
      ...own,
      items: items.slice(0, limit),
      next_cursor: isMore && last ? cursorAfterEntry(last.entry_id) : null,
      ...withWarnings(silent, "credits spent on it are not listed."),
    };
  },
};
