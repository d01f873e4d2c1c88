/** `roomd drive`: the room's shared drive. Moving files between it and this machine is in drive-transfer.ts. */
import type { Command } from "commander";
import * as drive from "../../../../shared/api/drive.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { asList, type ListOptions } from "../../kit/list-options.ts";
import { bytesText, type JsonOption, moreLines, show, table } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { type DrivePath, place, placeOrRoom } from "../../kit/values.ts";
import { readCommand, writeCommand } from "./drive-text.ts";
import { getCommand, putCommand } from "./drive-transfer.ts";

export function driveCommand(): Command {
  return commandGroup("drive", {
    summary: "a room's shared drive, /mnt/drive in its sandboxes",
    examples: [
      "roomd drive put report.txt build-42:/in/report.txt",
      "roomd drive ls build-42",
      "roomd drive get build-42:/out.csv -",
    ],
  })
    .addCommand(ls())
    .addCommand(getCommand())
    .addCommand(putCommand())
    .addCommand(readCommand())
    .addCommand(writeCommand())
    .addCommand(stat())
    .addCommand(mkdir())
    .addCommand(mv())
    .addCommand(rm());
}

interface LsOptions extends ListOptions {
  recursive?: boolean;
}

function ls(): Command {
  const about = {
    summary: "list a directory of the drive",
    examples: ["roomd drive ls build-42", "roomd drive ls build-42:/results --recursive"],
  };
  const made = asList(command("ls", about)).option("-r, --recursive", "with everything below it");
  return made
    .argument("<place>", "ROOM or ROOM:/path", placeOrRoom)
    .action(async (at: DrivePath, options: LsOptions) => {
      const { json, recursive = false, limit, cursor } = options;
      const reply = await call(drive.fsList, { ...at, recursive, limit, cursor });
      await show(reply, { json }, ({ items, next_cursor }) => [
        ...table(
          ["MODE", "TYPE", "SIZE", "MODIFIED", "PATH"],
          items.map(({ mode, type, size_bytes, modified_at, path, target }) => [
            mode,
            type,
            type === "file" ? bytesText(size_bytes) : null,
            modified_at,
            target === undefined ? path : `${path} -> ${target}`,
          ]),
        ),
        ...moreLines(next_cursor),
      ]);
    });
}

function stat(): Command {
  return command("stat", { summary: "describe one entry", examples: ["roomd drive stat build-42:/out.csv"] })
    .argument("<place>", "ROOM:/path", place)
    .action(async (at: DrivePath, options: JsonOption) => {
      await show(await call(drive.fsStat, at), options, recordLines);
    });
}

function mkdir(): Command {
  return command("mkdir", {
    summary: "make a directory and its missing parents",
    examples: ["roomd drive mkdir build-42:/results/logs"],
  })
    .argument("<place>", "ROOM:/path", place)
    .option("--mode <octal>", "permissions of the directory (default: 0755)")
    .option("--owner <uid:gid>", "its owner, also of the parents that are made")
    .action(async (at: DrivePath, options: JsonOption & { mode?: string; owner?: string }) => {
      const reply = await call(drive.fsMkdir, { ...at, mode: options.mode, owner: options.owner });
      await show(reply, options, ({ path, created }) => [created ? `made ${path}` : `${path} already exists`]);
    });
}

interface MvOptions extends JsonOption {
  overwrite?: boolean;
}

function mv(): Command {
  return command("mv", {
    summary: "move an entry within a room's drive",
    examples: [
      "roomd drive mv build-42:/draft.txt build-42:/final.txt",
      "roomd drive mv build-42:/a build-42:/b --overwrite",
    ],
  })
    .argument("<from>", "ROOM:/path", place)
    .argument("<to>", "ROOM:/path in the same room", place)
    .option("--overwrite", "replace an existing entry")
    .action(async (from: DrivePath, to: DrivePath, options: MvOptions) => {
      if (from.room_id !== to.room_id) {
        throw new CliError(
          "Both places must be in one room. Between rooms use `drive get` and `drive put`.",
          EXIT.usage,
        );
      }
      const reply = await call(drive.fsMove, {
        room_id: from.room_id,
        from: from.path,
        to: to.path,
        overwrite: options.overwrite,
      });
      await show(reply, options, ({ path }) => [`moved to ${path}`]);
    });
}

interface RmOptions extends JsonOption {
  recursive?: boolean;
}

function rm(): Command {
  return command("rm", {
    summary: "delete an entry",
    examples: ["roomd drive rm build-42:/draft.txt", "roomd drive rm build-42:/results --recursive"],
  })
    .argument("<place>", "ROOM:/path", place)
    .option("-r, --recursive", "with everything in it")
    .action(async (at: DrivePath, options: RmOptions) => {
      const reply = await call(drive.fsDelete, { ...at, recursive: options.recursive });
      await show(reply, options, ({ path }) => [`deleted ${path}`]);
    });
}
