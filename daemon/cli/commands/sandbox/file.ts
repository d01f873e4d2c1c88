/** `roomd file`: single entries of a sandbox's file system. Copies are in cp.ts, lists and deletion in ls.ts. */

import type { Command } from "commander";
import * as files from "../../../../shared/api/sandbox-files.ts";
import { CliError, EXIT, lost } from "../../kit/cli-error.ts";
import { call, events } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { type JsonOption, print, printable, show } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { type SandboxPlace, sandboxPlace } from "../../kit/values.ts";
import { verb } from "../../kit/verb.ts";

export function fileCommand(): Command {
  return commandGroup("file", {
    summary: "files of a sandbox: describe, move and watch them; `roomd cp`, `ls` and `rm` do the rest",
    examples: ["roomd file stat build-42/worker-1:/root/out.csv", "roomd file watch build-42/worker-1:/root -r"],
  })
    .addCommand(
      verb(files.sandboxFileStat, "stat", "describe one entry", {
        examples: [
          "roomd file stat build-42/worker-1:/root/out.csv",
          "roomd file stat build-42/worker-1:/bin --follow",
        ],
        args: [["<place>", PLACE, sandboxPlace]],
        options: [["--follow", "the target of a symbolic link instead of the link"]],
        fields: { place: null },
        lines: recordLines,
      }),
    )
    .addCommand(
      verb(files.sandboxFileMkdir, "mkdir", "make a directory and its missing parents", {
        examples: [
          "roomd file mkdir build-42/worker-1:/root/results",
          "roomd file mkdir build-42/worker-1:/srv/in --mode 0770 --owner agent",
        ],
        args: [["<place>", PLACE, sandboxPlace]],
        options: [
          ["--mode <octal>", "permissions of the directory (default: 0755)"],
          ["--owner <user[:group]>", "its owner (default: the user that commands run as)"],
        ],
        fields: { place: null },
        lines: ({ path, created }) => [printable(created ? `made ${path}` : `${path} already exists`)],
      }),
    )
    .addCommand(mv())
    .addCommand(watch());
}

const PLACE = "ROOM/AGENT:/path";

function mv(): Command {
  return command("mv", {
    summary: "move an entry within a sandbox, also onto /mnt/drive and back",
    examples: [
      "roomd file mv build-42/worker-1:/root/draft.txt build-42/worker-1:/root/final.txt",
      "roomd file mv build-42/worker-1:/root/out build-42/worker-1:/mnt/drive/out --overwrite",
    ],
  })
    .argument("<from>", PLACE, sandboxPlace)
    .argument("<to>", `${PLACE} in the same sandbox`, sandboxPlace)
    .option("--overwrite", "replace an existing entry")
    .action(async (from: SandboxPlace, to: SandboxPlace, { overwrite, json }: JsonOption & { overwrite?: true }) => {
      const { room_id, sandbox } = from;
      if (room_id !== to.room_id || sandbox !== to.sandbox) {
        throw new CliError("Both places must be in one sandbox. Between sandboxes use `roomd cp`.", EXIT.usage);
      }
      const reply = await call(files.sandboxFileMove, { room_id, sandbox, from: from.path, to: to.path, overwrite });
      await show(reply, { json }, ({ path }) => [printable(`moved to ${path}`)]);
    });
}

interface WatchOptions extends JsonOption {
  recursive?: true;
  after?: string;
}

function watch(): Command {
  return command("watch", {
    summary: "print changes of a directory or a file, until ctrl-c or until it is gone",
    notes: ["With --json each change is a line of JSON with its cursor. `overflow`: changes were lost, list it again."],
    examples: [
      "roomd file watch build-42/worker-1:/root --recursive",
      "roomd file watch build-42/worker-1:/root --json",
    ],
  })
    .argument("<place>", PLACE, sandboxPlace)
    .option("-r, --recursive", "with the directories below it")
    .option("--after <cursor>", "continue after this change, within 60 s of it")
    .action(async (at: SandboxPlace, { recursive, after, json }: WatchOptions) => {
      try {
        for await (const event of events(files.sandboxFileWatch, { ...at, recursive, after })) {
          if (json) await print(JSON.stringify(event));
          else if (event.type !== "watching") await print(printable(changeText(event)));
        }
      } catch (error) {
        throw lost(error, "`roomd file watch` with --after continues.");
      }
    });
}

function changeText({ type, path, from }: { type: string; path: string; from?: string }): string {
  return from === undefined ? `${type} ${path}` : `${type} ${from} -> ${path}`;
}
