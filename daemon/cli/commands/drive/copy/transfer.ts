/** Transfers of one file, or of a directory with its content, between two trees. */
import { CliError } from "../../../kit/cli-error.ts";
import { bytesText } from "../../../kit/output.ts";
import type { Progress } from "../../../kit/progress.ts";
import type { Content, Tree, TreeEntry, WriteOptions } from "./tree.ts";

export interface Transfer {
  source: Tree;
  target: Tree;
  options: Pick<WriteOptions, "mode" | "owner" | "overwrite">;
  progress: Progress;
}

export interface Copied {
  files: number;
  directories: number;
  links: number;
  size_bytes: number;
  /** Source entries that the target cannot represent, by their paths below the source. */
  left_out: { path: string; type: TreeEntry["type"] }[];
}

/** Number of files copied in parallel. */
const AT_ONCE = 8;
/** Permissions added to copied directories: the owner must be able to write into them. */
const OWNER_ALL = 0o700;

/** Copies one file; `mode` is the source file's. */
export async function copyFile(transfer: Transfer, from: string, to: string, mode: number): Promise<Copied> {
  const { source, target, options, progress } = transfer;
  const shown = `copying ${source.spell(from)}`;
  const content = counted(await source.open(from), (bytes) => progress.say(`${shown}, ${bytesText(bytes)}`));
  try {
    const size_bytes = await target.write(to, content, { ...options, mode: options.mode ?? mode, followLink: true });
    return { files: 1, directories: 0, links: 0, size_bytes, left_out: [] };
  } finally {
    content.close();
  }
}

export async function copyDirectory(transfer: Transfer, from: string, to: string, mode: number): Promise<Copied> {
  const { source, target, options, progress } = transfer;
  const { owner } = options;
  // The listing is completed first: the target may be below the source.
  const entries: TreeEntry[] = [];
  for await (const entry of source.list(from)) entries.push(entry);
  const copied: Copied = { files: 0, directories: 1, links: 0, size_bytes: 0, left_out: [] };
  await target.mkdir(to, { mode: mode | OWNER_ALL, owner, followLink: true });
  const made = new Set([""]);
  for (const each of entries) {
    // A parent directory that this copy did not create could be a link that leads outside.
    if (!made.has(parentOf(each.path))) throw new CliError(`The listing of ${source.spell(from)} is out of order.`);
    if (each.type !== "directory") continue;
    await target.mkdir(target.join(to, each.path), { mode: each.mode | OWNER_ALL, owner, followLink: false });
    made.add(each.path);
    copied.directories += 1;
  }
  const files = entries.filter(({ type }) => type === "file");
  await inParallel(files, async (each) => {
    const content = await source.open(source.join(from, each.path));
    try {
      const how = { ...options, mode: options.mode ?? each.mode, followLink: false };
      const bytes = await target.write(target.join(to, each.path), content, how);
      copied.size_bytes += bytes;
    } finally {
      content.close();
    }
    copied.files += 1;
    progress.say(`copying ${source.spell(from)}, ${copied.files} of ${files.length} files`);
  });
  // Links are created last, so that no file is written through one.
  for (const { path, type, target: leadsTo } of entries) {
    if (type === "file" || type === "directory") continue;
    if (type === "symlink" && leadsTo !== undefined && target.link) {
      await target.link(target.join(to, path), leadsTo);
      copied.links += 1;
    } else copied.left_out.push({ path, type });
  }
  return copied;
}

const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

/** The same content; reports the number of bytes read so far to `told`. */
function counted(content: Content, onProgress: (bytes: number) => void): Content {
  const parts = async function* () {
    let bytes = 0;
    for await (const part of content.stream) {
      bytes += part.byteLength;
      onProgress(bytes);
      yield part;
    }
  };
  return { ...content, stream: parts() };
}

/** Throws the first failure after all started work has ended, so that no draft remains. */
async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items].reverse();
  const failures: unknown[] = [];
  const worker = async () => {
    for (let next = left.pop(); next !== undefined && failures.length === 0; next = left.pop()) {
      await work(next).catch((error: unknown) => void failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, worker));
  if (failures.length > 0) throw failures[0];
}
