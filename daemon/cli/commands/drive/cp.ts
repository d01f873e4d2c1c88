/** `roomd cp`: copies files and directories between the local machine, sandboxes and the drives of rooms. */
import { type Command, InvalidArgumentError } from "commander";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { command } from "../../kit/command.ts";
import { bytesText, counted, type JsonOption, printable, say, showValue, write } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { whole } from "../../kit/save-answer.ts";
import { stdinParts } from "../../kit/standard-input.ts";
import { type CopyPlace, copyPlace } from "./copy/place.ts";
import { type Copied, copyDirectory, copyFile, type Transfer } from "./copy/transfer.ts";
import type { Tree } from "./copy/tree.ts";

interface CopyOptions extends JsonOption {
  recursive?: true;
  mode?: number;
  owner?: string;
  overwrite: boolean;
}

type InTree = CopyPlace & { tree: Tree };

export function cpCommand(): Command {
  return command("cp", {
    summary: "copy files to and from a sandbox or a room's drive",
    notes: [
      "SRC and DST are ROOM/AGENT:PATH (a sandbox), ROOM:PATH (the drive), a path of this machine, or - for standard input or output;",
      "at least one of them is in a room. As with cp(1), a directory DST receives the copy under its own name, and SRC/. means the contents of SRC.",
      "Symbolic links in a directory are copied to this machine as links; to a sandbox or a drive they are left out, with a warning.",
    ],
    examples: [
      "roomd cp report.txt build-42/worker-1:/root/",
      "roomd cp -r build-42/worker-1:/root/out out",
      "roomd cp -r src build-42:/src --owner 1000:1000",
      "tar c src | roomd cp - build-42/worker-1:/tmp/src.tar",
      "roomd cp build-42:/out.csv - | head",
    ],
  })
    .argument("<src>", "ROOM/AGENT:PATH, ROOM:PATH, a local path or -", copyPlace)
    .argument("<dst>", "the same", copyPlace)
    .option("-r, --recursive", "a directory, with everything in it")
    .option("--mode <octal>", "permissions of the files (default: as in the source)", octal)
    .option(
      "--owner <user[:group]>",
      "owner of the copies in a sandbox (default: the user that commands run as) or on a drive",
    )
    .option("--no-overwrite", "refuse when the file exists")
    .action(async (from: CopyPlace, to: CopyPlace, options: CopyOptions) => {
      if (!from.tree?.isRemote && !to.tree?.isRemote) throw new CliError(NO_ROOM, EXIT.usage);
      if (options.owner !== undefined && !to.tree?.isRemote) {
        throw new CliError("--owner is for copies into a sandbox or onto a drive.", EXIT.usage);
      }
      if (!isInTree(to)) return await toStandardOutput(from as InTree);
      if (!isInTree(from)) return await fromStandardInput(to, options);
      await copy(from, to, options);
    });
}

const NO_ROOM = {
  detail: "Neither SRC nor DST is in a room.",
  errors: [],
  hint: "Write ROOM/AGENT:PATH for a file of a sandbox, or ROOM:PATH for one of the room's drive.",
};

const isInTree = (place: CopyPlace): place is InTree => place.tree !== null;

async function copy(from: InTree, to: InTree, { json, recursive, mode, owner, overwrite }: CopyOptions): Promise<void> {
  const shown = from.tree.spell(from.path);
  const { done, path } = await withProgress(`copying ${shown}`, async (progress) => {
    const found = await sourceOf(from);
    if (found.type === "directory" && !recursive) throw new CliError(withoutRecursive(shown), EXIT.usage);
    const isInside = from.name !== "" && (await isDirectory(to, found.type !== "directory"));
    const target = isInside ? to.tree.join(to.path, from.name) : to.path;
    const transfer: Transfer = { source: from.tree, target: to.tree, options: { mode, owner, overwrite }, progress };
    const work = found.type === "directory" ? copyDirectory : copyFile;
    return { done: await work(transfer, from.path, target, found.mode), path: target };
  });
  const value = { from: shown, to: to.tree.spell(path), ...done };
  await showValue(value, { json }, () => [printable(`copied ${sumOf(done)} to ${value.to}`)]);
  if (done.left_out.length > 0 && !json) await say(printable(leftOut(done)));
}

/** The source's entry. Throws CliError if it does not exist. */
async function sourceOf({ tree, path }: InTree) {
  const found = await tree.stat(path);
  if (!found) throw new CliError(`${tree.spell(path)}: no such file or directory.`);
  return found;
}

/** Whether the target is a directory: then the copy is placed in it under its own name. */
async function isDirectory({ tree, path, isDirectory: isWritten }: InTree, isOfFile: boolean): Promise<boolean> {
  return (isOfFile && isWritten) || (await tree.stat(path))?.type === "directory";
}

function withoutRecursive(shown: string) {
  return { detail: `${shown} is a directory.`, errors: [], hint: "With -r it is copied with everything in it." };
}

async function toStandardOutput(from: InTree): Promise<void> {
  const found = await sourceOf(from);
  const shown = from.tree.spell(from.path);
  if (found.type === "directory") {
    throw new CliError(`${shown} is a directory: only a file can be written to standard output.`, EXIT.usage);
  }
  const content = await from.tree.open(from.path);
  for await (const part of whole(content)) await write(process.stdout, part);
}

async function fromStandardInput(to: InTree, { json, mode, owner, overwrite }: CopyOptions): Promise<void> {
  if (to.isDirectory) throw new CliError("Standard input has no name: DST must be the file's own path.", EXIT.usage);
  const content = { stream: stdinParts(), size: null, close: () => {} };
  const shown = to.tree.spell(to.path);
  const size_bytes = await withProgress(`copying to ${shown}`, () =>
    to.tree.write(to.path, content, { mode, owner, overwrite, followLink: true }),
  );
  const done: Copied = { files: 1, directories: 0, links: 0, size_bytes, left_out: [] };
  await showValue({ from: "-", to: shown, ...done }, { json }, () => [printable(`copied ${sumOf(done)} to ${shown}`)]);
}

function sumOf({ files, directories, links, size_bytes }: Copied): string {
  if (directories === 0) return bytesText(size_bytes);
  const parts = [counted(files, "file"), counted(directories, "directory", "directories")];
  if (links > 0) parts.push(counted(links, "link"));
  return `${parts.join(", ")}, ${bytesText(size_bytes)},`;
}

/** Sentence about entries that were not copied, with as many names as fit one or two lines. */
function leftOut({ left_out }: Copied): string {
  const links = left_out.filter(({ type }) => type === "symlink").length;
  const others = left_out.length - links;
  const counts = [
    ...(links > 0 ? [counted(links, "symbolic link")] : []),
    ...(others > 0 ? [counted(others, "special file")] : []),
  ];
  const names = left_out.slice(0, 5).map(({ path }) => path);
  return `left out ${counts.join(" and ")}: ${names.join(", ")}${left_out.length > names.length ? ", …" : ""}`;
}

function octal(text: string): number {
  if (!/^0?[0-7]{3}$/.test(text)) throw new InvalidArgumentError("It must be permissions in octal, such as 0644.");
  return Number.parseInt(text, 8);
}
