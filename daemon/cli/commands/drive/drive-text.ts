/** `roomd drive read` and `write`: a part of a file, and small texts, without a file on this machine. */
import type { Command } from "commander";
import { fsRead, fsWrite } from "../../../../shared/api/drive.ts";
import { plainJson } from "../../../core/text.ts";
import { call, download } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { bytesText, type JsonOption, print, show, write } from "../../kit/output.ts";
import { stdinBytes } from "../../kit/standard-input.ts";
import { type DrivePath, integer, place } from "../../kit/values.ts";

interface ReadOptions extends JsonOption {
  offset?: number;
  length?: number;
}

export function readCommand(): Command {
  return command("read", {
    summary: "print a file of the drive, or a part of it, at most 16 MiB",
    examples: [
      "roomd drive read build-42:/notes.txt",
      "roomd drive read build-42:/big.log --offset 1048576 --length 4096",
    ],
  })
    .argument("<place>", "ROOM:/path", place)
    .option("--offset <bytes>", "the first byte (default: 0)", integer(0))
    .option("--length <bytes>", "how many bytes (default: 16 MiB)", integer(0))
    .action(async (at: DrivePath, { offset, length, json }: ReadOptions) => {
      const input = { ...at, offset, length };
      if (json) return await print(plainJson((await call(fsRead, { ...input, format: "json" })).text.trimEnd()));
      const { stream } = await download(fsRead, { ...input, format: "raw" });
      for await (const part of stream) await write(process.stdout, part);
    });
}

interface WriteOptions extends JsonOption {
  append?: true;
  mode?: string;
  owner?: string;
  overwrite: boolean;
  ifMatch?: string;
}

export function writeCommand(): Command {
  return command("write", {
    summary: "write TEXT, or else standard input, to a file of the drive; the file is replaced as a whole",
    examples: [
      "roomd drive write build-42:/notes.txt 'first the tests'",
      "date | roomd drive write build-42:/log.txt --append",
    ],
  })
    .argument("<place>", "ROOM:/path", place)
    .argument("[text]")
    .option("--append", "add to the end of the file")
    .option("--mode <octal>", "permissions of the file (default: 0644)")
    .option("--owner <uid:gid>", "owner of the file")
    .option("--no-overwrite", "refuse when the file exists")
    .option("--if-match <sha256>", "only if the file has this sha256")
    .action(async (at: DrivePath, text: string | undefined, options: WriteOptions) => {
      const { append, mode, owner, overwrite, ifMatch: if_match } = options;
      const content = text === undefined ? { content_b64: (await stdinBytes()).toString("base64") } : { content: text };
      const how = { append, mode, owner, overwrite: overwrite ? undefined : false, if_match };
      const reply = await call(fsWrite, { ...at, ...content, ...how });
      await show(reply, options, ({ path, size_bytes }) => [`wrote ${path}, ${bytesText(size_bytes)}`]);
    });
}
