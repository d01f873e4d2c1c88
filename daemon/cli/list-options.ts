/** Owns the options of commands that print lists page by page. */
import type { Command } from "commander";
import type { JsonOption } from "./output.ts";
import { integer } from "./values.ts";

export interface ListOptions extends JsonOption {
  limit?: number;
  cursor?: string;
}

/** The options that every list has. */
export function asList(command: Command): Command {
  return command
    .option("--limit <n>", "most items to print", integer(1))
    .option("--cursor <cursor>", "continue after the previous page");
}
