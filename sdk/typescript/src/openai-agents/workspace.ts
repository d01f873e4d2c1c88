/** Transfers the entries of a manifest to a guest: files in one archive, repositories with the guest's git, accounts with its tools. */
import { constants } from "node:fs";
import { lstat, readdir, readFile, realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  type Entry,
  type GitRepo,
  type LocalDir,
  type LocalFile,
  type Manifest,
  normalizeRelativePath,
  permissionsForSandboxEntry,
  SandboxArtifactError,
  SandboxGitCloneError,
  SandboxLocalDirReadError,
  SandboxLocalFileReadError,
  SandboxUnsupportedFeatureError,
} from "@openai/agents-core/sandbox";
import { isHostPathWithinRoot, shellQuote } from "@openai/agents-core/sandbox/internal";
import type { Sandbox } from "../sandbox.ts";
import { end, type Member, packed } from "./tar.ts";

/** Maximum size of one local file. */
const MAX_LOCAL_BYTES = 256 * 1024 * 1024;
const PART_BYTES = 1024 * 1024;
/** With the sticky bit, without set-user-id and set-group-id. */
const MODE_BITS = 0o1777;
/** As /tmp has it. */
const SHARED_MODE = "1777";
/** Fetches a commit in the same way as a branch. */
const CLONE = `set -e
url=$1 ref=$2 subpath=$3 to=$4 mode=$5 owner=$6
command -v git >/dev/null || { echo "There is no git in the sandbox: use a template that has it." >&2; exit 1; }
from=$(mktemp -d)
trap 'rm -rf "$from"' EXIT
git -C "$from" init -q
git -C "$from" fetch -q --depth 1 -- "$url" "$ref"
git -C "$from" checkout -q FETCH_HEAD
mkdir -p -- "$(dirname -- "$to")"
if [ -n "$subpath" ] && [ ! -d "$from/$subpath" ]; then cp -a -- "$from/$subpath" "$to"
else mkdir -p -- "$to"; cp -a -- "$from/$subpath/." "$to"
fi
chmod "$mode" -- "$to"
[ "$owner" = : ] || chown -R "$owner" -- "$to"`;

/** Throws if a manifest requires a feature that a sandbox of roomd does not have. */
export function requireSupported({ entries, extraPathGrants }: Manifest): void {
  for (const { hostPath, path } of extraPathGrants) {
    if (hostPath !== undefined) {
      throw new SandboxUnsupportedFeatureError(
        `${path} cannot be a directory of this host: copy it with a local_dir entry, or use the room's drive.`,
      );
    }
  }
  for (const [path, entry] of Object.entries(entries)) requireSupportedEntry(path, entry);
}

export function requireSupportedEntry(path: string, entry: Entry): void {
  if (entry.type === "dir") {
    for (const [name, child] of Object.entries(entry.children ?? {})) requireSupportedEntry(`${path}/${name}`, child);
  } else if (!["file", "local_file", "local_dir", "git_repo"].includes(entry.type)) {
    throw new SandboxUnsupportedFeatureError(
      `${path} cannot be mounted (${entry.type}): put its files onto the room's drive, which is /mnt/drive in the sandbox.`,
    );
  }
}

/** Creates the workspace, and missing groups and users. If there are users, all of them may write to it. */
export async function makeAccounts(sandbox: Sandbox, { root, users, groups }: Manifest): Promise<void> {
  const names = new Set([...users, ...groups.flatMap((group) => group.users ?? [])].map(({ name }) => name));
  const made = names.size > 0 ? `mkdir -p -m ${SHARED_MODE}` : "mkdir -p";
  const lines = ["set -e", `[ -d ${shellQuote(root)} ] || ${made} -- ${shellQuote(root)}`];
  for (const { name } of groups)
    lines.push(`getent group ${shellQuote(name)} >/dev/null || groupadd -- ${shellQuote(name)}`);
  for (const name of names) {
    const user = shellQuote(name);
    lines.push(
      `if ! id -u ${user} >/dev/null 2>&1; then`,
      `  if getent group ${user} >/dev/null; then useradd -m -g ${user} -- ${user}; else useradd -m -U -- ${user}; fi`,
      "fi",
    );
  }
  for (const group of groups) {
    for (const { name } of group.users ?? [])
      lines.push(`usermod -a -G ${shellQuote(group.name)} -- ${shellQuote(name)}`);
  }
  const { exitCode, stderr } = await sandbox.exec(lines.join("\n"));
  if (exitCode !== 0) throw new SandboxArtifactError(`The workspace and its users could not be made: ${stderr.trim()}`);
}

