/** The commands for the room's drive, which use its API: their writes are recorded, unlike writes to /mnt/drive. */
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { Command } from "commander";
import { call, type Json, print, send } from "./api.ts";

const encoded = (path: string) =>
  path
    .replace(/^(\/mnt\/drive)?\/*/, "")
    .split("/")
    .map(encodeURIComponent)
    .join("/");

export function driveCommand(): Command {
  const ls = new Command("ls")
    .description("list a directory")
    .argument("[path]", "", "/")
    .action(async (path: string, options: { json?: boolean }) => {
      const { items } = (await call("GET", `/drive/list?path=${encodeURIComponent(path)}`)) as { items: Json[] };
      print(items, options, () => items.map((item) => String(item.path)));
    });
  const get = new Command("get")
    .description("copy a file from the drive, by default to standard output")
    .argument("<path>")
    .argument("[target]")
    .action(async (path: string, target: string | undefined) => {
      const bytes = await (await send("GET", `/drive/files/${encoded(path)}`)).bytes();
      if (target === undefined) process.stdout.write(bytes);
      else writeFileSync(target, bytes);
    });
  const put = new Command("put")
    .description("copy a file to the drive")
    .argument("<file>", "- is standard input")
    .argument("[path]", "path on the drive (default: the file's name)")
    .action(async (file: string, path: string | undefined, options: { json?: boolean }) => {
      const bytes = file === "-" ? await Bun.stdin.bytes() : readFileSync(file);
      const place = encoded(path ?? basename(file));
      const written = (await (await send("PUT", `/drive/files/${place}`, new Uint8Array(bytes))).json()) as Json;
      print(written, options, () => [String(written.path)]);
    });
  return new Command("drive").description("the room's drive").addCommand(ls).addCommand(get).addCommand(put);
}
