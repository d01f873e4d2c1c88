/** The tools of the small set. */
import type { ToolAnswer } from "../answer.ts";
import type { ToolCall } from "../call.ts";
import { checkpoint } from "./checkpoint.ts";
import { close } from "./close.ts";
import { editFile, listFiles, readFile, writeFile } from "./file-tools.ts";
import { follow, run } from "./run.ts";
import { url } from "./url.ts";

export const SMALL: Record<string, (call: ToolCall, input: never) => Promise<ToolAnswer>> = {
  run,
  read_file: readFile,
  write_file: writeFile,
  edit_file: editFile,
  list_files: listFiles,
  follow,
  url,
  checkpoint,
  close,
};
