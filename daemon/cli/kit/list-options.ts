/** Options of commands that print lists page by page. */
import type { Command } from "commander";
import type { JsonOption } from "./output.ts";
import { integer } from "./values.ts";

export interface ListOptions extends JsonOption {
  limit?: number;
  cursor?: string;
}

interface Page<T> {
  value: { items: T[]; next_cursor: string | null };
}

/** All pages of a list. */
export async function allItems<T>(page: (cursor: string | undefined) => Promise<Page<T>>): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | undefined;
  do {
    const { value } = await page(cursor);
    found.push(...value.items);
    cursor = value.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

/** Adds the options that all list commands have. */
export function asList(command: Command): Command {
  return command
    .option("--limit <n>", "most items to print", integer(1))
    .option("--cursor <cursor>", "continue after the previous page");
}
