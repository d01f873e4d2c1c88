/** A file of this host that a command reads. */
import { openAsBlob, statSync } from "node:fs";
import { errnoOf } from "../../core/service-error.ts";
import { CliError } from "./cli-error.ts";

/** Throws CliError if none exists; `instead` is the hint for a path that is no regular file. */
export async function localFile(path: string, instead = ""): Promise<Blob> {
  let isFile: boolean;
  try {
    isFile = statSync(path).isFile();
  } catch (error) {
    throw new CliError(`${path}: ${errnoOf(error) === "ENOENT" ? "no such file" : "cannot be read"}.`);
  }
  if (!isFile) throw new CliError(`${path}: not a regular file${instead && `; ${instead}`}.`);
  return await openAsBlob(path);
}
