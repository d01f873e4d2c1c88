/** `roomd drive put` and `get`: files of any size, streamed. */
import { statSync } from "node:fs";
import { basename, join } from "node:path";
import type { Command } from "commander";
import { fileGet, filePut } from "../../../../shared/api/drive.ts";
import { call, download } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { localFile } from "../../kit/local-file.ts";
import { bytesText, type JsonOption, show, showValue, write } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { saveAnswer, whole } from "../../kit/save-answer.ts";
import { stdinParts } from "../../kit/standard-input.ts";
import { type DrivePath, place } from "../../kit/values.ts";

const OF_A_DIRECTORY = "to copy a directory, use `roomd cp -r`";

interface PutOptions extends JsonOption {
  mode?: string;
  owner?: string;
  overwrite: boolean;
}

export function putCommand(): Command {
  return command("put <local>", {
    summary: "copy a file onto the drive; LOCAL may be - for standard input",
    examples: [
      "roomd drive put report.txt build-42:/in/report.txt",
      "roomd drive put report.txt build-42:/in/",
      "tar c src | roomd drive put - build-42:/src.tar",
    ],
  })
    .argument("<place>", "ROOM:/path, or ROOM:/directory/ to keep the file's name", place)
    .option("--mode <octal>", "permissions of the file (default: 0644)")
    .option("--owner <uid:gid>", "owner of the file")
    .option("--no-overwrite", "refuse when the file exists")
    .action(async (local: string, at: DrivePath, options: PutOptions) => {
      const path = at.path.endsWith("/") ? `${at.path}${basename(local)}` : at.path;
      const input = {
        ...at,
        path,
        mode: options.mode,
        owner: options.owner,
        overwrite: options.overwrite ? undefined : false,
      };
      const body = local === "-" ? stdinParts() : await localFile(local, OF_A_DIRECTORY);
      const reply = await withProgress(`writing ${path}`, () => call(filePut, input, { body }));
      await show(reply, options, (done) => [`wrote ${done.path}, ${bytesText(done.size_bytes)}`]);
    });
}

export function getCommand(): Command {
  return command("get", {
    summary: "copy a file from the drive; LOCAL may be a directory, or - for standard output",
    examples: [
      "roomd drive get build-42:/out.csv out.csv",
      "roomd drive get build-42:/out.csv .",
      "roomd drive get build-42:/src.tar - | tar x",
    ],
  })
    .argument("<place>", "ROOM:/path", place)
    .argument("<local>")
    .action(async (at: DrivePath, local: string, options: JsonOption) => {
      const file = isDirectory(local) ? join(local, basename(at.path)) : local;
      const found = await withProgress(`requesting ${at.path}`, () => download(fileGet, { ...at }));
      if (file === "-") {
        for await (const chunk of whole(found)) await write(process.stdout, chunk);
        return;
      }
      const size_bytes = await withProgress(`reading ${at.path}`, () => saveAnswer(found, file));
      const value = { path: at.path, local: file, size_bytes };
      await showValue(value, options, () => [`read ${file}, ${bytesText(size_bytes)}`]);
    });
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