/** Writes entries to a directory of the guest, owned by a user. */
export async function materialize(
  sandbox: Sandbox,
  { root, entries, extraPathGrants }: Pick<Manifest, "root" | "entries" | "extraPathGrants">,
  user?: string,
): Promise<void> {
  if (Object.keys(entries).length === 0) return;
  const sources = [process.cwd(), ...extraPathGrants.map(({ path }) => path)];
  const repositories: [path: string, entry: GitRepo][] = [];
  async function* archive(): AsyncGenerator<Uint8Array> {
    for await (const member of membersOf("", entries, { sources, repositories, ...(user ? { user } : {}) })) {
      yield* packed(member);
    }
    yield end();
  }
  const unpacking = await sandbox.start(["tar", "-xpf", "-", "-C", root]);
  const { exitCode, stderr } = await unpacking.feed(inParts(archive()));
  if (exitCode !== 0) {
    throw new SandboxArtifactError(`The entries of the manifest could not be unpacked: ${stderr.trim()}`);
  }
  for (const [path, entry] of repositories) await clone(sandbox, `${root}/${path}`, entry, user);
}

/** Merges chunks into parts, since each part is a call to the service. */
async function* inParts(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let part: Uint8Array[] = [];
  let size = 0;
  for await (const bytes of source) {
    part.push(bytes);
    size += bytes.byteLength;
    if (size < PART_BYTES) continue;
    yield Buffer.concat(part);
    part = [];
    size = 0;
  }
  yield Buffer.concat(part);
}

interface Walk {
  /** Local directories from which files may be read. */
  sources: readonly string[];
  /** Repositories found among the entries, to be cloned by the guest. */
  repositories: [path: string, entry: GitRepo][];
  user?: string;
}

async function* membersOf(parent: string, entries: Record<string, Entry>, context: Walk): AsyncGenerator<Member> {
  for (const [name, entry] of Object.entries(entries)) {
    const path = [parent, normalizeRelativePath(name)].filter(Boolean).join("/");
    const group = entry.group?.name ?? context.user;
    const member: Member = {
      path,
      mode: permissionsForSandboxEntry(entry.permissions).toMode() & MODE_BITS,
      ...(context.user ? { user: context.user } : {}),
      ...(group ? { group } : {}),
    };
    if (entry.type === "dir") {
      yield member;
      yield* membersOf(path, entry.children ?? {}, context);
    } else if (entry.type === "file") {
      yield { ...member, content: typeof entry.content === "string" ? Buffer.from(entry.content) : entry.content };
    } else if (entry.type === "local_file") {
      yield { ...member, content: await contentOf(await sourceOf(entry, context.sources)) };
    } else if (entry.type === "local_dir") {
      yield member;
      yield* localMembersOf(await sourceOf(entry, context.sources), member);
    } else if (entry.type === "git_repo") {
      context.repositories.push([path, entry]);
    }
  }
}

/** All entries below a local directory. */
async function* localMembersOf(source: string, parent: Member): AsyncGenerator<Member> {
  for (const { name } of await readdir(source, { withFileTypes: true })) {
    const from = join(source, name);
    const found = await lstat(from);
    const member = { ...parent, path: [parent.path, name].filter(Boolean).join("/"), mode: found.mode & MODE_BITS };
    if (found.isDirectory()) {
      yield member;
      yield* localMembersOf(from, member);
    } else if (found.isFile()) {
      yield { ...member, content: await contentOf(from) };
    } else {
      throw new SandboxLocalDirReadError(`${from} is not a file or directory: a local_dir entry takes no links.`);
    }
  }
}

async function contentOf(path: string): Promise<Uint8Array> {
  const { size } = await lstat(path);
  if (size > MAX_LOCAL_BYTES) {
    throw new SandboxLocalFileReadError(`${path} is larger than 256 MiB: put it onto the room's drive.`);
  }
  // A file that was replaced by a link since the check is not followed.
  return readFile(path, { flag: constants.O_RDONLY | constants.O_NOFOLLOW });
}

/** The real path of a source on this host, which must be below one of the permitted ones. */
async function sourceOf({ type, src }: LocalFile | LocalDir, sources: readonly string[]): Promise<string> {
  const ReadError = type === "local_dir" ? SandboxLocalDirReadError : SandboxLocalFileReadError;
  const real = await realpath(resolve(src)).catch((error: Error) => {
    throw new ReadError(`${src} cannot be read: ${error.message}`);
  });
  for (const source of sources) {
    const root = await realpath(source).catch(() => null);
    if (root !== null && isHostPathWithinRoot(root, real)) return real;
  }
  throw new ReadError(`${src} is not below ${process.cwd()}: name its directory in the manifest's extraPathGrants.`);
}

async function clone(sandbox: Sandbox, to: string, entry: GitRepo, user?: string): Promise<void> {
  const { host = "github.com", repo, ref = "HEAD", subpath = "" } = entry;
  const url = repo.includes("://") || repo.startsWith("git@") ? repo : `https://${host}/${repo}.git`;
  const mode = (permissionsForSandboxEntry(entry.permissions).toMode() & MODE_BITS).toString(8);
  const owner = `${user ?? ""}:${entry.group?.name ?? ""}`;
  const args = [url, ref, normalizeRelativePath(subpath), to, mode, owner];
  const cloned = await sandbox.exec(["sh", "-c", CLONE, "sh", ...args]);
  if (cloned.exitCode !== 0) {
    const hint = "Its host has to be in the sandbox's egress.";
    throw new SandboxGitCloneError(`${url} could not be cloned: ${cloned.stderr.trim()} ${hint}`);
  }
}
